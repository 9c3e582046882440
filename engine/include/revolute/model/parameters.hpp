// Physical parameters that a gradient can be taken by, as Real: each environment of a pack may have its own.
//
// The same struct holds their cotangents. Inertias are those of links, in link frames (parameter_map.hpp gets them from
// and returns their cotangents to MuJoCo's body_mass, ...).
#pragma once

#include "revolute/arena.hpp"
#include "revolute/model/model.hpp"
#include "revolute/spatial/inertia.hpp"

namespace revolute {

// How a pair of shapes touches in the contact model "mujoco": friction for the two sliding directions, torsion and the two
// rolling ones; solref_friction is zero where solref counts for friction as well.
template <class Real>
struct PairSoftness {
  Real friction[5], solref[2], solref_friction[2], solimp[5];
};

template <class Real>
struct Parameters {
  RigidInertia<Real>* inertia;   // [nv]
  Real* damping;                 // [nv]
  Real* armature;                // [nv]
  Real* frictionloss;            // [nv]
  Real* stiffness;               // [njnt]
  Real* gear;                    // [nu]
  Real *gain, *bias;             // [nu, 3] by 1, length, velocity
  Real* spring;                  // [nq] positions at which the springs are at rest
  Real* range;                   // [njnt, 2]
  Real* friction;                // [nfriction_pair] sliding
  Real* rotational_friction;     // [nfriction_pair, 2] torsional, rolling
  Vector3<Real>* gravity;        // [1]
  Real* restitution;             // [1]
  PairSoftness<Real>* softness;  // mujoco: [nfriction_pair]

  Parameters(const Model& model, Arena& arena)
      : inertia(arena.take<RigidInertia<Real>>(model.nv)),
        damping(arena.take<Real>(model.nv)),
        armature(arena.take<Real>(model.nv)),
        frictionloss(arena.take<Real>(model.nv)),
        stiffness(arena.take<Real>(model.njnt)),
        gear(arena.take<Real>(model.nu)),
        gain(arena.take<Real>(3 * std::size_t(model.nu))),
        bias(arena.take<Real>(3 * std::size_t(model.nu))),
        spring(arena.take<Real>(model.nq)),
        range(arena.take<Real>(2 * std::size_t(model.njnt))),
        friction(arena.take<Real>(model.nfriction_pair)),
        rotational_friction(arena.take<Real>(2 * std::size_t(model.nfriction_pair))),
        gravity(arena.take<Vector3<Real>>(1)),
        restitution(arena.take<Real>(1)),
        softness(arena.take<PairSoftness<Real>>(soft_pairs(model))) {}

  REVOLUTE_HD void clear(const Model& model) {
    for (int k = 0; k < model.nv; ++k) {
      inertia[k] = zero_inertia<Real>();
      damping[k] = armature[k] = frictionloss[k] = Real(0);
    }
    for (int j = 0; j < model.njnt; ++j) stiffness[j] = range[2 * j] = range[2 * j + 1] = Real(0);
    for (int a = 0; a < model.nu; ++a) gear[a] = Real(0);
    for (int i = 0; i < 3 * model.nu; ++i) gain[i] = bias[i] = Real(0);
    for (int i = 0; i < model.nq; ++i) spring[i] = Real(0);
    for (int p = 0; p < model.nfriction_pair; ++p)
      friction[p] = rotational_friction[2 * p] = rotational_friction[2 * p + 1] = Real(0);
    *gravity = zero3<Real>();
    *restitution = Real(0);
    for (int p = 0; p < soft_pairs(model); ++p) {
      PairSoftness<Real>& pair = softness[p];
      for (int i = 0; i < 5; ++i) pair.friction[i] = pair.solimp[i] = Real(0);
      for (int i = 0; i < 2; ++i) pair.solref[i] = pair.solref_friction[i] = Real(0);
    }
  }
  REVOLUTE_HD static int soft_pairs(const Model& model) {
    return model.contact_model == ContactModel::mujoco ? model.nfriction_pair : 0;
  }
};

}  // namespace revolute
