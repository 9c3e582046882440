// The sizes of the arrays of a model. Paths of degrees of freedom: what they list, and how much room they take.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>

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

// Every array that has a size of its own is refused by its name if it has one number too many.
void sizes_are_checked() {
  MujocoArrays arrays = branched(1, 2);
  int checked = 0;
  visit_arrays(arrays, [&](const std::string& name, auto& member) {
    if constexpr (std::is_class_v<std::remove_reference_t<decltype(member)>>) {
      bool sized = false;
      visit_sizes(arrays, [&](const std::string& other, std::size_t, std::size_t) {
        sized = sized || other == name;
      });
      if (!sized) return;
      ++checked;
      member.push_back(0);
      std::string refused;
      try {
        const ModelStorage storage(arrays);
      } catch (const std::invalid_argument& error) {
        refused = error.what();
      }
      member.pop_back();
      expect(!refused.empty() && refused.find(": expected ") < refused.find(" numbers, got "),
             (name + ": " + refused).c_str(), __FILE__, __LINE__);
    }
  });
  CHECK(checked > 60);
}

}  // namespace

int main() {
  return run({{"sizes are checked", sizes_are_checked},
              {"paths list the ancestors of both links", paths_list_the_ancestors_of_both_links},
              {"a chain is listed once", a_chain_is_listed_once}});
}
