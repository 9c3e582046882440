#include "revolute/model/near_pairs.hpp"

#include <algorithm>

namespace revolute {

namespace {

// Looking at a pair costs little, sorting the shapes costs more: with fewer pairs per shape than this, all pairs are looked at.
constexpr std::size_t few_pairs = 16;

}  // namespace

// Sorts `swept` by tree.
void NearPairTables::group(const Model& model, const std::vector<Dof>& dofs, const std::vector<Geom>& geoms) {
  const auto tree = [&](int g) { return geoms[g].link < 0 ? model.ntree : dofs[geoms[g].link].tree; };
  std::stable_sort(swept.begin(), swept.end(), [&](int a, int b) { return tree(a) < tree(b); });
  for (std::size_t i = 0; i < swept.size(); ++i)
    if (i == 0 || tree(swept[i]) == model.ntree || tree(swept[i]) != tree(swept[i - 1]))
      swept_begin.push_back(int(i));
  swept_begin.push_back(int(swept.size()));
}

void NearPairTables::build(const Model& model, const std::vector<Dof>& dofs,
                           const std::vector<Candidate>& candidates, std::vector<Geom>& geoms) {
  std::vector<int> between;  // pairs of shapes, neither of them ground
  std::vector<bool> meets(geoms.size(), false);
  for (std::size_t i = 0; i < candidates.size(); i += candidates[i].slots) {
    const Candidate& candidate = candidates[i];
    always.push_back(int(i));
    const bool adheres = geoms[candidate.geom_a].adheres || geoms[candidate.geom_b].adheres;
    const double watched = model.contact_model == ContactModel::mujoco
                               ? candidate.margin + (adheres ? candidate.gap : 0)
                               : model.margin;
    for (int g : {candidate.geom_a, candidate.geom_b})
      geoms[g].watched = std::max(geoms[g].watched, 0.5 * watched);
    if (is_ground(geoms[candidate.geom_a].shape)) continue;
    between.push_back(int(i));
    meets[candidate.geom_a] = meets[candidate.geom_b] = true;
  }
  if (!unlisted.empty()) {
    for (int g : unlisted) meets[g] = true;
    for (std::size_t g = 0; g < geoms.size(); ++g)
      if (meets[g]) swept.push_back(int(g));
    return group(model, dofs, geoms);
  }
  const auto shapes = std::size_t(std::count(meets.begin(), meets.end(), true));
  if (between.size() <= few_pairs * shapes) return;
  always.erase(std::remove_if(always.begin(), always.end(),
                              [&](int i) { return !is_ground(geoms[candidates[i].geom_a].shape); }),
               always.end());
  for (std::size_t g = 0; g < geoms.size(); ++g)
    if (meets[g]) swept.push_back(int(g));
  group(model, dofs, geoms);
  const auto lower = [&](int i) { return std::min(candidates[i].geom_a, candidates[i].geom_b); };
  const auto upper = [&](int i) { return std::max(candidates[i].geom_a, candidates[i].geom_b); };
  std::sort(between.begin(), between.end(),
            [&](int i, int j) { return lower(i) != lower(j) ? lower(i) < lower(j) : upper(i) < upper(j); });
  partners_begin.assign(geoms.size() + 1, 0);
  for (int i : between) {
    partners.push_back({upper(i), i});
    ++partners_begin[lower(i) + 1];
  }
  for (std::size_t g = 0; g < geoms.size(); ++g) partners_begin[g + 1] += partners_begin[g];
}

void NearPairTables::point(Model& model) const {
  model.nalways = int(always.size());
  model.always = always.data();
  model.nswept = int(swept.size());
  model.swept = swept.data();
  model.nswept_group = swept.empty() ? 0 : int(swept_begin.size()) - 1;
  model.swept_begin = swept_begin.data();
  model.npartner = int(partners.size());
  model.partners = partners.data();
  model.partners_begin = partners_begin.data();
}

}  // namespace revolute
