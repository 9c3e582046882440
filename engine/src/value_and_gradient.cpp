// The loss of a batch and its gradient. Each pack is simulated and pulled back at once, so that only the states of running
// packs are in memory.
#include "backward_runner.hpp"

namespace revolute {

inline const ParameterInputs& parameters_of(const ValueAndGradientArrays& arrays) {
  return arrays.rollout.parameters;
}

template <class Real>
struct ValueAndGradientRunner {
  BackwardRunner<Real> backward;

  ValueAndGradientRunner(const Model& model, Arena& arena) : backward(model, 1, arena) {}

  bool run(const ModelStorage& storage, const ValueAndGradientArrays& arrays, const Slice& slice,
           const CancelToken* cancel) {
    const RolloutArrays& rollout = arrays.rollout;
    ForwardRunner<Real>& forward = backward.forward;
    StateStack<Real> kept(model_for(storage, rollout.parameters), rollout.policy, rollout.shape.steps);
    if (!forward.run(storage, rollout, slice, cancel, [&](std::int64_t place) { kept.push(place, forward); }))
      return false;
    return backward.run(storage, arrays.backward, slice, cancel, kept);
  }
};

bool value_and_gradient(const ModelStorage& storage, const ValueAndGradientArrays& arrays,
                        const Execution& execution) {
  const BatchShape& shape = arrays.rollout.shape;
  const double steps = 3.0 * shape.batch * shape.steps;
  return spread(slices(storage.model(), shape.batch), worthwhile_threads(execution, storage.model(), steps),
                worker<ValueAndGradientRunner>(storage, arrays, execution));
}

}  // namespace revolute
