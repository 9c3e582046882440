// One thread's workspace for the terms of a loss that are measured (stages/measurement.hpp).
#pragma once

#include "packs.hpp"
#include "revolute/stages/measurement_adjoint.hpp"

namespace revolute {

template <class Real>
class MeasuredLoss {
 public:
  MeasuredLoss(const Model& model, const Probes& probes)
      : arena_(measured_size(model, probes)), parts_(model, probes, arena_) {}

  // [probes.size] of the state that was measured last.
  const Real* values() const { return parts_.values; }

  // Whether any term counts at a time.
  static bool counts(const Loss& loss, std::int64_t t, std::int64_t steps) {
    return std::any_of(loss.terms.begin(), loss.terms.end(), [&](const LossTerm& term) {
      return term.quantity == Quantity::measured && term.row(t, steps) >= 0;
    });
  }
  void measure(const Model& model, const Parameters<Real>& parameters, const Loss& loss, std::int64_t t,
               const Real* qpos, const Real* qvel, const Real* ctrl) {
    const Real time(double(t) * model.timestep);
    measurement(model, parameters, loss.probes, time, qpos, qvel, ctrl, parts_.at, parts_.values);
  }
  // Zeros, to which the cotangents of `values` are added.
  Real* cleared_bar(const Loss& loss) {
    std::fill_n(parts_.bar, loss.probes.size, Real(0));
    return parts_.bar;
  }
  // Pulls them back through the state that was measured last.
  void pull_back(const Model& model, const Parameters<Real>& parameters, const Loss& loss, const Real* qpos,
                 const Real* qvel, const Real* ctrl, const InputCotangents<Real>& inputs) {
    measurement_adjoint(model, parameters, loss.probes, qpos, qvel, ctrl, parts_.at, parts_.bar,
                        parts_.adjoint, inputs);
  }

 private:
  struct Parts {
    Measurement<Real> at;
    MeasurementAdjointWorkspace<Real> adjoint;
    Real *values, *bar;

    Parts(const Model& model, const Probes& probes, Arena& arena)
        : at(model, probes, arena),
          adjoint(model, probes, arena),
          values(arena.take<Real>(probes.size)),
          bar(arena.take<Real>(probes.size)) {}
  };
  static std::size_t measured_size(const Model& model, const Probes& probes) {
    Arena counting;
    Parts sized(model, probes, counting);
    return counting.used();
  }
  Arena arena_;
  Parts parts_;
};

}  // namespace revolute
