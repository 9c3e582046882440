// Where the states of a pack are while it is pulled back, those that the rollout kept and those kept on the way: the former in
// arrays of the caller, or both on a stack of the pack's own.
#pragma once

#include "forward_runner.hpp"
#include "revolute/memory_block.hpp"

namespace revolute {

// In the arrays that a rollout filled. They are only read, so that a trajectory can be pulled back through again, by several
// threads at once.
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

  // Gives the kept state at a place.
  void load(std::int64_t place, ForwardRunner<Real>& forward) const {
    forward.gather_state(model_, arrays_, count_, place, slice_);
  }
  // Keeps a state on the way, and gives it; `kept` of the kept states are still to come.
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

// On a stack, pushed by the forward pass and read from the top by the backward pass, which puts the states that it keeps on the
// way on top of the kept ones still to come. What has had its turn is given back to the system, so that the gradient can grow
// in its place.
template <class Real>
class StateStack {
 public:
  StateStack(const Model& model, const CheckpointPolicy& policy, std::int64_t steps)
      : nq_(model.nq),
        numbers_(model.nq + velocities(model)),
        block_(bytes(policy.held(steps)), own_pages_from) {}

  // Puts the state in `forward` at a place, each in turn.
  void push(std::int64_t place, const ForwardRunner<Real>& forward) {
    Real* state = at(place);
    std::copy_n(forward.qpos, nq_, state);
    std::copy_n(forward.qvel, numbers_ - nq_, state + nq_);
    held_ = place + 1;
  }
  // Gives a state; those above it are gone.
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
