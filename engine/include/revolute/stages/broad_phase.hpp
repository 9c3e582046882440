// Finds pairs of shapes that may touch within the step. These are pairs with a plane, and pairs whose boxes in the world
// overlap (sweep_and_prune.hpp); the boxes are enlarged by the watched distance and by how far the shapes may travel.
//
// A pack looks at every pair that is near in one of its environments. The other environments mask the pair by the same
// comparison of boxes, so no result depends on neighbours. Models with few pairs look at all of them.
// Reads links. Not differentiated.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "revolute/collision/sweep_and_prune.hpp"
#include "revolute/stages/contact_list.hpp"
#include "revolute/stages/unlisted_pairs.hpp"

namespace revolute {

template <class Real>
REVOLUTE_HD void swept_spheres(const Model& model, const Kinematics<Real>& kin, const Motion<Real>* V_free,
                               Real h, Contacts<Real>& out) {
  const bool still = model.contact_model == ContactModel::mujoco;
  for (int g = 0; g < model.ngeom; ++g) {
    const Geom& geom = model.geoms[g];
    SweptSphere<Real>& sphere = out.spheres[g];
    sphere.centre = world_point(model, kin, geom.link, geom.position);
    sphere.travel = Real(0);
    if (still || geom.link < 0) continue;
    const Motion<Real> V = at_link(V_free, geom.link);
    const Vector3<Real> velocity = V.v + cross(V.w, sphere.centre - tree_origin(model, kin, geom.link));
    sphere.travel = h * (sqrt(dot(velocity, velocity)) + Real(geom.bound) * sqrt(dot(V.w, V.w)));
  }
}

// The box of a shape in the world.
template <class Real>
REVOLUTE_HD inline SweptBox<Real> swept_box(const Kinematics<Real>& kin, const Geom& geom,
                                            const SweptSphere<Real>& sphere) {
  const Real beyond = sphere.travel + Real(geom.watched + 1e-9 * geom.bound);
  Vector3<Real> centre = sphere.centre, reach = {Real(geom.bound), Real(geom.bound), Real(geom.bound)};
  if (geom.shape != Shape::sphere) {
    const Matrix3<Real> R = geom_rotation(kin, geom);
    const Vector3<Real> half = vector3<Real>(geom.box_half);
    const auto row = [&](int i) {
      return abs(R(i, 0)) * half.x + abs(R(i, 1)) * half.y + abs(R(i, 2)) * half.z;
    };
    centre += R * vector3<Real>(geom.box_centre);
    reach = {row(0), row(1), row(2)};
  }
  const Vector3<Real> around = reach + Vector3<Real>{beyond, beyond, beyond};
  return {centre - around, centre + around};
}

template <class Real>
REVOLUTE_HD inline MaskOf<Real> overlap(const SweptBox<Real>& a, const SweptBox<Real>& b) {
  return less_equal(a.low.x, b.high.x) & less_equal(b.low.x, a.high.x) & less_equal(a.low.y, b.high.y) &
         less_equal(b.low.y, a.high.y) & less_equal(a.low.z, b.high.z) & less_equal(b.low.z, a.high.z);
}
template <class Real>
REVOLUTE_HD inline WorldBox box_of_lane(const SweptBox<Real>& box, int lane) {
  const Vector3<double> low = get_lane(box.low, lane), high = get_lane(box.high, lane);
  return {{low.x, low.y, low.z}, {high.x, high.y, high.z}};
}

// Calls visit(first candidate) for each pair of two shapes.
template <class Visit>
REVOLUTE_HD inline void visit_pairs_of(const Model& model, int geom_a, int geom_b, const Visit& visit) {
  const int lower = geom_a < geom_b ? geom_a : geom_b, upper = geom_a < geom_b ? geom_b : geom_a;
  const int last = model.partners_begin[lower + 1];
  int begin = model.partners_begin[lower], end = last;
  while (begin < end) {
    const int middle = begin + (end - begin) / 2;
    if (model.partners[middle].geom < upper)
      begin = middle + 1;
    else
      end = middle;
  }
  for (; begin < last && model.partners[begin].geom == upper; ++begin) visit(model.partners[begin].candidate);
}

// Checks the room for contacts in a step of a model that does not list its pairs. For a device the host checks it.
REVOLUTE_HD inline void expect_room(std::size_t count, std::size_t capacity) {
#if !defined(__CUDA_ARCH__)
  if (count > capacity)
    throw std::length_error(
        "contact: expected at most " + std::to_string(capacity) +
        " contacts in one step, got more; let fewer shapes meet by contype and conaffinity");
#endif
}

// Fills out.near, in ascending order. Shapes that fly apart at any speed are near many others; the lists grow for them.
template <class Real>
REVOLUTE_HD void broad_phase(const Model& model, const Kinematics<Real>& kin, Contacts<Real>& out) {
  out.near.count = 0;
  if (model.nswept == 0) return;
  NearPairs<Real>& near = out.near;
  for (int s = 0; s < model.nswept; ++s) {
    const int g = model.swept[s];
    near.boxes[g] = swept_box(kin, model.geoms[g], out.spheres[g]);
  }
  for (int lane = 0; lane < Width<Real>::value; ++lane) {
    for (int s = 0; s < model.nswept; ++s) near.lane_boxes[s] = box_of_lane(near.boxes[model.swept[s]], lane);
    int found = 0;
    const auto add = [&](std::int64_t pair) {
      near.lane_list.keep(found, found + 1)[found] = pair;
      ++found;
    };
    const auto take = [&](int i, int j) {
      const int a = model.swept[i], b = model.swept[j];
      if (!has_unlisted_pairs(model)) return visit_pairs_of(model, a, b, add);
      if (!may_touch(model, a, b)) return;
      const RankedPair pair = in_order(model, a, b);
      add(pair_rank(model, pair.geom_a, pair.geom_b));
    };
    sweep_groups(near.lane_boxes, model.swept_begin, model.nswept_group, near.order, near.scratch,
                 near.group_boxes, near.sorted_boxes, take);
    std::int64_t* const lane_list = near.lane_list.data();
    detail::merge_sort(lane_list, near.merged.at_least(found), found,
                       [](std::int64_t a, std::int64_t b) { return a < b; });
    const std::size_t both = near.count + found, most = near_pair_capacity(model);
    near.count = merge_ascending(near.list.data(), near.count, lane_list, found,
                                 near.merged.at_least(both < most ? both : most));
    near.list.swap(near.merged);
  }
}

// The environments in which the broad phase lets a pair through; all of them for pairs that it does not judge.
template <class Real>
REVOLUTE_HD inline MaskOf<Real> boxes_meet(const Model& model, const Contacts<Real>& contacts,
                                           const Candidate& candidate) {
  if (model.nswept == 0 || is_ground(model.geoms[candidate.geom_a].shape)) return less(Real(0), Real(1));
  return overlap(contacts.near.boxes[candidate.geom_a], contacts.near.boxes[candidate.geom_b]);
}

// Calls visit(pointer to the first candidate) for each pair to look at, in the order of pair_rank, whether it is listed or not.
template <class Real, class Visit>
REVOLUTE_HD void visit_near_pairs(const Model& model, Contacts<Real>& contacts, const Visit& visit) {
  NearPairs<Real>& pairs = contacts.near;
  const std::int64_t* const near = pairs.list.data();
  const bool unlisted = has_unlisted_pairs(model);
  pairs.made_count = pairs.found = 0;
  const auto rank = [&](int always) {
    const Candidate& first = model.candidates[always];
    return unlisted ? pair_rank(model, first.geom_a, first.geom_b) : std::int64_t(always);
  };
  for (int i = 0, j = 0; i < model.nalways || j < pairs.count;) {
    const bool swept = i == model.nalways || (j < pairs.count && near[j] < rank(model.always[i]));
    if (!swept || !unlisted) {
      visit(model.candidates + (swept ? int(near[j++]) : model.always[i++]));
      continue;
    }
    Candidate* const made = pairs.made + pairs.made_count;
    const int slots = make_candidates(model, ranked_pair(near[j++]), made), before = contacts.count;
    visit(made);
    if (contacts.count > before) pairs.made_count += slots;
  }
}

}  // namespace revolute
