// Which of many boxes along the world's axes overlap, in one environment: the boxes are sorted along the axis on which their
// middles are spread most, and each is compared with those that begin before it ends.
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

// Sorts `items` so that `before(a, b)` holds for no later a and earlier b; equal ones keep their order. `scratch` is as long.
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

REVOLUTE_HD inline int widest_axis(const WorldBox* boxes, int count) {
  int widest = 0;
  double most = -1;
  for (int axis = 0; axis < 3; ++axis) {
    double sum = 0, squares = 0;
    for (int i = 0; i < count; ++i) {
      const double middle = boxes[i].low[axis] + boxes[i].high[axis];
      if (!(middle - middle == 0)) continue;
      sum += middle;
      squares += middle * middle;
    }
    const double spread = squares - sum * sum / count;
    if (spread > most) most = spread, widest = axis;
  }
  return widest;
}

}  // namespace detail

REVOLUTE_HD inline bool overlap(const WorldBox& a, const WorldBox& b) {
  for (int axis = 0; axis < 3; ++axis)
    if (!(a.low[axis] <= b.high[axis] && b.low[axis] <= a.high[axis])) return false;
  return true;
}

// Calls report(i, j) for the pairs that overlap. `order`, `scratch`: [count].
template <class Report>
REVOLUTE_HD inline void sweep_and_prune(const WorldBox* boxes, int count, int* order, int* scratch,
                                        const Report& report) {
  const int axis = detail::widest_axis(boxes, count);
  // what has no place comes last
  const auto start = [&](int i) {
    const double low = boxes[i].low[axis];
    return low == low ? low : 1e300;
  };
  for (int i = 0; i < count; ++i) order[i] = i;
  detail::merge_sort(order, scratch, count, [&](int a, int b) { return start(a) < start(b); });
  for (int first = 0; first < count; ++first) {
    const WorldBox& box = boxes[order[first]];
    for (int second = first + 1; second < count && start(order[second]) <= box.high[axis]; ++second)
      if (overlap(box, boxes[order[second]])) report(order[first], order[second]);
  }
}

// The union of two ascending lists without repetitions; returns its length.
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
