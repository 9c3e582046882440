// exp and tanh against the C library in long double.
#include "check.hpp"
#include "revolute/scalar/exponential.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// Relative errors in units of 2^-53: of exp one and a rounding, of tanh three roundings more.
constexpr double exp_error = 2.3e-16;
constexpr double tanh_error = 6e-16;

struct ExpAndTanh {
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    out[0] = natural_exponential(in[0]);
    out[1] = hyperbolic_tangent(in[0]);
  }
};

void functions_match_long_double() {
  Random random(1);
  for (double range : {1e-12, 1e-3, 0.3, 0.7, 5.0, 40.0, 700.0})
    for (int i = 0; i < 2000; ++i) {
      const double x = random.uniform(-range, range);
      const double e = double(std::exp((long double)x)), t = double(std::tanh((long double)x));
      CHECK_CLOSE(natural_exponential(x) / e, 1.0, exp_error);
      CHECK_CLOSE(hyperbolic_tangent(x), t, tanh_error * std::fabs(t));
      CHECK(hyperbolic_tangent(-x) == -hyperbolic_tangent(x));
    }
}

void ends_and_zero_are_exact() {
  CHECK(natural_exponential(0.0) == 1.0 && hyperbolic_tangent(0.0) == 0.0);
  CHECK(natural_exponential(-1e300) < 1e-307 && natural_exponential(-1e300) > 0);
  for (double x : {30.0, 800.0, 1e300, double(INFINITY)})
    CHECK(hyperbolic_tangent(x) == 1.0 && hyperbolic_tangent(-x) == -1.0);
  CHECK(std::isnan(natural_exponential(double(NAN))) && std::isnan(hyperbolic_tangent(double(NAN))));
}

void packs_equal_single_runs() {
  Random random(2);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<Doubles> numbers;
    for (int lane = 0; lane < 8; ++lane)
      numbers.push_back({random.normal() * std::pow(10.0, random.uniform(-9, 3))});
    check_lanes("exp and tanh", numbers, 2, ExpAndTanh());
  }
}

}  // namespace

int main() {
  return run({{"against long double", functions_match_long_double},
              {"ends and zero", ends_and_zero_are_exact},
              {"lanes", packs_equal_single_runs}});
}
