// The gradient of a program by its start and controls: by a tape of the whole run, or by Jacobians of its steps.
#pragma once

#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <vector>

#include "programs.hpp"

namespace revolute {

struct Differentiated {
  double value, forward_seconds, backward_seconds;
  std::vector<double> gradient;  // by start, then controls
};

// Processor time of this process, which other work on the machine does not lengthen.
class Stopwatch {
 public:
  double seconds() const { return double(std::clock() - start_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t start_ = std::clock();
};

// Tape is a library's adapter: begin(inputs) gives scalars that are recorded, end(loss) closes the tape, reverse() walks it.
template <class Tape>
struct ByTape {
  template <class Program>
  Differentiated operator()(const Program& program, std::int64_t steps) const {
    using Real = Foreign<typename Tape::Scalar>;
    const Stopwatch forward;
    Tape tape;
    std::vector<double> inputs = program.start;
    inputs.insert(inputs.end(), program.controls.begin(), program.controls.end());
    const std::vector<Real> recorded = tape.begin(inputs);
    std::vector<Real> state(recorded.begin(), recorded.begin() + program.states());
    auto stepper = program.template stepper<Real>();
    for (std::int64_t t = 0; t < steps; ++t)
      stepper.step(state.data(), recorded.data() + program.states() + t * program.inputs());
    const Real loss = program.loss(state.data(), program.states());
    tape.end(loss);
    const double forward_seconds = forward.seconds();
    const Stopwatch backward;
    const std::vector<double> gradient = tape.reverse();
    return {loss.value(), forward_seconds, backward.seconds(), gradient};
  }
};

// Forward mode: each step's Jacobian [states, states + inputs] is kept, then  x_bar_t = J_t' x_bar_{t+1}.
template <template <int> class Scalar>
struct ByStepJacobians {
  Differentiated operator()(const RobotProgram& program, std::int64_t steps) const {
    return run<49>(program, steps);
  }
  Differentiated operator()(const SimplifiedProgram& program, std::int64_t steps) const {
    return run<37>(program, steps);
  }

 private:
  template <int N, class Program>
  static Differentiated run(const Program& program, std::int64_t steps) {
    using Real = Foreign<Scalar<N>>;
    const int nx = program.states(), nu = program.inputs();
    if (nx + nu != N)
      throw std::invalid_argument("program: another number of states and inputs than compiled for");
    const Stopwatch forward;
    std::vector<Real> state(nx), ctrl(nu);
    std::vector<double> values = program.start, jacobians(std::size_t(steps) * nx * N);
    auto stepper = program.template stepper<Real>();
    for (std::int64_t t = 0; t < steps; ++t) {
      for (int i = 0; i < nx; ++i) state[i].scalar = Scalar<N>(values[i], i);
      for (int i = 0; i < nu; ++i) ctrl[i].scalar = Scalar<N>(program.controls[t * nu + i], nx + i);
      stepper.step(state.data(), ctrl.data());
      for (int i = 0; i < nx; ++i) {
        values[i] = state[i].value();
        std::copy_n(state[i].scalar.v.data(), N, &jacobians[(std::size_t(t) * nx + i) * N]);
      }
    }
    for (int i = 0; i < nx; ++i) state[i].scalar = Scalar<N>(values[i], i);
    const Real loss = program.loss(state.data(), nx);
    const double forward_seconds = forward.seconds();
    const Stopwatch backward;
    std::vector<double> bar(loss.scalar.v.data(), loss.scalar.v.data() + nx), before(N),
        gradient(nx + std::size_t(steps) * nu);
    for (std::int64_t t = steps; t-- > 0;) {
      std::fill(before.begin(), before.end(), 0.0);
      for (int i = 0; i < nx; ++i)
        for (int j = 0; j < N; ++j) before[j] += jacobians[(std::size_t(t) * nx + i) * N + j] * bar[i];
      std::copy_n(before.begin(), nx, bar.begin());
      std::copy_n(before.begin() + nx, nu, &gradient[nx + t * nu]);
    }
    std::copy_n(bar.begin(), nx, gradient.begin());
    return {loss.value(), forward_seconds, backward.seconds(), gradient};
  }
};

}  // namespace revolute
