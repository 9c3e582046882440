// Pairs of shapes: gaps, points and normals against searches over the surfaces, degenerate poses, adjoints,
// lanes.
//
// Every pair is a functor of two rigid displacements and the poses of the shapes; its adjoint returns their
// moments.
#include <algorithm>

#include "dense.hpp"
#include "models.hpp"
#include "packing.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// A search by golden section leaves half of the digits in the position, all in the distance.
constexpr double searched = 1e-12;

constexpr double radius_a = 0.3, radius_b = 0.2, half_a = 0.5, half_b = 0.7;

// in, after the displacements: [origin, rotation vector] of a, of b
constexpr int n_in = 12 + 12, n_out = 7;

template <class Real>
struct Pose {
  Matrix3<Real> R;
  Vector3<Real> p;
};
template <class Real>
struct Poses {
  Pose<Real> a, b;
};
template <class Real>
Poses<Real> displaced_poses(const Real* in) {
  Reader<Real> from{in};
  const Motion<Real> d[2] = {from.motion(), from.motion()};
  Pose<Real> out[2];
  for (int i = 0; i < 2; ++i) {
    const Vector3<Real> p = from.vector();
    const Matrix3<Real> R = rotation_matrix(exponential(from.vector())),
                        turn = rotation_matrix(exponential(d[i].w));
    out[i] = {turn * R, turn * p + d[i].v};
  }
  return {out[0], out[1]};
}
template <class Real>
Segment<Real> segment_of(const Pose<Real>& pose, double half) {
  return {pose.p, pose.R.column(2), Real(half)};
}
template <class Real>
Box<Real> box_of(const Pose<Real>& pose) {
  return {pose.R, pose.p, {Real(0.4), Real(0.3), Real(0.5)}};
}

struct PlanePoint {
  template <class Real>
  static ContactPoint<Real> touch(const Poses<Real>& at) {
    return plane_point(at.a.R.column(2), at.a.p, at.b.p, Real(radius_b));
  }
  // a plane stands still
  template <class Real>
  static PairMoments<Real> pull_back(const Poses<Real>& at, const ContactPoint<Real>& contact,
                                     const ContactPoint<Real>& bar) {
    return {zero_force<Real>(), force_at(at.b.p, plane_point_adjoint(contact, bar))};
  }
};
struct SphereSphere {
  template <class Real>
  static ContactPoint<Real> touch(const Poses<Real>& at) {
    return sphere_sphere(at.a.p, Real(radius_a), at.b.p, Real(radius_b));
  }
  template <class Real>
  static PairMoments<Real> pull_back(const Poses<Real>& at, const ContactPoint<Real>& contact,
                                     const ContactPoint<Real>& bar) {
    Vector3<Real> a_bar, b_bar;
    sphere_sphere_adjoint(at.a.p, Real(radius_a), at.b.p, contact, bar, a_bar, b_bar);
    return {force_at(at.a.p, a_bar), force_at(at.b.p, b_bar)};
  }
};
struct SphereCapsule {
  template <class Real>
  static ContactPoint<Real> touch(const Poses<Real>& at) {
    return sphere_capsule(at.a.p, Real(radius_a), segment_of(at.b, half_b), Real(radius_b));
  }
  template <class Real>
  static PairMoments<Real> pull_back(const Poses<Real>& at, const ContactPoint<Real>& contact,
                                     const ContactPoint<Real>& bar) {
    return sphere_capsule_adjoint(at.a.p, Real(radius_a), segment_of(at.b, half_b), contact, bar);
  }
};
struct CapsuleCapsule {
  template <class Real>
  static ContactPoint<Real> touch(const Poses<Real>& at) {
    return capsule_capsule(segment_of(at.a, half_a), Real(radius_a), segment_of(at.b, half_b),
                           Real(radius_b));
  }
  template <class Real>
  static PairMoments<Real> pull_back(const Poses<Real>& at, const ContactPoint<Real>& contact,
                                     const ContactPoint<Real>& bar) {
    return capsule_capsule_adjoint(segment_of(at.a, half_a), Real(radius_a), segment_of(at.b, half_b),
                                   contact, bar);
  }
};
struct SphereBox {
  template <class Real>
  static ContactPoint<Real> touch(const Poses<Real>& at) {
    return sphere_box(at.a.p, Real(radius_a), box_of(at.b));
  }
  template <class Real>
  static PairMoments<Real> pull_back(const Poses<Real>& at, const ContactPoint<Real>& contact,
                                     const ContactPoint<Real>& bar) {
    return sphere_box_adjoint(at.a.p, Real(radius_a), box_of(at.b), contact, bar);
  }
};

