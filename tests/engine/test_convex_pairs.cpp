// Pairs of general convex shapes: signed distances against the separation in many directions, points and
// normals, contact areas at rest, adjoints, lanes, degenerate poses.
//
// Two free bodies carry a shape each; the functors under test displace the bodies and run the stage.
#include <array>
#include <memory>
#include <stdexcept>

#include "models.hpp"
#include "packing.hpp"
#include "revolute/step.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// Newton's method stops at a step of 1e-13; a face is preferred to a better point by this part of the size.
constexpr double nearly_equal = 3e-6;
constexpr int n_in = 12 + 14, n_out = 7 * manifold_points;
constexpr double far_away = 1e8;

struct ShapeOf {
  const char* name;
  int type;
  Point size;
  double bound;
};
const ShapeOf plane = {"plane", plane_geom, {0, 0, 1}, 0};
const ShapeOf sphere = {"sphere", sphere_geom, {0.13, 0, 0}, 0.13};
const ShapeOf capsule = {"capsule", capsule_geom, {0.08, 0.15, 0}, 0.23};
const ShapeOf ellipsoid = {"ellipsoid", ellipsoid_geom, {0.1, 0.2, 0.15}, 0.2};
const ShapeOf cylinder = {"cylinder", cylinder_geom, {0.12, 0.15, 0}, 0.1921};
const ShapeOf box = {"box", box_geom, {0.1, 0.15, 0.2}, 0.2693};
const ShapeOf mesh = {"mesh", mesh_geom, {0, 0, 0}, 0};
const std::array<const ShapeOf*, 6> moving = {&sphere, &capsule, &ellipsoid, &cylinder, &box, &mesh};

// A frustum: two square faces of different size, four slanted sides.
const std::array<Point, 8> frustum = {{{-0.1, -0.1, 0.1},
                                       {0.1, -0.1, 0.1},
                                       {0.1, 0.1, 0.1},
                                       {-0.1, 0.1, 0.1},
                                       {-0.2, -0.2, -0.1},
                                       {0.2, -0.2, -0.1},
                                       {0.2, 0.2, -0.1},
                                       {-0.2, 0.2, -0.1}}};

void add_shape(ModelMaker& m, int body, const ShapeOf& shape) {
  if (shape.type != mesh_geom) {
    m.arrays.geom_rbound[m.add_geom(body, shape.type, shape.size)] = shape.bound;
    return;
  }
  m.add_mesh(body,
             {frustum[0], frustum[1], frustum[2], frustum[3], frustum[4], frustum[5], frustum[6], frustum[7]},
             {0, 0, 0}, {0, 0, 0});
  m.add_faces({{0, 1, 2, 3}, {7, 6, 5, 4}, {0, 1, 5, 4}, {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 0, 4, 7}});
}

struct Pairing {
  const ShapeOf &a, &b;
  ModelStorage storage;

  Pairing(const ShapeOf& a, const ShapeOf& b, double margin) : a(a), b(b), storage(arrays(a, b, margin)) {}

  static MujocoArrays arrays(const ShapeOf& a, const ShapeOf& b, double margin) {
    ModelMaker m;
    m.arrays.margin = margin;
    for (const ShapeOf* shape : {&a, &b}) {
      const bool fixed = shape->type == plane_geom;
      const int body = fixed ? 0 : m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1);
      if (!fixed) m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
      add_shape(m, body, *shape);
    }
    m.add_pair(0, 1);
    return m.arrays;
  }
};

// in: displacement (rotation, translation) of a and of b, then position and quaternion of each.
template <class Real>
struct Detected {
  const Model& model;
  Arena arena;
  Kinematics<Real> kin;
  Contacts<Real> contacts;
  Motion<Real>* still;

