// The cotangent and environment in each lane.
#pragma once

#include "packs.hpp"

namespace revolute {

// Gives the cotangent and the environment in each lane; all groups share the replayed step.
template <class Real>
struct Seats {
  Slice slice;
  int cotangents;

  bool by_cotangent() const { return slice.count == 1 && Width<Real>::value > 1; }
  int groups() const {
    return by_cotangent() ? (cotangents + Width<Real>::value - 1) / Width<Real>::value : cotangents;
  }
  int used(int group) const {
    return by_cotangent() ? std::min(Width<Real>::value, cotangents - group * Width<Real>::value)
                          : slice.count;
  }
  int cotangent(int group, int lane) const {
    return by_cotangent() ? std::min(group * Width<Real>::value + lane, cotangents - 1) : group;
  }
  // Row of arrays [K, B, ...]
  std::size_t row(int group, int lane, int batch) const {
    return std::size_t(cotangent(group, lane)) * batch + slice.environment(lane);
  }
};

// Writes the gradients by parameters for the cotangents in one group.
template <class Real, class Arrays>
void write_parameter_bars(const ModelStorage& storage, const Arrays& arrays, const Seats<Real>& seats,
                          int group, const Model& model, const Parameters<Real>& bar) {
  for (int lane = 0; lane < seats.used(group); ++lane) {
    const int environment = seats.slice.environment(lane);
    ParameterBarPointers out{};
    bool wanted = false;
    for (int p = 0; p < parameter_count; ++p) {
      if (!arrays.parameter_bars[p]) continue;
      const std::size_t size = storage.parameter_size(Parameter(p));
      out[p] = arrays.parameter_bars[p] + seats.row(group, lane, arrays.shape.batch) * size;
      std::fill_n(out[p], size, 0.0);
      wanted = true;
    }
    if (wanted)
      add_parameter_cotangents(storage.parameters(),
                               parameter_values(storage, arrays.parameters, environment), lane, model, bar,
                               out);
  }
}

}  // namespace revolute
