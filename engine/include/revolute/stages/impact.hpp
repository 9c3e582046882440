// Impact: the time within the step at which an island reaches its first contact, and the configuration at that time.
//
// For a contact that is reached at speed (rows/contact.hpp), with gap g and normal speed v < 0 at the start of the step,
//   t_c = g/|v|  (0 if it is closed already),   t = min over an island's contacts, at most h               (1)
//   qpos_t = qpos (+) t qvel                                                                   (2)
// An island is the set of trees that are tied together, or near enough to touch within the step, in one environment. Its trees
// share t. Trees without an impact have t = 0, so an unrelated impact moves no other tree. The step starts from qpos_t, and its
// end velocity moves each tree for the remaining time, h - t. Impulses act where and when the bodies meet, so momenta are kept
// as in any step, and derivatives see the time of the impact. An impact placed at the start or the end of the step would give
// the derivatives of a frozen event.
//
// Adjoint: an island's t_bar, the sum over its trees, goes to the contacts that are first, in equal parts if there are several
// (a box that lands flat):
//   g_bar += t_bar/|v|,   v_bar += t_bar t/|v|                                                 (3)
// Tangents go the same way: the tangent of t is the mean over the contacts that are first.
// Not differentiated: the choice of the first contacts; t = h and t = 0 are kinks; the time of a second impact of an island,
// which bounces from its place at the first one or, without restitution, closes its gap.
#pragma once

#include "revolute/stages/constraint_rows.hpp"
#include "revolute/stages/integration.hpp"

namespace revolute {

template <class Real>
struct Impact {
  bool any;      // whether any environment has an impact inside this step
  Real* time;    // [ntree] 0 without an impact
  Real* qpos;    // [nq] at that time
  int* island;   // [ntree, lanes] the first tree of a tree's island
  Real* firsts;  // [ntree] number of contacts that set the time, at an island's first tree

