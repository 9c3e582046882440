// A model that watches its pairs from farther away, for contact_from_distance.hpp.
#pragma once

#include <optional>
#include <vector>

#include "revolute/soft_step.hpp"

namespace revolute {

// The model with `distance` added to the margin of every pair. Everything else is shared with the original.
struct WidenedModel {
  std::vector<Candidate> candidates;
  std::vector<Geom> geoms;
  std::vector<GeomFilter> filters;
  Model model;

  WidenedModel(const Model& original, double distance)
      : candidates(original.candidates, original.candidates + original.ncandidate),
        geoms(original.geoms, original.geoms + original.ngeom),
        filters(original.geom_filters,
                original.geom_filters + (has_unlisted_pairs(original) ? original.ngeom : 0)),
        model(original) {
    for (Candidate& candidate : candidates) candidate.margin += distance;
    for (Geom& geom : geoms) geom.watched += 0.5 * distance;
    for (GeomFilter& filter : filters) filter.margin += 0.5 * distance;
    model.candidates = candidates.data();
    model.geoms = geoms.data();
    if (has_unlisted_pairs(original)) model.geom_filters = filters.data();
  }
  WidenedModel(const WidenedModel&) = delete;
  WidenedModel& operator=(const WidenedModel&) = delete;
};

// While this object lives, the adjoints of a step see contacts from `distance`; 0 means none.
template <class Real>
class SeenFromDistance {
 public:
  SeenFromDistance(const Model& model, double distance, SoftStep<Real>& step) : model_(model), step_(step) {
    if (distance <= 0 || !is_soft(model)) return;
    widened_.emplace(model, distance);
    Arena counting;
    ContactFromDistance<Real> sized(distance, widened_->model, counting);
    arena_.emplace(counting.used());
    from_distance_.emplace(distance, widened_->model, *arena_);
    see_from_distance(model, &*from_distance_, step);
  }
  ~SeenFromDistance() {
    if (from_distance_)
      see_from_distance(model_, static_cast<const ContactFromDistance<Real>*>(nullptr), step_);
  }
  SeenFromDistance(const SeenFromDistance&) = delete;
  SeenFromDistance& operator=(const SeenFromDistance&) = delete;

 private:
  const Model& model_;
  SoftStep<Real>& step_;
  std::optional<WidenedModel> widened_;
  std::optional<Arena> arena_;
  std::optional<ContactFromDistance<Real>> from_distance_;
};

}  // namespace revolute
