// Spatial algebra: every operator against Featherstone's 6x6 matrices written out, and each adjoint by
// itself.
//
// Source of the values: Featherstone, Rigid Body Dynamics Algorithms, 2008: crm, crf (2.31, 2.32), the
// rigid-body inertia (2.63) and its change of coordinates (2.66).
#include <algorithm>

#include "check.hpp"
#include "dense.hpp"
#include "packing.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

constexpr double full_turn = 6.28318530717958648;

Vector3<double> random_vector(Random& random) { return {random.normal(), random.normal(), random.normal()}; }
Quaternion<double> random_quaternion(Random& random) {
  return normalized(Quaternion<double>{random.normal(), random.normal(), random.normal(), random.normal()});
}
Motion<double> random_motion(Random& random) { return {random_vector(random), random_vector(random)}; }
Force<double> random_force(Random& random) { return {random_vector(random), random_vector(random)}; }
Symmetric3<double> random_symmetric(Random& random) {
  return {random.normal(), random.normal(), random.normal(),
          random.normal(), random.normal(), random.normal()};
}
RigidInertia<double> random_inertia(Random& random) {
  return {random.normal(), random_vector(random), random_symmetric(random)};
}
ArticulatedInertia<double> random_articulated(Random& random) {
  Matrix3<double> B;
  for (double& entry : B.m) entry = random.normal();
  return {random_symmetric(random), B, random_symmetric(random)};
}

// --- Featherstone's matrices -------------------------------------------------------------------------------

Dense crm(const Motion<double>& a) {
  return blocks(cross_matrix(a.w), Dense(3, 3), cross_matrix(a.v), cross_matrix(a.w));
}
Dense matrix_of(const RigidInertia<double>& I) {
  const Dense h = cross_matrix(I.h);
  return blocks(dense(I.I), h, transposed(h), I.m * identity(3));
}
Dense matrix_of(const ArticulatedInertia<double>& M) {
  return blocks(dense(M.A), dense(M.B), transposed(dense(M.B)), dense(M.C));
}
// motion vectors in a frame with rotation R and origin p, from those in world axes
Dense plucker(const Matrix3<double>& R, const Vector3<double>& p) {
  const Dense E = transposed(dense(R));
  return blocks(E, Dense(3, 3), -1.0 * (E * cross_matrix(p)), E);
}
// the rotation about d by |d|
Dense rotation_by(const Vector3<double>& d) { return matrix_exponential(cross_matrix(d)); }

// --- values ------------------------------------------------------------------------------------------------

void three_vectors_and_matrices() {
  Random random(10);
  for (int trial = 0; trial < 20; ++trial) {
    const Vector3<double> a = random_vector(random), b = random_vector(random);
    const Symmetric3<double> A = random_symmetric(random);
    const Matrix3<double> R = rotation_matrix(random_quaternion(random)), P = random_articulated(random).B;
    CHECK_CLOSE(numbers(cross(a, b)), (cross_matrix(a) * column(numbers(b))).entries, rounding);
    CHECK_CLOSE(dot(a, b), inner(numbers(a), numbers(b)), rounding);
    CHECK_CLOSE(numbers(R * a), (dense(R) * column(numbers(a))).entries, rounding);
    CHECK_CLOSE(numbers(transpose_times(R, a)), (transposed(dense(R)) * column(numbers(a))).entries,
                rounding);
    CHECK_CLOSE(numbers(R * P), (dense(R) * dense(P)).entries, rounding);
    CHECK_CLOSE(numbers(transpose(P)), transposed(dense(P)).entries, rounding);
    CHECK_CLOSE(numbers(A * a), (dense(A) * column(numbers(a))).entries, rounding);
    CHECK_CLOSE(dense(rotate(R, A)).entries, (dense(R) * dense(A) * transposed(dense(R))).entries, rounding);
    Symmetric3<double> sum = A;
    add_symmetric_product(sum, 0.7, a, b);
    const Dense ab = column(numbers(a)) * transposed(column(numbers(b)));
    CHECK_CLOSE(dense(sum).entries, (dense(A) + 0.35 * (ab + transposed(ab))).entries, rounding);
  }
}