  Impact(const Model& model, Arena& arena)
      : any(false),
        time(arena.take<Real>(model.ntree)),
        qpos(arena.take<Real>(model.nq)),
        island(arena.take<int>(std::size_t(model.ntree) * Width<Real>::value)),
        firsts(arena.take<Real>(model.ntree)) {}
  // The environments that have an impact inside this step.
  REVOLUTE_HD MaskOf<Real> inside(const Model& model) const {
    MaskOf<Real> out = less(Real(0), Real(0));
    for (int t = 0; t < model.ntree && any; ++t) out = out | less(Real(0), time[t]);
    return out;
  }
};

// (1) for one contact; h if the contact is not reached. Without restitution a contact that is already closed has no impact.
template <class Real>
REVOLUTE_HD inline Real time_of_impact(const Parameters<Real>& parameters, const RowContext<Real>& at,
                                       const Contact<Real>& contact, const RowJacobian<Real>& J,
                                       Bounce<Real>& hit) {
  hit = bounce(at, contact.gap, J);
  hit.happens =
      hit.happens & contact.active & (less(Real(0), *parameters.restitution) | less(Real(0), contact.gap));
  const Real speed = select(hit.happens, -hit.before, Real(1));
  return select(hit.happens, minimum(maximum(contact.gap, Real(0)) / speed, at.h), at.h);
}
// Whether the time of impact depends on this contact, reached at t: it is one of the first, and not at a kink.
template <class Real>
REVOLUTE_HD inline MaskOf<Real> is_first(const RowContext<Real>& at, const Contact<Real>& contact,
                                         const Bounce<Real>& hit, Real t, Real first) {
  return hit.happens & less(Real(0), contact.gap) & less(t, at.h) & less_equal(t, first);
}

// --- islands of each environment -----------------------------------------------------------------------------------------

// The first tree of a tree's island in one environment.
template <class Real>
REVOLUTE_HD inline int lane_island(const Impact<Real>& impact, int tree, int lane) {
  const int lanes = Width<Real>::value;
  while (impact.island[tree * lanes + lane] != tree) tree = impact.island[tree * lanes + lane];
  return tree;
}
template <class Real>
REVOLUTE_HD inline void join_in_lanes(const Model& model, const RowPath& path, MaskOf<Real> mask,
                                      Impact<Real>& out) {
  const int lanes = Width<Real>::value;
  for (int i = 1; i < path.count; ++i) {
    const int tree_a = model.dofs[path.dofs[i - 1]].tree, tree_b = model.dofs[path.dofs[i]].tree;
    if (tree_a == tree_b) continue;
    for (int lane = 0; lane < lanes; ++lane) {
      if (!get_lane(mask, lane)) continue;
      const int a = lane_island(out, tree_a, lane), b = lane_island(out, tree_b, lane);
      if (a < b) out.island[b * lanes + lane] = a;
      if (b < a) out.island[a * lanes + lane] = b;
    }
  }
}
template <class Real>
REVOLUTE_HD void find_lane_islands(const Model& model, const Contacts<Real>& contacts, Impact<Real>& out) {
  const int lanes = Width<Real>::value;
  for (int t = 0; t < model.ntree; ++t)
    for (int lane = 0; lane < lanes; ++lane) out.island[t * lanes + lane] = t;
  if (model.ntree < 2) return;
  const MaskOf<Real> all_lanes = less(Real(0), Real(1));
  for (int i = 0; i < model.nequality; ++i)
    join_in_lanes(model, row_path(model, model.equalities[i].path), all_lanes, out);
  for (int c = 0; c < contacts.count; ++c)
    join_in_lanes(model, contacts.list[c].path, contacts.list[c].active, out);
}
// Sums the trees' numbers over each island; the sum is stored at its first tree.
template <class Real, class Bar>
REVOLUTE_HD void sum_over_islands(const Model& model, const Impact<Real>& impact, Bar* of_trees) {
  for (int t = model.ntree - 1; t >= 0; --t)
    for (int lane = 0; lane < Width<Real>::value; ++lane) {
      const int first = lane_island(impact, t, lane);
      if (first == t) continue;
      if constexpr (Width<Real>::value == 1) {  // for all lanes at once
        of_trees[first] += of_trees[t];
      } else {
        set_lane(of_trees[first], lane, get_lane(of_trees[first], lane) + get_lane(of_trees[t], lane));
      }
    }
}
// Returns the value of a tree's island, which is stored at the first tree of the island.
template <class Real, class Bar>
REVOLUTE_HD inline Bar of_island(const Impact<Real>& impact, const Bar* at_first, int tree) {
  if constexpr (Width<Real>::value == 1) return at_first[lane_island(impact, tree, 0)];
  Bar out(0);
  for (int lane = 0; lane < Width<Bar>::value; ++lane)
    set_lane(out, lane, get_lane(at_first[lane_island(impact, tree, lane)], lane));
  return out;
}

// --- forward -------------------------------------------------------------------------------------------------------------

// Calls visit(contact, J, hit, t, tree) for every contact that moves.
template <class Real, class Visit>
REVOLUTE_HD void for_impacts(const Model& model, const Parameters<Real>& parameters,
                             const RowContext<Real>& at, const Contacts<Real>& contacts, const Visit& visit) {
  for (int c = 0; c < contacts.count; ++c) {
    const Contact<Real>& contact = contacts.list[c];
    const Candidate& candidate = *contact.candidate;
    if (contact.path.count == 0) continue;
    const RowJacobian<Real> J = contact_jacobian(candidate, contact, 0);
    Bounce<Real> hit;
    const Real t = time_of_impact(parameters, at, contact, J, hit);
    if (any(hit.happens)) visit(contact, J, hit, t, contact_tree(model, candidate));
  }
}
// Counts the contacts that are first. For a Real with tangents, also adds the tangents of their times.
template <class Real>
REVOLUTE_HD void count_firsts(const Model& model, const Parameters<Real>& parameters,
                              const RowContext<Real>& at, const Contacts<Real>& contacts, Impact<Real>& out) {
  for (int t = 0; t < model.ntree; ++t) out.firsts[t] = Real(0);
  const auto add = [&](const Contact<Real>& contact, const RowJacobian<Real>&, const Bounce<Real>& hit,
                       Real t, int tree) {
    // 1, with the tangent of t
    out.firsts[tree] +=
        select(is_first(at, contact, hit, t, out.time[tree]), Real(1) + tangents_of(t), Real(0));
  };
  for_impacts(model, parameters, at, contacts, add);
  sum_over_islands(model, out, out.firsts);
  if constexpr (HasTangents<Real>::value)
    for (int t = 0; t < model.ntree; ++t) {
      const Real sum = of_island(out, out.firsts, t);
      out.time[t] += tangents_of(sum) / maximum(without_tangents(sum), Real(1));
    }
}

// Fills out.any, out.time and, when there is an impact, out.qpos and the islands.
template <class Real>
REVOLUTE_HD void find_impact(const Model& model, const Parameters<Real>& parameters,
                             const RowContext<Real>& at, const Contacts<Real>& contacts,
                             const ConstraintRows<Real>& rows, Impact<Real>& out) {
  out.any = false;
  for (int t = 0; t < model.ntree; ++t) out.time[t] = Real(0);
  if (!rows.any_bounce) return;
  const Real none = Real(2) * at.h;
  for (int t = 0; t < model.ntree; ++t) out.time[t] = none;
  const auto earlier = [&](const Contact<Real>&, const RowJacobian<Real>&, const Bounce<Real>& hit, Real t,
                           int tree) {
    out.time[tree] = select(hit.happens, minimum(out.time[tree], without_tangents(t)), out.time[tree]);
  };
  for_impacts(model, parameters, at, contacts, earlier);
  find_lane_islands(model, contacts, out);
  for (int t = model.ntree - 1; t >= 0; --t)
    for (int lane = 0; lane < Width<Real>::value; ++lane) {
      const int first = lane_island(out, t, lane);
      if (get_lane(out.time[t], lane) < get_lane(out.time[first], lane))
        set_lane(out.time[first], lane, get_lane(out.time[t], lane));
    }
  for (int t = 0; t < model.ntree; ++t) out.time[t] = of_island(out, out.time, t);
  for (int t = 0; t < model.ntree; ++t) {
    out.time[t] = select(less(at.h, out.time[t]), Real(0), out.time[t]);
    out.any = out.any || any(less(Real(0), out.time[t]));
  }
  if (!out.any) return;
  count_firsts(model, parameters, at, contacts, out);
  integration(model, Duration<Real>{Real(0), out.time, 1}, at.qpos, at.qvel, out.qpos);  // (2)
  for (int j = 0; j < model.njnt; ++j) {
    const Joint& joint = model.joints[j];
    const auto inside = less(Real(0), out.time[model.dofs[joint.dof].tree]);
    for (int i = joint.qpos; i < joint.qpos + coordinates(joint.type); ++i)
      out.qpos[i] = select(inside, out.qpos[i], at.qpos[i]);
  }
}

// --- adjoint -------------------------------------------------------------------------------------------------------------

// (3). `at` and `contacts` are those of the start of the step. Adds to qpos_bar and qvel_bar; uses up time_bar [ntree],
// kin_bar and V_bar.
template <class Real, class Bar>
REVOLUTE_HD void find_impact_adjoint(const Model& model, const Parameters<Real>& parameters,
                                     const RowContext<Real>& at, const Contacts<Real>& contacts,
                                     const Impact<Real>& impact, Bar* time_bar,
                                     KinematicsCotangent<Bar>& kin_bar, Force<Bar>* V_bar, Bar* qpos_bar,
                                     Bar* qvel_bar, Parameters<Bar>& parameters_bar) {
  if (!impact.any) return;
  sum_over_islands(model, impact, time_bar);
  kin_bar.clear(model);
  for (int k = 0; k < model.nv; ++k) V_bar[k] = zero_force<Bar>();
  const auto pull_back = [&](const Contact<Real>& contact, const RowJacobian<Real>& J,
                             const Bounce<Real>& hit, Real t, int tree) {
    const auto first = is_first(at, contact, hit, t, impact.time[tree]);
    if (!any(first)) return;
    const Bar share =
        of_island(impact, time_bar, tree) / maximum(of_island(impact, impact.firsts, tree), Real(1));
    const Bar gap_bar = select(first, share / select(first, -hit.before, Real(1)), Bar(0)),
              speed_bar = impact.time[tree] * gap_bar;
    RowJacobianCotangent<Bar> J_bar = {zero_force<Bar>(), zero_force<Bar>(), {}};
    add_row_cotangent(J, speed_bar, at.qvel, at.kinematics->V, J_bar);
    add_row_transpose(J, speed_bar, static_cast<Bar*>(nullptr), V_bar);
    ContactCotangent<Bar> contact_bar;
    contact_bar.clear();
    contact_bar.gap = gap_bar;
    contact_bar.force_a[0] = J_bar.force_a;
    contact_bar.force_b[0] = J_bar.force_b;
    collision_detection_adjoint(model, *at.kinematics, contact, contact_bar, kin_bar);
  };
  for_impacts(model, parameters, at, contacts, pull_back);
  sum_towards_root(model, V_bar);
  for (int k = 0; k < model.nv; ++k) {
    qvel_bar[k] += dot(at.kinematics->S[k], V_bar[k]);
    kin_bar.S[k] += at.qvel[k] * V_bar[k];
  }
  kinematics_adjoint(model, parameters, *at.kinematics, kin_bar, qpos_bar, parameters_bar);
}

}  // namespace revolute
