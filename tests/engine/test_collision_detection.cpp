// Collision detection: which candidates are active, their frames and wrenches, the deepest vertices of
// meshes, adjoint.
#include "allocation.hpp"
#include "contact_stage.hpp"
#include "reference.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// The stage at one state, with velocities qvel.
struct At {
  const ModelStorage& storage;
  Owned<Parameters<double>> parameters;
  Owned<Kinematics<double>> kinematics;
  Owned<Contacts<double>> contacts;

  At(const ModelStorage& storage, const Doubles& qpos, const Doubles& qvel)
      : storage(storage),
        parameters(storage.model()),
        kinematics(storage.model()),
        contacts(storage.model()) {
    const Model& model = storage.model();
    load_defaults(storage, *parameters);
    revolute::kinematics(model, *parameters, qpos.data(), qvel.data(), *kinematics);
    collision_detection(model, *kinematics, kinematics->V, model.timestep, *contacts);
  }
  const Candidate& candidate(int c) { return *contacts->list[c].candidate; }
};

// All candidates are active.
MujocoArrays wide_margin(MujocoArrays arrays) {
  arrays.margin = 100.0;
  return arrays;
}

Matrix3<double> geom_rotation_of(const MujocoArrays& a, const ReferencePose& pose, int g) {
  return pose.bodies[a.geom_bodyid[g]].R * rotation_of(&a.geom_quat[4 * g]);
}
Point geom_position_of(const MujocoArrays& a, const ReferencePose& pose, int g) {
  const ReferenceBody& body = pose.bodies[a.geom_bodyid[g]];
  return body.position + body.R * vector3<double>(&a.geom_pos[3 * g]);
}

// A candidate is active when it is closer than the margin now or would be at the end of the step.
void activity_looks_one_step_ahead() {
  ModelMaker m;
  const int plane = m.add_geom(0, plane_geom, {0, 0, 1});
  const int body = m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1.0);
  m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
  m.add_pair(plane, m.add_geom(body, sphere_geom, {0.1, 0, 0}));
  const ModelStorage storage(m.arrays);
  const auto active = [&](double gap, double speed) {
    At at(storage, {0, 0, 0.1 + gap, 1, 0, 0, 0}, {0.3, 0.1, speed, 0, 0, 0});
    return at.contacts->count == 1;
  };
  // margin 0.01, step 0.01
  CHECK(active(-0.2, 0) && active(0.0, 0) && active(0.0099, 0) && !active(0.0101, 0));
  CHECK(active(0.0099, 5) && active(-0.001, 5));
  CHECK(active(0.0499, -4) && !active(0.0501, -4));

  m.arrays.contact = false;
  const ModelStorage without(m.arrays);
  CHECK(At(without, {0, 0, 0, 1, 0, 0, 0}, Doubles(6, 0.0)).contacts->count == 0);
}

// Gap, point and normal of the pair functions at the shapes' poses.
void shapes_stand_where_their_bodies_are() {
  Random random(110);
  const std::pair<int, int> pairs[] = {{sphere_geom, sphere_geom},
                                       {sphere_geom, capsule_geom},
                                       {capsule_geom, capsule_geom},
                                       {sphere_geom, box_geom}};
  for (const auto& [type_a, type_b] : pairs) {
    const MujocoArrays arrays = wide_margin(two_shapes(type_a, type_b));
    const ModelStorage storage(arrays);
    const Doubles qpos = random_qpos(storage, arrays, random, 0.5);
    At at(storage, qpos, Doubles(12, 0.0));
    const ReferencePose pose = reference_pose(arrays, qpos);
    const Matrix3<double> R_a = geom_rotation_of(arrays, pose, 0), R_b = geom_rotation_of(arrays, pose, 1);
    const Point a = geom_position_of(arrays, pose, 0), b = geom_position_of(arrays, pose, 1);
    const Segment<double> A = {a, R_a.column(2), 0.25}, B = {b, R_b.column(2), 0.25};
    const ContactPoint<double> wanted = type_b == sphere_geom ? sphere_sphere(a, 0.15, b, 0.15)
                                        : type_b == box_geom ? sphere_box(a, 0.15, {R_b, b, {0.2, 0.15, 0.1}})
                                        : type_a == capsule_geom ? capsule_capsule(A, 0.08, B, 0.08)
                                                                 : sphere_capsule(a, 0.15, B, 0.08);
    CHECK(at.contacts->count == 1);
    const Contact<double>& contact = at.contacts->list[0];
    CHECK_CLOSE(contact.gap, wanted.gap, rounding);
    CHECK_CLOSE(numbers(contact.at.point), numbers(wanted.point), rounding);
    CHECK_CLOSE(numbers(contact.axis[0]), numbers(wanted.normal), rounding);
  }
}