void cross_products_of_spatial_vectors() {
  Random random(11);
  for (int trial = 0; trial < 20; ++trial) {
    const Motion<double> a = random_motion(random), b = random_motion(random);
    const Force<double> f = random_force(random);
    CHECK_CLOSE(numbers(cross_motion(a, b)), (crm(a) * column(numbers(b))).entries, rounding);
    // crf(a) = -crm(a)'
    CHECK_CLOSE(numbers(cross_force(a, f)), (-1.0 * (transposed(crm(a)) * column(numbers(f)))).entries,
                rounding);
    CHECK_CLOSE(dot(a, f), inner(numbers(a), numbers(f)), rounding);
    // the identity that all adjoints use
    CHECK_CLOSE(dot(cross_motion(a, b), f), dot(a, cross_force(b, f)), rounding);
  }
}

void inertias() {
  Random random(12);
  for (int trial = 0; trial < 20; ++trial) {
    const RigidInertia<double> I = random_inertia(random);
    const Motion<double> a = random_motion(random), b = random_motion(random);
    CHECK_CLOSE(numbers(I * a), (matrix_of(I) * column(numbers(a))).entries, rounding);
    CHECK_CLOSE(matrix_of(articulated(I)).entries, matrix_of(I).entries, rounding);
    // (2.66): X' I X
    const Matrix3<double> R = rotation_matrix(random_quaternion(random));
    const Vector3<double> p = random_vector(random);
    const Dense X = plucker(R, p);
    CHECK_CLOSE(matrix_of(to_world(I, R, p)).entries, (transposed(X) * matrix_of(I) * X).entries, rounding);

    const ArticulatedInertia<double> M = random_articulated(random);
    const Force<double> u = random_force(random);
    CHECK_CLOSE(numbers(M * a), (matrix_of(M) * column(numbers(a))).entries, rounding);
    CHECK_CLOSE(numbers(cotangent_times(M, u)), (matrix_of(M) * column(numbers(u))).entries, rounding);
    ArticulatedInertia<double> changed = M;
    subtract_square(changed, 0.3, u);
    const Dense square = column(numbers(u)) * transposed(column(numbers(u)));
    CHECK_CLOSE(matrix_of(changed).entries, (matrix_of(M) + -0.3 * square).entries, rounding);
    changed = M;
    add_symmetric_product(changed, 0.6, a, b);
    const Dense ab = column(numbers(a)) * transposed(column(numbers(b)));
    CHECK_CLOSE(matrix_of(changed).entries, (matrix_of(M) + 0.3 * (ab + transposed(ab))).entries, rounding);
  }
}

void quaternions() {
  Random random(13);
  for (int trial = 0; trial < 50; ++trial) {
    const Quaternion<double> p = random_quaternion(random), q = random_quaternion(random);
    // (w, u): R = (w^2 - u.u) 1 + 2 u u' + 2 w [u]x
    const Vector3<double> u = {q.x, q.y, q.z};
    const Dense uu = column(numbers(u)) * transposed(column(numbers(u)));
    const Dense R = (q.w * q.w - dot(u, u)) * identity(3) + 2.0 * uu + 2.0 * q.w * cross_matrix(u);
    CHECK_CLOSE(numbers(rotation_matrix(q)), R.entries, rounding);
    CHECK_CLOSE(numbers(rotation_matrix(p * q)), (dense(rotation_matrix(p)) * R).entries, rounding);
    CHECK_CLOSE(numbers(rotation_matrix(conjugate(q))), transposed(R).entries, rounding);
  }
}

void exponential_and_logarithm() {
  Random random(14);
  for (double size : {1e-13, 1e-9, 1e-4, 0.1, 1.0, 3.1}) {
    for (int trial = 0; trial < 10; ++trial) {
      const Vector3<double> a = random_vector(random), d = (size / std::sqrt(dot(a, a))) * a;
      const Quaternion<double> q = exponential(d);
      CHECK_CLOSE(numbers(rotation_matrix(q)), rotation_by(d).entries, rounding);
      CHECK_CLOSE(numbers((1 / size) * logarithm(q)), numbers((1 / size) * d), rounding);
      // the other quaternion of the same rotation, and the longer way round
      CHECK_CLOSE(numbers(logarithm(Quaternion<double>{-q.w, -q.x, -q.y, -q.z})), numbers(d), rounding);
      CHECK_CLOSE(numbers(logarithm(exponential((1 - full_turn / size) * d))), numbers(d), rounding);
    }
  }
  CHECK_CLOSE(numbers(logarithm(Quaternion<double>{1, 0, 0, 0})), Doubles({0, 0, 0}), 0.0);
}

