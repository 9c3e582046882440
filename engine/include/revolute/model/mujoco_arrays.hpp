// The part of a compiled MuJoCo model that the engine translates, by MuJoCo's names and conventions.
#pragma once

#include <vector>

namespace revolute {

using Doubles = std::vector<double>;
using Ints = std::vector<int>;

struct MujocoArrays {
  int nq = 0, nv = 0, nu = 0, nbody = 0, njnt = 0, ngeom = 0;
  double timestep = 0, erp = 0, cfm = 0, restitution = 0, margin = 0;
  int iterations = 0;
  int integrator = 0;  // 0 euler, 1 implicitfast
  bool contact = true, limits = true, dry_friction = true;
  Doubles gravity;
  Ints body_parentid;
  Doubles body_pos, body_quat, body_ipos, body_iquat, body_mass, body_inertia;
  Ints jnt_type, jnt_bodyid, jnt_qposadr, jnt_dofadr, jnt_limited;
  Doubles jnt_pos, jnt_axis, jnt_stiffness, jnt_range;
  Doubles qpos0, qpos_spring, dof_armature, dof_damping, dof_frictionloss;
  Ints geom_type, geom_bodyid;
  Doubles geom_pos, geom_quat, geom_size, geom_friction, geom_rbound;
  Ints hull_adr, hull_num;
  Doubles hull_vert;
  Ints hull_polyadr, hull_polynum, hull_polyvertnum, hull_polyvert;
  Ints pair_geom1, pair_geom2, pair_mu_from, pair_condim;
  Doubles pair_friction;           // [np, 3] sliding, torsional, rolling; sliding nan: combine the geoms'
  Ints eq_type, eq_obj1, eq_obj2;  // MuJoCo's types 0 connect, 1 weld, 2 joint; bodies or joints (-1: none)
  Doubles eq_data;                 // [neq, 11]
  Ints act_dof, act_qpos, act_ctrllimited, act_forcelimited;
  Doubles act_gear, act_gain, act_bias, act_ctrlrange, act_forcerange;
};

}  // namespace revolute
