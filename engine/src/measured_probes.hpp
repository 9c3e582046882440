// One thread's workspace for the measurements of a loss or a policy during a rollout (stages/measurement.hpp).
#pragma once

#include "packs.hpp"
#include "revolute/stages/measurement.hpp"

namespace revolute {

template <class Real>
class MeasuredProbes {
 public:
  MeasuredProbes(const Model& model, const Probes* probes, Arena& arena)
      : probes_(*probes),
        at_(model, *probes, arena),
        adjoint_(model, *probes, arena),
        values_(arena.take<Real>(probes->size)),
        bar_(arena.take<Real>(probes->size)) {}

  // The numbers [probes.size] of the last measured state.
  const Real* values() const { return values_; }

  void measure(const Model& model, const Parameters<Real>& parameters, double time, const Real* qpos,
               const Real* qvel, const Real* ctrl) {
    measurement(model, parameters, probes_, Real(time), qpos, qvel, ctrl, at_, values_);
  }
  // Returns zeros; the caller adds the cotangents of `values` to them.
  Real* cleared_bar() {
    std::fill_n(bar_, probes_.size, Real(0));
    return bar_;
  }
  // Pulls these cotangents back through the last measured state.
  void pull_back(const Model& model, const Parameters<Real>& parameters, const Real* qpos, const Real* qvel,
                 const Real* ctrl, const InputCotangents<Real>& inputs) {
    measurement_adjoint(model, parameters, probes_, qpos, qvel, ctrl, at_, bar_, adjoint_, inputs);
  }

 private:
  const Probes& probes_;
  Measurement<Real> at_;
  MeasurementAdjointWorkspace<Real> adjoint_;
  Real *values_, *bar_;
};

// Whether a call measures anything.
inline bool measures(const Loss* loss, const ControllerInputs& controller) {
  return (loss && loss->probes.size > 0) || controller.mlp.probes.size > 0;
}
// Whether any term of a loss measures at a time.
inline bool measures_at(const Loss& loss, std::int64_t t, std::int64_t steps) {
  return std::any_of(loss.terms.begin(), loss.terms.end(), [&](const LossTerm& term) {
    return term.quantity == Quantity::measured && term.row(t, steps) >= 0;
  });
}

}  // namespace revolute
