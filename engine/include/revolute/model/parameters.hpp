// Physical parameters that a gradient can be taken by, as Real: each environment of a pack may have its own.
//
// The same struct holds their cotangents. Inertias are those of links, in link frames. parameter_map.hpp computes them from
// MuJoCo's body_mass, ..., and returns their cotangents to these.
#pragma once

#include "revolute/arena.hpp"
#include "revolute/model/model.hpp"
#include "revolute/model/parameter_list.hpp"
#include "revolute/model/step_inputs.hpp"
#include "revolute/spatial/inertia.hpp"

namespace revolute {

// Mass and first moment in a link's frame.
template <class Real>
struct MassMoment {
  Real m;
  Vector3<Real> h;
};
// How a medium resists a body, see stages/medium.hpp: the body's mass centre in the link frame, and the parts of force and
// torque that are linear and quadratic in the velocity.
template <class Real>
struct MediumDrag {
  Vector3<Real> centre;
  Real viscous[2];
  Vector3<Real> force, torque;
};

template <class Real>
struct Parameters {
  RigidInertia<Real>* inertia;  // [nv]
  RigidInertia<Real>*
      bodies;  // [nbody] of each body, in its link's frame; only measurements read them, not the step
  Real* ipos;  // [nbody, 3] mass centres in the frames of the bodies
#define REVOLUTE_MEMBER(name, array, size, member) Real* member;
  REVOLUTE_PARAMETERS(REVOLUTE_MEMBER, REVOLUTE_NO_PARAMETER)
#undef REVOLUTE_MEMBER
  Real* geom_friction;             // [ngeom, 3] sliding, torsional, rolling
  Vector3<Real>* gravity;          // [1]
  MassMoment<Real>* compensation;  // [nv] masses that gravity compensation carries, for models that have it
  MediumDrag<Real>* drag;          // [nmedium]
  // The inputs that change with time, or their cotangents. The code that runs the steps keeps them. Null: none.
  Real* inputs[input_count] = {};

  Parameters(const Model& m, Arena& arena) {
    inertia = arena.take<RigidInertia<Real>>(m.nv);
    bodies = arena.take<RigidInertia<Real>>(m.nbody);
    ipos = arena.take<Real>(3 * std::size_t(m.nbody));
#define REVOLUTE_TAKE(name, array, size, member) member = arena.take<Real>(size);
    REVOLUTE_PARAMETERS(REVOLUTE_TAKE, REVOLUTE_NO_PARAMETER)
#undef REVOLUTE_TAKE
    geom_friction = arena.take<Real>(3 * std::size_t(m.ngeom));
    gravity = arena.take<Vector3<Real>>(1);
    compensation = arena.take<MassMoment<Real>>(m.compensated ? m.nv : 0);
    drag = arena.take<MediumDrag<Real>>(m.nmedium);
  }

  REVOLUTE_HD Real* input(Input which) const { return inputs[int(which)]; }

  REVOLUTE_HD void clear(const Model& m) {
    for (int k = 0; k < m.nv; ++k) inertia[k] = zero_inertia<Real>();
    for (int b = 0; b < m.nbody; ++b) bodies[b] = zero_inertia<Real>();
    for (int i = 0; i < 3 * m.nbody; ++i) ipos[i] = Real(0);
#define REVOLUTE_CLEAR(name, array, size, member) \
  for (int i = 0; i < (size); ++i) member[i] = Real(0);
    REVOLUTE_PARAMETERS(REVOLUTE_CLEAR, REVOLUTE_NO_PARAMETER)
#undef REVOLUTE_CLEAR
    *gravity = zero3<Real>();
    for (int i = 0; i < 3 * m.ngeom; ++i) geom_friction[i] = Real(0);
    for (int k = 0; m.compensated && k < m.nv; ++k) compensation[k] = {Real(0), zero3<Real>()};
    for (int i = 0; i < m.nmedium; ++i)
      drag[i] = {zero3<Real>(), {Real(0), Real(0)}, zero3<Real>(), zero3<Real>()};
  }
};

}  // namespace revolute