// out: gap, point, normal
template <class Pair>
struct Touch {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    const ContactPoint<Real> contact = Pair::touch(displaced_poses(in));
    Writer<Real> to{out};
    to.add(contact.gap);
    to.add(contact.point);
    to.add(contact.normal);
  }
};
template <class Pair>
struct TouchAdjoint {
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Poses<Real> at = displaced_poses(in);
    Reader<Real> from{out_bar};
    ContactPoint<Real> bar;
    bar.gap = from.scalar();
    bar.point = from.vector();
    bar.normal = from.vector();
    const PairMoments<Real> moments = Pair::pull_back(at, Pair::touch(at), bar);
    Writer<Real> to{in_bar};
    to.add(moments.a);
    to.add(moments.b);
  }
};

Doubles pose_inputs(const Point& p_a, const Point& turn_a, const Point& p_b, const Point& turn_b) {
  Doubles in(12, 0.0);
  for (const Point& a : {p_a, turn_a, p_b, turn_b}) in.insert(in.end(), {a.x, a.y, a.z});
  return in;
}
Doubles random_poses(Random& random, double distance) {
  const auto vector = [&](double size) {
    return Point{size * random.normal(), size * random.normal(), size * random.normal()};
  };
  const Point p = vector(1);
  return pose_inputs(p, vector(1), p + vector(distance), vector(1));
}
template <class Pair>
ContactPoint<double> touch(const Doubles& in) {
  return Pair::touch(displaced_poses(in.data()));
}

// --- values ------------------------------------------------------------------------------------------------

// the smallest value of a convex function on [lower, upper]
template <class Function>
double minimum_on(double lower, double upper, const Function& function) {
  const double at_ends = std::fmin(function(lower), function(upper));
  const double ratio = 0.61803398874989485;
  while (upper - lower > 1e-9) {
    const double a = upper - ratio * (upper - lower), b = lower + ratio * (upper - lower);
    (function(a) < function(b) ? upper : lower) = function(a) < function(b) ? b : a;
  }
  return std::fmin(at_ends, function(0.5 * (lower + upper)));
}
double length(const Point& a) { return std::sqrt(dot(a, a)); }

void check_answer(const ContactPoint<double>& at, double gap) {
  CHECK_CLOSE(at.gap, gap, searched);
  CHECK_CLOSE(length(at.normal), 1.0, rounding);
}

void distances_of_round_shapes() {
  Random random(80);
  for (int trial = 0; trial < 100; ++trial) {
    const Doubles in = random_poses(random, 0.7);
    const Poses<double> at = displaced_poses(in.data());
    const Segment<double> A = segment_of(at.a, half_a), B = segment_of(at.b, half_b);
    const auto to_b = [&](const Point& from) {
      return minimum_on(-half_b, half_b, [&](double t) { return length(point_on(B, t) - from); });
    };
    check_answer(touch<SphereSphere>(in), length(at.a.p - at.b.p) - radius_a - radius_b);
    check_answer(touch<SphereCapsule>(in), to_b(at.a.p) - radius_a - radius_b);
    check_answer(
        touch<CapsuleCapsule>(in),
        minimum_on(-half_a, half_a, [&](double s) { return to_b(point_on(A, s)); }) - radius_a - radius_b);
    check_answer(touch<PlanePoint>(in), dot(at.a.R.column(2), at.b.p - at.a.p) - radius_b);
  }
}