// exp(d + t a) = exp(t J_l a) exp(d) to first order: [J_l a]x = (d/dt R) R'
void rotation_jacobians() {
  Random random(15);
  for (double size : {1e-6, 0.05, 0.099, 0.101, 0.4, 0.6, 2.0, 3.1}) {
    const Vector3<double> u = random_vector(random), d = (size / std::sqrt(dot(u, u))) * u,
                          a = random_vector(random);
    const double t = 1e-3;
    const auto at = [&](double s) { return rotation_by(d + (s * t) * a); };
    const Dense rate = (1 / (12 * t)) * (8.0 * (at(1) + -1.0 * at(-1)) + -1.0 * (at(2) + -1.0 * at(-2)));
    CHECK_CLOSE(cross_matrix(left_jacobian_times(d, a)).entries, (rate * transposed(at(0))).entries, smooth);
    CHECK_CLOSE(numbers(left_jacobian_inverse_times(d, left_jacobian_times(d, a))), numbers(a), rounding);
    // J_r(d)' = J_l(d), J_r(d) = J_l(-d)
    const Vector3<double> b = random_vector(random);
    CHECK_CLOSE(dot(b, left_jacobian_times(-d, a)), dot(left_jacobian_times(d, b), a), rounding);
  }
}

void ambient_cotangents_of_quaternions() {
  Random random(16);
  for (int trial = 0; trial < 20; ++trial) {
    const Quaternion<double> q = random_quaternion(random);
    const Vector3<double> t = random_vector(random);
    const Quaternion<double> bar = ambient_cotangent(q, t);
    CHECK_CLOSE(numbers(tangent_cotangent(q, bar)), numbers(t), rounding);
    // nothing along q: no cotangent with this tangent part is shorter
    CHECK_CLOSE(q.w * bar.w + q.x * bar.x + q.y * bar.y + q.z * bar.z, 0.0, rounding);
  }
}

// --- adjoints ----------------------------------------------------------------------------------------------

// in: inertia, rotation, origin
struct ToWorld {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Reader<Real> from{in};
    const RigidInertia<Real> I = from.inertia();
    const Matrix3<Real> R = from.matrix();
    Writer<Real>{out}.add(to_world(I, R, from.vector()));
  }
};
struct ToWorldAdjoint {
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    Reader<Real> from{in + 10};
    const Matrix3<Real> R = from.matrix();
    RigidInertia<Real> bar = zero_inertia<Real>();
    to_world_adjoint(Reader<Real>{out_bar}.inertia_cotangent(), R, from.vector(), bar);
    Writer<Real>{in_bar}.add_cotangent(bar);
  }
};

// x' I y; in: inertia, x, y
struct Bilinear {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Reader<Real> from{in};
    const RigidInertia<Real> I = from.inertia();
    const Motion<Real> x = from.motion();
    out[0] += dot(x, I * from.motion());
  }
};
struct BilinearAdjoint {
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    Reader<Real> from{in + 10};
    const Motion<Real> x = from.motion();
    RigidInertia<Real> bar = zero_inertia<Real>();
    add_bilinear_adjoint(bar, out_bar[0], x, from.motion());
    Writer<Real>{in_bar}.add_cotangent(bar);
  }
};

// the inertia of a body that is turned by exp(d.w) and moved by d.v; in: d, inertia
struct Displaced {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Reader<Real> from{in};
    const Motion<Real> d = from.motion();
    Writer<Real>{out}.add(to_world(from.inertia(), rotation_matrix(exponential(d.w)), d.v));
  }
};
struct DisplacedAdjoint {
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    Writer<Real>{in_bar}.add(
        displacement_moment(Reader<Real>{in + 6}.inertia(), Reader<Real>{out_bar}.inertia_cotangent()));
  }
};

