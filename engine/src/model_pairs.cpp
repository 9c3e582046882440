// The pairs of shapes that may touch: those that are listed, and filters for the others.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "model_builder.hpp"
#include "revolute/model/pair_kinds.hpp"
#include "shape_table.hpp"

namespace revolute {

PairMixing ModelBuilder::mixing(std::size_t i) {
  const int from = in_.pair_mu_from[i];
  PairMixing out = {from != 2, from != 1, soft() ? in_.pair_weight[i] : 0.0, -1};
  if (soft() ? !std::isnan(in_.pair_weight[i]) : std::isnan(in_.pair_friction[3 * i])) return out;
  PairSoftness<double> own{};
  out.own = int(out_.own_softness_.size());
  if (!soft()) {
    for (int k = 0; k < 5; ++k) own.friction[k] = in_.pair_friction[3 * i + friction_column(k)];
    out_.own_softness_.push_back(own);
    return out;
  }
  std::copy_n(&in_.pair_solref[2 * i], 2, own.solref);
  std::copy_n(&in_.pair_solreffriction[2 * i], 2, own.solref_friction);
  std::copy_n(&in_.pair_solimp[5 * i], 5, own.solimp);
  for (int k = 0; k < 5; ++k) own.friction[k] = std::max(in_.pair_friction5[5 * i + k], least_friction);
  out_.own_softness_.push_back(own);
  return out;
}

double ModelBuilder::body_weight(int a, int b, int part) const {
  return soft() ? in_.body_invweight0[2 * a + part] + in_.body_invweight0[2 * b + part] : 0.0;
}

void ModelBuilder::add_candidates() {
  for (std::size_t i = 0; i < in_.pair_geom1.size(); ++i) {
    const int a = in_.pair_geom1[i], b = in_.pair_geom2[i];
    const int link_a = out_.geoms_[a].link, link_b = out_.geoms_[b].link;
    if (moved_link(link_a) == moved_link(link_b)) continue;
    Candidate candidate{};
    candidate.mixing = mixing(i);
    candidate.geom_a = a;
    candidate.geom_b = b;
    candidate.link_a = link_a;
    candidate.link_b = link_b;
    candidate.path = path(link_a, link_b);
    candidate.support = soft() ? support(link_a, link_b) : 0;
    candidate.weight = body_weight(in_.geom_bodyid[a], in_.geom_bodyid[b], 0);
    candidate.condim = in_.pair_condim[i];
    candidate.margin = in_.pair_margin[i];
    candidate.gap = in_.pair_gap[i];
    add_pair(candidate);
  }
}

void ModelBuilder::add_pair(Candidate candidate) {
  const Shape a = out_.geoms_[candidate.geom_a].shape, b = out_.geoms_[candidate.geom_b].shape;
  if (is_ground(b))
    throw std::invalid_argument("pair_geom2: no contact between two shapes of the ground, geoms " +
                                std::to_string(candidate.geom_a) + " and " +
                                std::to_string(candidate.geom_b));
  if (out_.model_.contact_model == ContactModel::mujoco && add_mujoco_pair(candidate)) return;
  if (a == Shape::plane && (b == Shape::sphere || b == Shape::capsule || b == Shape::box)) {
    candidate.pair = Pair::plane_point;
    return add_plane_points(candidate, out_.geoms_[candidate.geom_b]);
  }
  const PairKind kind = hard_pair_kind(a, b);
  candidate.pair = kind.pair;
  candidate.slots = kind.slots;
  if (kind.slots == 0) {
    for (int geom : {candidate.geom_a, candidate.geom_b})
      if (a != Shape::plane && out_.geoms_[geom].shape == Shape::mesh && out_.geoms_[geom].faces == 0)
        throw std::invalid_argument("hull_polynum: expected the faces of geom " + std::to_string(geom) +
                                    "'s hull, got none");
    candidate.pair = a == Shape::plane          ? Pair::plane_convex
                     : a == Shape::height_field ? Pair::field_convex
                                                : Pair::convex_convex;
    const Geom &first = out_.geoms_[candidate.geom_a], &second = out_.geoms_[candidate.geom_b];
    candidate.slots = a == Shape::plane          ? shape_row(b).points
                      : a == Shape::height_field ? field_points(out_.height_fields_[first.field], second)
                                                 : std::min(shape_row(a).points, shape_row(b).points);
    ++out_.model_.nconvex;
  }
  add_slots(candidate);
}

void ModelBuilder::add_slots(Candidate candidate) {
  for (candidate.slot = 0; candidate.slot < candidate.slots; ++candidate.slot)
    out_.candidates_.push_back(candidate);
}

// Adds a pair for which MuJoCo has a closed formula; returns false for other pairs, which go to the general search.
bool ModelBuilder::add_mujoco_pair(Candidate candidate) {
  const Geom &a = out_.geoms_[candidate.geom_a], &b = out_.geoms_[candidate.geom_b];
  const PairKind kind = mujoco_pair_kind(a.shape, b.shape);
  if (kind.slots == 0) return false;
  candidate.pair = kind.pair;
  candidate.slots = kind.slots;
  const bool fixed_points =
      kind.pair == Pair::plane_point || kind.pair == Pair::plane_capsule || kind.pair == Pair::plane_box;
  if (fixed_points)
    add_plane_points(candidate, b);
  else
    add_slots(candidate);
  return true;
}

// Adds the points of a shape that can be nearest to a plane: a sphere's centre, a capsule's ends, a box's corners.
void ModelBuilder::add_plane_points(Candidate candidate, const Geom& shape) {
  candidate.radius = shape.radius;
  const bool ends = shape.shape == Shape::capsule, corners = shape.shape == Shape::box;
  const double x = corners ? shape.half[0] : 0, y = corners ? shape.half[1] : 0,
               z = corners || ends ? shape.half[2] : 0;
  const int count = corners ? 8 : ends ? 2 : 1;
  // MuJoCo counts a box's corners from the lowest, x first
  const bool mujoco_box = candidate.pair == Pair::plane_box;
  if (candidate.pair == Pair::plane_point) candidate.slots = 1;
  for (int i = 0; i < count; ++i) {
    const Vector3<double> local = mujoco_box
                                      ? Vector3<double>{i & 1 ? x : -x, i & 2 ? y : -y, i & 4 ? z : -z}
                                      : Vector3<double>{i & 4 ? -x : x, i & 2 ? -y : y, i & 1 ? -z : z};
    candidate.slot = candidate.slots == 1 ? 0 : i;
    store(vector3<double>(shape.position) + matrix3<double>(shape.rotation) * local, candidate.point);
    out_.candidates_.push_back(candidate);
  }
}

// Adds the filters for pairs that are not listed.
void ModelBuilder::add_filters() {
  Model& m = out_.model_;
  for (int g = 0; g < in_.ngeom; ++g) {
    const int body = in_.geom_bodyid[g], weld = in_.body_weldid[body];
    GeomFilter filter{};
    filter.contype = in_.geom_contype[g];
    filter.conaffinity = in_.geom_conaffinity[g];
    filter.body = body;
    filter.weld = weld;
    filter.parent_weld = in_.body_weldid[in_.body_parentid[weld]];
    filter.priority = in_.geom_priority[g];
    filter.condim = in_.geom_condim[g];
    filter.points = shape_row(out_.geoms_[g].shape).points;
    filter.margin = in_.geom_margin[g];
    filter.gap = in_.geom_gap[g];
    filter.mixing = in_.geom_solmix[g];
    filter.weight = soft() ? in_.body_invweight0[2 * body] : 0.0;
    out_.geom_filters_.push_back(filter);
    if (filter.points > 0 && (filter.contype || filter.conaffinity)) {
      out_.near_pairs_.unlisted.push_back(g);
      const double watched =
          soft() ? in_.geom_margin[g] + (m.adhesive ? in_.geom_gap[g] : 0.0) : 0.5 * m.margin;
      out_.geoms_[g].watched = std::max(out_.geoms_[g].watched, watched);
      m.unlisted_condim = std::max(m.unlisted_condim, filter.condim);
      ++m.nconvex;
    }
  }
  // the two deepest links of different trees
  for (int k = 0; k < in_.nv; ++k) m.longest_support = std::max(m.longest_support, 2 * chain(k).count);
  m.filter_parent = in_.filter_parent;
  for (int signature : in_.exclude_signature)
    out_.excluded_bodies_.push_back(pair_key(signature >> 16, signature & 0xffff));
  for (std::size_t i = 0; i + 1 < in_.excluded_geoms.size(); i += 2)
    out_.excluded_geoms_.push_back(pair_key(in_.excluded_geoms[i], in_.excluded_geoms[i + 1]));
  std::sort(out_.excluded_bodies_.begin(), out_.excluded_bodies_.end());
  std::sort(out_.excluded_geoms_.begin(), out_.excluded_geoms_.end());
}

void ModelBuilder::point_filters(Model& m) const {
  m.own_softness = out_.own_softness_.data();
  m.geom_filters = out_.geom_filters_.empty() ? nullptr : out_.geom_filters_.data();
  m.nexcluded_bodies = int(out_.excluded_bodies_.size());
  m.excluded_bodies = out_.excluded_bodies_.data();
  m.nexcluded_geoms = int(out_.excluded_geoms_.size());
  m.excluded_geoms = out_.excluded_geoms_.data();
}

}  // namespace revolute
