// Physical parameters that a gradient can be taken by, as Real: each environment of a pack may have its own.
//
// The same struct holds their cotangents. Inertias are those of links, in link frames (parameter_map.hpp gets them from
// and returns their cotangents to MuJoCo's body_mass, ...).
#pragma once

#include "revolute/arena.hpp"
#include "revolute/model/model.hpp"
#include "revolute/spatial/inertia.hpp"

namespace revolute {

template <class Real>
struct Parameters {
  RigidInertia<Real>* inertia;  // [nv]
  Real* damping;                // [nv]
  Real* armature;               // [nv]
  Real* frictionloss;           // [nv]
  Real* stiffness;              // [njnt]
  Real* gear;                   // [nu]
  Real* friction;               // [nfriction_pair]
  Vector3<Real>* gravity;       // [1]
  Real* restitution;            // [1]

  Parameters(const Model& model, Arena& arena)
      : inertia(arena.take<RigidInertia<Real>>(model.nv)),
        damping(arena.take<Real>(model.nv)),
        armature(arena.take<Real>(model.nv)),
        frictionloss(arena.take<Real>(model.nv)),
        stiffness(arena.take<Real>(model.njnt)),
        gear(arena.take<Real>(model.nu)),
        friction(arena.take<Real>(model.nfriction_pair)),
        gravity(arena.take<Vector3<Real>>(1)),
        restitution(arena.take<Real>(1)) {}

  REVOLUTE_HD void clear(const Model& model) {
    for (int k = 0; k < model.nv; ++k) {
      inertia[k] = zero_inertia<Real>();
      damping[k] = armature[k] = frictionloss[k] = Real(0);
    }
    for (int j = 0; j < model.njnt; ++j) stiffness[j] = Real(0);
    for (int a = 0; a < model.nu; ++a) gear[a] = Real(0);
    for (int p = 0; p < model.nfriction_pair; ++p) friction[p] = Real(0);
    *gravity = zero3<Real>();
    *restitution = Real(0);
  }
};

}  // namespace revolute