// The distance to the box, negative to its nearest face inside; both sides occur.
void distances_of_spheres_and_boxes() {
  Random random(81);
  int inside = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const Doubles in = random_poses(random, 0.4);
    const Poses<double> at = displaced_poses(in.data());
    const Box<double> box = box_of(at.b);
    const Doubles c = numbers(transpose_times(box.R, at.a.p - box.centre)), half = numbers(box.half);
    double outside = 0, deepest = -1e9;
    for (int i = 0; i < 3; ++i) {
      const double beyond = std::fabs(c[i]) - half[i];
      outside += std::fmax(beyond, 0.0) * std::fmax(beyond, 0.0);
      deepest = std::fmax(deepest, beyond);
    }
    inside += deepest < 0;
    check_answer(touch<SphereBox>(in), (deepest < 0 ? deepest : std::sqrt(outside)) - radius_a);
  }
  CHECK(inside > 10 && inside < 190);
}

// The normal is the gradient of the gap by a shift of b, and the point lies half-way between the surfaces.
template <class Pair>
void check_normal_and_point(Random& random, double distance) {
  for (int trial = 0; trial < 20; ++trial) {
    const Doubles in = random_poses(random, distance);
    const ContactPoint<double> at = touch<Pair>(in);
    const Doubles normal = numbers(at.normal);
    for (int i = 0; i < 3; ++i) {
      Doubles shift(n_in, 0.0);
      shift[9 + i] = 1;
      CHECK_CLOSE(differences(Touch<Pair>(), in, shift, 1e-5, n_out)[0], normal[i], differenced);
    }
    // b moved by minus the gap touches at the same place on a: half the gap back
    Doubles moved = in;
    for (int i = 0; i < 3; ++i) moved[9 + i] = -at.gap * normal[i];
    const ContactPoint<double> touching = touch<Pair>(moved);
    CHECK_CLOSE(touching.gap, 0.0, searched);
    CHECK_CLOSE(numbers(touching.point), numbers(at.point - (0.5 * at.gap) * at.normal), searched);
  }
}
void normals_and_points() {
  Random random(82);
  check_normal_and_point<PlanePoint>(random, 0.7);
  check_normal_and_point<SphereSphere>(random, 0.7);
  check_normal_and_point<SphereCapsule>(random, 0.9);
  check_normal_and_point<CapsuleCapsule>(random, 0.9);
  check_normal_and_point<SphereBox>(random, 0.9);
}

// --- degenerate poses --------------------------------------------------------------------------------------

// Everything stays finite, value and adjoint.
template <class Pair>
ContactPoint<double> check_finite(Random& random, const Doubles& in) {
  Doubles in_bar(n_in, 0.0);
  CHECK_FINITE(value(Touch<Pair>(), in, n_out));
  TouchAdjoint<Pair>()(in.data(), random.normals(n_out).data(), in_bar.data());
  CHECK_FINITE(in_bar);
  return touch<Pair>(in);
}

const Point here = {0.1, -0.2, 0.3}, unturned = {0, 0, 0};

void coincident_centres() {
  Random random(83);
  const Doubles in = pose_inputs(here, unturned, here, {1.5707963267948966, 0, 0});
  for (const ContactPoint<double>& at :
       {check_finite<SphereSphere>(random, in), check_finite<SphereCapsule>(random, in),
        check_finite<CapsuleCapsule>(random, in)}) {
    CHECK_CLOSE(at.gap, -radius_a - radius_b, rounding);
    CHECK_CLOSE(length(at.normal), 1.0, rounding);
  }
  // next to coincident
  for (double offset : {1e-300, 1e-160, 1e-90, 1e-12})
    check_finite<SphereSphere>(random, pose_inputs({0, 0, 0}, unturned, {offset, 0, 0}, unturned));
}

