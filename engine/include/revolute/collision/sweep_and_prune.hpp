// Finds the pairs that overlap among many boxes along the world's axes, in one environment. The boxes are sorted along the
// axis on which their middles are spread most, and each is compared with the boxes that begin before it ends.
//
// Cost: n log n for the sort, and the pairs that overlap along that axis. Every pair that overlaps is reported once; pairs that
// touch count. A box with NaN overlaps nothing.
#pragma once

#include "revolute/scalar/scalar.hpp"

namespace revolute {

struct WorldBox {
  double low[3], high[3];
};

namespace detail {

// A stable sort: afterwards `before(a, b)` holds for no later a and earlier b. `scratch` is as long as `items`.
template <class Item, class Before>
REVOLUTE_HD inline void merge_sort(Item* items, Item* scratch, int count, const Before& before) {
  Item *from = items, *to = scratch;
  for (int width = 1; width < count; width *= 2) {
    for (int start = 0; start < count; start += 2 * width) {
      const int middle = start + width < count ? start + width : count;
      const int end = start + 2 * width < count ? start + 2 * width : count;
      int left = start, right = middle;
      for (int k = start; k < end; ++k) {
        const bool take_right = left == middle || (right < end && before(from[right], from[left]));
        to[k] = take_right ? from[right++] : from[left++];
      }
    }
    Item* const kept = from;
    from = to;
    to = kept;
  }
  if (from != items)
    for (int k = 0; k < count; ++k) items[k] = from[k];
}

// The three axes, by falling spread of the boxes' middles.
struct AxisOrder {
  int axis[3];
};
REVOLUTE_HD inline AxisOrder axes_by_spread(const WorldBox* boxes, int count) {
  AxisOrder out = {{0, 1, 2}};
  double spread[3];
  for (int axis = 0; axis < 3; ++axis) {
    double sum = 0, squares = 0;
    for (int i = 0; i < count; ++i) {
      const double middle = boxes[i].low[axis] + boxes[i].high[axis];
      if (!(middle - middle == 0)) continue;
      sum += middle;
      squares += middle * middle;
    }
    spread[axis] = squares - sum * sum / count;
    for (int k = axis; k > 0 && spread[out.axis[k]] > spread[out.axis[k - 1]]; --k) {
      const int kept = out.axis[k];
      out.axis[k] = out.axis[k - 1];
      out.axis[k - 1] = kept;
    }
  }
  return out;
}

}  // namespace detail

REVOLUTE_HD inline bool overlap(const WorldBox& a, const WorldBox& b) {
  for (int k = 0; k < 3; ++k)
    if (!((a.low[k] <= b.high[k]) & (b.low[k] <= a.high[k]))) return false;
  return true;
}
// The smallest box about several boxes. A NaN does not count, since its box overlaps nothing.
REVOLUTE_HD inline WorldBox box_about(const WorldBox* boxes, int count) {
  WorldBox out = {{1e300, 1e300, 1e300}, {-1e300, -1e300, -1e300}};
  for (int i = 0; i < count; ++i)
    for (int k = 0; k < 3; ++k) {
      if (boxes[i].low[k] < out.low[k]) out.low[k] = boxes[i].low[k];
      if (boxes[i].high[k] > out.high[k]) out.high[k] = boxes[i].high[k];
    }
  return out;
}

// Calls report(i, j) for the pairs that overlap. `order`, `scratch`, `sorted`: [count].
template <class Report>
REVOLUTE_HD inline void sweep_and_prune(const WorldBox* boxes, int count, int* order, int* scratch,
                                        WorldBox* sorted, const Report& report) {
  const detail::AxisOrder axes = detail::axes_by_spread(boxes, count);
  // boxes that begin at NaN come last
  const auto start = [&](const WorldBox& box) {
    const double low = box.low[axes.axis[0]];
    return low == low ? low : 1e300;
  };
  for (int i = 0; i < count; ++i) order[i] = i;
  detail::merge_sort(order, scratch, count, [&](int a, int b) { return start(boxes[a]) < start(boxes[b]); });
  // in the order of the sweep and of the axes, so that the loop below reads memory from front to back
  for (int i = 0; i < count; ++i)
    for (int k = 0; k < 3; ++k) {
      sorted[i].low[k] = boxes[order[i]].low[axes.axis[k]];
      sorted[i].high[k] = boxes[order[i]].high[axes.axis[k]];
    }
  // two comparisons in one branch: which of them fails is hard to foresee
  const auto meet = [](const WorldBox& a, const WorldBox& b, int k) {
    return (a.low[k] <= b.high[k]) & (b.low[k] <= a.high[k]);
  };
  for (int first = 0; first < count; ++first) {
    const WorldBox box = sorted[first];
    for (int second = first + 1; second < count; ++second) {
      const WorldBox& other = sorted[second];
      if (other.low[0] > box.high[0]) break;
      if (meet(box, other, 1) && meet(box, other, 2) && meet(box, other, 0))
        report(order[first], order[second]);
    }
  }
}

// The same for groups of boxes that are close to each other, such as the bodies of a robot. Group g holds the boxes begin[g]
// .. begin[g + 1] - 1. The boxes about the groups are swept first, then the boxes within. `about`: [groups].
template <class Report>
REVOLUTE_HD inline void sweep_groups(const WorldBox* boxes, const int* begin, int groups, int* order,
                                     int* scratch, WorldBox* about, WorldBox* sorted, const Report& report) {
  constexpr int few = 64;
  for (int g = 0; g < groups; ++g) about[g] = box_about(boxes + begin[g], begin[g + 1] - begin[g]);
  sweep_and_prune(about, groups, order, scratch, sorted, [&](int g, int h) {
    for (int i = begin[g]; i < begin[g + 1]; ++i) {
      if (!overlap(boxes[i], about[h])) continue;
      for (int j = begin[h]; j < begin[h + 1]; ++j)
        if (overlap(boxes[i], boxes[j])) report(i, j);
    }
  });
  for (int g = 0; g < groups; ++g) {
    const int first = begin[g], count = begin[g + 1] - first;
    if (count > few) {
      sweep_and_prune(boxes + first, count, order, scratch, sorted,
                      [&](int i, int j) { report(first + i, first + j); });
      continue;
    }
    for (int i = first; i < first + count; ++i)
      for (int j = i + 1; j < first + count; ++j)
        if (overlap(boxes[i], boxes[j])) report(i, j);
  }
}

// Writes the union of two ascending lists without repetitions; returns its length.
template <class Item>
REVOLUTE_HD inline int merge_ascending(const Item* a, int a_count, const Item* b, int b_count, Item* out) {
  int count = 0;
  for (int i = 0, j = 0; i < a_count || j < b_count;) {
    const bool from_b = i == a_count || (j < b_count && b[j] < a[i]);
    const Item next = from_b ? b[j++] : a[i++];
    if (count == 0 || out[count - 1] != next) out[count++] = next;
  }
  return count;
}

}  // namespace revolute
