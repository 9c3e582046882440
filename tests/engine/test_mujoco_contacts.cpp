// The pairs for which MuJoCo has a closed formula: adjoints against differences and forward derivatives, packs against single
// runs, number and order of the points. That the values are MuJoCo's is tested in Python (test_mujoco_geometry.py).
#include "allocation.hpp"
#include "contact_stage.hpp"
#include "dense.hpp"
#include "revolute/scalar/dual.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

constexpr double margin = 0.05;

// Adds a free body with one shape, or the plane; a mesh is a wedge with a hexagon below.
int add_shape(ModelMaker& m, int type) {
  if (type == plane_geom) return m.add_geom(0, plane_geom, {0, 0, 1}, {0.1, -0.2, 0.05}, {0.1, -0.05, 0.3});
  const int body = m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1.0);
  m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
  const Point position = {0.02, -0.01, 0.03}, turn = {0.2, 0.5, 0.1};
  if (type == mesh_geom) {
    std::vector<Point> vertices;
    std::vector<int> hexagon, top;
    std::vector<std::vector<int>> faces;
    for (int i = 0; i < 6; ++i) {
      const double angle = 1.0471975511965976 * i;
      vertices.push_back({0.2 * std::cos(angle), (0.15 + 0.01 * i) * std::sin(angle), -0.1});
      hexagon.push_back(i);
      faces.push_back({i, (i + 1) % 6, 6});
    }
    vertices.push_back({0.03, 0.02, 0.2});
    faces.push_back(hexagon);
    const int mesh = m.add_mesh(body, vertices, position, turn);
    m.add_faces(faces);
    return mesh;
  }
  const Point size = type == sphere_geom    ? Point{0.15, 0, 0}
                     : type == capsule_geom ? Point{0.08, 0.25, 0}
                                            : Point{0.2, 0.15, 0.1};
  return m.add_geom(body, type, size, position, turn);
}
MujocoArrays pair_of(int type_a, int type_b) {
  ModelMaker m;
  m.arrays.margin = margin;
  const int a = add_shape(m, type_a), b = add_shape(m, type_b);
  m.add_pair(a, b);
  m.make_soft();
  return m.arrays;
}

const std::pair<int, int> closed_pairs[] = {
    {plane_geom, sphere_geom},   {plane_geom, capsule_geom},   {plane_geom, box_geom},
    {plane_geom, cylinder_geom}, {plane_geom, ellipsoid_geom}, {plane_geom, mesh_geom},
    {sphere_geom, sphere_geom},  {sphere_geom, capsule_geom},  {sphere_geom, cylinder_geom},
    {sphere_geom, box_geom},     {capsule_geom, capsule_geom}, {capsule_geom, box_geom},
    {box_geom, box_geom}};

int count_contacts(const ModelStorage& storage, const Doubles& qpos) {
  const ContactStage stage{storage, qpos};
  Owned<Parameters<double>> parameters(storage.model());
  Owned<Kinematics<double>> kin(storage.model());
  Owned<Contacts<double>> contacts(storage.model());
  const Doubles in(storage.model().nv, 0.0);
  stage.run(in.data(), *parameters, *kin, *contacts);
  return contacts->count;
}
Doubles touching_qpos(const ModelStorage& storage, const MujocoArrays& arrays, Random& random) {
  for (;;) {
    const Doubles qpos = random_qpos(storage, arrays, random, 0.15);
    if (count_contacts(storage, qpos) > 0) return qpos;
  }
}

// <out_bar, J d> by forward derivatives: exact, so that both sides agree to rounding.
void check_forward(const ContactStage& stage, Random& random, double size) {
  const int nv = stage.model().nv;
  const Doubles direction = random.normals(nv), out_bar = random.normals(stage.n_out()), in(nv, 0.0);
  std::vector<Dual<1>> seeded(nv), out(stage.n_out(), Dual<1>(0.0));
  for (int k = 0; k < nv; ++k) {
    seeded[k] = Dual<1>(0.0);
    seeded[k].tangent[0] = direction[k];
  }
  stage(seeded.data(), out.data());
  double forward = 0, scale = 1;
  for (int i = 0; i < stage.n_out(); ++i) {
    forward += out_bar[i] * out[i].tangent[0];
    scale += std::fabs(out_bar[i] * out[i].tangent[0]);
  }
  Doubles in_bar(nv, 0.0);
  ContactStageAdjoint{stage}(in.data(), out_bar.data(), in_bar.data());
  CHECK_CLOSE(inner(in_bar, direction) / scale, forward / scale, size);
}

void adjoints_and_lanes() {
  Random random(200);
  for (const auto& [type_a, type_b] : closed_pairs) {
    const MujocoArrays arrays = pair_of(type_a, type_b);
    const ModelStorage storage(arrays);
    const std::string name = "mujoco contacts " + std::to_string(type_a) + " " + std::to_string(type_b);
    for (int trial = 0; trial < 40; ++trial) {
      const ContactStage stage{storage, touching_qpos(storage, arrays, random)};
      check_forward(stage, random, solved);
      if (trial > 2) continue;
      const Doubles in(arrays.nv, 0.0);
      const ContactStageAdjoint adjoint{stage};
      check_adjoint(name, random, in, stage.n_out(), stage, adjoint, differenced,
                    {{"qpos", 0, arrays.nv, 0.01}});
      const std::vector<Doubles> environments = environments_around(random, in, 0.2);
      check_lanes(name, environments, stage.n_out(), stage);
      check_adjoint_lanes(name, random, environments, stage.n_out(), adjoint);
    }
  }
}

