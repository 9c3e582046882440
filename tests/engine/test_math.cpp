// Sine, cosine and the small-angle functions of rotations against the C library in long double.
#include "check.hpp"
#include "revolute/scalar/math.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// Error of the kernels and of the reduction, in units of 2^-53 for values up to one.
constexpr double one_ulp = 1.2e-16;
// Divisions and a square root on top.
constexpr double few_ulp = 1e-15;
// The switch of a series is where the closed form has lost about three digits.
constexpr double at_switch = 2e-14;

struct Sincos {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    sincos(in[0], out[0], out[1]);
  }
};
struct SincCos {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    sinc_cos(in[0], out[0], out[1]);
  }
};
struct RotationCoefficients {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    rotation_jacobian_coefficients(in[0], out[0], out[1]);
  }
};

void check_sincos(double x, double tolerance) {
  double s, c;
  sincos(x, s, c);
  CHECK_CLOSE(s, double(std::sin((long double)x)), tolerance);
  CHECK_CLOSE(c, double(std::cos((long double)x)), tolerance);
}

void sincos_matches_long_double() {
  Random random(1);
  for (double range : {1e-8, 1e-3, 0.8, 3.2, 100.0, 1e4, 1e6})
    for (int i = 0; i < 2000; ++i) check_sincos(random.uniform(-range, range), one_ulp);
  // beyond the reduction in three parts
  for (double range : {2e6, 1e9, 1e15, 1e18})
    for (int i = 0; i < 200; ++i) check_sincos(random.uniform(-range, range), one_ulp);
}

void sincos_near_multiples_of_a_quarter_turn() {
  for (int n = -400; n <= 400; ++n)
    for (double offset : {0.0, 1e-15, -1e-15, 1e-9, -1e-9, 0.785398163397448, -0.785398163397449})
      check_sincos(n * 0.78539816339744831 + offset, one_ulp);
  for (double x : {999999.99, 1000000.0, 1000000.01, -1000000.01}) check_sincos(x, one_ulp);
}

void sincos_is_exact_at_zero_and_odd() {
  double s, c;
  sincos(0.0, s, c);
  CHECK(s == 0.0 && c == 1.0);
  Random random(2);
  for (int i = 0; i < 1000; ++i) {
    const double x = random.uniform(0, 50);
    double s_minus, c_minus;
    sincos(x, s, c);
    sincos(-x, s_minus, c_minus);
    CHECK(s_minus == -s && c_minus == c);
    CHECK_CLOSE(s * s + c * c, 1.0, few_ulp);
  }
}

void non_finite_angles_stay_non_finite() {
  for (double x : {INFINITY, -INFINITY, NAN}) {
    double s, c;
    sincos(x, s, c);
    CHECK(s != s && c != c);
  }
}

// sin(a)/a, cos(a) at the double nearest to a^2
void sinc_cos_matches_long_double() {
  Random random(3);
  for (double range : {1e-30, 1e-8, 1e-3, 1e-2, 0.1, 10.0, 1e4}) {
    for (int i = 0; i < 1000; ++i) {
      const double z = random.uniform(0, range);
      const long double a = std::sqrt((long double)z);
      double sinc, c;
      sinc_cos(z, sinc, c);
      CHECK_CLOSE(sinc, double(z > 0 ? std::sin(a) / a : 1.0L), few_ulp);
      CHECK_CLOSE(c, double(std::cos(a)), few_ulp * (1 + double(a)));
    }
  }
}

void rotation_coefficients_match_long_double() {
  Random random(4);
  for (double range : {1e-2, 0.25, 0.3, 10.0, 100.0}) {
    for (int i = 0; i < 1000; ++i) {
      // the closed forms lose digits themselves below 1e-3
      const double z = random.uniform(1e-3, range);
      const long double t = std::sqrt((long double)z);
      double a, b;
      rotation_jacobian_coefficients(z, a, b);
      CHECK_CLOSE(a, double((1 - std::cos(t)) / t / t), at_switch);
      CHECK_CLOSE(b, double((t - std::sin(t)) / t / t / t), at_switch);
    }
  }
  double a, b;
  rotation_jacobian_coefficients(0.0, a, b);
  CHECK(a == 0.5);
  CHECK_CLOSE(b, 1.0 / 6, rounding);
}

// A step at the switch from series to closed form would spoil differences of everything above.
void functions_are_continuous_where_they_switch() {
  const auto jump = [](auto function, double x) {
    const Doubles below = value(function, {std::nextafter(x, 0.0)}, 2),
                  above = value(function, {std::nextafter(x, 2 * x)}, 2);
    return std::fmax(std::fabs(below[0] - above[0]), std::fabs(below[1] - above[1]));
  };
  CHECK(jump(SincCos(), 1e-2) <= few_ulp);
  CHECK(jump(RotationCoefficients(), 0.25) <= few_ulp);
  CHECK(jump(RotationCoefficients(), 0.04) <= few_ulp);
  for (int n = 0; n < 20; ++n) CHECK(jump(Sincos(), (2 * n + 1) * 0.78539816339744831) <= 1e-13);
}

void packs_equal_single_runs() {
  Random random(5);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<Doubles> angles, squares;
    for (int lane = 0; lane < 8; ++lane) {
      // small, large and huge angles side by side
      const double x = random.normal() * std::pow(10.0, random.uniform(-9, 9));
      angles.push_back({x});
      squares.push_back({std::fabs(x)});
    }
    check_lanes("sincos", angles, 2, Sincos());
    check_lanes("sinc_cos", squares, 2, SincCos());
    check_lanes("rotation_jacobian_coefficients", squares, 2, RotationCoefficients());
  }
}

}  // namespace

int main() {
  return run({{"sincos against long double", sincos_matches_long_double},
              {"sincos near multiples of a quarter turn", sincos_near_multiples_of_a_quarter_turn},
              {"sincos at zero and its symmetry", sincos_is_exact_at_zero_and_odd},
              {"sincos of numbers that are not finite", non_finite_angles_stay_non_finite},
              {"sinc and cos of a squared angle", sinc_cos_matches_long_double},
              {"coefficients of the rotation Jacobian", rotation_coefficients_match_long_double},
              {"continuity at switches", functions_are_continuous_where_they_switch},
              {"lanes", packs_equal_single_runs}});
}
