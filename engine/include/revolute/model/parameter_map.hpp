// From MuJoCo's parameters (body_mass, geom_friction, ...) to those of the engine (link inertias, pair friction, ...), and
// the cotangents back. Runs once per environment and rollout, in double.
//
// A body with mass m, mass centre c and rotational inertia J about it (all in its link's frame) adds to its link
//   m,   h = m c,   I = J + m (c.c 1 - c c')                                                  (1)
// The softness of a pair mixes that of its geoms by MuJoCo's rules: a weighted mean, the smaller number where a solref is in
// direct form, or the pair's own.
// A pair's friction is the larger of its geoms' sliding coefficients, or that of the geom with priority, or its own. Where
// the two are equal each gets half of the cotangent (the central difference of max).
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "revolute/model/parameter_list.hpp"
#include "revolute/model/parameters.hpp"

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

struct FrictionPair {
  int geom_a, geom_b;
  bool from_a, from_b;  // whose coefficient counts; neither: those of the pair itself
  double fixed, fixed_rotational[2];
};

// mujoco: weight of geom_a's softness, or a pair of its own.
struct SoftPair {
  bool own;
  double weight_a;
  double friction[5], solref[2], solref_friction[2], solimp[5];
};

struct ParameterMap {
  std::vector<Body> bodies;
  std::vector<FrictionPair> pairs;
  std::vector<SoftPair> soft_pairs;  // mujoco
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

// max, with half of each derivative where they are equal
template <class Value>
Value larger(const Value& a, const Value& b) {
  return select(less(a, b), b, select(less(b, a), a, Value(0.5) * (a + b)));
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

namespace detail {

constexpr double least_friction = 1e-5;  // MuJoCo's mjMINMU
constexpr Parameter rotational_columns[2] = {Parameter::geom_torsional_friction,
                                             Parameter::geom_rolling_friction};

// The coefficient of a pair in one column of MuJoCo's geom_friction.
template <class Value>
Value pair_friction(const FrictionPair& pair, double fixed, const Value* column) {
  if (!pair.from_a && !pair.from_b) return Value(fixed);
  if (!pair.from_b) return column[pair.geom_a];
  return pair.from_a ? larger(column[pair.geom_a], column[pair.geom_b]) : column[pair.geom_b];
}
template <class Value, class Real>
void load_softness(const FrictionPair& pair, const SoftPair& soft, const ParameterValues<Value>& values,
                   int lane, PairSoftness<Real>& out) {
  for (int i = 0; i < 2; ++i) put(out.solref_friction[i], lane, Value(soft.solref_friction[i]));
  if (soft.own) {
    for (int i = 0; i < 5; ++i) put(out.friction[i], lane, Value(std::max(soft.friction[i], least_friction)));
    for (int i = 0; i < 2; ++i) put(out.solref[i], lane, Value(soft.solref[i]));
    for (int i = 0; i < 5; ++i) put(out.solimp[i], lane, Value(soft.solimp[i]));
    return;
  }
  constexpr Parameter columns[5] = {Parameter::geom_friction, Parameter::geom_friction,
                                    Parameter::geom_torsional_friction, Parameter::geom_rolling_friction,
                                    Parameter::geom_rolling_friction};
  for (int i = 0; i < 5; ++i) {
    const Value mu = pair_friction(pair, 0.0, of(values, columns[i]));
    put(out.friction[i], lane, select(less(mu, Value(least_friction)), Value(least_friction), mu));
  }
  const Value a(soft.weight_a), b(1.0 - soft.weight_a);
  const Value* solimp = of(values, Parameter::geom_solimp);
  for (int i = 0; i < 5; ++i)
    put(out.solimp[i], lane, a * solimp[5 * pair.geom_a + i] + b * solimp[5 * pair.geom_b + i]);
  const Value* solref = of(values, Parameter::geom_solref);
  const Value *of_a = solref + 2 * pair.geom_a, *of_b = solref + 2 * pair.geom_b;
  const bool priority = pair.from_a != pair.from_b;
  for (int i = 0; i < 2; ++i) {
    const Value mean = a * of_a[i] + b * of_b[i];
    const auto standard = less(Value(0), of_a[0]) & less(Value(0), of_b[0]);
    put(out.solref[i], lane, priority ? mean : select(standard, mean, minimum(of_a[i], of_b[i])));
  }
}

// Adds mu_bar to the column's entries of the two geoms.
inline void add_pair_friction(const FrictionPair& pair, const double* column, double mu_bar, double* bar) {
  if (!bar) return;
  double share_a = pair.from_a, share_b = pair.from_b;
  if (pair.from_a && pair.from_b) {
    const double a = column[pair.geom_a], b = column[pair.geom_b];
    share_a = a > b ? 1.0 : a < b ? 0.0 : 0.5;
    share_b = 1.0 - share_a;
  }
  bar[pair.geom_a] += share_a * mu_bar;
  bar[pair.geom_b] += share_b * mu_bar;
}
template <class Real>
void add_softness(const FrictionPair& pair, const SoftPair& soft, const ParameterPointers& values, int lane,
                  const PairSoftness<Real>& bar, const ParameterBarPointers& out) {
  if (soft.own) return;
  const auto add = [&](Parameter p, int first, int last) {
    const double* column = of(values, p);
    double sum = 0;
    for (int i = first; i <= last; ++i) sum += get_lane(bar.friction[i], lane);
    if (pair_friction(pair, 0.0, column) >= least_friction) add_pair_friction(pair, column, sum, of(out, p));
  };
  add(Parameter::geom_friction, 0, 1);
  add(Parameter::geom_torsional_friction, 2, 2);
  add(Parameter::geom_rolling_friction, 3, 4);
  const double a = soft.weight_a, b = 1.0 - a;
  if (double* solimp = of(out, Parameter::geom_solimp))
    for (int i = 0; i < 5; ++i) {
      solimp[5 * pair.geom_a + i] += a * get_lane(bar.solimp[i], lane);
      solimp[5 * pair.geom_b + i] += b * get_lane(bar.solimp[i], lane);
    }
  double* solref = of(out, Parameter::geom_solref);
  const double *of_a = of(values, Parameter::geom_solref) + 2 * pair.geom_a,
               *of_b = of(values, Parameter::geom_solref) + 2 * pair.geom_b;
  const bool mean = pair.from_a != pair.from_b || (of_a[0] > 0 && of_b[0] > 0);
  for (int i = 0; solref && i < 2; ++i) {
    const double share = mean ? a : of_b[i] < of_a[i] ? 0.0 : 1.0;
    solref[2 * pair.geom_a + i] += share * get_lane(bar.solref[i], lane);
    solref[2 * pair.geom_b + i] += (1.0 - share) * get_lane(bar.solref[i], lane);
  }
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
  load_array(of(values, Parameter::gravity), 3, lane, &out.gravity->x);
#define REVOLUTE_LOAD(name, array, size, member) \
  load_array(of(values, Parameter::name), size, lane, out.member);
  REVOLUTE_PARAMETERS(REVOLUTE_LOAD, REVOLUTE_NO_PARAMETER)
#undef REVOLUTE_LOAD
  for (int p = 0; p < m.nfriction_pair; ++p) {
    const FrictionPair& pair = map.pairs[p];
    put(out.friction[p], lane, pair_friction(pair, pair.fixed, of(values, Parameter::geom_friction)));
    for (int i = 0; i < 2; ++i)
      put(out.rotational_friction[2 * p + i], lane,
          pair_friction(pair, pair.fixed_rotational[i], of(values, rotational_columns[i])));
    if (!map.soft_pairs.empty()) load_softness(pair, map.soft_pairs[p], values, lane, out.softness[p]);
  }
}

// Sets those of the bodies, which only what is measured reads.
template <class Value, class Real>
void load_body_parameters(const ParameterMap& map, const ParameterValues<Value>& values, int lane,
                          const Model& m, Parameters<Real>& out) {
  using namespace detail;
  const Value *mass = of(values, Parameter::body_mass), *ipos = of(values, Parameter::body_ipos),
              *inertia = of(values, Parameter::body_inertia);
  for (int b = 0; b < m.nbody; ++b)
    set_inertia(out.bodies[b], lane, body_inertia(map.bodies[b], mass[b], ipos + 3 * b, inertia + 3 * b));
  load_array(ipos, 3 * m.nbody, lane, out.ipos);
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
  add_array(&bar.gravity->x, 3, lane, of(out, Parameter::gravity));
#define REVOLUTE_ADD(name, array, size, member) add_array(bar.member, size, lane, of(out, Parameter::name));
  REVOLUTE_PARAMETERS(REVOLUTE_ADD, REVOLUTE_NO_PARAMETER)
#undef REVOLUTE_ADD
  for (int p = 0; p < m.nfriction_pair; ++p) {
    const FrictionPair& pair = map.pairs[p];
    const auto add = [&](Parameter column, const Real& mu_bar) {
      add_pair_friction(pair, of(values, column), get_lane(mu_bar, lane), of(out, column));
    };
    add(Parameter::geom_friction, bar.friction[p]);
    for (int i = 0; i < 2; ++i) add(rotational_columns[i], bar.rotational_friction[2 * p + i]);
  }
  for (std::size_t p = 0; p < map.soft_pairs.size(); ++p)
    add_softness(map.pairs[p], map.soft_pairs[p], values, lane, bar.softness[p], out);
}

}  // namespace revolute
