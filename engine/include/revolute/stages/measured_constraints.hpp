// The forces of constraints in either contact model, as measurements read them: lists of constraints with their rows, forces
// and wrenches. Adjoint: a sensor adds the cotangent of a row's force to force_bar, and the motion under which it takes the
// row's wrench to on_a or on_b.
#pragma once

#include "revolute/collision/ray_zone.hpp"
#include "revolute/stages/measured_frames.hpp"

namespace revolute::detail {

template <class Real>
REVOLUTE_HD inline void write3(const Vector3<Real>& a, Real* out) {
  out[0] = a.x;
  out[1] = a.y;
  out[2] = a.z;
}
// Copies one environment's number; derivatives go with it.
template <class Real>
REVOLUTE_HD inline void copy_lane(Real& to, const Real& from, int lane) {
  if constexpr (HasTangents<Real>::value)
    to = from;
  else
    set_lane(to, lane, get_lane(from, lane));
}
template <class Real>
REVOLUTE_HD inline void add_lane(Real& to, int lane, double value) {
  set_lane(to, lane, get_lane(to, lane) + value);
}
template <class Real>
REVOLUTE_HD inline void add_lane(Vector3<Real>& to, int lane, const Vector3<double>& value) {
  set_lane(to, lane, get_lane(to, lane) + value);
}

// One constraint: rows row .. row + rows - 1 of the stage.
struct ConstraintView {
  RowSource source;
  int index;  // place among its kind; contact: place in the list of contacts
  int row, rows;
  int place;  // of its motions in on_a and on_b: "mujoco" one for all its rows, "hard" one for each row
};

// Calls visit(view) for the constraints of the stage.
template <class Real, class Visit>
REVOLUTE_HD void visit_constraints(const Model& model, const Measurement<Real>& at, const Visit& visit) {
  if (is_soft(model)) {
    for (int i = 0; i < at.stage.constraints.count; ++i) {
      const SoftConstraint<Real>& c = at.stage.constraints.list[i];
      visit(ConstraintView{c.source, c.index, c.row, c.cost.rows, i});
    }
    return;
  }
  const ConstraintRows<Real>& rows = at.hard.rows;
  for (int r = 0, next; r < rows.count; r = next) {
    const RowOrigin& origin = rows.origin[r];
    for (next = r + 1; next < rows.count && rows.origin[next].component > 0; ++next) {
    }
    visit(ConstraintView{origin.source, origin.index, r, next - r, r});
  }
}
template <class Real>
REVOLUTE_HD const Contacts<Real>& contacts_of(const Model& model, const Measurement<Real>& at) {
  return is_soft(model) ? at.stage.contacts : at.hard.contacts;
}
// The kinematics at which contacts and rows were formed.
template <class Real>
REVOLUTE_HD const Kinematics<Real>& kinematics_of_rows(const Model& model, const Measurement<Real>& at) {
  return is_soft(model) ? at.stage.kinematics : at.hard.kinematics;
}
template <class Real>
REVOLUTE_HD const RowJacobian<Real>& row_of(const Model& model, const Measurement<Real>& at, int r) {
  return is_soft(model) ? at.stage.constraints.row_J[r] : at.hard.rows.J[r];
}
// Adds a motion to those of a constraint's wrenches on one side.
template <class Real>
REVOLUTE_HD void add_motion(const Model& model, const ConstraintView& c, int side, const Motion<Real>& motion,
                            MeasurementAdjointWorkspace<Real>& ws) {
  Motion<Real>* const on = (side == 0 ? ws.on_a : ws.on_b) + c.place;
  for (int i = 0; i < (is_soft(model) ? 1 : c.rows); ++i) on[i] += motion;
}

REVOLUTE_HD inline bool holds_bodies(const Equality& equality) {
  return equality.type == EqualityType::connect || equality.type == EqualityType::weld;
}
// The bodies on which a constraint acts through wrenches; false if it has none.
template <class Real>
REVOLUTE_HD bool bodies_of(const Model& model, const Measurement<Real>& at, const ConstraintView& c,
                           int* body) {
  if (c.source == RowSource::contact) {
    const Candidate& candidate = *contacts_of(model, at).list[c.index].candidate;
    body[0] = model.geoms[candidate.geom_a].body;
    body[1] = model.geoms[candidate.geom_b].body;
    return true;
  }
  if (c.source != RowSource::equality || !holds_bodies(model.equalities[c.index])) return false;
  body[0] = model.equalities[c.index].body_a;
  body[1] = model.equalities[c.index].body_b;
  return true;
}
// Constraint forces on the bodies of a subtree: calls visit(constraint, row, side, wrench at the reference point of its link,
// that point).
template <class Real, class Visit>
REVOLUTE_HD void for_wrenches(const Model& model, const Measurement<Real>& at, const Probes& probes,
                              const Probe& probe, const Visit& visit) {
  const Kinematics<Real>& kin = kinematics_of_rows(model, at);
  visit_constraints(model, at, [&](const ConstraintView& c) {
    int body[2];
    if (!bodies_of(model, at, c, body)) return;
    for (int side = 0; side < 2; ++side) {
      if (!probes.in_subtree[std::size_t(probe.membership) * model.nbody + body[side]]) continue;
      for (int r = c.row; r < c.row + c.rows; ++r) {
        const RowJacobian<Real>& J = row_of(model, at, r);
        const int link = side == 0 ? J.link_a : J.link_b;
        if (link < 0) continue;
        visit(c, r, side, side == 0 ? J.force_a : J.force_b, tree_origin(model, kin, link));
      }
    }
  });
}

// Calls visit(row of the normal force, 1 if it counts, else 0) for the contacts in the zone of a touch sensor.
template <class Real, class Visit>
REVOLUTE_HD void for_touches(const Model& model, const Measurement<Real>& at, const Probe& probe,
                             const MeasuredFrame<Real>& frame, const Visit& visit) {
  visit_constraints(model, at, [&](const ConstraintView& c) {
    if (c.source != RowSource::contact) return;
    const Contact<Real>& contact = contacts_of(model, at).list[c.index];
    const Candidate& candidate = *contact.candidate;
    const bool on_a = model.geoms[candidate.geom_a].body == probe.of.body,
               on_b = model.geoms[candidate.geom_b].body == probe.of.body;
    if (!on_a && !on_b) return;
    // outwards
    const Vector3<Real> ray = transpose_times(frame.R, on_b ? -contact.axis[0] : contact.axis[0]),
                        point = transpose_times(frame.R, contact.at.point - frame.p);
    Real felt(0);
    for (int lane = 0; lane < Width<Real>::value; ++lane) {
      const bool meets =
          get_lane(contact.active, lane) && get_lane(at.force[c.row], lane) > 0 &&
          ray_meets_zone(probe.zone.shape, probe.zone.size, get_lane(point, lane), get_lane(ray, lane));
      set_lane(felt, lane, meets ? 1.0 : 0.0);
    }
    visit(c.row, felt);
  });
}

// Calls visit(limit, row, gap - margin, 1 if it acts) for the limits of a joint; `index` is the first degree of freedom.
template <class Real, class Visit>
REVOLUTE_HD void for_limits(const Model& model, const Parameters<Real>& parameters, const Real* qpos, int dof,
                            const Visit& visit) {
  for (int i = 0; model.limits && i < model.nlimit; ++i) {
    const Limit& limit = model.limits_list[i];
    if (limit.dof != dof) continue;
    Real gap;
    const RowJacobian<Real> J = limit_jacobian(parameters, limit, qpos, gap);
    const Real x = gap - Real(limit.margin);
    visit(i, J, x, indicator<Real>(less(x, Real(0))));
  }
}
// Calls visit(side, sign, gap - margin, 1 if it acts) for the two limits of a tendon.
template <class Real, class Visit>
REVOLUTE_HD void for_tendon_limits(const Model& model, int t, const Real& length, const Visit& visit) {
  const Tendon& tendon = model.tendons[t];
  for (int side = 0; side < 2 && model.limits && tendon.limited; ++side) {
    const Real sign(limit_sign(side)), x = sign * (length - Real(tendon.range[side])) - Real(tendon.margin);
    visit(side, sign, x, indicator<Real>(less(x, Real(0))));
  }
}
// The row of a constraint, or -1 if it does not act.
template <class Real>
REVOLUTE_HD inline int row_of_source(const Model& model, const Measurement<Real>& at, RowSource source,
                                     int index) {
  int row = -1;
  visit_constraints(model, at, [&](const ConstraintView& c) {
    if (c.source == source && c.index == index) row = c.row;
  });
  return row;
}
// The same for a contact, given by its place in the list.
template <class Real>
REVOLUTE_HD inline bool find_contact_rows(const Model& model, const Measurement<Real>& at, int contact,
                                          ConstraintView& out) {
  out.rows = 0;
  visit_constraints(model, at, [&](const ConstraintView& c) {
    if (c.source == RowSource::contact && c.index == contact) out = c;
  });
  return out.rows > 0;
}

}  // namespace revolute::detail
