#include "revolute/model/contact_pairs.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <unordered_set>

namespace revolute {

namespace {

constexpr int mujoco_plane = 0;

class PairSearch {
 public:
  PairSearch(const PairTree& tree, const PairFilters& filters, const std::vector<Region>& reach)
      : tree_(tree),
        filters_(filters),
        reach_(reach),
        excluded_(filters.exclude_signature.begin(), filters.exclude_signature.end()) {
    for (const auto& [one, other] : filters.explicit_pairs) explicit_.insert(key(one, other));
  }

  std::vector<std::pair<int, int>> run(std::size_t most) {
    std::vector<int> geoms = touching();
    const int axis = best_axis(geoms);
    std::sort(geoms.begin(), geoms.end(), [&](int one, int other) {
      return std::make_pair(reach_[one].low[axis], one) < std::make_pair(reach_[other].low[axis], other);
    });
    std::vector<std::pair<int, int>> found;
    std::vector<int> active;  // shapes that the sweep has met and not passed yet
    for (int geom : geoms) {
      std::size_t kept = 0;
      for (int other : active) {
        if (reach_[other].high[axis] < reach_[geom].low[axis]) continue;
        active[kept++] = other;
        if (!passes(geom, other)) continue;
        if (found.size() == most) throw std::length_error("contact_pairs: more than " + std::to_string(most));
        found.push_back(std::minmax(geom, other));
      }
      active.resize(kept);
      active.push_back(geom);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  const PairTree& tree_;
  const PairFilters& filters_;
  const std::vector<Region>& reach_;
  std::unordered_set<int> excluded_;
  std::unordered_set<long long> explicit_;

  static long long key(int one, int other) {
    return (static_cast<long long>(std::min(one, other)) << 32) + std::max(one, other);
  }

  // The shapes that contype and conaffinity let touch another shape at all.
  std::vector<int> touching() const {
    unsigned contypes = 0, conaffinities = 0;
    for (int type : filters_.geom_contype) contypes |= unsigned(type);
    for (int affinity : filters_.geom_conaffinity) conaffinities |= unsigned(affinity);
    std::vector<int> geoms;
    for (int g = 0; g < tree_.ngeom; ++g)
      if ((unsigned(filters_.geom_contype[g]) & conaffinities) ||
          (unsigned(filters_.geom_conaffinity[g]) & contypes))
        geoms.push_back(g);
    return geoms;
  }

  // The axis along which the fewest regions overlap.
  int best_axis(const std::vector<int>& geoms) const {
    int best = 0;
    std::size_t fewest = 0;
    for (int axis = 0; axis < 3; ++axis) {
      std::vector<double> lows;
      for (int g : geoms) lows.push_back(reach_[g].low[axis]);
      std::sort(lows.begin(), lows.end());
      std::size_t overlaps = 0;
      for (int g : geoms)
        overlaps += std::upper_bound(lows.begin(), lows.end(), reach_[g].high[axis]) -
                    std::lower_bound(lows.begin(), lows.end(), reach_[g].low[axis]);
      if (axis == 0 || overlaps < fewest) best = axis, fewest = overlaps;
    }
    return best;
  }

  bool passes(int one, int other) const {
    const auto& contype = filters_.geom_contype;
    const auto& conaffinity = filters_.geom_conaffinity;
    return ((contype[one] & conaffinity[other]) || (contype[other] & conaffinity[one])) &&
           regions_overlap(reach_[one], reach_[other]) && bodies_pass(one, other) &&
           !(tree_.geom_type[one] == mujoco_plane && tree_.geom_type[other] == mujoco_plane) &&
           (explicit_.empty() || !explicit_.count(key(one, other)));
  }

  static bool regions_overlap(const Region& one, const Region& other) {
    for (int axis = 0; axis < 3; ++axis)
      if (one.high[axis] < other.low[axis] || other.high[axis] < one.low[axis]) return false;
    return true;
  }

  bool bodies_pass(int one, int other) const {
    const auto [body1, body2] = std::minmax(tree_.geom_bodyid[one], tree_.geom_bodyid[other]);
    const int weld1 = filters_.body_weldid[body1], weld2 = filters_.body_weldid[body2];
    if (weld1 == weld2) return false;
    if (!excluded_.empty() && excluded_.count(int((unsigned(body1) << 16) + unsigned(body2)))) return false;
    if (!filters_.filter_parent || weld1 == 0 || weld2 == 0) return true;
    const int parent1 = filters_.body_weldid[tree_.body_parentid[weld1]],
              parent2 = filters_.body_weldid[tree_.body_parentid[weld2]];
    return weld1 != parent2 && weld2 != parent1;
  }
};

}  // namespace

std::vector<std::pair<int, int>> contact_pairs(const PairTree& tree, const PairFilters& filters,
                                               const std::vector<Region>& reach, std::size_t most) {
  return PairSearch(tree, filters, reach).run(most);
}

}  // namespace revolute
