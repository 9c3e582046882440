// Checkpoint schedules: as few places as promised, the known binomial number of steps, and no more states held than allowed.
#include "check.hpp"
#include "revolute/checkpoints.hpp"

namespace revolute::check {

namespace {

constexpr CheckpointKind slots = CheckpointKind::slots, interval = CheckpointKind::interval;

// What a backward pass under a policy does: the states held at most, and the steps taken, those pulled back included.
struct Walk {
  std::size_t most_states;
  std::int64_t steps;
};
Walk walk(const CheckpointPolicy& policy, std::int64_t total) {
  const KeptSteps kept(policy, total);
  std::vector<std::int64_t> held;
  for (std::int64_t i = 0; i < kept.count(); ++i) held.push_back(kept.step(i));
  Walk out{held.size(), 0};
  std::size_t scratch = 0;
  for (std::int64_t t = total; t-- > 0; ++out.steps) {
    while (held.back() > t) {
      if (held.size() > std::size_t(kept.until(t)) && scratch > 0) --scratch;
      held.pop_back();
    }
    for (std::int64_t at = held.back(); at < t;) {
      const std::int64_t free = policy.kind == slots ? policy.count - std::int64_t(held.size())
                                                     : policy.scratch(total) - std::int64_t(scratch);
      const std::int64_t next = next_checkpoint(policy, at, t + 1, free);
      CHECK(next > at && next <= t);
      out.steps += next - at;
      at = next;
      if (free == 0 || at == t) continue;
      held.push_back(at);
      ++scratch;
      out.most_states = std::max(out.most_states, held.size());
    }
  }
  return out;
}

// The least number of steps ahead to reverse l steps with c places, by trying every place for the next state.
std::vector<std::vector<std::int64_t>> least_steps_ahead(int steps, int places) {
  std::vector<std::vector<std::int64_t>> t(places + 1, std::vector<std::int64_t>(steps + 1, 0));
  for (int l = 1; l <= steps; ++l) t[1][l] = std::int64_t(l) * (l - 1) / 2;
  for (int c = 2; c <= places; ++c)
    for (int l = 2; l <= steps; ++l) {
      t[c][l] = t[1][l];
      for (int m = 1; m < l; ++m) t[c][l] = std::min(t[c][l], m + t[c - 1][l - m] + t[c][m]);
    }
  return t;
}

void slots_take_the_least_number_of_steps() {
  const int most = 120;
  const auto least = least_steps_ahead(most, 9);
  for (int s = 1; s <= 9; ++s)
    for (int l = 1; l <= most; ++l) {
      const CheckpointPolicy policy = {slots, s};
      const KeptSteps kept(policy, l);
      const Walk found = walk(policy, l);
      // the rollout takes the first sweep, l - 1 steps ahead, but the way behind its last kept state is taken again
      const std::int64_t again = l - 1 - kept.step(kept.count() - 1);
      CHECK(found.steps == least[s][l] - (l - 1) + again + l);
      CHECK(replayed_steps(policy, l) == found.steps);
      CHECK(found.most_states <= std::size_t(s));
    }
}

void intervals_take_two_steps_per_step() {
  for (int k : {1, 2, 3, 7, 50, 100, 1000})
    for (int l : {1, 2, 6, 7, 8, 99, 100, 101}) {
      const CheckpointPolicy policy = {interval, k};
      const std::int64_t segments = (l + k - 1) / k;
      CHECK(KeptSteps(policy, l).count() == segments);
      const Walk found = walk(policy, l);
      CHECK(found.steps == 2 * l - segments);
      CHECK(replayed_steps(policy, l) == found.steps);
      CHECK(found.most_states <= std::size_t(segments + std::min(k, l) - 1));
    }
}

void long_trajectories_and_many_slots_do_not_overflow() {
  const std::int64_t million = 1000000, huge = std::int64_t(1) << 40;
  // 32 slots: beta(32, 4) = 58905 < 1e6 <= beta(32, 6); every step is taken at most 6 times
  CHECK(walk({slots, 32}, million).steps == replayed_steps({slots, 32}, million));
  CHECK(replayed_steps({slots, 32}, million) < 6 * million);
  CHECK(replayed_steps({slots, huge}, 1000) == 1000);
  CHECK(KeptSteps({interval, huge}, huge).count() == 1);
  CHECK(beta(huge, 3) == std::numeric_limits<std::int64_t>::max());
  CHECK(beta(32, 4) == 58905 && beta(1, 7) == 8 && beta(5, 0) == 1);
}

void no_steps_keep_the_start() {
  for (CheckpointPolicy policy : {CheckpointPolicy{}, {interval, 3}, {slots, 3}}) {
    CHECK(KeptSteps(policy, 0).count() == 1 && KeptSteps(policy, 0).step(0) == 0);
    CHECK(replayed_steps(policy, 0) == 0);
  }
}

}  // namespace

int all_tests() {
  return run({{"slots", slots_take_the_least_number_of_steps},
              {"intervals", intervals_take_two_steps_per_step},
              {"long", long_trajectories_and_many_slots_do_not_overflow},
              {"no steps", no_steps_keep_the_start}});
}

}  // namespace revolute::check

int main() { return revolute::check::all_tests(); }
