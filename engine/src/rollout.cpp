// Rollouts of a batch.
#include "forward_runner.hpp"

namespace revolute {

bool rollout(const ModelStorage& storage, const RolloutArrays& arrays, const Execution& execution) {
  return spread(slices(arrays.shape.batch), execution.threads,
                worker<ForwardRunner>(storage, arrays, execution));
}

}  // namespace revolute
