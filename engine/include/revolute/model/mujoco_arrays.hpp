// The part of a compiled MuJoCo model that the engine translates, by MuJoCo's names and conventions.
#pragma once

#include <cstddef>
#include <vector>

#include "revolute/model/options.hpp"
#include "revolute/model/parameter_list.hpp"

namespace revolute {

using Doubles = std::vector<double>;
using Ints = std::vector<int>;
constexpr std::size_t any_size = -1;

// NUMBER(type, name, value unless given)
#define REVOLUTE_NUMBERS(NUMBER)              \
  NUMBER(int, nq, 0)                          \
  NUMBER(int, nv, 0)                          \
  NUMBER(int, nu, 0)                          \
  NUMBER(int, na, 0)                          \
  NUMBER(int, nbody, 0)                       \
  NUMBER(int, njnt, 0)                        \
  NUMBER(int, ngeom, 0)                       \
  NUMBER(int, nsite, 0)                       \
  NUMBER(int, integrator, 0 /* Integrator */) \
  NUMBER(double, impratio, 1)                 \
  NUMBER(bool, refsafe, true)                 \
  NUMBER(bool, eulerdamp, true)               \
  NUMBER(bool, unlisted_pairs, false)         \
  NUMBER(bool, filter_parent, true)           \
  NUMBER(double, density, 0)                  \
  NUMBER(double, viscosity, 0)

// INTS or DOUBLES(name, size in the arrays m, values unless given). Parameters have their own list (parameter_list.hpp).
#define REVOLUTE_ARRAYS(INTS, DOUBLES)                                                                            \
  INTS(body_parentid, m.nbody)                                                                                    \
  INTS(body_mocapid, m.nbody)                                                                                     \
  DOUBLES(body_pos, 3 * m.nbody)                                                                                  \
  DOUBLES(body_quat, 4 * m.nbody)                                                                                 \
  DOUBLES(body_iquat, 4 * m.nbody)                                                                                \
  DOUBLES(body_gravcomp, m.nbody)                                                                                 \
  INTS(jnt_type, m.njnt)                                                                                          \
  INTS(jnt_bodyid, m.njnt)                                                                                        \
  INTS(jnt_qposadr, m.njnt)                                                                                       \
  INTS(jnt_dofadr, m.njnt)                                                                                        \
  INTS(jnt_limited, m.njnt)                                                                                       \
  DOUBLES(jnt_pos, 3 * m.njnt)                                                                                    \
  DOUBLES(jnt_axis, 3 * m.njnt)                                                                                   \
  INTS(jnt_actfrclimited, m.njnt)                                                                                 \
  INTS(jnt_actgravcomp, m.njnt)                                                                                   \
  DOUBLES(jnt_actfrcrange, 2 * m.njnt)                                                                            \
  DOUBLES(qpos0, m.nq)                                                                                            \
  INTS(geom_type, m.ngeom)                                                                                        \
  INTS(geom_bodyid, m.ngeom)                                                                                      \
  DOUBLES(geom_pos, 3 * m.ngeom)                                                                                  \
  DOUBLES(geom_quat, 4 * m.ngeom)                                                                                 \
  DOUBLES(geom_size, 3 * m.ngeom)                                                                                 \
  DOUBLES(geom_rbound, m.ngeom)                                                                                   \
  /* MuJoCo's numbers of an ellipsoid in a medium; the first is 0: none */                                        \
  DOUBLES(geom_fluid, 12 * m.ngeom)                                                                               \
  DOUBLES(geom_semiaxes, 3 * m.ngeom)                                                                             \
  INTS(site_bodyid, m.nsite)                                                                                      \
  DOUBLES(site_pos, 3 * m.nsite)                                                                                  \
  DOUBLES(site_quat, 4 * m.nsite)                                                                                 \
  /* height fields: all heights are fractions of the third number of hfield_size; geom_field -1: none */          \
  INTS(hfield_nrow, any_size)                                                                                     \
  INTS(hfield_ncol, m.hfield_nrow.size())                                                                         \
  INTS(geom_field, m.ngeom)                                                                                       \
  DOUBLES(hfield_size, 4 * m.hfield_nrow.size())                                                                  \
  DOUBLES(hfield_data, any_size)                                                                                  \
  /* hulls of meshes: ranges of vertices and faces */                                                             \
  INTS(hull_adr, m.ngeom)                                                                                         \
  INTS(hull_num, m.ngeom)                                                                                         \
  DOUBLES(hull_vert, any_size)                                                                                    \
  INTS(hull_polyadr, m.ngeom)                                                                                     \
  INTS(hull_polynum, m.ngeom)                                                                                     \
  INTS(hull_polyvertnum, any_size)                                                                                \
  INTS(hull_polyvert, any_size)                                                                                   \
  /* triangles that rays may meet: their range, and their corners in the shape's frame; empty: no rays */         \
  INTS(ray_adr, m.ray_adr.empty() ? 0 : m.ngeom)                                                                  \
  INTS(ray_num, m.ray_adr.size())                                                                                 \
  DOUBLES(ray_triangles, any_size)                                                                                \
  /* pairs; friction: sliding, torsional, rolling; sliding nan: combine the geoms' */                             \
  INTS(pair_geom1, any_size)                                                                                      \
  INTS(pair_geom2, m.pair_geom1.size())                                                                           \
  INTS(pair_mu_from, m.pair_geom1.size())                                                                         \
  INTS(pair_condim, m.pair_geom1.size())                                                                          \
  DOUBLES(pair_friction, 3 * m.pair_geom1.size())                                                                 \
  DOUBLES(pair_margin, m.pair_geom1.size())                                                                       \
  DOUBLES(pair_gap, m.pair_geom1.size())                                                                          \
  /* with unlisted_pairs: filters of pairs; excluded_geoms: two shapes of each pair that is listed or left out */ \
  INTS(geom_contype, any_size)                                                                                    \
  INTS(geom_conaffinity, any_size)                                                                                \
  INTS(geom_priority, any_size)                                                                                   \
  INTS(geom_condim, any_size)                                                                                     \
  INTS(body_weldid, any_size)                                                                                     \
  INTS(exclude_signature, any_size)                                                                               \
  INTS(excluded_geoms, any_size)                                                                                  \
  DOUBLES(geom_margin, any_size)                                                                                  \
  DOUBLES(geom_gap, any_size)                                                                                     \
  DOUBLES(geom_solmix, any_size)                                                                                  \
  /* equalities: MuJoCo's types 0 connect, 1 weld, 2 joint; bodies or joints, -1: none */                         \
  INTS(eq_type, any_size)                                                                                         \
  INTS(eq_obj1, m.eq_type.size())                                                                                 \
  INTS(eq_obj2, m.eq_type.size())                                                                                 \
  DOUBLES(eq_data, 11 * m.eq_type.size())                                                                         \
  /* softness, of the contact model "mujoco" only; pair_weight: of the first geom, nan: values of its own */      \
  DOUBLES(body_invweight0, m.if_soft(2 * m.nbody))                                                                \
  DOUBLES(dof_invweight0, m.if_soft(m.nv))                                                                        \
  DOUBLES(jnt_solref, m.if_soft(2 * m.njnt))                                                                      \
  DOUBLES(jnt_solimp, m.if_soft(5 * m.njnt))                                                                      \
  DOUBLES(jnt_margin, m.if_soft(m.njnt))                                                                          \
  DOUBLES(dof_solref, m.if_soft(2 * m.nv))                                                                        \
  DOUBLES(dof_solimp, m.if_soft(5 * m.nv))                                                                        \
  DOUBLES(eq_solref, m.if_soft(2 * m.eq_type.size()))                                                             \
  DOUBLES(eq_solimp, m.if_soft(5 * m.eq_type.size()))                                                             \
  DOUBLES(pair_weight, m.if_soft(m.pair_geom1.size()))                                                            \
  DOUBLES(pair_solref, m.if_soft(2 * m.pair_geom1.size()))                                                        \
  DOUBLES(pair_solreffriction, m.if_soft(2 * m.pair_geom1.size()))                                                \
  DOUBLES(pair_solimp, m.if_soft(5 * m.pair_geom1.size()))                                                        \
  DOUBLES(pair_friction5, m.if_soft(5 * m.pair_geom1.size()))                                                     \
  /* actuators: the hinge or slide, tendon, or row of trn_type that each drives, -1: none */                      \
  INTS(act_dof, m.nu)                                                                                             \
  INTS(act_qpos, m.nu)                                                                                            \
  INTS(act_tendon, m.nu)                                                                                          \
  INTS(act_trn, m.nu)                                                                                             \
  INTS(act_ctrllimited, m.nu)                                                                                     \
  INTS(act_forcelimited, m.nu)                                                                                    \
  DOUBLES(act_ctrlrange, 2 * m.nu)                                                                                \
  DOUBLES(act_forcerange, 2 * m.nu)                                                                               \
  /* act_dyn: ActivationType; act_adr: index of the activation */                                                 \
  INTS(act_dyn, m.nu)                                                                                             \
  INTS(act_adr, m.nu)                                                                                             \
  INTS(act_early, m.nu)                                                                                           \
  INTS(act_actlimited, m.nu)                                                                                      \
  DOUBLES(act_dynprm, 3 * m.nu)                                                                                   \
  DOUBLES(act_actrange, 2 * m.nu)                                                                                 \
  /* muscleprm: MuJoCo's, with the computed force for a negative one */                                           \
  INTS(act_musclegain, m.nu)                                                                                      \
  INTS(act_musclebias, m.nu)                                                                                      \
  DOUBLES(act_musclegainprm, 9 * m.nu)                                                                            \
  DOUBLES(act_musclebiasprm, 9 * m.nu)                                                                            \
  DOUBLES(act_lengthrange, 2 * m.nu)                                                                              \
  /* other transmissions: TransmissionType, body and place of the site, ...; trn_refbody -1: none */              \
  INTS(trn_type, any_size)                                                                                        \
  INTS(trn_joint, m.trn_type.size())                                                                              \
  INTS(trn_inparent, m.trn_type.size())                                                                           \
  INTS(trn_body, m.trn_type.size())                                                                               \
  INTS(trn_refbody, m.trn_type.size())                                                                            \
  DOUBLES(trn_pos, 3 * m.trn_type.size())                                                                         \
  DOUBLES(trn_quat, 4 * m.trn_type.size())                                                                        \
  DOUBLES(trn_refpos, 3 * m.trn_type.size())                                                                      \
  DOUBLES(trn_refquat, 4 * m.trn_type.size())                                                                     \
  DOUBLES(trn_gear, 6 * m.trn_type.size())                                                                        \
  DOUBLES(trn_rod, m.trn_type.size())                                                                             \
  /* tendons: a fixed one has joints, a spatial one has pieces between two points */                              \
  INTS(ten_jointadr, any_size)                                                                                    \
  INTS(ten_jointnum, m.ten_jointadr.size())                                                                       \
  INTS(ten_segmentadr, m.ten_jointadr.size())                                                                     \
  INTS(ten_segmentnum, m.ten_jointadr.size())                                                                     \
  INTS(ten_joint, any_size)                                                                                       \
  DOUBLES(ten_coef, m.ten_joint.size())                                                                           \
  /* seg_wrap: row of wrap_*, or -1; wrap_sidebody -1: no side site */                                            \
  INTS(seg_body1, any_size)                                                                                       \
  INTS(seg_body2, m.seg_body1.size())                                                                             \
  INTS(seg_wrap, m.seg_body1.size())                                                                              \
  DOUBLES(seg_pos1, 3 * m.seg_body1.size())                                                                       \
  DOUBLES(seg_pos2, 3 * m.seg_body1.size())                                                                       \
  DOUBLES(seg_divisor, m.seg_body1.size())                                                                        \
  INTS(wrap_cylinder, any_size)                                                                                   \
  INTS(wrap_body, m.wrap_cylinder.size())                                                                         \
  INTS(wrap_sidebody, m.wrap_cylinder.size())                                                                     \
  DOUBLES(wrap_pos, 3 * m.wrap_cylinder.size())                                                                   \
  DOUBLES(wrap_quat, 4 * m.wrap_cylinder.size())                                                                  \
  DOUBLES(wrap_radius, m.wrap_cylinder.size())                                                                    \
  DOUBLES(wrap_side, 3 * m.wrap_cylinder.size())                                                                  \
  DOUBLES(ten_stiffness, m.ten_jointadr.size())                                                                   \
  DOUBLES(ten_damping, m.ten_jointadr.size())                                                                     \
  DOUBLES(ten_armature, m.ten_jointadr.size())                                                                    \
  DOUBLES(ten_lengthspring, 2 * m.ten_jointadr.size())                                                            \
  DOUBLES(ten_range, 2 * m.ten_jointadr.size())                                                                   \
  DOUBLES(ten_margin, m.ten_jointadr.size())                                                                      \
  DOUBLES(ten_frictionloss, m.ten_jointadr.size())                                                                \
  DOUBLES(ten_actfrcrange, 2 * m.ten_jointadr.size())                                                             \
  DOUBLES(ten_length0, m.ten_jointadr.size())                                                                     \
  INTS(ten_limited, m.ten_jointadr.size())                                                                        \
  INTS(ten_actfrclimited, m.ten_jointadr.size())                                                                  \
  DOUBLES(ten_solref_lim, m.if_soft(2 * m.ten_jointadr.size()))                                                   \
  DOUBLES(ten_solimp_lim, m.if_soft(5 * m.ten_jointadr.size()))                                                   \
  DOUBLES(ten_solref_fri, m.if_soft(2 * m.ten_jointadr.size()))                                                   \
  DOUBLES(ten_solimp_fri, m.if_soft(5 * m.ten_jointadr.size()))                                                   \
  DOUBLES(ten_invweight0, m.if_soft(m.ten_jointadr.size()))                                                       \
  DOUBLES(wind, 3, 0, 0, 0)

struct MujocoArrays : Options {
#define REVOLUTE_NUMBER(type, name, value) type name = value;
  REVOLUTE_NUMBERS(REVOLUTE_NUMBER)
#undef REVOLUTE_NUMBER
#define REVOLUTE_ARRAY(name, array, ...) Doubles array;
  REVOLUTE_PARAMETERS(REVOLUTE_ARRAY, REVOLUTE_ARRAY)
#undef REVOLUTE_ARRAY
#define REVOLUTE_INTS(name, size) Ints name;
#define REVOLUTE_DOUBLES(name, size, ...) Doubles name = {__VA_ARGS__};
  REVOLUTE_ARRAYS(REVOLUTE_INTS, REVOLUTE_DOUBLES)
#undef REVOLUTE_INTS
#undef REVOLUTE_DOUBLES

