// Checkpoint policies decide which states of a rollout are kept, and how the others are computed again.
//
// The backward pass asks for the states of steps T-1, T-2, ..., 0. A state that is not kept is replayed from the last kept
// state before it. States on the way are kept while places are free:
//   every:       all T + 1 states; only the step that is pulled back is replayed.
//   interval k:  states 0, k, 2k, ...; each segment is replayed once, into k - 1 further places.
//   slots s:     at most s states, at the binomial places of Griewank & Walther, Algorithm 799: Revolve, ACM TOMS 26 (2000).
//   none:        no state, for a rollout without a backward pass.
//
// Revolve: with c places (one of them holds the current state) and at most r replays of each step,
//   beta(c, r) = (c + r)! / (c! r!)                                                           (1)
// steps can be reversed. For l steps, beta(c, r - 1) < l <= beta(c, r), the next place is m steps ahead,
//   m = min(beta(c, r - 1), l - beta(c - 1, r - 1)).                                          (2)
// This is one of the choices with the least number of steps ahead, r l - beta(c + 1, r - 1).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace revolute {

enum class CheckpointKind : int { every, interval, slots, none };

struct CheckpointPolicy {
  CheckpointKind kind = CheckpointKind::every;
  std::int64_t count = 1;  // k of interval, s of slots, at least 1

  // The most places that a backward pass over `steps` steps needs for states besides the kept ones.
  std::int64_t scratch(std::int64_t steps) const {
    if (kind == CheckpointKind::every || kind == CheckpointKind::none) return 0;
    return std::max<std::int64_t>(0, std::min(count, steps) - 1);
  }
  // Number of states that are held at a time, kept and scratch together.
  std::int64_t held(std::int64_t steps) const {
    switch (kind) {
      case CheckpointKind::none:
        return 0;
      case CheckpointKind::every:
        return steps + 1;
      case CheckpointKind::interval:
        return std::max<std::int64_t>(1, (steps - 1) / count + 1) + scratch(steps);
      default:
        return std::max<std::int64_t>(1, std::min(count, steps));
    }
  }
};

// beta of (1), or the largest integer if (1) is larger
inline std::int64_t beta(std::int64_t c, std::int64_t r) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::int64_t value = 1;
  for (std::int64_t i = 1; i <= r; ++i) {
    // value (c + i) / i, which is whole
    if (value / i >= most / (c + i) - 1) return most;
    value = value / i * (c + i) + value % i * (c + i) / i;
  }
  return value;
}

// m of (2): steps from a kept state to the next one; l > 1 steps, c > 1 places.
inline std::int64_t binomial_advance(std::int64_t l, std::int64_t c) {
  c = std::min(c, l);
  std::int64_t r = 1;
  while (beta(c, r) < l) ++r;
  return std::min(beta(c, r - 1), l - beta(c - 1, r - 1));
}

// The step to advance to from the state of step `t`. The state of step `end` - 1 > t is wanted and `free` places are left; if
// there is a free place, it keeps the state of the returned step.
inline std::int64_t next_checkpoint(const CheckpointPolicy& policy, std::int64_t t, std::int64_t end,
                                    std::int64_t free) {
  if (free == 0) return end - 1;
  return policy.kind == CheckpointKind::slots ? t + binomial_advance(end - t, free + 1) : t + 1;
}

// The steps whose states a rollout keeps, ascending from 0.
class KeptSteps {
 public:
  KeptSteps(const CheckpointPolicy& policy, std::int64_t steps) {
    switch (policy.kind) {
      case CheckpointKind::none:
        count_ = 0;
        break;
      case CheckpointKind::every:
        count_ = steps + 1;
        break;
      case CheckpointKind::interval:
        interval_ = policy.count;
        count_ = std::max<std::int64_t>(1, (steps - 1) / policy.count + 1);
        break;
      case CheckpointKind::slots:
        places_ = {0};
        for (std::int64_t t = 0, free = policy.count - 1; free > 0 && steps - t > 1; --free)
          places_.push_back(t = next_checkpoint(policy, t, steps, free));
        count_ = std::int64_t(places_.size());
    }
  }
  std::int64_t count() const { return count_; }
  // index < count()
  std::int64_t step(std::int64_t index) const { return places_.empty() ? index * interval_ : places_[index]; }
  // Number of kept steps among 0 .. t.
  std::int64_t until(std::int64_t t) const {
    if (places_.empty()) return std::min(t / interval_ + 1, count_);
    return std::upper_bound(places_.begin(), places_.end(), t) - places_.begin();
  }

 private:
  std::int64_t interval_ = 1, count_ = 0;
  std::vector<std::int64_t> places_;
};

// Number of forward steps of a backward pass, including the replay of each step that is pulled back. For slots: the least
// number of steps ahead, less the rollout's own T - 1, plus the repeated way from the last kept state to the last step.
inline std::int64_t replayed_steps(const CheckpointPolicy& policy, std::int64_t steps) {
  if (policy.kind == CheckpointKind::none) return 0;
  if (policy.kind == CheckpointKind::every || steps < 2) return steps;
  const KeptSteps kept(policy, steps);
  if (policy.kind == CheckpointKind::interval) return 2 * steps - kept.count();
  const std::int64_t places = std::min(policy.count, steps);
  std::int64_t r = 1;
  while (beta(places, r) < steps) ++r;
  const std::int64_t ahead = r * steps - beta(places + 1, r - 1);
  return ahead + 1 + steps - 1 - kept.step(kept.count() - 1);
}

}  // namespace revolute