// A box touches a plane with its corners, a capsule with its ends.
void corners_on_a_plane() {
  const MujocoArrays arrays = wide_margin(box_on_plane());
  const ModelStorage storage(arrays);
  Random random(111);
  const Doubles qpos = random_qpos(storage, arrays, random, 0.5);
  At at(storage, qpos, Doubles(6, 0.0));
  const ReferencePose pose = reference_pose(arrays, qpos);
  const Point normal = geom_rotation_of(arrays, pose, 0).column(2),
              origin = geom_position_of(arrays, pose, 0);
  Doubles gaps, wanted;
  for (int c = 0; c < at.contacts->count; ++c) gaps.push_back(at.contacts->list[c].gap);
  for (int i = 0; i < 8; ++i) {
    const Point corner = {i & 4 ? 0.2 : -0.2, i & 2 ? 0.15 : -0.15, i & 1 ? 0.1 : -0.1};
    const Point at_world = geom_position_of(arrays, pose, 1) + geom_rotation_of(arrays, pose, 1) * corner;
    wanted.push_back(dot(normal, at_world - origin));
  }
  std::sort(gaps.begin(), gaps.end());
  std::sort(wanted.begin(), wanted.end());
  CHECK_CLOSE(gaps, wanted, rounding);
}

// f_a . V_a + f_b . V_b of axis d
double row_velocity(At& at, const Contact<double>& contact, int d) {
  const Candidate& candidate = *contact.candidate;
  const Motion<double>* V = at.kinematics->V;
  return dot(at_link(V, candidate.link_a), contact.force_a[d]) +
         dot(at_link(V, candidate.link_b), contact.force_b[d]);
}

// Row d says how fast b moves away from a along axis d at the contact, and the normal row how fast the gap
// opens.
void rows_are_relative_velocities() {
  const MujocoArrays arrays = wide_margin(crowd());
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  Random random(112);
  const Doubles qpos = random_qpos(storage, arrays, random, 0.2), qvel = random.normals(arrays.nv);
  At at(storage, qpos, qvel);
  const ReferencePose pose = reference_pose(arrays, qpos);
  int pairs = 0;
  for (int i = 0; i < model.ncandidate; ++i) pairs += model.candidates[i].slot == 0;
  CHECK(at.contacts->count >= pairs);  // each pair has a contact at least
  const double t = 1e-5;
  const auto moved = [&](double by) {
    Doubles tangent = qvel;
    for (double& v : tangent) v *= by;
    return At(storage, displaced(model, qpos, tangent), qvel);
  };
  At later = moved(t), earlier = moved(-t);
  for (int c = 0; c < at.contacts->count; ++c) {
    const Contact<double>& contact = at.contacts->list[c];
    const int body_a = arrays.geom_bodyid[at.candidate(c).geom_a],
              body_b = arrays.geom_bodyid[at.candidate(c).geom_b];
    const Dense relative = jacobian(pose, body_b, contact.at.point) * column(qvel) +
                           -1.0 * (jacobian(pose, body_a, contact.at.point) * column(qvel));
    for (int d = 0; d < 3; ++d) {
      CHECK_CLOSE(row_velocity(at, contact, d), dot(contact.axis[d], vector3<double>(&relative.entries[3])),
                  rounding);
    }
    const double opening = (later.contacts->list[c].gap - earlier.contacts->list[c].gap) / (2 * t);
    CHECK_CLOSE(row_velocity(at, contact, 0), opening, differenced);
    CHECK_CLOSE(numbers(cross(contact.axis[0], contact.axis[1])), numbers(contact.axis[2]), rounding);
  }
}

