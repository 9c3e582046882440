// Contact sensors: the contacts between two sets of shapes. Integers of the probe: bits of the data in the order found, force,
// torque, dist, pos, normal, tangent, linvel, angvel; how contacts are chosen (MuJoCo's reduce); the number of places; whether
// contacts must lie in a site's volume; then for each shape whether it is in the first set (1) and the second (2).
//
// A contact of shapes (g_1, g_2) counts if g_1 is in the first set and g_2 in the second. If they are the other way round, its
// frame (n, t, b) becomes (-n, -t, b), so that forces and velocities change the sign of their third number. The order is that
// of the two bodies, then of the shapes. With the net force, contacts with forces f_i at x_i become one wrench,
//   x = sum |f_i| x_i/sum |f_i|,   F = sum f_i,   T = sum t_i + (x_i - x) x f_i               (1)
// in world axes. Linear and angular velocities are those of the second shape against the first.
// Not differentiated: which contacts count, and their order; `found` has no derivative.
// Contacts are chosen one environment at a time.
#pragma once

#include <algorithm>
#include <array>

#include "revolute/stages/measured_constraints.hpp"

namespace revolute::detail {

enum class ContactChoice : int { all, nearest, strongest, net };
enum class ContactData : int { found, force, torque, dist, pos, normal, tangent, linvel, angvel };
constexpr int contact_data_count = 9;
constexpr int contact_data_size(ContactData field) {
  return field == ContactData::found || field == ContactData::dist ? 1 : 3;
}

struct ContactSensor {
  int data;
  ContactChoice choice;
  int places;
  bool in_site;
  const int* sets;  // [ngeom]
};
REVOLUTE_HD inline ContactSensor contact_sensor(const Probes& probes, const Probe& probe) {
  const int* const in = probes.integers.data() + probe.first_integer;
  return {in[0], ContactChoice(in[1]), in[2], in[3] != 0, in + 4};
}
// 1: in the order of the sets, -1: the other way round, 0: not at all.
REVOLUTE_HD inline int match(const ContactSensor& sensor, const Candidate& candidate) {
  const int a = sensor.sets[candidate.geom_a], b = sensor.sets[candidate.geom_b];
  return (a & 1) && (b & 2) ? 1 : (b & 1) && (a & 2) ? -1 : 0;
}

// A contact's numbers in its own frame or, for the forces of all contacts together, in the world.
template <class Real>
struct ContactForces {
  ConstraintView view;
  Real row[6];  // force and torque in the contact's frame
};
template <class Real>
REVOLUTE_HD ContactForces<Real> contact_forces(const Model& model, const Measurement<Real>& at, int contact) {
  ContactForces<Real> out;
  for (Real& entry : out.row) entry = Real(0);
  if (!find_contact_rows(model, at, contact, out.view)) return out;
  for (int r = 0; r < out.view.rows; ++r) out.row[r] = at.force[out.view.row + r];
  return out;
}
template <class Real>
REVOLUTE_HD inline Real strength(const ContactForces<Real>& f) {
  const Real squared = f.row[0] * f.row[0] + f.row[1] * f.row[1] + f.row[2] * f.row[2];
  const auto none = less_equal(squared, Real(0));
  return select(none, Real(0), sqrt(select(none, Real(1), squared)));
}

// Writes the contacts that count in one environment into at.order; returns their number.
template <class Real>
int choose_contacts(const Model& model, const ContactSensor& sensor, const Probe& probe,
                    const Measurement<Real>& at, const MeasuredFrame<Real>& site, int lane) {
  const Contacts<Real>& contacts = contacts_of(model, at);
  int count = 0;
  for (int c = 0; c < contacts.count; ++c) {
    const Contact<Real>& contact = contacts.list[c];
    if (!get_lane(contact.active, lane) || match(sensor, *contact.candidate) == 0) continue;
    if (sensor.in_site) {
      const Vector3<double> x =
          transpose_times(get_lane(site.R, lane), get_lane(contact.at.point, lane) - get_lane(site.p, lane));
      if (!zone_holds(probe.zone.shape, probe.zone.size, x)) continue;
    }
    at.order[count++] = c;
  }
  const auto key = [&](int c) {
    const Candidate& candidate = *contacts.list[c].candidate;
    const int body_a = model.geoms[candidate.geom_a].body, body_b = model.geoms[candidate.geom_b].body;
    const bool ordered = body_a < body_b || (body_a == body_b && candidate.geom_a < candidate.geom_b);
    return std::array<int, 5>{ordered ? body_a : body_b, ordered ? body_b : body_a,
                              ordered ? candidate.geom_a : candidate.geom_b,
                              ordered ? candidate.geom_b : candidate.geom_a, c};
  };
  std::sort(at.order, at.order + count, [&](int a, int b) { return key(a) < key(b); });
  // insertion keeps the order of equals and takes no memory
  const auto sort_by = [&](const auto& rank) {
    for (int i = 1; i < count; ++i)
      for (int j = i; j > 0 && rank(at.order[j]) < rank(at.order[j - 1]); --j)
        std::swap(at.order[j], at.order[j - 1]);
  };
  if (sensor.choice == ContactChoice::nearest)
    sort_by([&](int c) { return get_lane(contacts.list[c].gap, lane); });
  if (sensor.choice == ContactChoice::strongest)
    sort_by([&](int c) { return -get_lane(strength(contact_forces(model, at, c)), lane); });
  return count;
}

// Velocity of shape b against a at a contact, in the contact's frame: three linear and three angular numbers.
template <class Real>
REVOLUTE_HD void contact_velocity(const Kinematics<Real>& kin, const Contact<Real>& contact, Real* out) {
  const Candidate& candidate = *contact.candidate;
  const Motion<Real> a = at_link(kin.V, moved_link(candidate.link_a)),
                     b = at_link(kin.V, moved_link(candidate.link_b));
  for (int d = 0; d < 3; ++d) {
    out[d] = dot(a, contact.force_a[d]) + dot(b, contact.force_b[d]);
    out[3 + d] = dot(contact.axis[d], b.w - a.w);
  }
}

// Fills the fields of one contact, in the order of the data; `sign` as in match().
template <class Real>
REVOLUTE_HD void contact_fields(const Model& model, const ContactSensor& sensor, const Measurement<Real>& at,
                                int c, int sign, Real* out) {
  const Contact<Real>& contact = contacts_of(model, at).list[c];
  const ContactForces<Real> forces = contact_forces(model, at, c);
  const Real s(sign);
  Real velocity[6];
  contact_velocity(*at.kinematics, contact, velocity);
  for (int i = 0; i < contact_data_count; ++i) {
    const auto field = ContactData(i);
    if (!(sensor.data >> i & 1)) continue;
    const auto framed = [&](const Real* numbers) {
      out[0] = numbers[0];
      out[1] = numbers[1];
      out[2] = s * numbers[2];
    };
    if (field == ContactData::force) framed(forces.row);
    if (field == ContactData::torque) framed(forces.row + 3);
    if (field == ContactData::dist) out[0] = contact.gap;
    if (field == ContactData::pos) write3(contact.at.point, out);
    if (field == ContactData::normal) write3(s * contact.axis[0], out);
    if (field == ContactData::tangent) write3(s * contact.axis[1], out);
    if (field == ContactData::linvel) framed(velocity);
    if (field == ContactData::angvel) framed(velocity + 3);
    out += contact_data_size(field);
  }
}

// The wrench of a contact on shape b about the world's origin. Sources: its rows, whose sum it is.
template <class Real>
REVOLUTE_HD Force<Real> contact_wrench(const Contact<Real>& contact, const ContactForces<Real>& forces) {
  Vector3<Real> f = zero3<Real>(), n = f;
  for (int d = 0; d < 3; ++d) {
    f += forces.row[d] * contact.axis[d];
    n += forces.row[3 + d] * contact.axis[d];
  }
  return {n + cross(contact.at.point, f), f};
}
// (1)
template <class Real>
struct NetForce {
  Real weight;
  Vector3<Real> x;
  Force<Real> sum;  // about the world's origin
};
template <class Real>
REVOLUTE_HD NetForce<Real> net_force(const Model& model, const ContactSensor& sensor,
                                     const Measurement<Real>& at, int count) {
  const Contacts<Real>& contacts = contacts_of(model, at);
  NetForce<Real> out = {Real(0), zero3<Real>(), zero_force<Real>()};
  for (int i = 0; i < count; ++i) {
    const Contact<Real>& contact = contacts.list[at.order[i]];
    const ContactForces<Real> forces = contact_forces(model, at, at.order[i]);
    const Real w = strength(forces);
    out.weight += w;
    out.x += w * contact.at.point;
    out.sum += Real(match(sensor, *contact.candidate)) * contact_wrench(contact, forces);
  }
  const auto none = less_equal(out.weight, Real(1e-15));
  out.x = (select(none, Real(0), Real(1)) / select(none, Real(1), out.weight)) * out.x;
  return out;
}
template <class Real>
REVOLUTE_HD void net_fields(const ContactSensor& sensor, const NetForce<Real>& net, Real* out) {
  const Real o(0), l(1);
  for (int i = 0; i < contact_data_count; ++i) {
    const auto field = ContactData(i);
    if (!(sensor.data >> i & 1)) continue;
    if (field == ContactData::force) write3(net.sum.f, out);
    if (field == ContactData::torque) write3(net.sum.n - cross(net.x, net.sum.f), out);
    if (field == ContactData::dist) out[0] = o;
    if (field == ContactData::pos) write3(net.x, out);
    if (field == ContactData::normal) write3(Vector3<Real>{l, o, o}, out);
    if (field == ContactData::tangent) write3(Vector3<Real>{o, l, o}, out);
    out += contact_data_size(field);
  }
}

template <class Real>
void measure_contacts(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                      const Probe& probe, const Measurement<Real>& at, Real* out) {
  const ContactSensor sensor = contact_sensor(probes, probe);
  MeasuredFrame<Real> site = {};
  if (sensor.in_site) site = measured_frame(model, parameters, *at.kinematics, probe.of);
  const int size = probe.size / sensor.places;
  Real* const one = out + probe.size;  // scratch for one contact
  for (int i = 0; i < probe.size; ++i) out[i] = Real(0);
  for (int lane = 0; lane < Width<Real>::value; ++lane) {
    const int count = choose_contacts(model, sensor, probe, at, site, lane);
    const int used =
        sensor.choice == ContactChoice::net ? std::min(count, 1) : std::min(count, sensor.places);
    for (int place = 0; place < used; ++place) {
      const int c = at.order[place];
      for (int i = 0; i < size; ++i) one[i] = Real(0);
      if (sensor.choice == ContactChoice::net)
        net_fields(sensor, net_force(model, sensor, at, count), one);
      else
        contact_fields(model, sensor, at, c, match(sensor, *contacts_of(model, at).list[c].candidate), one);
      if (sensor.data & 1) one[0] = Real(count);
      for (int i = 0; i < size; ++i) copy_lane(out[place * size + i], one[i], lane);
    }
  }
}

// --- adjoint ------------------------------------------------------------------------------------------------------------

// The cotangents of one contact's fields; `only` is 1 in the environment that they belong to, else 0.
template <class Real>
REVOLUTE_HD void contact_fields_adjoint(const Model& model, const ContactSensor& sensor,
                                        const Measurement<Real>& at, int c, int sign, const Real& only,
                                        const Real* bar, MeasurementAdjointWorkspace<Real>& ws) {
  const Contact<Real>& contact = contacts_of(model, at).list[c];
  const Candidate& candidate = *contact.candidate;
  ContactCotangent<Real>& out = ws.contacts[c];
  const ContactForces<Real> forces = contact_forces(model, at, c);
  const Real s(sign);
  const Kinematics<Real>& kin = *at.kinematics;
  const int link_a = moved_link(candidate.link_a), link_b = moved_link(candidate.link_b);
  const Motion<Real> V_a = at_link(kin.V, link_a), V_b = at_link(kin.V, link_b);
  for (int i = 0; i < contact_data_count; ++i) {
    const auto field = ContactData(i);
    if (!(sensor.data >> i & 1)) continue;
    const int size = contact_data_size(field);
    Real y[3] = {only * bar[0], size > 1 ? only * bar[1] : Real(0), size > 1 ? only * bar[2] : Real(0)};
    bar += size;
    const Vector3<Real> v = load3(y);
    if (field == ContactData::dist) out.gap += y[0];
    if (field == ContactData::pos) out.point += v;
    if (field == ContactData::normal) out.axis[0] += s * v;
    if (field == ContactData::tangent) out.axis[1] += s * v;
    y[2] = s * y[2];
    if (field == ContactData::force || field == ContactData::torque) {
      const int first = field == ContactData::force ? 0 : 3;
      for (int d = 0; d < 3 && first + d < forces.view.rows; ++d)
        ws.force_bar[forces.view.row + first + d] += y[d];
    }
    for (int d = 0; d < 3 && field == ContactData::linvel; ++d) {
      out.force_a[d] += y[d] * Force<Real>{V_a.w, V_a.v};
      out.force_b[d] += y[d] * Force<Real>{V_b.w, V_b.v};
      if (link_a >= 0) ws.links.V[link_a] += y[d] * contact.force_a[d];
      if (link_b >= 0) ws.links.V[link_b] += y[d] * contact.force_b[d];
    }
    for (int d = 0; d < 3 && field == ContactData::angvel; ++d) {
      out.axis[d] += y[d] * (V_b.w - V_a.w);
      if (link_a >= 0) ws.links.V[link_a].n -= y[d] * contact.axis[d];
      if (link_b >= 0) ws.links.V[link_b].n += y[d] * contact.axis[d];
    }
  }
}

template <class Real>
REVOLUTE_HD void net_adjoint(const Model& model, const ContactSensor& sensor, const Measurement<Real>& at,
                             int count, const Real& only, const Real* bar,
                             MeasurementAdjointWorkspace<Real>& ws) {
  const NetForce<Real> net = net_force(model, sensor, at, count);
  Vector3<Real> F_bar = zero3<Real>(), T_bar = F_bar, x_bar = F_bar;
  for (int i = 0; i < contact_data_count; ++i) {
    const auto field = ContactData(i);
    if (!(sensor.data >> i & 1)) continue;
    if (field == ContactData::force) F_bar = only * load3(bar);
    if (field == ContactData::torque) T_bar = only * load3(bar);
    if (field == ContactData::pos) x_bar = only * load3(bar);
    bar += contact_data_size(field);
  }
  F_bar += cross(net.x, T_bar);
  x_bar -= cross(net.sum.f, T_bar);
  const auto none = less_equal(net.weight, Real(1e-15));
  const Real inverse = select(none, Real(0), Real(1)) / select(none, Real(1), net.weight);
  for (int i = 0; i < count; ++i) {
    const int c = at.order[i];
    const Contact<Real>& contact = contacts_of(model, at).list[c];
    const ContactForces<Real> forces = contact_forces(model, at, c);
    const Real s(match(sensor, *contact.candidate)), w = strength(forces);
    const auto weightless = less_equal(w, Real(0));
    const Real by_force = inverse * dot(contact.at.point - net.x, x_bar) *
                          (select(weightless, Real(0), Real(1)) / select(weightless, Real(1), w));
    ContactCotangent<Real>& out = ws.contacts[c];
    Vector3<Real> f = zero3<Real>();
    // d of T_bar.(n + x x f) + F_bar.f
    const Vector3<Real> along = s * (F_bar - cross(contact.at.point, T_bar)), turn = s * T_bar;
    for (int d = 0; d < 3; ++d) {
      f += forces.row[d] * contact.axis[d];
      out.axis[d] += forces.row[d] * along + forces.row[3 + d] * turn;
      if (d < forces.view.rows)
        ws.force_bar[forces.view.row + d] += dot(contact.axis[d], along) + by_force * forces.row[d];
      if (3 + d < forces.view.rows) ws.force_bar[forces.view.row + 3 + d] += dot(contact.axis[d], turn);
    }
    out.point += (inverse * w) * x_bar + cross(f, turn);
  }
}

template <class Real>
void contacts_adjoint(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                      const Probe& probe, const Measurement<Real>& at, const Real* bar,
                      MeasurementAdjointWorkspace<Real>& ws) {
  const ContactSensor sensor = contact_sensor(probes, probe);
  MeasuredFrame<Real> site = {};
  if (sensor.in_site) site = measured_frame(model, parameters, *at.kinematics, probe.of);
  const int size = probe.size / sensor.places;
  for (int lane = 0; lane < Width<Real>::value; ++lane) {
    Real only(0);
    set_lane(only, lane, 1.0);
    const int count = choose_contacts(model, sensor, probe, at, site, lane);
    if (sensor.choice == ContactChoice::net) {
      if (count > 0) net_adjoint(model, sensor, at, count, only, bar, ws);
      continue;
    }
    for (int place = 0; place < std::min(count, sensor.places); ++place) {
      const int c = at.order[place];
      contact_fields_adjoint(model, sensor, at, c, match(sensor, *contacts_of(model, at).list[c].candidate),
                             only, bar + place * size, ws);
    }
  }
}

}  // namespace revolute::detail
