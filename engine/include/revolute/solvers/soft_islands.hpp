// Which trees the constraints of the contact model "mujoco" join, and the order in which their degrees of freedom are
// eliminated.
//
// An island holds the trees that constraints join, in one environment; it is solved alone. Elimination goes tree by tree, and
// within a tree from its leaves to its root. The next tree is the one whose neighbours have the fewest degrees of freedom;
// the lower index breaks ties (minimum degree: George and Liu, The evolution of the minimum degree ordering algorithm, 1989).
// Its neighbours then become neighbours of each other. This keeps the factors sparse in a pile of bodies.
//
// A model of few trees is one island in the file's order, whatever touches: a pack of environments then has one shape, and no
// environment's order depends on its neighbours. Packs of models with many trees hold one environment (`is_crowded`).
#pragma once

#include <cstdint>

#include "revolute/growing_array.hpp"
#include "revolute/stages/soft_constraints.hpp"

namespace revolute {

struct SoftIsland {
  int dof_count, constraint_count;
  const int* dofs;         // in the order of elimination
  const int* constraints;  // ascending
};

struct SoftIslands {
  int count;         // number of islands with constraints
  bool file_order;   // whether elimination goes from the last degree of freedom to the first
  SoftIsland* list;  // [count + 1]; the last one holds the trees without constraints
  int *dofs, *constraints;
  int* place;  // [nv] place of each degree of freedom in `dofs`
  // scratch, [ntree]: union-find, trees by island, degree in degrees of freedom
  int *joined, *island_of, *trees, *local, *degree, *first_dof;
  int *tree_of, *begin;  // [constraints], [islands + 1]
  GrowingArray<std::uint64_t> neighbours;

