// Dual numbers: values as for one number, bit for bit; tangents against differences and the chain rule.
#include "check.hpp"
#include "packing.hpp"
#include "revolute/scalar/dual.hpp"

// in the engine's namespace, whose sqrt and abs would be ambiguous with those of the C library outside of it
namespace revolute::check {

namespace {

// every operation of the scalar interface at least once
struct Everything {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    const Real a = in[0], b = in[1], c = in[2];
    Real s, cosine, sinc, alpha, beta, sum = a;
    sincos(a, s, cosine);
    sinc_cos(a * a, sinc, cosine);
    rotation_jacobian_coefficients(b * b, alpha, beta);
    sum += b;
    sum -= c * a;
    sum *= Real(1.5);
    const Real all[] = {a + b * c,
                        (a - b) / (Real(2) + c * c),
                        -a * Real(0.5),
                        sqrt(Real(1) + a * a),
                        abs(b),
                        minimum(a, b) + maximum(b, c) + clamp(c, Real(-0.5), Real(0.5)),
                        select(less(a, b) | !less_equal(b, c), a * a, c * c),
                        multiply_add(a, b, c),
                        s,
                        cosine,
                        sinc,
                        alpha + beta,
                        twice_arctangent(abs(s), sqrt(Real(1) - s * s)),
                        sum};
    for (const Real& value : all) *out++ += value;
  }
};
constexpr int n_in = 3, n_out = 14;

struct Rotations {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    const Quaternion<Real> q = exponential(Reader<Real>{in}.vector());
    Writer<Real> to{out};
    to.add(rotation_matrix(q));
    to.add(logarithm(q * q));
    to.add(left_jacobian_inverse_times(Reader<Real>{in}.vector(), Vector3<Real>{q.x, q.y, q.z}));
  }
};

// Two tangents at once.
template <class Function>
void check_tangents(const Function& function, Random& random, int outputs) {
  const Doubles in = random.normals(n_in), directions[2] = {random.normals(n_in), random.normals(n_in)};
  std::vector<Dual<2>> dual(n_in), out(outputs, Dual<2>(0.0));
  for (int i = 0; i < n_in; ++i) {
    dual[i] = Dual<2>(in[i]);
    for (int d = 0; d < 2; ++d) dual[i].tangent[d] = directions[d][i];
  }
  function(static_cast<const Dual<2>*>(dual.data()), out.data());
  const Doubles values = value(function, in, outputs);
  for (int i = 0; i < outputs; ++i) CHECK(same(out[i].value, values[i]));
  for (int d = 0; d < 2; ++d) {
    Doubles tangent(outputs);
    for (int i = 0; i < outputs; ++i) tangent[i] = out[i].tangent[d];
    CHECK_CLOSE(tangent, differences(function, in, directions[d], 1e-4, outputs), smooth);
  }
}

void tangents_match_differences() {
  Random random(150);
  for (int trial = 0; trial < 20; ++trial) {
    check_tangents(Everything(), random, n_out);
    check_tangents(Rotations(), random, 15);
  }
}

// Where a formula has no derivative the tangent is finite: the side that is taken.
void tangents_are_finite_at_kinks() {
  Dual<1> zero(0.0);
  zero.tangent[0] = 1.0;
  CHECK(sqrt(zero).tangent[0] == 0.0);
  CHECK(abs(zero).tangent[0] == 1.0);
  CHECK(maximum(zero, Dual<1>(0.0)).tangent[0] == 1.0);
  Dual<1> sinc, cosine;
  sinc_cos(zero, sinc, cosine);
  CHECK_CLOSE(sinc.tangent[0], -1.0 / 6, rounding);
  CHECK_CLOSE(cosine.tangent[0], -0.5, rounding);
  CHECK(is_finite(zero).bit && !is_finite(Dual<1>(1.0) / Dual<1>(0.0)).bit);
}

}  // namespace

int all_tests() {
  return run({{"tangents", tangents_match_differences}, {"kinks", tangents_are_finite_at_kinks}});
}

}  // namespace revolute::check

int main() { return revolute::check::all_tests(); }
