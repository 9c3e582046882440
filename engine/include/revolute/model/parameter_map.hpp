// From MuJoCo's parameters (body_mass, geom_friction, ...) to those of the engine (link inertias, ...), and
// the cotangents back. Runs once per environment and rollout, in double.
//
// A body with mass m, mass centre c and rotational inertia J about it (all in its link's frame) adds to its link
//   m,   h = m c,   I = J + m (c.c 1 - c c')                                                  (1)
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "revolute/model/parameter_list.hpp"
#include "revolute/model/parameters.hpp"
#include "revolute/scalar/dual.hpp"

namespace revolute {

#define REVOLUTE_NAME(name, ...) name,
enum class Parameter : int { REVOLUTE_PARAMETERS(REVOLUTE_NAME, REVOLUTE_NAME) count };
#undef REVOLUTE_NAME
constexpr int parameter_count = int(Parameter::count);
#define REVOLUTE_TEXT(name, ...) #name,
constexpr const char* parameter_names[parameter_count] = {REVOLUTE_PARAMETERS(REVOLUTE_TEXT, REVOLUTE_TEXT)};
#undef REVOLUTE_TEXT

// One pointer per parameter: the values of one environment, or where to add their cotangents (null: not wanted).
template <class Value>
using ParameterValues = std::array<const Value*, parameter_count>;
using ParameterPointers = ParameterValues<double>;
using ParameterBarPointers = std::array<double*, parameter_count>;

// The bodies that a medium resists.
struct MediumMap {
  double density = 0, viscosity = 0;
  std::vector<int> bodies;  // of Model::medium_bodies
};

struct ParameterMap {
  std::vector<Body> bodies;
  std::vector<double> compensated;  // compensated share of each body's weight; empty: none
  MediumMap medium;
  std::array<std::vector<double>, parameter_count> defaults;
};

constexpr int every_lane = -1;

namespace detail {

template <class Real, class Value>
void put(Real& out, int lane, const Value& value) {
  if (lane == every_lane)
    out = Real(value);
  else
    set_lane(out, lane, value);
}

template <class Value>
const Value* of(const ParameterValues<Value>& values, Parameter p) {
  return values[int(p)];
}
inline double* of(const ParameterBarPointers& values, Parameter p) { return values[int(p)]; }

template <class Value>
Vector3<Value> mass_centre(const Body& body, const Value* ipos) {
  return vector3<Value>(body.position) +
         matrix3<Value>(body.rotation) * Vector3<Value>{ipos[0], ipos[1], ipos[2]};
}

template <class Value>
RigidInertia<Value> body_inertia(const Body& body, Value m, const Value* ipos, const Value* principal) {
  const Vector3<Value> c = mass_centre(body, ipos);
  const Value o(0);
  RigidInertia<Value> out = {m, m * c,
                             rotate(matrix3<Value>(body.principal),
                                    Symmetric3<Value>{principal[0], principal[1], principal[2], o, o, o})};
  add_symmetric_product(out.I, -m, c, c);
  const Value diagonal = m * dot(c, c);
  out.I.xx += diagonal;
  out.I.yy += diagonal;
  out.I.zz += diagonal;
  return out;
}

template <class Real, class Value>
void set_inertia(RigidInertia<Real>& I, int lane, const RigidInertia<Value>& value) {
  put(I.m, lane, value.m);
  const Value* from[] = {&value.h.x,  &value.h.y,  &value.h.z,  &value.I.xx, &value.I.yy,
                         &value.I.zz, &value.I.xy, &value.I.xz, &value.I.yz};
  Real* to[] = {&I.h.x, &I.h.y, &I.h.z, &I.I.xx, &I.I.yy, &I.I.zz, &I.I.xy, &I.I.xz, &I.I.yz};
  for (int i = 0; i < 9; ++i) put(*to[i], lane, *from[i]);
}
template <class Real>
RigidInertia<double> get_inertia(const RigidInertia<Real>& I, int lane) {
  const auto at = [lane](const Real& a) { return get_lane(a, lane); };
  return {at(I.m),
          {at(I.h.x), at(I.h.y), at(I.h.z)},
          {at(I.I.xx), at(I.I.yy), at(I.I.zz), at(I.I.xy), at(I.I.xz), at(I.I.yz)}};
}

// adjoint of (1)
inline void body_adjoint(const Body& body, int b, const RigidInertia<double>& bar,
                         const ParameterPointers& values, const ParameterBarPointers& out) {
  const double m = of(values, Parameter::body_mass)[b];
  const Vector3<double> c = mass_centre(body, of(values, Parameter::body_ipos) + 3 * b);
  const Vector3<double> Gc = bar.I * c;
  const double t = trace(bar.I);
  if (double* mass = of(out, Parameter::body_mass))
    mass[b] += bar.m + dot(c, bar.h) + t * dot(c, c) - dot(c, Gc);
  if (double* ipos = of(out, Parameter::body_ipos)) {
    const Vector3<double> c_bar = m * (bar.h + 2.0 * (t * c - Gc));
    const Vector3<double> local = transpose_times(matrix3<double>(body.rotation), c_bar);
    ipos[3 * b] += local.x;
    ipos[3 * b + 1] += local.y;
    ipos[3 * b + 2] += local.z;
  }
  if (double* inertia = of(out, Parameter::body_inertia)) {
    const Matrix3<double> axes = matrix3<double>(body.principal);
    for (int i = 0; i < 3; ++i) inertia[3 * b + i] += dot(axes.column(i), bar.I * axes.column(i));
  }
}

// The sides of a box with this mass and these moments of inertia, and the medium's resistance that follows from them.
template <class Value>
MediumDrag<Value> medium_drag(const MediumMap& medium, const Vector3<Value>& centre, const Value& m,
                              const Value* I) {
  const Value least(1e-15), six(6);
  const auto side = [&](int i, int j, int k) { return sqrt(maximum(least, I[j] + I[k] - I[i]) / m * six); };
  const Value x = side(0, 1, 2), y = side(1, 0, 2), z = side(2, 0, 1);
  const Value diameter = (x + y + z) * Value(1.0 / 3), half(0.5 * medium.density), ratio(medium.density / 64);
  const Value cube = diameter * diameter * diameter, x4 = x * x * x * x, y4 = y * y * y * y,
              z4 = z * z * z * z;
  constexpr double pi = 3.14159265358979323846;
  return {centre,
          {Value(3 * pi * medium.viscosity) * diameter, Value(pi * medium.viscosity) * cube},
          {half * y * z, half * x * z, half * x * y},
          {ratio * x * (y4 + z4), ratio * y * (x4 + z4), ratio * z * (x4 + y4)}};
}
template <class Real, class Value>
void load_medium(const ParameterMap& map, const ParameterValues<Value>& values, int lane,
                 Parameters<Real>& out) {
  for (std::size_t i = 0; i < map.medium.bodies.size(); ++i) {
    const int b = map.medium.bodies[i];
    const MediumDrag<Value> drag =
        medium_drag(map.medium, mass_centre(map.bodies[b], of(values, Parameter::body_ipos) + 3 * b),
                    of(values, Parameter::body_mass)[b], of(values, Parameter::body_inertia) + 3 * b);
    MediumDrag<Real>& to = out.drag[i];
    for (int j = 0; j < 2; ++j) put(to.viscous[j], lane, drag.viscous[j]);
    const Vector3<Value>* from[3] = {&drag.centre, &drag.force, &drag.torque};
    Vector3<Real>* into[3] = {&to.centre, &to.force, &to.torque};
    for (int j = 0; j < 3; ++j) {
      put(into[j]->x, lane, from[j]->x);
      put(into[j]->y, lane, from[j]->y);
      put(into[j]->z, lane, from[j]->z);
    }
  }
}
template <class Real>
void add_medium(const ParameterMap& map, const ParameterPointers& values, int lane,
                const Parameters<Real>& bar, const ParameterBarPointers& out) {
  for (std::size_t i = 0; i < map.medium.bodies.size(); ++i) {
    const int b = map.medium.bodies[i];
    // by mass and three moments of inertia
    Dual<4> m(of(values, Parameter::body_mass)[b]), I[3];
    m.tangent[0] = 1;
    for (int j = 0; j < 3; ++j) {
      I[j] = Dual<4>(of(values, Parameter::body_inertia)[3 * b + j]);
      I[j].tangent[1 + j] = 1;
    }
    const MediumDrag<Dual<4>> drag = medium_drag(map.medium, zero3<Dual<4>>(), m, I);
    const MediumDrag<Real>& of_drag = bar.drag[i];
    const auto lanes_of = [lane](const Vector3<Real>& a) { return get_lane(a, lane); };
    const Vector3<double> force = lanes_of(of_drag.force), torque = lanes_of(of_drag.torque),
                          centre = lanes_of(of_drag.centre);
    const auto sum = [&](int j) {
      const auto along = [j](const Vector3<Dual<4>>& a, const Vector3<double>& b) {
        return a.x.tangent[j] * b.x + a.y.tangent[j] * b.y + a.z.tangent[j] * b.z;
      };
      return drag.viscous[0].tangent[j] * get_lane(of_drag.viscous[0], lane) +
             drag.viscous[1].tangent[j] * get_lane(of_drag.viscous[1], lane) + along(drag.force, force) +
             along(drag.torque, torque);
    };
    if (double* mass = of(out, Parameter::body_mass)) mass[b] += sum(0);
    if (double* inertia = of(out, Parameter::body_inertia))
      for (int j = 0; j < 3; ++j) inertia[3 * b + j] += sum(1 + j);
    if (double* ipos = of(out, Parameter::body_ipos)) {
      const Vector3<double> local = transpose_times(matrix3<double>(map.bodies[b].rotation), centre);
      ipos[3 * b] += local.x;
      ipos[3 * b + 1] += local.y;
      ipos[3 * b + 2] += local.z;
    }
  }
}

template <class Real, class Value>
void load_compensation(const ParameterMap& map, const ParameterValues<Value>& values, int lane,
                       const Model& m, Parameters<Real>& out) {
  if (map.compensated.empty()) return;
  std::vector<MassMoment<Value>> links(m.nv, {Value(0), zero3<Value>()});
  for (int b = 0; b < m.nbody; ++b) {
    const Body& body = map.bodies[b];
    if (body.link < 0) continue;
    const Value carried = Value(map.compensated[b]) * of(values, Parameter::body_mass)[b];
    links[body.link].m += carried;
    links[body.link].h += carried * mass_centre(body, of(values, Parameter::body_ipos) + 3 * b);
  }
  for (int k = 0; k < m.nv; ++k) {
    put(out.compensation[k].m, lane, links[k].m);
    put(out.compensation[k].h.x, lane, links[k].h.x);
    put(out.compensation[k].h.y, lane, links[k].h.y);
    put(out.compensation[k].h.z, lane, links[k].h.z);
  }
}
template <class Real>
void add_compensation(const ParameterMap& map, const ParameterPointers& values, int lane,
                      const Parameters<Real>& bar, const ParameterBarPointers& out) {
  for (std::size_t b = 0; b < map.compensated.size(); ++b) {
    const Body& body = map.bodies[b];
    if (body.link < 0) continue;
    const MassMoment<Real>& of_link = bar.compensation[body.link];
    const Vector3<double> h = get_lane(of_link.h, lane);
    const double share = map.compensated[b];
    if (double* mass = of(out, Parameter::body_mass))
      mass[b] += share * (get_lane(of_link.m, lane) +
                          dot(mass_centre(body, of(values, Parameter::body_ipos) + 3 * b), h));
    if (double* ipos = of(out, Parameter::body_ipos)) {
      const Vector3<double> local =
          (share * of(values, Parameter::body_mass)[b]) * transpose_times(matrix3<double>(body.rotation), h);
      ipos[3 * b] += local.x;
      ipos[3 * b + 1] += local.y;
      ipos[3 * b + 2] += local.z;
    }
  }
}

template <class Value, class Real>
void load_array(const Value* values, int count, int lane, Real* out) {
  for (int i = 0; i < count; ++i) put(out[i], lane, values[i]);
}
template <class Real>
void add_array(const Real* bar, int count, int lane, double* out) {
  for (int i = 0; out && i < count; ++i) out[i] += get_lane(bar[i], lane);
}

}  // namespace detail

// Sets one lane of the engine's parameters, or every lane. Value is double, or Dual to carry derivatives along.
template <class Value, class Real>
void load_parameters(const ParameterMap& map, const ParameterValues<Value>& values, int lane, const Model& m,
                     Parameters<Real>& out) {
  using namespace detail;
  std::vector<RigidInertia<Value>> links(m.nv, zero_inertia<Value>());
  for (int b = 0; b < m.nbody; ++b) {
    const Body& body = map.bodies[b];
    if (body.link < 0) continue;
    const RigidInertia<Value> own =
        body_inertia(body, of(values, Parameter::body_mass)[b], of(values, Parameter::body_ipos) + 3 * b,
                     of(values, Parameter::body_inertia) + 3 * b);
    RigidInertia<Value>& sum = links[body.link];
    sum.m += own.m;
    sum.h += own.h;
    sum.I += own.I;
  }
  for (int k = 0; k < m.nv; ++k) set_inertia(out.inertia[k], lane, links[k]);
  load_compensation(map, values, lane, m, out);
  load_medium(map, values, lane, out);
  load_array(of(values, Parameter::gravity), 3, lane, &out.gravity->x);
  load_array(of(values, Parameter::body_ipos), 3 * m.nbody, lane, out.ipos);
#define REVOLUTE_LOAD(name, array, size, member) \
  load_array(of(values, Parameter::name), size, lane, out.member);
  REVOLUTE_PARAMETERS(REVOLUTE_LOAD, REVOLUTE_NO_PARAMETER)
#undef REVOLUTE_LOAD
  load_array(of(values, Parameter::geom_friction), 3 * m.ngeom, lane, out.geom_friction);
}

// Sets the parameters of the bodies, which only measurements read.
template <class Value, class Real>
void load_body_parameters(const ParameterMap& map, const ParameterValues<Value>& values, int lane,
                          const Model& m, Parameters<Real>& out) {
  using namespace detail;
  const Value *mass = of(values, Parameter::body_mass), *ipos = of(values, Parameter::body_ipos),
              *inertia = of(values, Parameter::body_inertia);
  for (int b = 0; b < m.nbody; ++b)
    set_inertia(out.bodies[b], lane, body_inertia(map.bodies[b], mass[b], ipos + 3 * b, inertia + 3 * b));
}

template <class Real>
void add_parameter_cotangents(const ParameterMap& map, const ParameterPointers& values, int lane,
                              const Model& m, const Parameters<Real>& bar, const ParameterBarPointers& out) {
  using namespace detail;
  for (int b = 0; b < m.nbody; ++b) {
    RigidInertia<double> body_bar = get_inertia(bar.bodies[b], lane);
    if (map.bodies[b].link >= 0) {
      const RigidInertia<double> link_bar = get_inertia(bar.inertia[map.bodies[b].link], lane);
      body_bar.m += link_bar.m;
      body_bar.h += link_bar.h;
      body_bar.I += link_bar.I;
    }
    body_adjoint(map.bodies[b], b, body_bar, values, out);
  }
  add_array(bar.ipos, 3 * m.nbody, lane, of(out, Parameter::body_ipos));
  add_compensation(map, values, lane, bar, out);
  add_medium(map, values, lane, bar, out);
  add_array(&bar.gravity->x, 3, lane, of(out, Parameter::gravity));
#define REVOLUTE_ADD(name, array, size, member) add_array(bar.member, size, lane, of(out, Parameter::name));
  REVOLUTE_PARAMETERS(REVOLUTE_ADD, REVOLUTE_NO_PARAMETER)
#undef REVOLUTE_ADD
  add_array(bar.geom_friction, 3 * m.ngeom, lane, of(out, Parameter::geom_friction));
}

}  // namespace revolute
