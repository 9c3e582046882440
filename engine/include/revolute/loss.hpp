// Losses as data: a sum of terms of a rollout's states, controls and measurements, evaluated step by step, so that no state
// needs to be kept for them. With x the selected entries of a term's quantity, w its weight and x* its target,
//   squared:   value = sum w (x - x*)^2     cotangent = 2 w (x - x*)     (1)
//   linear:    value = sum w (x - x*)       cotangent = w                (2)
//   rotation:  value = sum w |e|^2, e = log(x*^-1 x), every four entries a quaternion; its tangent has cotangent 2 w e  (3)
// Sums run through time, then entries, one number after the other. client/revolute/contract/loss.py does the same operations
// in the same order and gets the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "revolute/model/probe.hpp"
#include "revolute/spatial/quaternion.hpp"

namespace revolute {

enum class Quantity : int { qpos, qvel, ctrl, measured };
enum class LossForm : int { squared, linear, rotation };

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
  bool running;                     // over all times, or else over `times`
  std::vector<std::int64_t> times;  // ascending; empty: the last time only
  LossForm form;
  std::vector<int> entries;
  BroadcastInput weight, target;

  // Row of weight and target at `time`, or -1 if the term does not count then; `last`: the last time of its quantity.
  std::int64_t row(std::int64_t time, std::int64_t last) const {
    if (running) return time;
    if (times.empty()) return time == last ? 0 : -1;
    const auto found = std::lower_bound(times.begin(), times.end(), time);
    return found != times.end() && *found == time ? found - times.begin() : -1;
  }
  // Adds the term's value at x, all entries of its quantity at one time, to `sum`.
  template <class Entries>
  void add_value(const Entries& x, int environment, std::int64_t row, double& sum) const {
    if (form == LossForm::rotation) {
      for (std::size_t i = 0; i < entries.size(); i += 4) {
        const Vector3<double> e = error(x, environment, row, i);
        sum += weight.at(environment, row, i) * dot(e, e);
      }
      return;
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const double w = weight.at(environment, row, i);
      const double error = x(entries[i]) - target.at(environment, row, i);
      sum += form == LossForm::squared ? w * error * error : w * error;
    }
  }
  // Calls add(entry, cotangent) for the term's entries.
  template <class Entries, class Add>
  void add_cotangents(const Entries& x, int environment, std::int64_t row, const Add& add) const {
    if (form == LossForm::rotation) {
      for (std::size_t i = 0; i < entries.size(); i += 4) {
        const Vector3<double> e = error(x, environment, row, i);
        const Quaternion<double> bar =
            ambient_cotangent(quaternion(x, i), 2.0 * weight.at(environment, row, i) * e);
        const double components[4] = {bar.w, bar.x, bar.y, bar.z};
        for (int j = 0; j < 4; ++j) add(entries[i + j], components[j]);
      }
      return;
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const double w = weight.at(environment, row, i);
      add(entries[i],
          form == LossForm::squared ? 2.0 * w * (x(entries[i]) - target.at(environment, row, i)) : w);
    }
  }

 private:
  template <class Entries>
  Quaternion<double> quaternion(const Entries& x, std::size_t i) const {
    return {x(entries[i]), x(entries[i + 1]), x(entries[i + 2]), x(entries[i + 3])};
  }
  // e of (3)
  template <class Entries>
  Vector3<double> error(const Entries& x, int environment, std::int64_t row, std::size_t i) const {
    const auto component = [&](int j) { return target.at(environment, row, i + j); };
    const Quaternion<double> wanted = {component(0), component(1), component(2), component(3)};
    return logarithm(conjugate(wanted) * quaternion(x, i));
  }
};

struct Loss {
  std::vector<LossTerm> terms;
  Probes probes;  // source of the entries of terms of Quantity::measured
};

}  // namespace revolute