void parallel_capsules() {
  Random random(84);
  for (double angle : {0.0, 1e-12, 1e-7, 3.14159265358979324}) {
    // side by side, shifted along the axis by 0.4: the segments overlap on [-0.3, 0.5] of a
    const ContactPoint<double> at =
        check_finite<CapsuleCapsule>(random, pose_inputs({0, 0, 0}, unturned, {0.6, 0, 0.4}, {0, angle, 0}));
    CHECK_CLOSE(at.gap, 0.1, 1e-6);
    CHECK_CLOSE(numbers(at.normal), Doubles({1, 0, 0}), 1e-6);
    if (angle == 0.0) CHECK_CLOSE(numbers(at.point), Doubles({0.35, 0, 0.1}), rounding);
  }
  // in line, end to end: the distance of the ends is 3 - 0.5 - 0.7
  const ContactPoint<double> ends =
      check_finite<CapsuleCapsule>(random, pose_inputs({0, 0, 0}, unturned, {0, 0, 3}, unturned));
  CHECK_CLOSE(ends.gap, 1.8 - radius_a - radius_b, rounding);
  CHECK_CLOSE(numbers(ends.normal), Doubles({0, 0, 1}), rounding);
  // on top of each other
  CHECK_CLOSE(check_finite<CapsuleCapsule>(random, pose_inputs(here, unturned, here, unturned)).gap,
              -radius_a - radius_b, rounding);
}

// A shift along the axis keeps the capsules parallel, and moves the middle of their overlap.
void parallel_capsules_slide_along_each_other() {
  Random random(92);
  for (double shift : {0.0, 0.4, -0.6, 2.0}) {
    const Doubles in = pose_inputs({0, 0, 0}, unturned, {0.5, 0, shift}, unturned);
    for (int side : {0, 6}) {
      Doubles along(n_in, 0.0), in_bar(n_in, 0.0);
      along[side + 5] = 1;
      const Doubles out_bar = random.normals(n_out);
      TouchAdjoint<CapsuleCapsule>()(in.data(), out_bar.data(), in_bar.data());
      CHECK_CLOSE(in_bar[side + 5],
                  inner(out_bar, differences(Touch<CapsuleCapsule>(), in, along, 1e-4, n_out)), smooth);
    }
  }
}

void spheres_in_boxes() {
  Random random(85);
  const auto at = [&](const Point& centre) {
    return check_finite<SphereBox>(random, pose_inputs(centre, unturned, {0, 0, 0}, unturned));
  };
  // nearest face +x: out of the box along +x, so the normal (from sphere to box) is -x
  const ContactPoint<double> inside = at({0.35, 0, 0});
  CHECK_CLOSE(inside.gap, -0.05 - radius_a, rounding);
  CHECK_CLOSE(numbers(inside.normal), Doubles({-1, 0, 0}), 0.0);
  CHECK_CLOSE(at({0, -0.28, 0}).gap, -0.02 - radius_a, rounding);
  CHECK_CLOSE(numbers(at({0, -0.28, 0}).normal), Doubles({0, 1, 0}), 0.0);
  // centre, on a face, an edge and a corner
  CHECK_CLOSE(at({0, 0, 0}).gap, -0.3 - radius_a, rounding);
  CHECK_CLOSE(at({0.4, 0, 0}).gap, -radius_a, rounding);
  CHECK_CLOSE(at({0.4, 0.3, 0}).gap, -radius_a, rounding);
  CHECK_CLOSE(at({0.4, 0.3, 0.5}).gap, -radius_a, rounding);
}

// --- friction directions -----------------------------------------------------------------------------------

