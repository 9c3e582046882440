// Physical parameters that a gradient can be taken by, as Real: each environment of a pack may have its own.
//
// The same struct holds their cotangents. Inertias are those of links, in link frames (parameter_map.hpp gets them from
// and returns their cotangents to MuJoCo's body_mass, ...).
#pragma once

#include "revolute/arena.hpp"
#include "revolute/model/model.hpp"
#include "revolute/model/parameter_list.hpp"
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
  RigidInertia<Real>* inertia;  // [nv]
#define REVOLUTE_MEMBER(name, array, size, member) Real* member;
  REVOLUTE_PARAMETERS(REVOLUTE_MEMBER, REVOLUTE_NO_PARAMETER)
#undef REVOLUTE_MEMBER
  Real* friction;                // [nfriction_pair] sliding
  Real* rotational_friction;     // [nfriction_pair, 2] torsional, rolling
  Vector3<Real>* gravity;        // [1]
  PairSoftness<Real>* softness;  // mujoco: [nfriction_pair]
  // Generalized forces besides those of actuators, [nv], an input that changes with time: whoever runs the steps keeps it,
  // and its cotangents. Null: none.
  Real* qfrc_applied = nullptr;

  Parameters(const Model& m, Arena& arena) {
    inertia = arena.take<RigidInertia<Real>>(m.nv);
#define REVOLUTE_TAKE(name, array, size, member) member = arena.take<Real>(size);
    REVOLUTE_PARAMETERS(REVOLUTE_TAKE, REVOLUTE_NO_PARAMETER)
#undef REVOLUTE_TAKE
    friction = arena.take<Real>(m.nfriction_pair);
    rotational_friction = arena.take<Real>(2 * std::size_t(m.nfriction_pair));
    gravity = arena.take<Vector3<Real>>(1);
    softness = arena.take<PairSoftness<Real>>(soft_pairs(m));
  }

  REVOLUTE_HD void clear(const Model& m) {
    for (int k = 0; k < m.nv; ++k) inertia[k] = zero_inertia<Real>();
#define REVOLUTE_CLEAR(name, array, size, member) \
  for (int i = 0; i < (size); ++i) member[i] = Real(0);
    REVOLUTE_PARAMETERS(REVOLUTE_CLEAR, REVOLUTE_NO_PARAMETER)
#undef REVOLUTE_CLEAR
    for (int p = 0; p < m.nfriction_pair; ++p)
      friction[p] = rotational_friction[2 * p] = rotational_friction[2 * p + 1] = Real(0);
    *gravity = zero3<Real>();
    for (int p = 0; p < soft_pairs(m); ++p) {
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