struct Articulated {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Writer<Real>{out}.add(articulated(Reader<Real>{in}.inertia()));
  }
};
struct ArticulatedAdjoint {
  template <class Real>
  void operator()(const Real*, const Real* out_bar, Real* in_bar) const {
    RigidInertia<Real> bar = zero_inertia<Real>();
    add_articulated_adjoint(bar, Reader<Real>{out_bar}.articulated_cotangent());
    Writer<Real>{in_bar}.add_cotangent(bar);
  }
};

// x' M y; in: M, x, y
struct ArticulatedBilinear {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Reader<Real> from{in};
    const ArticulatedInertia<Real> M = from.articulated();
    const Motion<Real> x = from.motion();
    out[0] += dot(x, M * from.motion());
  }
};
struct ArticulatedBilinearAdjoint {
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    Reader<Real> from{in + 21};
    const Motion<Real> x = from.motion();
    ArticulatedInertia<Real> bar = articulated(zero_inertia<Real>());
    add_symmetric_product(bar, out_bar[0], x, from.motion());
    Writer<Real>{in_bar}.add_cotangent(bar);
  }
};

// M - s u u'; in: u, s, M
struct Square {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Reader<Real> from{in};
    const Force<Real> u = from.force();
    const Real s = from.scalar();
    ArticulatedInertia<Real> M = from.articulated();
    subtract_square(M, s, u);
    Writer<Real>{out}.add(M);
  }
};
struct SquareAdjoint {
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Force<Real> u = Reader<Real>{in}.force();
    Writer<Real>{in_bar}.add((Real(-2) * in[6]) *
                             cotangent_times(Reader<Real>{out_bar}.articulated_cotangent(), u));
  }
};

// q exp(d) as four numbers; in: d, q
struct Turned {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Reader<Real> from{in};
    const Vector3<Real> d = from.vector();
    Writer<Real>{out}.add(normalized(from.quaternion()) * exponential(d));
  }
};
struct TurnedAdjoint {
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Quaternion<Real> q = normalized(Reader<Real>{in + 3}.quaternion());
    Writer<Real>{in_bar}.add(tangent_cotangent(q, Reader<Real>{out_bar}.quaternion()));
  }
};

// The first `differentiated` inputs are; those are zero where the adjoint holds only there.
template <class Function, class Adjoint>
void check_operator(const char* name, Random& random, int n_in, int differentiated, bool at_zero, int n_out,
                    const Function& function, const Adjoint& adjoint) {
  Doubles in = random.normals(n_in);
  if (at_zero) std::fill_n(in.begin(), differentiated, 0.0);
  check_adjoint(name, random, in, n_out, function, adjoint, smooth, {{"in", 0, differentiated}});
  const std::vector<Doubles> environments = environments_around(random, in, 1.0);
  check_lanes(name, environments, n_out, function);
  check_adjoint_lanes(name, random, environments, n_out, adjoint);
}

void adjoints() {
  Random random(17);
  for (int trial = 0; trial < 3; ++trial) {
    check_operator("to_world", random, 22, 10, false, 10, ToWorld(), ToWorldAdjoint());
    check_operator("x' I y", random, 22, 10, false, 1, Bilinear(), BilinearAdjoint());
    check_operator("rigid displacement of an inertia", random, 16, 6, true, 10, Displaced(),
                   DisplacedAdjoint());
    check_operator("articulated", random, 10, 10, false, 21, Articulated(), ArticulatedAdjoint());
    check_operator("x' M y", random, 33, 21, false, 1, ArticulatedBilinear(), ArticulatedBilinearAdjoint());
    check_operator("M - s u u'", random, 28, 6, false, 21, Square(), SquareAdjoint());
    check_operator("q exp(d)", random, 7, 3, true, 4, Turned(), TurnedAdjoint());
  }
}

}  // namespace

int main() {
  return run({{"three-vectors and 3x3 matrices", three_vectors_and_matrices},
              {"cross products of spatial vectors", cross_products_of_spatial_vectors},
              {"rigid and articulated inertias", inertias},
              {"quaternions", quaternions},
              {"exponential and logarithm", exponential_and_logarithm},
              {"Jacobians of the rotation group", rotation_jacobians},
              {"ambient cotangents", ambient_cotangents_of_quaternions},
              {"adjoints and lanes", adjoints}});
}
