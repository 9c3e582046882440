// Rollouts of a batch.
#include "forward_runner.hpp"

namespace revolute {

bool rollout(const ModelStorage& storage, const RolloutArrays& arrays, const Execution& execution) {
  const double steps = double(arrays.shape.batch) * arrays.shape.steps;
  return spread(slices(storage.model(), arrays.shape.batch),
                worthwhile_threads(execution, storage.model(), steps),
                worker<ForwardRunner>(storage, arrays, execution));
}

}  // namespace revolute
