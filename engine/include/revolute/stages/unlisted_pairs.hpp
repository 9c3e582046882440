// Pairs of shapes that the model does not list. MuJoCo's filters are applied to two shapes with overlapping boxes, and the
// pair's candidates are made for this step. The number of pairs grows as the square of the number of shapes, but few are ever
// near. Every model lists planes and the pairs that the file names.
#pragma once

#include "revolute/model/pair_kinds.hpp"

namespace revolute {

// Whether an ascending list holds a key.
REVOLUTE_HD inline bool contains(const std::int64_t* keys, int count, std::int64_t key) {
  int begin = 0, end = count;
  while (begin < end) {
    const int middle = begin + (end - begin) / 2;
    if (keys[middle] < key)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin < count && keys[begin] == key;
}

// The two shapes in the order in which pairs name them.
REVOLUTE_HD inline RankedPair in_order(const Model& model, int one, int other) {
  const Shape a = model.geoms[one].shape, b = model.geoms[other].shape;
  return a < b || (a == b && one < other) ? RankedPair{one, other} : RankedPair{other, one};
}

REVOLUTE_HD inline bool may_touch(const Model& model, int one, int other) {
  const GeomFilter &a = model.geom_filters[one], &b = model.geom_filters[other];
  if (!((a.contype & b.conaffinity) || (b.contype & a.conaffinity)) || a.weld == b.weld ||
      model.geoms[one].link == model.geoms[other].link)
    return false;
  // parent and child, unless one of them is the world
  if (model.filter_parent && a.weld != 0 && b.weld != 0 &&
      (a.weld == b.parent_weld || b.weld == a.parent_weld))
    return false;
  return !contains(model.excluded_bodies, model.nexcluded_bodies, pair_key(a.body, b.body)) &&
         !contains(model.excluded_geoms, model.nexcluded_geoms, pair_key(one, other));
}

// Makes the candidates of a pair, one for each point; returns their number.
REVOLUTE_HD inline int make_candidates(const Model& model, const RankedPair& ranked, Candidate* out) {
  const int geom_a = ranked.geom_a, geom_b = ranked.geom_b;
  const Geom &a = model.geoms[geom_a], &b = model.geoms[geom_b];
  const GeomFilter &filter_a = model.geom_filters[geom_a], &filter_b = model.geom_filters[geom_b];
  const PairKind kind = model.contact_model == ContactModel::mujoco ? mujoco_pair_kind(a.shape, b.shape)
                                                                    : hard_pair_kind(a.shape, b.shape);
  const int priority = filter_a.priority - filter_b.priority;
  Candidate candidate{};
  candidate.pair = kind.pair;
  candidate.slots = kind.slots > 0                      ? kind.slots
                    : filter_a.points < filter_b.points ? filter_a.points
                                                        : filter_b.points;
  candidate.geom_a = geom_a;
  candidate.geom_b = geom_b;
  candidate.link_a = a.link;
  candidate.link_b = b.link;
  candidate.path = candidate.support = -1;
  constexpr double least_mixing = 1e-15;  // MuJoCo's mjMINVAL
  const bool a_mixes = filter_a.mixing >= least_mixing, b_mixes = filter_b.mixing >= least_mixing;
  candidate.mixing.from_a = priority >= 0;
  candidate.mixing.from_b = priority <= 0;
  candidate.mixing.own = -1;
  candidate.mixing.weight_a = priority > 0         ? 1.0
                              : priority < 0       ? 0.0
                              : a_mixes && b_mixes ? filter_a.mixing / (filter_a.mixing + filter_b.mixing)
                              : a_mixes == b_mixes ? 0.5
                              : a_mixes            ? 1.0
                                                   : 0.0;
  const bool condim_of_a = priority > 0 || (priority == 0 && filter_a.condim >= filter_b.condim);
  candidate.condim = condim_of_a ? filter_a.condim : filter_b.condim;
  candidate.margin = filter_a.margin + filter_b.margin;
  candidate.gap = filter_a.gap + filter_b.gap;
  candidate.weight = filter_a.weight + filter_b.weight;
  for (candidate.slot = 0; candidate.slot < candidate.slots; ++candidate.slot)
    out[candidate.slot] = candidate;
  return candidate.slots;
}

}  // namespace revolute
