// Losses as data: a sum of terms of the states and controls of a rollout, evaluated step by step so that no state need be
// kept for them. With x the selected entries of a term's quantity, w its weight and x* its target,
//   squared:  value = sum w (x - x*)^2     cotangent = 2 w (x - x*)     (1)
//   linear:   value = sum w (x - x*)       cotangent = w                (2)
// Sums run through time, then entries, one number after the other; client/revolute/contract/loss.py takes the same operations in the
// same order and gets the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace revolute {

enum class Quantity : int { qpos, qvel, ctrl };

// An array that is broadcast to [batch, time, entries]: strides in numbers, 0 along an axis that repeats.
struct BroadcastInput {
  const double* values;
  std::ptrdiff_t environment_stride, time_stride, entry_stride;

  double at(int environment, std::int64_t time, std::size_t entry) const {
    return values[environment * environment_stride + time * time_stride +
                  std::ptrdiff_t(entry) * entry_stride];
  }
};

struct LossTerm {
  Quantity quantity;
  bool running;  // over all times, or else of the last only
  bool squared;
  std::vector<int> entries;
  BroadcastInput weight, target;

  // Whether the term counts at `time`, when `last` is the last time of its quantity.
  bool counts(std::int64_t time, std::int64_t last) const { return running || time == last; }
  // Adds the term's value at x, all entries of its quantity at one time, to `sum`.
  template <class Entries>
  void add_value(const Entries& x, int environment, std::int64_t time, double& sum) const {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const double w = weight.at(environment, time, i);
      const double error = x(entries[i]) - target.at(environment, time, i);
      sum += squared ? w * error * error : w * error;
    }
  }
  // Calls add(entry, cotangent) for the term's entries.
  template <class Entries, class Add>
  void add_cotangents(const Entries& x, int environment, std::int64_t time, const Add& add) const {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const double w = weight.at(environment, time, i);
      add(entries[i], squared ? 2.0 * w * (x(entries[i]) - target.at(environment, time, i)) : w);
    }
  }
};

using Loss = std::vector<LossTerm>;

}  // namespace revolute