  SoftIslands(const Model& model, std::size_t constraint_capacity, Arena& arena)
      : count(0), file_order(true), neighbours(std::size_t(model.ntree) * words(model.ntree), arena) {
    const std::size_t trees_count = model.ntree;
    list = arena.take<SoftIsland>(trees_count + 2);
    for (int** array : {&dofs, &place}) *array = arena.take<int>(model.nv);
    for (int** array : {&constraints, &tree_of}) *array = arena.take<int>(constraint_capacity);
    for (int** array : {&joined, &island_of, &trees, &local, &degree}) *array = arena.take<int>(trees_count);
    for (int** array : {&first_dof, &begin}) *array = arena.take<int>(trees_count + 2);
  }
  REVOLUTE_HD static std::size_t words(int count) { return (std::size_t(count) + 63) / 64; }
};

namespace detail {

REVOLUTE_HD inline int root_of(int* joined, int tree) {
  while (joined[tree] != tree) tree = joined[tree] = joined[joined[tree]];
  return tree;
}
// The place of the lowest set bit.
REVOLUTE_HD inline int lowest_bit(std::uint64_t word) {
#if defined(__CUDA_ARCH__)
  return __ffsll(static_cast<long long>(word)) - 1;
#else
  return __builtin_ctzll(word);
#endif
}

// Calls visit(i) for the members of a set, ascending.
template <class Visit>
REVOLUTE_HD inline void for_members(const std::uint64_t* set, std::size_t words, const Visit& visit) {
  for (std::size_t w = 0; w < words; ++w)
    for (std::uint64_t word = set[w]; word; word &= word - 1) visit(int(64 * w) + lowest_bit(word));
}

// Calls visit(tree) for the trees that a constraint moves; it may visit a tree twice.
template <class Visit>
REVOLUTE_HD inline void for_trees(const Model& model, const Support& support, const Visit& visit) {
  const int* const dofs = support.dofs;
  for (int i = 0; i < support.count; ++i) {
    const int tree = model.dofs[dofs[i]].tree;
    if (i == 0 || tree != model.dofs[dofs[i - 1]].tree) visit(tree);
  }
}

// Sorts out.trees[first .. last) by minimum degree; `couples(join)` must call join(a, b) for trees that touch each other.
template <class Couples>
REVOLUTE_HD void order_by_degree(int first, int last, const Couples& couples, SoftIslands& out) {
  const int count = last - first;
  const std::size_t words = SoftIslands::words(count);
  std::uint64_t* const sets = out.neighbours.at_least(count * words);
  const auto neighbours = [&](int i) { return sets + i * words; };
  const auto size = [&](int i) {
    const int tree = out.trees[first + i];
    return out.first_dof[tree + 1] - out.first_dof[tree];
  };
  for (std::size_t w = 0; w < count * words; ++w) sets[w] = 0;
  couples([&](int a, int b) {
    const int i = out.local[a], j = out.local[b];
    neighbours(i)[j / 64] |= std::uint64_t(1) << (j % 64);
    neighbours(j)[i / 64] |= std::uint64_t(1) << (i % 64);
  });
  const auto find_degree = [&](int i) {
    int sum = 0;
    for_members(neighbours(i), words, [&](int j) { sum += size(j); });
    out.degree[i] = sum;
  };
  for (int i = 0; i < count; ++i) find_degree(i);
  int* const order = out.joined + first;  // the union is not needed any longer
  for (int turn = 0; turn < count; ++turn) {
    int next = -1;
    for (int i = 0; i < count; ++i)
      if (out.degree[i] >= 0 && (next < 0 || out.degree[i] < out.degree[next])) next = i;
    out.degree[next] = -1;
    order[turn] = out.trees[first + next];
    std::uint64_t* const of_next = neighbours(next);
    for_members(of_next, words, [&](int i) {
      std::uint64_t* const set = neighbours(i);
      for (std::size_t w = 0; w < words; ++w) set[w] |= of_next[w];
      for (int j : {i, next}) set[j / 64] &= ~(std::uint64_t(1) << (j % 64));
      find_degree(i);
    });
  }
  for (int i = 0; i < count; ++i) out.trees[first + i] = order[i];
}

}  // namespace detail

// All trees as one island, in the file's order.
template <class Real>
REVOLUTE_HD void one_island(const Model& model, const SoftConstraints<Real>& constraints, SoftIslands& out) {
  for (int i = 0; i < model.nv; ++i) {
    out.dofs[i] = model.nv - 1 - i;
    out.place[model.nv - 1 - i] = i;
  }
  for (int c = 0; c < constraints.count; ++c) out.constraints[c] = c;
  out.count = 1;
  out.file_order = true;
  out.list[0] = {model.nv, constraints.count, out.dofs, out.constraints};
  out.list[1] = {0, 0, out.dofs + model.nv, out.constraints + constraints.count};
}

namespace detail {

// Numbers the islands by their first trees. The trees without constraints count as one island, the last.
template <class Real>
REVOLUTE_HD void number_islands(const Model& model, const SoftConstraints<Real>& constraints,
                                SoftIslands& out) {
  for (int t = 0; t < model.ntree; ++t) out.joined[t] = t, out.island_of[t] = -1;
  for (int c = 0; c < constraints.count; ++c) {
    int first = -1;
    for_trees(model, constraints.list[c].support, [&](int tree) {
      const int root = root_of(out.joined, tree);
      first = first < 0 ? root : first;
      // the lower index stays the root
      const int low = root < first ? root : first, high = root < first ? first : root;
      out.joined[high] = first = low;
    });
    out.tree_of[c] = first;
  }
  for (int c = 0; c < constraints.count; ++c) out.island_of[root_of(out.joined, out.tree_of[c])] = 0;
  out.count = 0;
  for (int t = 0; t < model.ntree; ++t) {
    const int root = root_of(out.joined, t);
    if (root == t && out.island_of[t] == 0)
      out.island_of[t] = out.count++;
    else if (root != t)
      out.island_of[t] = out.island_of[root];
  }
  for (int t = 0; t < model.ntree; ++t)
    if (out.island_of[t] < 0) out.island_of[t] = out.count;
}

// Lists items 0 .. count - 1 by island, ascending; out.begin [islands + 2] gets the first place of each island.
template <class IslandOf>
REVOLUTE_HD void list_by_island(int count, int islands, const IslandOf& island_of, int* begin, int* list) {
  for (int i = 0; i <= islands; ++i) begin[i] = 0;
  for (int i = 0; i < count; ++i) ++begin[island_of(i)];
  int sum = 0;
  for (int i = 0; i <= islands; ++i) {
    const int of_island = begin[i];
    begin[i] = sum;
    sum += of_island;
  }
  for (int i = 0; i < count; ++i) list[begin[island_of(i)]++] = i;
  for (int i = islands; i > 0; --i) begin[i] = begin[i - 1];
  begin[0] = 0;
}

}  // namespace detail

template <class Real>
REVOLUTE_HD void find_soft_islands(const Model& model, const SoftConstraints<Real>& constraints,
                                   SoftIslands& out) {
  using namespace detail;
  if (!is_crowded(model)) return one_island(model, constraints, out);
  out.file_order = false;
  number_islands(model, constraints, out);
  for (int k = model.nv - 1; k >= 0; --k) out.first_dof[model.dofs[k].tree] = k;
  out.first_dof[model.ntree] = model.nv;
  list_by_island(
      constraints.count, out.count, [&](int c) { return out.island_of[out.tree_of[c]]; }, out.begin,
      out.constraints);
  for (int i = 0; i <= out.count; ++i) {
    out.list[i].constraints = out.constraints + out.begin[i];
    out.list[i].constraint_count = (i < out.count ? out.begin[i + 1] : constraints.count) - out.begin[i];
  }
  list_by_island(model.ntree, out.count, [&](int t) { return out.island_of[t]; }, out.begin, out.trees);
  int place = 0;
  for (int i = 0; i <= out.count; ++i) {
    SoftIsland& island = out.list[i];
    const int first = out.begin[i], last = i < out.count ? out.begin[i + 1] : model.ntree;
    for (int t = first; t < last; ++t) out.local[out.trees[t]] = t - first;
    if (i < out.count && last - first > 2)
      order_by_degree(
          first, last,
          [&](const auto& join) {
            for (int c = 0; c < island.constraint_count; ++c) {
              const Support& support = constraints.list[island.constraints[c]].support;
              for_trees(model, support, [&](int a) {
                for_trees(model, support, [&](int b) {
                  if (a != b) join(a, b);
                });
              });
            }
          },
          out);
    island.dofs = out.dofs + place;
    for (int t = first; t < last; ++t)
      for (int k = out.first_dof[out.trees[t] + 1] - 1; k >= out.first_dof[out.trees[t]]; --k) {
        out.place[k] = place;
        out.dofs[place++] = k;
      }
    island.dof_count = int(out.dofs + place - island.dofs);
  }
}

}  // namespace revolute
