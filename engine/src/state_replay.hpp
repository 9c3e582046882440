// The states of a rollout from the last to the first: kept states are read, others are replayed by the checkpoint policy.
//
// Kept and scratch places form one stack, ascending by step. Places beyond the wanted step have been used and are dropped.
#pragma once

#include "kept_states.hpp"

namespace revolute {

// `Kept` stores the kept states (kept_states.hpp).
template <class Real, class Kept>
class StateReplay {
 public:
  // Works in `forward`; its parameters must be loaded.
  StateReplay(const Model& model, const BackwardArrays& arrays, const Slice& slice, Kept& kept_states,
              ForwardRunner<Real>& forward)
      : model_(model),
        arrays_(arrays),
        environments_(slice),
        kept_states_(kept_states),
        forward_(forward),
        kept_(arrays.policy, arrays.shape.steps),
        capacity_(arrays.policy.scratch(arrays.shape.steps)) {}

  // Puts the state of step t into forward.qpos and forward.qvel. Each call must lower t by one. Returns false if cancelled.
  bool find(std::int64_t t, const CancelToken* cancel) {
    const std::int64_t kept = kept_.until(t);
    while (!scratch_steps_.empty() && scratch_steps_.back() > t) scratch_steps_.pop_back();
    std::int64_t at = load_last(kept);
    while (at < t) {
      const std::int64_t free = free_places(kept);
      const std::int64_t next = next_checkpoint(arrays_.policy, at, t + 1, free);
      for (; at < next; ++at) {
        if (cancel && cancel->cancelled()) return false;
        forward_.load_inputs(model_, arrays_, arrays_.shape, at, environments_);
        forward_.advance(model_);
        ++replayed_;
      }
      if (free > 0 && at < t) keep(kept, at);
    }
    return true;
  }
  // Number of steps replayed so far.
  std::int64_t replayed() const { return replayed_; }

 private:
  std::int64_t load_last(std::int64_t kept) {
    if (scratch_steps_.empty()) {
      kept_states_.load(kept - 1, forward_);
      return kept_.step(kept - 1);
    }
    kept_states_.load_scratch(kept, std::int64_t(scratch_steps_.size()) - 1, forward_);
    return scratch_steps_.back();
  }
  std::int64_t free_places(std::int64_t kept) const {
    const std::int64_t used = std::int64_t(scratch_steps_.size());
    if (arrays_.policy.kind == CheckpointKind::slots) return arrays_.policy.count - kept - used;
    return capacity_ - used;
  }
  void keep(std::int64_t kept, std::int64_t t) {
    kept_states_.keep_scratch(kept, std::int64_t(scratch_steps_.size()), forward_);
    scratch_steps_.push_back(t);
  }

  const Model& model_;
  const BackwardArrays& arrays_;
  const Slice environments_;
  Kept& kept_states_;
  ForwardRunner<Real>& forward_;
  const KeptSteps kept_;
  const std::int64_t capacity_;
  std::vector<std::int64_t> scratch_steps_;
  std::int64_t replayed_ = 0;
};

}  // namespace revolute
