// The backward pass over a rollout of a batch.
#include "backward_runner.hpp"

namespace revolute {

// The cotangents of a single environment fill a pack.
inline bool fills_pack(const BackwardArrays& arrays, const Slice& slice) {
  return slice.count > 1 || arrays.cotangents > 1;
}

namespace {

// Splits environments into packs. If it takes fewer packed steps, the environments of a pack run one by one, with their
// cotangents in the lanes. A forward step counts half of a backward step.
std::vector<Slice> backward_slices(const Model& model, int batch, int cotangents) {
  const int groups = (cotangents + lanes - 1) / lanes;
  std::vector<Slice> out;
  for (const Slice& slice : slices(model, batch)) {
    if (slice.count * (1 + 2 * groups) > 1 + 2 * cotangents) {
      out.push_back(slice);
      continue;
    }
    for (int i = 0; i < slice.count; ++i) out.push_back({slice.first + i, 1});
  }
  return out;
}

}  // namespace

bool backward(const ModelStorage& storage, const BackwardArrays& arrays, const Execution& execution) {
  const double steps = double(arrays.shape.batch) * arrays.shape.steps * (1 + 2 * arrays.cotangents);
  return spread(backward_slices(storage.model(), arrays.shape.batch, arrays.cotangents),
                worthwhile_threads(execution, storage.model(), steps),
                worker<BackwardRunner>(storage, arrays, execution, arrays.cotangents));
}

}  // namespace revolute
