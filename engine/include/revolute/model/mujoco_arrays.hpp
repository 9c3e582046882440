// The part of a compiled MuJoCo model that the engine translates, by MuJoCo's names and conventions.
#pragma once

#include <vector>

#include "revolute/model/options.hpp"
#include "revolute/model/parameter_list.hpp"

namespace revolute {

using Doubles = std::vector<double>;
using Ints = std::vector<int>;

struct MujocoArrays : Options {
  int nq = 0, nv = 0, nu = 0, nbody = 0, njnt = 0, ngeom = 0, nsite = 0;
  int integrator = 0;  // Integrator
  double impratio = 1;
  bool refsafe = true, eulerdamp = true;
#define REVOLUTE_ARRAY(name, array, ...) Doubles array;
  REVOLUTE_PARAMETERS(REVOLUTE_ARRAY, REVOLUTE_ARRAY)
#undef REVOLUTE_ARRAY
  Ints body_parentid;
  Doubles body_pos, body_quat, body_iquat;
  Ints jnt_type, jnt_bodyid, jnt_qposadr, jnt_dofadr, jnt_limited;
  Doubles jnt_pos, jnt_axis;
  Doubles qpos0;
  Ints geom_type, geom_bodyid;
  Doubles geom_pos, geom_quat, geom_size, geom_rbound;
  Ints site_bodyid;
  Doubles site_pos, site_quat;
  Ints hull_adr, hull_num;
  Doubles hull_vert;
  Ints hull_polyadr, hull_polynum, hull_polyvertnum, hull_polyvert;
  Ints pair_geom1, pair_geom2, pair_mu_from, pair_condim;
  Doubles pair_friction;           // [np, 3] sliding, torsional, rolling; sliding nan: combine the geoms'
  Doubles pair_margin, pair_gap;   // [np]
  Ints eq_type, eq_obj1, eq_obj2;  // MuJoCo's types 0 connect, 1 weld, 2 joint; bodies or joints (-1: none)
  Doubles eq_data;                 // [neq, 11]
  // of the contact model "mujoco" only; empty for "hard"
  Doubles body_invweight0, dof_invweight0;               // [nbody, 2], [nv]
  Doubles jnt_solref, jnt_solimp, jnt_margin;            // [njnt, 2], [njnt, 5], [njnt]
  Doubles dof_solref, dof_solimp, eq_solref, eq_solimp;  // [nv or neq, 2 or 5]
  Doubles pair_weight;                                   // [np] of the first geom, nan: a pair of its own
  Doubles pair_solref, pair_solreffriction, pair_solimp,
      pair_friction5;  // of such pairs, [np, 2], [np, 2], [np, 5], [np, 5]
  Ints act_dof, act_qpos, act_ctrllimited, act_forcelimited;
  Doubles act_ctrlrange, act_forcerange;
};

// Calls visit(name, member) for all of them, by MuJoCo's names.
template <class Visit>
void visit_arrays(MujocoArrays& arrays, Visit visit) {
  visit_options(arrays, visit);
#define REVOLUTE_VISIT(name, array, ...) visit(#array, arrays.array);
  REVOLUTE_PARAMETERS(REVOLUTE_VISIT, REVOLUTE_VISIT)
#undef REVOLUTE_VISIT
  visit("nq", arrays.nq);
  visit("nv", arrays.nv);
  visit("nu", arrays.nu);
  visit("nbody", arrays.nbody);
  visit("njnt", arrays.njnt);
  visit("ngeom", arrays.ngeom);
  visit("nsite", arrays.nsite);
  visit("integrator", arrays.integrator);
  visit("impratio", arrays.impratio);
  visit("refsafe", arrays.refsafe);
  visit("eulerdamp", arrays.eulerdamp);
  visit("body_parentid", arrays.body_parentid);
  visit("body_pos", arrays.body_pos);
  visit("body_quat", arrays.body_quat);
  visit("body_iquat", arrays.body_iquat);
  visit("jnt_type", arrays.jnt_type);
  visit("jnt_bodyid", arrays.jnt_bodyid);
  visit("jnt_qposadr", arrays.jnt_qposadr);
  visit("jnt_dofadr", arrays.jnt_dofadr);
  visit("jnt_limited", arrays.jnt_limited);
  visit("jnt_pos", arrays.jnt_pos);
  visit("jnt_axis", arrays.jnt_axis);
  visit("qpos0", arrays.qpos0);
  visit("geom_type", arrays.geom_type);
  visit("geom_bodyid", arrays.geom_bodyid);
  visit("geom_pos", arrays.geom_pos);
  visit("geom_quat", arrays.geom_quat);
  visit("geom_size", arrays.geom_size);
  visit("geom_rbound", arrays.geom_rbound);
  visit("site_bodyid", arrays.site_bodyid);
  visit("site_pos", arrays.site_pos);
  visit("site_quat", arrays.site_quat);
  visit("hull_adr", arrays.hull_adr);
  visit("hull_num", arrays.hull_num);
  visit("hull_vert", arrays.hull_vert);
  visit("hull_polyadr", arrays.hull_polyadr);
  visit("hull_polynum", arrays.hull_polynum);
  visit("hull_polyvertnum", arrays.hull_polyvertnum);
  visit("hull_polyvert", arrays.hull_polyvert);
  visit("pair_geom1", arrays.pair_geom1);
  visit("pair_geom2", arrays.pair_geom2);
  visit("pair_mu_from", arrays.pair_mu_from);
  visit("pair_condim", arrays.pair_condim);
  visit("pair_friction", arrays.pair_friction);
  visit("pair_margin", arrays.pair_margin);
  visit("pair_gap", arrays.pair_gap);
  visit("eq_type", arrays.eq_type);
  visit("eq_obj1", arrays.eq_obj1);
  visit("eq_obj2", arrays.eq_obj2);
  visit("eq_data", arrays.eq_data);
  visit("body_invweight0", arrays.body_invweight0);
  visit("dof_invweight0", arrays.dof_invweight0);
  visit("jnt_solref", arrays.jnt_solref);
  visit("jnt_solimp", arrays.jnt_solimp);
  visit("jnt_margin", arrays.jnt_margin);
  visit("dof_solref", arrays.dof_solref);
  visit("dof_solimp", arrays.dof_solimp);
  visit("eq_solref", arrays.eq_solref);
  visit("eq_solimp", arrays.eq_solimp);
  visit("pair_weight", arrays.pair_weight);
  visit("pair_solref", arrays.pair_solref);
  visit("pair_solreffriction", arrays.pair_solreffriction);
  visit("pair_solimp", arrays.pair_solimp);
  visit("pair_friction5", arrays.pair_friction5);
  visit("act_dof", arrays.act_dof);
  visit("act_qpos", arrays.act_qpos);
  visit("act_ctrllimited", arrays.act_ctrllimited);
  visit("act_forcelimited", arrays.act_forcelimited);
  visit("act_ctrlrange", arrays.act_ctrlrange);
  visit("act_forcerange", arrays.act_forcerange);
}

}  // namespace revolute
