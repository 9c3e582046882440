// Storage of a pack's states for the backward pass: states that the rollout kept, and states kept on the way. The former are in
// arrays of the caller, or both are on the pack's own stack.
#pragma once

#include "forward_runner.hpp"
#include "revolute/memory_block.hpp"

namespace revolute {

// Kept states in arrays that a rollout filled. They are only read, so several threads at once, or repeated backward passes, can
// use one trajectory.
template <class Real>
class StatesInArrays {
 public:
  StatesInArrays(const Model& model, const BackwardArrays& arrays, const Slice& slice)
      : model_(model),
        arrays_(arrays.kept),
        count_(KeptSteps(arrays.policy, arrays.shape.steps).count()),
        slice_(slice),
        capacity_(arrays.policy.scratch(arrays.shape.steps)),
        qpos_(std::size_t(slice.count) * capacity_ * model.nq),
        qvel_(std::size_t(slice.count) * capacity_ * velocities(model)) {}

  // Loads the kept state at a place.
  void load(std::int64_t place, ForwardRunner<Real>& forward) const {
    forward.gather_state(model_, arrays_, count_, place, slice_);
  }
  // Keeps or loads a state on the way; `kept` of the kept states have not been used yet.
  void keep_scratch(std::int64_t /*kept*/, std::int64_t place, const ForwardRunner<Real>& forward) {
    forward.scatter_state(model_, {qpos_.data(), qvel_.data()}, capacity_, place, {0, slice_.count});
  }
  void load_scratch(std::int64_t /*kept*/, std::int64_t place, ForwardRunner<Real>& forward) const {
    forward.gather_state(model_, {qpos_.data(), qvel_.data()}, capacity_, place, {0, slice_.count});
  }

 private:
  const Model& model_;
  const ConstStateArrays arrays_;
  const std::int64_t count_;
  const Slice slice_;
  const std::int64_t capacity_;
  Doubles qpos_, qvel_;  // states on the way, [lanes in use, capacity, n]
};

// Kept states on a stack. The forward pass pushes them and the backward pass reads from the top; it puts the states that it
// keeps on the way on top of the unused kept ones. Used memory goes back to the system, for the growing gradient.
template <class Real>
class StateStack {
 public:
  StateStack(const Model& model, const CheckpointPolicy& policy, std::int64_t steps)
      : nq_(model.nq),
        numbers_(model.nq + velocities(model)),
        block_(bytes(policy.held(steps)), own_pages_from) {}

  // Stores the state in `forward` at a place; places must come in order.
  void push(std::int64_t place, const ForwardRunner<Real>& forward) {
    Real* state = at(place);
    std::copy_n(forward.qpos, nq_, state);
    std::copy_n(forward.qvel, numbers_ - nq_, state + nq_);
    held_ = place + 1;
  }
  // Loads a state; the states above it are dropped.
  void load(std::int64_t place, ForwardRunner<Real>& forward) {
    const Real* state = at(place);
    std::copy_n(state, nq_, forward.qpos);
    std::copy_n(state + nq_, numbers_ - nq_, forward.qvel);
    if (bytes(held_ - place - 1) < piece) return;
    block_.give_back(bytes(place + 1), bytes(held_));
    held_ = place + 1;
  }

  void keep_scratch(std::int64_t kept, std::int64_t place, const ForwardRunner<Real>& forward) {
    push(kept + place, forward);
  }
  void load_scratch(std::int64_t kept, std::int64_t place, ForwardRunner<Real>& forward) {
    load(kept + place, forward);
  }

 private:
  static constexpr std::size_t piece = std::size_t(64) << 10, own_pages_from = 2 * piece;

  std::size_t bytes(std::int64_t states) const { return std::size_t(states) * numbers_ * sizeof(Real); }
  Real* at(std::int64_t place) const { return reinterpret_cast<Real*>(block_.data() + bytes(place)); }

  const int nq_, numbers_;
  MemoryBlock block_;
  std::int64_t held_ = 0;
};

}  // namespace revolute
