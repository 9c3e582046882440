// The list of model parameters. A rollout may take other values for them, and a gradient may be taken by them. Unit, bounds
// and text of each are in Python's table (revolute_engine/parameters.py).
#pragma once

namespace revolute {

// DIRECT(name, array, size, member): the stages read the values as they are, from Parameters::member.
// MAPPED(name, array, size): parameter_map.hpp computes what the stages read.
// array: member of MujocoArrays with the file's values; size: how many there are, of the arrays or the model m.
#define REVOLUTE_PARAMETERS(DIRECT, MAPPED)                                                                \
  MAPPED(body_mass, body_mass, m.nbody)                                                                    \
  MAPPED(body_ipos, body_ipos, 3 * m.nbody)                                                                \
  MAPPED(body_inertia, body_inertia, 3 * m.nbody)                                                          \
  DIRECT(dof_damping, dof_damping, m.nv, damping)                                                          \
  DIRECT(dof_armature, dof_armature, m.nv, armature)                                                       \
  DIRECT(dof_frictionloss, dof_frictionloss, m.nv, frictionloss)                                           \
  DIRECT(jnt_stiffness, jnt_stiffness, m.njnt, stiffness)                                                  \
  MAPPED(gravity, gravity, 3)                                                                              \
  DIRECT(actuator_gear, act_gear, m.nu, gear)                                                              \
  MAPPED(geom_friction, geom_friction, 3 * m.ngeom) /* sliding, torsional, rolling */                      \
  DIRECT(restitution, restitution, 1, restitution)                                                         \
  DIRECT(actuator_gainprm, act_gain, 3 * m.nu, gain) /* by 1, length, velocity */                          \
  DIRECT(actuator_biasprm, act_bias, 3 * m.nu, bias) /* by 1, length, velocity */                          \
  DIRECT(qpos_spring, qpos_spring, m.nq, spring)     /* where the springs are at rest */                   \
  DIRECT(jnt_range, jnt_range, 2 * m.njnt, range)                                                          \
  DIRECT(geom_solref, geom_solref, m.contact_model == ContactModel::mujoco ? 2 * m.ngeom : 0, geom_solref) \
  DIRECT(geom_solimp, geom_solimp, m.contact_model == ContactModel::mujoco ? 5 * m.ngeom : 0, geom_solimp)

#define REVOLUTE_NO_PARAMETER(...)

}  // namespace revolute