struct Tangents {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Real length, inverse_length;
    const Vector3<Real> n = direction(Reader<Real>{in}.vector(), length, inverse_length);
    Vector3<Real> t1, t2;
    tangents(n, t1, t2);
    Writer<Real> to{out};
    to.add(t1);
    to.add(t2);
  }
};
struct TangentsAdjoint {
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    Real length, inverse_length;
    const Vector3<Real> n = direction(Reader<Real>{in}.vector(), length, inverse_length);
    Reader<Real> from{out_bar};
    const Vector3<Real> t1_bar = from.vector(), t2_bar = from.vector();
    Vector3<Real> n_bar = zero3<Real>();
    tangents_adjoint(n, t1_bar, t2_bar, n_bar);
    Writer<Real>{in_bar}.add(direction_adjoint(n, inverse_length, n_bar));
  }
};

void friction_directions() {
  Random random(86);
  for (int trial = 0; trial < 50; ++trial) {
    // every third normal near y, where the auxiliary axis is another one
    const Doubles in =
        trial % 3 == 0 ? Doubles{0.1 * random.normal(), 1.0, 0.1 * random.normal()} : random.normals(3);
    const Doubles t = value(Tangents(), in, 6);
    const Point t1 = vector3<double>(&t[0]), t2 = vector3<double>(&t[3]),
                n = (1 / length(vector3<double>(in.data()))) * vector3<double>(in.data());
    CHECK_CLOSE((Doubles{dot(t1, t1), dot(t2, t2), dot(t1, t2), dot(t1, n), dot(t2, n)}),
                Doubles({1, 1, 0, 0, 0}), rounding);
    CHECK_CLOSE(numbers(cross(n, t1)), numbers(t2), rounding);
    if (trial < 8) check_adjoint("tangents", random, in, 6, Tangents(), TangentsAdjoint(), smooth);
    const std::vector<Doubles> environments = environments_around(random, in, 0.5);
    check_lanes("tangents", environments, 6, Tangents());
    check_adjoint_lanes("tangents", random, environments, 6, TangentsAdjoint());
  }
}

// --- adjoints ----------------------------------------------------------------------------------------------

template <class Pair>
void check_pair(const char* name, unsigned seed, bool a_moves, double distance) {
  Random random(seed);
  std::vector<Block> blocks = {{"displacement of b", 6, 6}};
  if (a_moves) blocks.push_back({"displacement of a", 0, 6});
  for (int trial = 0; trial < 12; ++trial)
    check_adjoint(name, random, random_poses(random, distance), n_out, Touch<Pair>(), TouchAdjoint<Pair>(),
                  smooth, blocks);
  // far, near, deep, and degenerate ones side by side
  std::vector<Doubles> environments = {pose_inputs(here, unturned, here, unturned),
                                       pose_inputs({0, 0, 0}, unturned, {0.6, 0, 0.4}, unturned)};
  while (environments.size() < 8) environments.push_back(random_poses(random, distance));
  for (int turn = 0; turn < 2; ++turn) {
    check_lanes(name, environments, n_out, Touch<Pair>());
    check_adjoint_lanes(name, random, environments, n_out, TouchAdjoint<Pair>());
    std::reverse(environments.begin(), environments.end());
  }
}
void adjoints_and_lanes() {
  check_pair<PlanePoint>("plane and point", 87, false, 0.7);
  check_pair<SphereSphere>("sphere and sphere", 88, true, 0.7);
  check_pair<SphereCapsule>("sphere and capsule", 89, true, 0.7);
  check_pair<CapsuleCapsule>("capsule and capsule", 90, true, 0.9);
  check_pair<SphereBox>("sphere and box", 91, true, 0.5);
}

}  // namespace

int main() {
  return run({{"distances of round shapes", distances_of_round_shapes},
              {"distances of spheres and boxes", distances_of_spheres_and_boxes},
              {"normals and points", normals_and_points},
              {"coincident centres", coincident_centres},
              {"parallel capsules", parallel_capsules},
              {"sliding parallel capsules", parallel_capsules_slide_along_each_other},
              {"spheres in boxes", spheres_in_boxes},
              {"friction directions", friction_directions},
              {"adjoints and lanes", adjoints_and_lanes}});
}