// Poses at which a pair has as many points as it can have; turned a little, so that no choice hangs in the balance.
struct Stand {
  int type_a, type_b, points;
  Point position;
  Point turn;
};
MujocoArrays upright_pair_of(const Stand& stand) {
  MujocoArrays arrays = pair_of(stand.type_a, stand.type_b);
  for (int g = 0; g < arrays.ngeom; ++g) {
    for (int i = 0; i < 3; ++i) arrays.geom_pos[3 * g + i] = 0;
    for (int i = 0; i < 4; ++i) arrays.geom_quat[4 * g + i] = i == 0;
  }
  return arrays;
}
Doubles standing_qpos(const MujocoArrays& arrays, const Stand& stand) {
  const Quaternion<double> turn = exponential(stand.turn);
  Doubles qpos = {stand.position.x, stand.position.y, stand.position.z, turn.w, turn.x, turn.y, turn.z};
  if (arrays.nq == 14) {
    const Doubles first = {0, 0, 0, 1, 0, 0, 0};
    qpos.insert(qpos.begin(), first.begin(), first.end());
  }
  return qpos;
}
const Stand stands[] = {{plane_geom, box_geom, 4, {0, 0, 0.09}, {0.01, 0.02, 0.3}},
                        {plane_geom, cylinder_geom, 3, {0, 0, 0.14}, {0.02, 0.01, 0}},
                        {plane_geom, cylinder_geom, 2, {0, 0, 0.19}, {1.57, 0.01, 0}},
                        {plane_geom, capsule_geom, 2, {0, 0, 0.07}, {0, 1.57, 0.1}},
                        {plane_geom, mesh_geom, 4, {0, 0, 0.09}, {0.01, 0.02, 0}},
                        {capsule_geom, capsule_geom, 2, {0.15, 0.02, 0.1}, {0, 0, 0.3}},
                        {capsule_geom, capsule_geom, 2, {0.15, 0.02, -0.1}, {0, 3.14159265358979, 0}},
                        {capsule_geom, box_geom, 2, {0.27, 0.03, 0.1}, {0.02, 0.01, 0.02}},
                        {box_geom, box_geom, 8, {0.01, 0.02, 0.19}, {0.01, 0.02, 0.8}},
                        {box_geom, box_geom, 4, {0.05, 0.02, 0.19}, {0.01, 0.02, 0.1}},
                        {box_geom, box_geom, 1, {0.2, 0.12, 0.15}, {0.6, 0.9, 0.1}}};

void whole_manifolds() {
  Random random(201);
  for (const Stand& stand : stands) {
    const MujocoArrays arrays = upright_pair_of(stand);
    const ModelStorage storage(arrays);
    const Doubles qpos = standing_qpos(arrays, stand);
    CHECK_CLOSE(double(count_contacts(storage, qpos)), double(stand.points), 0.0);
    for (int trial = 0; trial < 5; ++trial) check_forward({storage, qpos}, random, solved);
  }
}

// A capsule's axis gives the first tangent against a plane; other pairs take y, or z where the normal is near y.
void frames() {
  const Stand lying = {plane_geom, capsule_geom, 2, {0, 0, 0.07}, {0, 1.5707963267948966, 0}};
  MujocoArrays arrays = upright_pair_of(lying);
  const ModelStorage storage(arrays);
  Owned<Parameters<double>> parameters(storage.model());
  Owned<Kinematics<double>> kin(storage.model());
  Owned<Contacts<double>> contacts(storage.model());
  const ContactStage stage{storage, standing_qpos(arrays, lying)};
  const Doubles in(arrays.nv, 0.0);
  stage.run(in.data(), *parameters, *kin, *contacts);
  CHECK_CLOSE(numbers(contacts->list[0].axis[1]), Doubles({1, 0, 0}), rounding);
  for (const Point& n : {Point{0, 0, 1}, Point{0.8, 0.49, std::sqrt(0.1199)}, Point{0.8, 0.6, 0}}) {
    Point t1, t2;
    mujoco::tangents(n, mujoco::default_axis(n), t1, t2);
    CHECK_CLOSE(dot(t1, n), 0.0, rounding);
    CHECK_CLOSE(dot(t1, t1), 1.0, rounding);
    CHECK(std::fabs(n.y) < 0.5 ? t1.y > 0 : t1.z > 0.99);
    CHECK_CLOSE(numbers(cross(n, t1)), numbers(t2), rounding);
  }
}

void takes_nothing_from_the_heap() {
  for (const auto& [type_a, type_b] : closed_pairs) {
    Random random(202);
    const MujocoArrays arrays = pair_of(type_a, type_b);
    const ModelStorage storage(arrays);
    const Model& model = storage.model();
    const ContactStage stage{storage, touching_qpos(storage, arrays, random)};
    Owned<Parameters<double>> parameters(model);
    Owned<Kinematics<double>> kin(model);
    Owned<Contacts<double>> contacts(model);
    Owned<KinematicsCotangent<double>> kin_bar(model);
    const Doubles in(arrays.nv, 0.0);
    stage.run(in.data(), *parameters, *kin, *contacts);
    kin_bar->clear(model);
    const ContactCotangent<double> bar = {};
    check_no_allocation("mujoco contacts", [&] {
      collision_detection(model, *kin, kin->V, model.timestep, *contacts);
      for (int c = 0; c < contacts->count; ++c)
        collision_detection_adjoint(model, *kin, contacts->list[c], bar, *kin_bar);
    });
  }
}

}  // namespace

int main() {
  return run({{"adjoints and lanes", adjoints_and_lanes},
              {"whole manifolds", whole_manifolds},
              {"frames", frames},
              {"allocation", takes_nothing_from_the_heap}});
}