  static std::size_t room(const Model& model) {
    Arena counting;
    Kinematics<Real> kin(model, counting);
    Contacts<Real> contacts(model, counting);
    counting.take<Motion<Real>>(model.nv);
    return counting.used();
  }
  Detected(const Model& model, const Real* in)
      : model(model),
        arena(room(model)),
        kin(model, arena),
        contacts(model, arena),
        still(arena.take<Motion<Real>>(model.nv)) {
    Real qpos[14];
    const int first = model.njnt == 1 ? 1 : 0;  // a plane has no joint
    for (int body = first; body < 2; ++body) {
      Reader<Real> displacement{in + 6 * body}, pose{in + 12 + 7 * body};
      const Motion<Real> d = displacement.motion();
      const Vector3<Real> p = pose.vector();
      const Quaternion<Real> turn = exponential(d.w), q = turn * pose.quaternion();
      const Vector3<Real> moved = rotation_matrix(turn) * p + d.v;
      const Real numbers[7] = {moved.x, moved.y, moved.z, q.w, q.x, q.y, q.z};
      for (int i = 0; i < 7; ++i) qpos[7 * (body - first) + i] = numbers[i];
    }
    for (int k = 0; k < model.nv; ++k) still[k] = zero_motion<Real>();
    for (int t = 0; t < model.ntree; ++t) kin.origin[t] = load3(qpos + model.tree_qpos[t]);
    for (int j = 0; j < model.njnt; ++j) place_joint(model, model.joints[j], qpos, kin);
    collision_detection(model, kin, still, Real(model.timestep), contacts);
  }
};

// out: gap, point, normal of each candidate (eight at most); zero where there is no contact.
struct Touching {
  const Pairing& pairing;
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    const Detected<Real> at(pairing.storage.model(), in);
    for (int c = 0; c < at.contacts.count; ++c) {
      const Contact<Real>& contact = at.contacts.list[c];
      const auto here = less(contact.gap, Real(far_away));
      Writer<Real> to{out + 7 * (contact.candidate - pairing.storage.model().candidates)};
      to.add(select(here, contact.gap, Real(0)));
      to.add(select<Real>(here, contact.at.point, zero3<Real>()));
      to.add(select<Real>(here, contact.at.normal, zero3<Real>()));
    }
  }
};
struct TouchingAdjoint {
  const Pairing& pairing;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Detected<Real> at(pairing.storage.model(), in);
    for (int c = 0; c < at.contacts.count; ++c) {
      const Contact<Real>& contact = at.contacts.list[c];
      Reader<Real> from{out_bar + 7 * (contact.candidate - pairing.storage.model().candidates)};
      ContactPoint<Real> bar;
      bar.gap = from.scalar();
      bar.point = from.vector();
      bar.normal = from.vector();
      const PairMoments<Real> moments = touch_adjoint(at.model, at.kin, contact, bar);
      const auto here = less(contact.gap, Real(far_away));
      Writer<Real> to{in_bar};
      for (const Force<Real>& moment : {moments.a, moments.b}) {
        to.add(select<Real>(here, moment.n, zero3<Real>()));
        to.add(select<Real>(here, moment.f, zero3<Real>()));
      }
    }
  }
};

Doubles placed(const Point& p_a, const Point& turn_a, const Point& p_b, const Point& turn_b) {
  Doubles in(12, 0.0);
  const auto add = [&](const Point& p, const Point& turn) {
    const Quaternion<double> q = exponential(turn);
    in.insert(in.end(), {p.x, p.y, p.z, q.w, q.x, q.y, q.z});
  };
  add(p_a, turn_a);
  add(p_b, turn_b);
  return in;
}
Doubles random_placement(Random& random, const Pairing& pairing, double nearest, double farthest) {
  const auto vector = [&](double size) {
    return Point{size * random.normal(), size * random.normal(), size * random.normal()};
  };
  const Point p = vector(1), d = vector(1);
  const double distance = random.uniform(nearest, farthest);
  if (pairing.a.type == plane_geom) return placed({0, 0, 0}, {0, 0, 0}, {p.x, p.y, distance}, vector(1));
  const Point turn_b = vector(1), turn_a = vector(1);  // drawn in the same order by every compiler
  return placed(p, turn_a, p + (distance / norm(d)) * d, turn_b);
}

