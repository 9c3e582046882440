// The tables of the broad phase (stages/broad_phase.hpp), made when a model is built.
#pragma once

#include <vector>

#include "revolute/model/model.hpp"

namespace revolute {

struct NearPairTables {
  std::vector<int> unlisted;  // shapes that may meet others in unlisted pairs
  std::vector<int> always, swept, swept_begin, partners_begin;
  std::vector<Partner> partners;

  // Also sets `watched` of each geom.
  void build(const Model& model, const std::vector<Dof>& dofs, const std::vector<Candidate>& candidates,
             std::vector<Geom>& geoms);
  void point(Model& model) const;

 private:
  void group(const Model& model, const std::vector<Dof>& dofs, const std::vector<Geom>& geoms);
};

}  // namespace revolute
