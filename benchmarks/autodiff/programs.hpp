// What is differentiated: programs of T steps  x_{t+1} = step(x_t, u_t)  with a loss of x_T, for any scalar.
//
// RobotProgram runs revolute's own step from engine/include, with |final base position|^2 as its loss. SimplifiedProgram
// is the arithmetic of a toy step in 37 numbers, x_i += 1/x_{i-1} one after the other, that a script can hold without an
// engine; its loss is the sum of the state.
#pragma once

#include <algorithm>
#include <vector>

#include "revolute/model/model_storage.hpp"
#include "revolute/step.hpp"

namespace revolute {

// The engine's step with the model's own parameters; the state is (qpos, qvel).
template <class Real>
class RobotStepper {
 public:
  explicit RobotStepper(const ModelStorage& storage)
      : model_(storage.model()),
        arena_(bytes(model_)),
        parameters_(model_, arena_),
        workspace_(model_, arena_) {
    ParameterPointers values;
    for (int p = 0; p < parameter_count; ++p) values[p] = storage.parameters().defaults[p].data();
    load_parameters(storage.parameters(), values, 0, model_, parameters_);
  }
  void step(Real* state, const Real* ctrl) {
    revolute::step(model_, parameters_, state, state + model_.nq, ctrl, false, workspace_, state,
                   state + model_.nq);
  }

 private:
  static std::size_t bytes(const Model& model) {
    Arena counting;
    Parameters<Real> parameters(model, counting);
    StepWorkspace<Real> workspace(model, counting);
    return counting.used();
  }
  const Model& model_;
  Arena arena_;
  Parameters<Real> parameters_;
  StepWorkspace<Real> workspace_;
};

struct RobotProgram {
  const ModelStorage& storage;
  std::vector<double> start, controls;  // [nq + nv], [T, nu]

  int states() const { return storage.model().nq + storage.model().nv; }
  int inputs() const { return storage.model().nu; }
  template <class Real>
  RobotStepper<Real> stepper() const {
    return RobotStepper<Real>(storage);
  }
  template <class Real>
  static Real loss(const Real* state, int) {
    return state[0] * state[0] + state[1] * state[1] + state[2] * state[2];
  }
};

struct SimplifiedProgram {
  static constexpr int size = 37;
  std::vector<double> start;
  std::vector<double> controls;  // none

  static int states() { return size; }
  static int inputs() { return 0; }
  template <class Real>
  struct Stepper {
    void step(Real* x, const Real*) const {
      for (int i = 0; i < size; ++i) x[i] += Real(1) / x[(i + size - 1) % size];
    }
  };
  template <class Real>
  Stepper<Real> stepper() const {
    return {};
  }
  template <class Real>
  static Real loss(const Real* x, int count) {
    Real sum = x[0];
    for (int i = 1; i < count; ++i) sum += x[i];
    return sum;
  }
};

}  // namespace revolute