// The contact with the smallest gap, or none.
bool deepest(const Doubles& out, ContactPoint<double>& at) {
  bool found = false;
  for (int s = 0; s < manifold_points; ++s) {
    const double* slot = &out[7 * s];
    const Point normal = vector3<double>(slot + 4);
    if (dot(normal, normal) == 0 || (found && slot[0] >= at.gap)) continue;
    found = true;
    at = {slot[0], vector3<double>(slot + 1), normal};
  }
  return found;
}

// --- values ------------------------------------------------------------------------------------------------

// Height of a shape in direction m, from its definition.
double height(const ShapeOf& shape, const double* pose, const Point& m) {
  const Point local =
      transpose_times(rotation_matrix(Quaternion<double>{pose[3], pose[4], pose[5], pose[6]}), m);
  double h = 0;
  const Point& s = shape.size;
  switch (shape.type) {
    case sphere_geom:
      h = s.x * norm(m);
      break;
    case capsule_geom:
      h = s.x * norm(m) + s.y * std::fabs(local.z);
      break;
    case ellipsoid_geom:
      h = norm({s.x * local.x, s.y * local.y, s.z * local.z});
      break;
    case cylinder_geom:
      h = s.x * std::hypot(local.x, local.y) + s.y * std::fabs(local.z);
      break;
    case box_geom:
      h = s.x * std::fabs(local.x) + s.y * std::fabs(local.y) + s.z * std::fabs(local.z);
      break;
    default:
      h = -1e9;
      for (const Point& vertex : frustum) h = std::fmax(h, dot(local, vertex));
  }
  return h + dot(m, vector3<double>(pose));
}

// The signed distance is the separation along the normal, and no other direction separates more.
void check_distance(Random& random, const Pairing& pairing, const Doubles& in) {
  ContactPoint<double> at;
  if (!deepest(value(Touching{pairing}, in, n_out), at)) return;
  const auto separation = [&](const Point& n) {
    return -height(pairing.b, &in[19], -n) - height(pairing.a, &in[12], n);
  };
  CHECK_CLOSE(norm(at.normal), 1.0, rounding);
  CHECK_CLOSE(at.gap, separation(at.normal), 1e-7);
  double most = -1e9;
  for (double spread : {10.0, 0.3, 0.03, 0.003}) {
    for (int i = 0; i < 100; ++i) {
      const Point n = at.normal + spread * Point{random.normal(), random.normal(), random.normal()};
      most = std::fmax(most, separation((1 / norm(n)) * n));
    }
  }
  CHECK(most <= at.gap + nearly_equal * (pairing.a.bound + pairing.b.bound + 0.6));
}
// Each pair draws its own poses, so that a shape more in the list leaves those of the others.
Random random_of(int test, std::size_t i, std::size_t j) { return Random(test + 1000 * (100 * i + j)); }
void signed_distances() {
  for (std::size_t i = 0; i < moving.size(); ++i)
    for (std::size_t j = i; j < moving.size(); ++j) {
      Random random = random_of(200, i, j);
      const Pairing pairing(*moving[i], *moving[j], 0.3);
      // shallow enough that the cores of capsules stay apart: between boxes and capsules only those are exact
      for (int trial = 0; trial < 60; ++trial)
        check_distance(random, pairing, random_placement(random, pairing, 0.3, 0.6));
    }
}

void distances_to_planes() {
  Random random(201);
  for (const ShapeOf* shape : moving) {
    const Pairing pairing(plane, *shape, 0.5);
    for (int trial = 0; trial < 25; ++trial) {
      const Doubles in = random_placement(random, pairing, 0.0, 0.3);
      ContactPoint<double> at;
      if (!CHECK(deepest(value(Touching{pairing}, in, n_out), at))) continue;
      CHECK_CLOSE(at.gap, -height(*shape, &in[19], {0, 0, -1}), rounding);
    }
  }
}

