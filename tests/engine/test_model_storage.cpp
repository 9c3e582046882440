// Paths of degrees of freedom: what they list, and how much room they take.
#include <algorithm>

#include "models.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// Links of both ends and their ancestors, from leaf to root, the plain way.
std::vector<int> ancestors(const Model& model, std::initializer_list<int> links) {
  std::vector<int> dofs;
  for (int link : links)
    for (int k = link; k >= 0; k = model.dofs[k].parent) dofs.push_back(k);
  std::sort(dofs.rbegin(), dofs.rend());
  dofs.erase(std::unique(dofs.begin(), dofs.end()), dofs.end());
  return dofs;
}
std::vector<int> listed(const Model& model, int path) {
  const int* first = model.path_dofs + model.paths[path].first;
  return {first, first + model.paths[path].count};
}

// `branches` chains of `length` hinges with spheres on a common hinge; every two spheres are a pair.
MujocoArrays branched(int branches, int length) {
  ModelMaker m;
  const int trunk = m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1);
  m.add_joint(JointType::revolute, {0, 0, 0}, {0, 0, 1});
  std::vector<int> geoms;
  for (int branch = 0; branch < branches; ++branch)
    for (int i = 0, parent = trunk; i < length; ++i) {
      parent = m.add_body(parent, {0.3, 0, 0}, {0, 0, 0}, 1);
      m.add_joint(JointType::revolute, {0, 0, 0}, {0, 0, 1});
      geoms.push_back(m.add_geom(parent, sphere_geom, {0.1, 0, 0}));
    }
  for (std::size_t i = 0; i < geoms.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) m.add_pair(geoms[j], geoms[i]);
  return m.arrays;
}

void paths_list_the_ancestors_of_both_links() {
  const ModelStorage storage(branched(3, 4));
  const Model& model = storage.model();
  CHECK(model.ncandidate == 12 * 11 / 2);
  for (int i = 0; i < model.ncandidate; ++i) {
    const Candidate& candidate = model.candidates[i];
    CHECK(listed(model, candidate.path) == ancestors(model, {candidate.link_a, candidate.link_b}));
  }
  for (int k = 0; k < model.nv; ++k) CHECK(listed(model, model.dof_paths[k]) == ancestors(model, {k}));
}

// A chain of n links has n (n - 1) / 2 pairs of links, whose lists lie in one of n entries.
void a_chain_is_listed_once() {
  const int links = 200;
  const ModelStorage storage(branched(1, links));
  const Model& model = storage.model();
  CHECK(model.ncandidate == links * (links - 1) / 2);
  int end = 0;
  for (int i = 0; i < model.ncandidate; ++i) {
    const Path& path = model.paths[model.candidates[i].path];
    end = std::max(end, path.first + path.count);
  }
  CHECK(end == model.nv);
}

}  // namespace

int main() {
  return run({{"paths list the ancestors of both links", paths_list_the_ancestors_of_both_links},
              {"a chain is listed once", a_chain_is_listed_once}});
}