// All vertices of a small hull; of a larger one some that are hardly higher than the lowest, which is among
// them; never more than there are slots.
void lowest_vertices_of_meshes() {
  Random random(113);
  for (int vertices : {3, 4, 5, 30}) {
    ModelMaker m;
    m.arrays.margin = 100.0;
    const int plane = m.add_geom(0, plane_geom, {0, 0, 1}, {0.3, 0.1, -0.2}, {0.3, 0.2, 0.1});
    const int body = m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1.0);
    m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
    const int mesh = m.add_mesh(body, {}, {0.1, 0.2, 0.3}, {0.2, -0.5, 0.4});
    m.arrays.hull_vert = random.normals(3 * vertices);
    m.arrays.hull_num[mesh] = vertices;
    m.arrays.geom_rbound[mesh] = 10.0;
    m.add_pair(plane, mesh);
    const ModelStorage storage(m.arrays);
    const Doubles qpos = random_qpos(storage, m.arrays, random, 1.0);
    At at(storage, qpos, Doubles(6, 0.0));
    const ReferencePose pose = reference_pose(m.arrays, qpos);
    const Matrix3<double> R = geom_rotation_of(m.arrays, pose, mesh);
    const Point normal = geom_rotation_of(m.arrays, pose, plane).column(2);
    Doubles heights, gaps;
    for (int i = 0; i < vertices; ++i) {
      const Point vertex =
          geom_position_of(m.arrays, pose, mesh) + R * vector3<double>(&m.arrays.hull_vert[3 * i]);
      heights.push_back(dot(normal, vertex - geom_position_of(m.arrays, pose, plane)));
    }
    std::sort(heights.begin(), heights.end());
    for (int c = 0; c < at.contacts->count; ++c) gaps.push_back(at.contacts->list[c].gap);
    std::sort(gaps.begin(), gaps.end());
    if (!CHECK(!gaps.empty() && gaps.size() <= std::size_t(std::min(vertices, manifold_points)))) continue;
    CHECK_CLOSE(gaps[0], heights[0], rounding);
    for (double gap : gaps) {
      const auto nearest = std::lower_bound(heights.begin(), heights.end(), gap - rounding);
      CHECK(nearest != heights.end() && *nearest <= gap + rounding);
      if (vertices > manifold_points)
        CHECK(gap <= std::max(heights[0], 0.0) + 1e-3 * m.arrays.geom_rbound[mesh] + rounding);
    }
  }
}

// --- adjoint -----------------------------------------------------------------------------------------------

void adjoint_and_lanes() {
  Random random(114);
  for (const MujocoArrays& base :
       {crowd(), box_on_plane(), two_shapes(sphere_geom, box_geom), two_shapes(capsule_geom, capsule_geom)}) {
    const MujocoArrays arrays = wide_margin(base);
    const ModelStorage storage(arrays);
    for (int trial = 0; trial < 3; ++trial) {
      const ContactStage stage{storage, random_qpos(storage, arrays, random, 0.2)};
      const ContactStageAdjoint adjoint{stage};
      const Doubles in(arrays.nv, 0.0);
      check_adjoint("collision_detection", random, in, stage.n_out(), stage, adjoint, smooth);
      const std::vector<Doubles> environments = environments_around(random, in, 0.3);
      check_lanes("collision_detection", environments, stage.n_out(), stage);
      check_adjoint_lanes("collision_detection", random, environments, stage.n_out(), adjoint);
    }
  }
}

void takes_nothing_from_the_heap() {
  const MujocoArrays arrays = wide_margin(crowd());
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  At at(storage, arrays.qpos0, Doubles(arrays.nv, 0.1));
  Owned<KinematicsCotangent<double>> kin_bar(model);
  kin_bar->clear(model);
  const ContactCotangent<double> bar = {};
  check_no_allocation("collision_detection", [&] {
    collision_detection(model, *at.kinematics, at.kinematics->V, model.timestep, *at.contacts);
    for (int c = 0; c < at.contacts->count; ++c)
      collision_detection_adjoint(model, *at.kinematics, at.contacts->list[c], bar, *kin_bar);
  });
}

}  // namespace

int main() {
  return run({{"activity", activity_looks_one_step_ahead},
              {"poses of shapes", shapes_stand_where_their_bodies_are},
              {"corners on a plane", corners_on_a_plane},
              {"rows", rows_are_relative_velocities},
              {"lowest vertices of meshes", lowest_vertices_of_meshes},
              {"adjoint and lanes", adjoint_and_lanes},
              {"allocation", takes_nothing_from_the_heap}});
}