// A sphere and a cylinder, in closed form by (radial, axial) coordinates.
void spheres_and_cylinders() {
  Random random(202);
  const Pairing pairing(sphere, cylinder, 1.0);
  int inside = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const Doubles in = random_placement(random, pairing, 0.0, 0.4);
    const Quaternion<double> q = {in[22], in[23], in[24], in[25]};
    const Point c = transpose_times(rotation_matrix(q), vector3<double>(&in[12]) - vector3<double>(&in[19]));
    const double radial = std::hypot(c.x, c.y) - cylinder.size.x, axial = std::fabs(c.z) - cylinder.size.y;
    const double outside = std::hypot(std::fmax(radial, 0.0), std::fmax(axial, 0.0));
    inside += outside == 0;
    ContactPoint<double> at;
    if (!CHECK(deepest(value(Touching{pairing}, in, n_out), at))) continue;
    CHECK_CLOSE(at.gap, (outside > 0 ? outside : std::fmax(radial, axial)) - sphere.size.x, nearly_equal);
  }
  CHECK(inside > 200 && inside < 3800);
}

// --- contact areas -----------------------------------------------------------------------------------------

struct AtRest {
  const ShapeOf &a, &b;
  Point p_b, turn_b;
  int points;
};
const double right_angle = 1.5707963267948966;
const AtRest resting[] = {
    {plane, box, {0, 0, 0.2}, {0, 0, 0}, 4},
    {plane, mesh, {0, 0, 0.1}, {0, 0, 0.4}, 4},
    {plane, cylinder, {0, 0, 0.15}, {0, 0, 0}, 7},
    {plane, cylinder, {0, 0, 0.12}, {right_angle, 0, 0}, 2},
    {box, box, {0, 0, 0.4}, {0, 0, 0}, 4},
    {box, box, {0.03, 0.02, 0.4}, {0, 0, 0}, 4},
    {box, box, {0, 0, 0.4}, {0, 0, right_angle}, 4},
    {box, mesh, {0, 0, 0.3}, {0, 0, 0}, 4},
    {box, cylinder, {0.01, 0, 0.32}, {right_angle, 0, 0}, 2},
    {capsule, box, {0, 0, 0.28}, {right_angle, 0, 0}, 2},
    {cylinder, cylinder, {0, 0, 0.3}, {0, 0, 0}, 7},
    {mesh, mesh, {0.01, 0.02, 0.2}, {0, 0, 0.3}, 4},
};

// Shapes at rest on each other have all of their points, at the right height, whatever the rounding; the
// points come in the same order and move by as little as the shapes do.
void contact_areas() {
  for (const AtRest& rest : resting) {
    const Pairing pairing(rest.a, rest.b, 0.01);
    const Point turn_a = {&rest.a == &capsule ? right_angle : 0.0, 0, 0};
    Doubles before;
    for (double gap : {0.0, 1e-12, -1e-12, 1e-9, -1e-9, 1e-6, -1e-6}) {
      Doubles in = placed({0, 0, 0}, turn_a, rest.p_b + Point{0, 0, gap}, rest.turn_b);
      if (&rest.a == &capsule) in = placed({0, 0, 0}, turn_a, rest.p_b + Point{0, 0, gap}, {0, 0, 0});
      const Doubles out = value(Touching{pairing}, in, n_out);
      int points = 0;
      for (int s = 0; s < manifold_points; ++s) {
        if (out[7 * s + 6] == 0) continue;
        ++points;
        CHECK_CLOSE(out[7 * s], gap, 1e-10);
        CHECK_CLOSE(out[7 * s + 6], 1.0, 1e-10);
      }
      char text[100];
      std::snprintf(text, sizeof text, "%s on %s: expected %d points, got %d", rest.b.name, rest.a.name,
                    rest.points, points);
      expect(points == rest.points, text, __FILE__, __LINE__);
      if (!before.empty()) CHECK_CLOSE(out, before, 1e-5);
      before = out;
    }
  }
}

// --- adjoints and lanes ------------------------------------------------------------------------------------

