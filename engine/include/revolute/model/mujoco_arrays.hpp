// The part of a compiled MuJoCo model that the engine translates, by MuJoCo's names and conventions.
#pragma once

#include <vector>

#include "revolute/model/options.hpp"
#include "revolute/model/parameter_list.hpp"

namespace revolute {

using Doubles = std::vector<double>;
using Ints = std::vector<int>;

struct MujocoArrays : Options {
  int nq = 0, nv = 0, nu = 0, na = 0, nbody = 0, njnt = 0, ngeom = 0, nsite = 0;
  int integrator = 0;  // Integrator
  double impratio = 1;
  bool refsafe = true, eulerdamp = true;
#define REVOLUTE_ARRAY(name, array, ...) Doubles array;
  REVOLUTE_PARAMETERS(REVOLUTE_ARRAY, REVOLUTE_ARRAY)
#undef REVOLUTE_ARRAY
  Ints body_parentid, body_mocapid;
  Doubles body_pos, body_quat, body_iquat;
  Ints jnt_type, jnt_bodyid, jnt_qposadr, jnt_dofadr, jnt_limited;
  Doubles jnt_pos, jnt_axis;
  Doubles qpos0;
  Ints geom_type, geom_bodyid;
  Doubles geom_pos, geom_quat, geom_size, geom_rbound;
  Doubles geom_fluid,
      geom_semiaxes;  // [ngeom, 12] MuJoCo's; first number 0: no ellipsoid in a medium; [ngeom, 3]
  Ints site_bodyid;
  Doubles site_pos, site_quat;
  // height fields: [n], [n, 4] MuJoCo's hfield_size, all heights as fractions of its third number; geom_field -1: none
  Ints hfield_nrow, hfield_ncol, geom_field;
  Doubles hfield_size, hfield_data;
  Ints hull_adr, hull_num;
  Doubles hull_vert;
  Ints ray_adr, ray_num;  // [ngeom] range of triangles of a mesh that rays may meet; empty: no rays
  Doubles ray_triangles;  // [n, 9] their corners, in the shape's frame
  Ints hull_polyadr, hull_polynum, hull_polyvertnum, hull_polyvert;
  Ints pair_geom1, pair_geom2, pair_mu_from, pair_condim;
  Doubles pair_friction;          // [np, 3] sliding, torsional, rolling; sliding nan: combine the geoms'
  Doubles pair_margin, pair_gap;  // [np]
  // whether the pairs of shapes that pass these filters are found in each step (mujoco); the arrays are empty if not
  bool unlisted_pairs = false, filter_parent = true;
  Ints geom_contype, geom_conaffinity, geom_priority, geom_condim, body_weldid, exclude_signature;
  Ints excluded_geoms;  // [pairs, 2] pairs that are listed or left out
  Doubles geom_margin, geom_gap, geom_solmix;
  Ints eq_type, eq_obj1, eq_obj2;  // MuJoCo's types 0 connect, 1 weld, 2 joint; bodies or joints (-1: none)
  Doubles eq_data;                 // [neq, 11]
  // of the contact model "mujoco" only; empty for "hard"
  Doubles body_invweight0, dof_invweight0;               // [nbody, 2], [nv]
  Doubles jnt_solref, jnt_solimp, jnt_margin;            // [njnt, 2], [njnt, 5], [njnt]
  Doubles dof_solref, dof_solimp, eq_solref, eq_solimp;  // [nv or neq, 2 or 5]
  Doubles pair_weight;                                   // [np] of the first geom; nan: values of its own
  Doubles pair_solref, pair_solreffriction, pair_solimp,
      pair_friction5;  // of pairs with their own values, [np, 2], [np, 2], [np, 5], [np, 5]
  Ints act_dof, act_qpos, act_ctrllimited, act_forcelimited;  // hinge or slide that it drives; -1: none
  Doubles act_ctrlrange, act_forcerange;
  Ints act_tendon;                      // [nu] tendon that it pulls, or -1
  Ints act_trn;                         // [nu] row of trn_type, or -1
  Ints act_dyn;                         // [nu] ActivationType
  Ints act_adr;                         // [nu] index of the activation
  Ints act_early, act_actlimited;       // [nu]
  Doubles act_dynprm, act_actrange;     // [nu, 3], [nu, 2]
  Ints act_musclegain, act_musclebias;  // [nu]
  Doubles act_musclegainprm,
      act_musclebiasprm;    // [nu, 9], MuJoCo's, with the computed force for a negative one
  Doubles act_lengthrange;  // [nu, 2]
  // transmissions besides hinges, slides and tendons: TransmissionType, body and place of the site, ...
  Ints trn_type, trn_joint, trn_inparent, trn_body, trn_refbody;          // trn_refbody -1: none
  Doubles trn_pos, trn_quat, trn_refpos, trn_refquat, trn_gear, trn_rod;  // [n, 3], [n, 4], ..., [n, 6], [n]
  // tendons: a fixed one has joints, a spatial one has pieces between two points
  Ints ten_jointadr, ten_jointnum, ten_joint, ten_segmentadr, ten_segmentnum;
  Doubles ten_coef;
  Ints seg_body1, seg_body2, seg_wrap;  // seg_wrap: row of wrap_*, or -1
  Doubles seg_pos1, seg_pos2, seg_divisor;
  Ints wrap_cylinder, wrap_body, wrap_sidebody;  // wrap_sidebody -1: no side site
  Doubles wrap_pos, wrap_quat, wrap_radius, wrap_side;
  Doubles ten_stiffness, ten_damping, ten_armature, ten_lengthspring, ten_range, ten_margin, ten_frictionloss,
      ten_actfrcrange, ten_length0;
  Ints ten_limited, ten_actfrclimited;
  Doubles ten_solref_lim, ten_solimp_lim, ten_solref_fri, ten_solimp_fri, ten_invweight0;  // mujoco
  Ints jnt_actfrclimited, jnt_actgravcomp;                                                 // [njnt]
  Doubles jnt_actfrcrange;                                                                 // [njnt, 2]
  Doubles body_gravcomp;                                                                   // [nbody]
  double density = 0, viscosity = 0;
  Doubles wind = {0, 0, 0};
};

// Calls visit(name, member) for every array, by MuJoCo's names.
template <class Visit>
void visit_arrays(MujocoArrays& arrays, Visit visit) {
  visit_options(arrays, visit);
#define REVOLUTE_VISIT(name, array, ...) visit(#array, arrays.array);
  REVOLUTE_PARAMETERS(REVOLUTE_VISIT, REVOLUTE_VISIT)
#undef REVOLUTE_VISIT
  visit("nq", arrays.nq);
  visit("nv", arrays.nv);
  visit("nu", arrays.nu);
  visit("na", arrays.na);
  visit("act_tendon", arrays.act_tendon);
  visit("act_trn", arrays.act_trn);
  visit("act_dyn", arrays.act_dyn);
  visit("act_adr", arrays.act_adr);
  visit("act_early", arrays.act_early);
  visit("act_actlimited", arrays.act_actlimited);
  visit("act_dynprm", arrays.act_dynprm);
  visit("act_actrange", arrays.act_actrange);
  visit("act_musclegain", arrays.act_musclegain);
  visit("act_musclebias", arrays.act_musclebias);
  visit("act_musclegainprm", arrays.act_musclegainprm);
  visit("act_musclebiasprm", arrays.act_musclebiasprm);
  visit("act_lengthrange", arrays.act_lengthrange);
  visit("trn_type", arrays.trn_type);
  visit("trn_joint", arrays.trn_joint);
  visit("trn_inparent", arrays.trn_inparent);
  visit("trn_body", arrays.trn_body);
  visit("trn_refbody", arrays.trn_refbody);
  visit("trn_pos", arrays.trn_pos);
  visit("trn_quat", arrays.trn_quat);
  visit("trn_refpos", arrays.trn_refpos);
  visit("trn_refquat", arrays.trn_refquat);
  visit("trn_gear", arrays.trn_gear);
  visit("trn_rod", arrays.trn_rod);
  visit("ten_jointadr", arrays.ten_jointadr);
  visit("ten_jointnum", arrays.ten_jointnum);
  visit("ten_joint", arrays.ten_joint);
  visit("ten_segmentadr", arrays.ten_segmentadr);
  visit("ten_segmentnum", arrays.ten_segmentnum);
  visit("ten_coef", arrays.ten_coef);
  visit("seg_body1", arrays.seg_body1);
  visit("seg_body2", arrays.seg_body2);
  visit("seg_wrap", arrays.seg_wrap);
  visit("seg_pos1", arrays.seg_pos1);
  visit("seg_pos2", arrays.seg_pos2);
  visit("seg_divisor", arrays.seg_divisor);
  visit("wrap_cylinder", arrays.wrap_cylinder);
  visit("wrap_body", arrays.wrap_body);
  visit("wrap_sidebody", arrays.wrap_sidebody);
  visit("wrap_pos", arrays.wrap_pos);
  visit("wrap_quat", arrays.wrap_quat);
  visit("wrap_radius", arrays.wrap_radius);
  visit("wrap_side", arrays.wrap_side);
  visit("ten_stiffness", arrays.ten_stiffness);
  visit("ten_damping", arrays.ten_damping);
  visit("ten_armature", arrays.ten_armature);
  visit("ten_lengthspring", arrays.ten_lengthspring);
  visit("ten_range", arrays.ten_range);
  visit("ten_margin", arrays.ten_margin);
  visit("ten_frictionloss", arrays.ten_frictionloss);
  visit("ten_actfrcrange", arrays.ten_actfrcrange);
  visit("ten_length0", arrays.ten_length0);
  visit("ten_limited", arrays.ten_limited);
  visit("ten_actfrclimited", arrays.ten_actfrclimited);
  visit("ten_solref_lim", arrays.ten_solref_lim);
  visit("ten_solimp_lim", arrays.ten_solimp_lim);
  visit("ten_solref_fri", arrays.ten_solref_fri);
  visit("ten_solimp_fri", arrays.ten_solimp_fri);
  visit("ten_invweight0", arrays.ten_invweight0);
  visit("jnt_actfrclimited", arrays.jnt_actfrclimited);
  visit("jnt_actgravcomp", arrays.jnt_actgravcomp);
  visit("jnt_actfrcrange", arrays.jnt_actfrcrange);
  visit("body_gravcomp", arrays.body_gravcomp);
  visit("density", arrays.density);
  visit("viscosity", arrays.viscosity);
  visit("wind", arrays.wind);
  visit("nbody", arrays.nbody);
  visit("njnt", arrays.njnt);
  visit("ngeom", arrays.ngeom);
  visit("nsite", arrays.nsite);
  visit("integrator", arrays.integrator);
  visit("impratio", arrays.impratio);
  visit("refsafe", arrays.refsafe);
  visit("eulerdamp", arrays.eulerdamp);
  visit("body_parentid", arrays.body_parentid);
  visit("body_mocapid", arrays.body_mocapid);
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
  visit("geom_fluid", arrays.geom_fluid);
  visit("geom_semiaxes", arrays.geom_semiaxes);
  visit("site_bodyid", arrays.site_bodyid);
  visit("site_pos", arrays.site_pos);
  visit("site_quat", arrays.site_quat);
  visit("hfield_nrow", arrays.hfield_nrow);
  visit("hfield_ncol", arrays.hfield_ncol);
  visit("geom_field", arrays.geom_field);
  visit("hfield_size", arrays.hfield_size);
  visit("hfield_data", arrays.hfield_data);
  visit("hull_adr", arrays.hull_adr);
  visit("hull_num", arrays.hull_num);
  visit("hull_vert", arrays.hull_vert);
  visit("ray_adr", arrays.ray_adr);
  visit("ray_num", arrays.ray_num);
  visit("ray_triangles", arrays.ray_triangles);
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
  visit("unlisted_pairs", arrays.unlisted_pairs);
  visit("filter_parent", arrays.filter_parent);
  visit("geom_contype", arrays.geom_contype);
  visit("geom_conaffinity", arrays.geom_conaffinity);
  visit("geom_priority", arrays.geom_priority);
  visit("geom_condim", arrays.geom_condim);
  visit("body_weldid", arrays.body_weldid);
  visit("exclude_signature", arrays.exclude_signature);
  visit("excluded_geoms", arrays.excluded_geoms);
  visit("geom_margin", arrays.geom_margin);
  visit("geom_gap", arrays.geom_gap);
  visit("geom_solmix", arrays.geom_solmix);
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
