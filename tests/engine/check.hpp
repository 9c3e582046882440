// The harness of the engine's tests: checks that say what failed and where, and four checks of templated
// functions.
//
// A function under test is a functor with
//   template <class Real> void operator()(const Real* in, Real* out) const
// and its adjoint one with
//   template <class Real> void operator()(const Real* in, const Real* out_bar, Real* in_bar) const
// Both add to the array they fill, which they get as zeros. The same two definitions serve every check:
//   check_adjoint        <out_bar, J d> by central differences against <J' out_bar, d>
//   check_lanes          a pack of environments against as many single runs, bit for bit
//   check_adjoint_lanes  the same for the adjoint
//   check_no_allocation  nothing is taken from the heap (allocation.hpp)
// A test program is one translation unit; it lists its tests in main() and returns non-zero when a check
// failed.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "revolute/scalar/lanes.hpp"

namespace revolute::check {

using Doubles = std::vector<double>;

// A formula of up to a hundred operations against another one for the same number.
constexpr double rounding = 1e-13;
// The same through solves and long sums, whose condition costs two digits.
constexpr double solved = 1e-11;
// Fourth-order differences of a smooth function: rounding divided by the best step.
constexpr double smooth = 1e-9;
// First or second derivatives by plain central differences.
constexpr double differenced = 1e-7;

struct Counts {
  int checks = 0, failures = 0;
};
inline Counts& counts() {
  static Counts instance;
  return instance;
}

inline bool expect(bool holds, const std::string& message, const char* file, int line) {
  ++counts().checks;
  if (holds) return true;
  ++counts().failures;
  std::printf("%s:%d: %s\n", file, line, message.c_str());
  return false;
}
// Relative to `wanted`, absolute where that is below one; NaN is never close.
inline bool expect_close(double got, double wanted, double tolerance, const char* name, const char* file,
                         int line) {
  char text[200];
  std::snprintf(text, sizeof text, "%s: expected %.17g, got %.17g, tolerance %g", name, wanted, got,
                tolerance);
  return expect(std::fabs(got - wanted) <= tolerance * std::fmax(1.0, std::fabs(wanted)), text, file, line);
}
// Relative to the largest entry of `wanted`.
inline bool expect_close(const Doubles& got, const Doubles& wanted, double tolerance, const char* name,
                         const char* file, int line) {
  if (!expect(got.size() == wanted.size(), std::string(name) + ": sizes differ", file, line)) return false;
  double scale = 1.0;
  for (double value : wanted) scale = std::fmax(scale, std::fabs(value));
  for (std::size_t i = 0; i < got.size(); ++i) {
    char text[200];
    std::snprintf(text, sizeof text, "%s[%zu]: expected %.17g, got %.17g, tolerance %g", name, i, wanted[i],
                  got[i], tolerance * scale);
    if (!expect(std::fabs(got[i] - wanted[i]) <= tolerance * scale, text, file, line)) return false;
  }
  return true;
}
inline bool expect_finite(const Doubles& values, const char* name, const char* file, int line) {
  bool finite = true;
  for (double value : values) finite = finite && std::isfinite(value);
  return expect(finite, std::string(name) + ": expected finite numbers", file, line);
}

#define CHECK(condition) ::revolute::check::expect((condition), #condition, __FILE__, __LINE__)
#define CHECK_CLOSE(got, wanted, tolerance) \
  ::revolute::check::expect_close(got, wanted, tolerance, #got, __FILE__, __LINE__)
#define CHECK_FINITE(values) ::revolute::check::expect_finite(values, #values, __FILE__, __LINE__)

// Random numbers from a fixed seed, which is printed.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) { std::printf("  seed %u\n", seed); }
  double uniform(double lower, double upper) {
    return lower + (upper - lower) * (double(engine_() >> 11) * 0x1p-53);
  }
  // the sum of twelve uniform numbers: normal enough, and the same on every standard library
  double normal() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += uniform(0.0, 1.0);
    return sum;
  }
  Doubles normals(std::size_t count) {
    Doubles out(count);
    for (double& value : out) value = normal();
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

inline double inner(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
inline Doubles along(const Doubles& a, double step, const Doubles& direction) {
  Doubles out = a;
  for (std::size_t i = 0; i < a.size(); ++i) out[i] += step * direction[i];
  return out;
}

template <class Function>
Doubles value(const Function& function, const Doubles& in, int n_out) {
  Doubles out(n_out, 0.0);
  function(in.data(), out.data());
  return out;
}

// J d by fourth-order central differences.
template <class Function>
Doubles differences(const Function& function, const Doubles& in, const Doubles& direction, double step,
                    int n_out) {
  const auto at = [&](double s) { return value(function, along(in, s * step, direction), n_out); };
  const Doubles near_up = at(1), near_down = at(-1), far_up = at(2), far_down = at(-2);
  Doubles out(n_out);
  for (int i = 0; i < n_out; ++i)
    out[i] = (8 * (near_up[i] - near_down[i]) - (far_up[i] - far_down[i])) / (12 * step);
  return out;
}

// Rounding of a step's result, relative to it. More than that of one number: a gap between bodies is a difference of
// positions, and is divided by the time step.
constexpr double rounding_of_a_step = 5e-15;

// <out_bar, J d> where neighbouring steps agree best, the sum of its terms' sizes, and what rounding of the
// outputs leaves.
struct Plateau {
  double value, scale, noise;
};
template <class Function>
Plateau best_plateau(const Function& function, const Doubles& in, const Doubles& direction,
                     const Doubles& out_bar) {
  Plateau best{0, 0, 0};
  double previous = 0, closest = -1, size = 0;
  const Doubles out = value(function, in, int(out_bar.size()));
  for (std::size_t i = 0; i < out.size(); ++i) size += std::fabs(out_bar[i] * out[i]);
  for (double step : {1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6}) {
    const Doubles tangent = differences(function, in, direction, step, int(out_bar.size()));
    const double estimate = inner(out_bar, tangent), change = std::fabs(estimate - previous);
    if (step < 1e-2 && (closest < 0 || change < closest)) {
      closest = change;
      best = {estimate, 0, rounding_of_a_step * size / step};
      for (std::size_t i = 0; i < tangent.size(); ++i) best.scale += std::fabs(out_bar[i] * tangent[i]);
    }
    previous = estimate;
  }
  return best;
}

// A named stretch of the inputs, differentiated by itself so that large gradients do not hide small ones.
// Differences take steps of at most a hundredth of `scale`, which is to be small against the distance to the
// next kink.
struct Block {
  std::string name;
  int begin, size;
  double scale = 1.0;
};

// The two numbers must agree. In some trial they must differ in their last digits: otherwise both are zero,
// or one was computed from the other.
template <class Function, class Adjoint>
void check_adjoint(const std::string& name, Random& random, const Doubles& in, int n_out,
                   const Function& function, const Adjoint& adjoint, double tolerance,
                   std::vector<Block> blocks = {}) {
  if (blocks.empty()) blocks = {{"in", 0, int(in.size())}};
  for (const Block& block : blocks) {
    bool identical = true;
    for (int trial = 0; trial < 4; ++trial) {
      Doubles direction(in.size(), 0.0);
      for (int i = 0; i < block.size; ++i) direction[block.begin + i] = block.scale * random.normal();
      const Doubles out_bar = random.normals(n_out);
      Doubles in_bar(in.size(), 0.0);
      adjoint(in.data(), out_bar.data(), in_bar.data());
      const double exact = inner(in_bar, direction);
      const Plateau difference = best_plateau(function, in, direction, out_bar);
      const double allowed = tolerance * difference.scale + difference.noise;
      char text[300];
      std::snprintf(text, sizeof text, "%s by %s: adjoint %.15g, differences %.15g, tolerance %g",
                    name.c_str(), block.name.c_str(), exact, difference.value, allowed);
      expect(std::fabs(exact - difference.value) <= allowed, text, __FILE__, __LINE__);
      identical = identical && exact == difference.value;
    }
    expect(!identical,
           name + " by " + block.name + ": adjoint and differences are identical, so nothing was compared",
           __FILE__, __LINE__);
  }
}

// Equal bits, except that zero has one sign and NaN one value.
inline bool same(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || a == b || (a != a && b != b);
}

// Apart from its caller: g++ 12 fails on functions that realign the stack for packs and have cleanups.
template <class Function, class Real>
__attribute__((noinline)) void call(const Function& function, const Real* in, Real* out) {
  function(in, out);
}

template <int W, class Function>
void check_width(const std::string& name, const std::vector<Doubles>& environments, int n_out,
                 const Function& function) {
  const int n_in = int(environments[0].size());
  std::vector<Lanes<W>> in(n_in), out(n_out, Lanes<W>(0.0));
  for (int lane = 0; lane < W; ++lane)
    for (int i = 0; i < n_in; ++i) set_lane(in[i], lane, environments[lane][i]);
  call(function, in.data(), out.data());
  for (int lane = 0; lane < W; ++lane) {
    const Doubles single = value(function, environments[lane], n_out);
    for (int i = 0; i < n_out; ++i) {
      char text[200];
      std::snprintf(text, sizeof text,
                    "%s: entry %d of environment %d in a pack of %d: expected %.17g, got %.17g", name.c_str(),
                    i, lane, W, single[i], get_lane(out[i], lane));
      if (!expect(same(single[i], get_lane(out[i], lane)), text, __FILE__, __LINE__)) return;
    }
  }
}
// The width of this instruction set, and another one: half of it, or twice where that is still quick to
// compile.
constexpr int native_lanes = REVOLUTE_LANES,
              other_lanes = native_lanes > 4 ? native_lanes / 2 : 2 * native_lanes;
static_assert(native_lanes <= 8, "the tests make eight environments");

// Needs eight environments.
template <class Function>
void check_lanes(const std::string& name, const std::vector<Doubles>& environments, int n_out,
                 const Function& function) {
  check_width<native_lanes>(name, environments, n_out, function);
  check_width<other_lanes>(name, environments, n_out, function);
}

// An adjoint as a function of (in, out_bar).
template <class Adjoint>
struct Pullback {
  const Adjoint& adjoint;
  int n_in;
  template <class Real>
  void operator()(const Real* in, Real* in_bar) const {
    adjoint(in, in + n_in, in_bar);
  }
};
// Each environment followed by random cotangents of the outputs.
inline std::vector<Doubles> with_cotangents(Random& random, std::vector<Doubles> environments, int n_out) {
  for (Doubles& in : environments)
    for (double bar : random.normals(n_out)) in.push_back(bar);
  return environments;
}
template <class Adjoint>
void check_adjoint_lanes(const std::string& name, Random& random, const std::vector<Doubles>& environments,
                         int n_out, const Adjoint& adjoint) {
  const int n_in = int(environments[0].size());
  check_lanes(name + " adjoint", with_cotangents(random, environments, n_out), n_in,
              Pullback<Adjoint>{adjoint, n_in});
}

// Eight environments: `in` and seven that differ from it by about `spread`.
inline std::vector<Doubles> environments_around(Random& random, const Doubles& in, double spread) {
  std::vector<Doubles> out(8, in);
  for (int lane = 1; lane < 8; ++lane)
    for (double& value : out[lane]) value += spread * random.normal();
  return out;
}

struct Test {
  const char* name;
  void (*body)();
};
inline int run(std::initializer_list<Test> tests) {
  for (const Test& test : tests) {
    const Counts before = counts();
    std::printf("%s\n", test.name);
    try {
      test.body();
    } catch (const std::exception& error) {
      expect(false, std::string("unexpected exception: ") + error.what(), __FILE__, __LINE__);
    }
    expect(counts().checks > before.checks, std::string(test.name) + ": the test checks nothing", __FILE__,
           __LINE__);
  }
  std::printf("%d checks, %d failures\n", counts().checks, counts().failures);
  return counts().failures == 0 ? 0 : 1;
}

}  // namespace revolute::check