void check_pair(Random& random, const Pairing& pairing, double nearest, double farthest) {
  const std::string name = std::string(pairing.a.name) + " and " + pairing.b.name;
  std::vector<Block> blocks = {{"displacement of b", 6, 6}};
  if (pairing.a.type != plane_geom) blocks.push_back({"displacement of a", 0, 6});
  std::vector<Doubles> environments;
  while (environments.size() < 8) {
    const Doubles in = random_placement(random, pairing, nearest, farthest);
    ContactPoint<double> at;
    if (!deepest(value(Touching{pairing}, in, n_out), at) && environments.size() < 6) continue;
    environments.push_back(in);
  }
  for (int trial = 0; trial < 4; ++trial)
    check_adjoint(name, random, environments[trial], n_out, Touching{pairing}, TouchingAdjoint{pairing},
                  differenced, blocks);
  check_lanes(name, environments, n_out, Touching{pairing});
  check_adjoint_lanes(name, random, environments, n_out, TouchingAdjoint{pairing});
}
void adjoints_and_lanes() {
  for (std::size_t i = 0; i < moving.size(); ++i) {
    Random over_plane = random_of(203, i, i);
    check_pair(over_plane, Pairing(plane, *moving[i], 0.5), 0.0, 0.2);
    for (std::size_t j = i; j < moving.size(); ++j) {
      Random random = random_of(205, i, j);
      check_pair(random, Pairing(*moving[i], *moving[j], 0.3), 0.3, 0.5);
    }
  }
}

// Just beyond a face's sides the plane of the face is as far away as the edge, up to the tolerance that prefers
// faces; the nearest point is the edge's all the same, not the vertex that supports.
void beside_an_edge() {
  constexpr double near = 1e-3;  // face and edge take turns a tenth of a millimetre away
  Random random(206);
  for (const ShapeOf* round : {&sphere, &capsule}) {
    const Pairing pairing(*round, mesh, 0.2);
    const double reach = round == &capsule ? 0.15 + 0.08 : 0.13;
    for (double beside : {1.5e-4, 2e-4, 3e-4, 4e-4}) {
      const Doubles in = placed({0.1 + beside, 0.03, 0.1 + reach}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0});
      ContactPoint<double> at;
      CHECK(deepest(value(Touching{pairing}, in, n_out), at));
      CHECK_CLOSE(at.point.y, 0.03, 1e-9);
      check_adjoint(std::string(round->name) + " beside an edge by " + std::to_string(1e3 * beside) + " mm,",
                    random, in, n_out, Touching{pairing}, TouchingAdjoint{pairing}, differenced,
                    {{"displacement of b", 6, 6, near}, {"displacement of a", 0, 6, near}});
    }
  }
}

// --- degenerate poses --------------------------------------------------------------------------------------

void coincident_shapes() {
  Random random(204);
  for (const ShapeOf* a : moving)
    for (const ShapeOf* b : moving) {
      if (a->type > b->type) continue;
      const Pairing pairing(*a, *b, 0.01);
      for (const Point& turn : {Point{0, 0, 0}, Point{right_angle, 0, 0}, Point{0.3, -0.2, 0.5}}) {
        const Doubles in = placed({0.1, 0.2, 0.3}, {0, 0, 0}, {0.1, 0.2, 0.3}, turn);
        Doubles in_bar(n_in, 0.0);
        CHECK_FINITE(value(Touching{pairing}, in, n_out));
        TouchingAdjoint{pairing}(in.data(), random.normals(n_out).data(), in_bar.data());
        CHECK_FINITE(in_bar);
      }
    }
}

// A hull without faces cannot be searched.
void hulls_need_faces() {
  MujocoArrays arrays = Pairing::arrays(box, mesh, 0.01);
  arrays.hull_polynum = {0, 0};
  bool refused = false;
  try {
    const ModelStorage storage(arrays);
  } catch (const std::invalid_argument& error) {
    refused = std::string(error.what()).find("hull_polynum") == 0;
  }
  CHECK(refused);
}

}  // namespace

int main() {
  return run({{"signed distances", signed_distances},
              {"distances to planes", distances_to_planes},
              {"spheres and cylinders", spheres_and_cylinders},
              {"contact areas", contact_areas},
              {"adjoints and lanes", adjoints_and_lanes},
              {"beside an edge", beside_an_edge},
              {"coincident shapes", coincident_shapes},
              {"hulls need faces", hulls_need_faces}});
}