  // The size of an array that only the contact model "mujoco" reads.
  std::size_t if_soft(std::size_t size) const {
    return contact_model == ContactModel::mujoco ? size : any_size;
  }
};

// Calls visit(name, member) for every array, by MuJoCo's names.
template <class Visit>
void visit_arrays(MujocoArrays& arrays, Visit visit) {
  visit_options(arrays, visit);
#define REVOLUTE_VISIT(name, array, ...) visit(#array, arrays.array);
  REVOLUTE_PARAMETERS(REVOLUTE_VISIT, REVOLUTE_VISIT)
#undef REVOLUTE_VISIT
#define REVOLUTE_VISIT_NUMBER(type, name, ...) visit(#name, arrays.name);
  REVOLUTE_NUMBERS(REVOLUTE_VISIT_NUMBER)
#undef REVOLUTE_VISIT_NUMBER
#define REVOLUTE_VISIT(name, ...) visit(#name, arrays.name);
  REVOLUTE_ARRAYS(REVOLUTE_VISIT, REVOLUTE_VISIT)
#undef REVOLUTE_VISIT
}

// Calls visit(name, size, wanted size) for every array that has a size of its own.
template <class Visit>
void visit_sizes(const MujocoArrays& m, Visit visit) {
#define REVOLUTE_VISIT(name, array, wanted, ...) visit(#array, m.array.size(), std::size_t(wanted));
  REVOLUTE_PARAMETERS(REVOLUTE_VISIT, REVOLUTE_VISIT)
#undef REVOLUTE_VISIT
#define REVOLUTE_VISIT(name, wanted, ...) \
  if (std::size_t(wanted) != any_size) visit(#name, m.name.size(), std::size_t(wanted));
  REVOLUTE_ARRAYS(REVOLUTE_VISIT, REVOLUTE_VISIT)
#undef REVOLUTE_VISIT
}

}  // namespace revolute
