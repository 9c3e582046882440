// Checks that the sizes of the arrays fit together.
#include <stdexcept>
#include <string>
#include <tuple>

#include "model_builder.hpp"

namespace revolute {

void ModelBuilder::check_sizes() const {
  const std::size_t nq = in_.nq, nu = in_.nu, nb = in_.nbody, nj = in_.njnt, ng = in_.ngeom,
                    np = in_.pair_geom1.size();
  const std::vector<std::tuple<const char*, std::size_t, std::size_t>> sizes = {
      {"body_parentid", in_.body_parentid.size(), nb},
      {"body_pos", in_.body_pos.size(), 3 * nb},
      {"body_quat", in_.body_quat.size(), 4 * nb},
      {"body_mocapid", in_.body_mocapid.size(), nb},
      {"body_iquat", in_.body_iquat.size(), 4 * nb},
      {"jnt_type", in_.jnt_type.size(), nj},
      {"jnt_bodyid", in_.jnt_bodyid.size(), nj},
      {"jnt_qposadr", in_.jnt_qposadr.size(), nj},
      {"jnt_dofadr", in_.jnt_dofadr.size(), nj},
      {"jnt_limited", in_.jnt_limited.size(), nj},
      {"jnt_pos", in_.jnt_pos.size(), 3 * nj},
      {"jnt_axis", in_.jnt_axis.size(), 3 * nj},
      {"qpos0", in_.qpos0.size(), nq},
      {"geom_type", in_.geom_type.size(), ng},
      {"geom_bodyid", in_.geom_bodyid.size(), ng},
      {"geom_pos", in_.geom_pos.size(), 3 * ng},
      {"geom_quat", in_.geom_quat.size(), 4 * ng},
      {"geom_size", in_.geom_size.size(), 3 * ng},
      {"geom_rbound", in_.geom_rbound.size(), ng},
      {"geom_fluid", in_.geom_fluid.size(), 12 * ng},
      {"geom_semiaxes", in_.geom_semiaxes.size(), 3 * ng},
      {"site_bodyid", in_.site_bodyid.size(), std::size_t(in_.nsite)},
      {"site_pos", in_.site_pos.size(), 3 * std::size_t(in_.nsite)},
      {"site_quat", in_.site_quat.size(), 4 * std::size_t(in_.nsite)},
      {"hfield_ncol", in_.hfield_ncol.size(), in_.hfield_nrow.size()},
      {"hfield_size", in_.hfield_size.size(), 4 * in_.hfield_nrow.size()},
      {"geom_field", in_.geom_field.size(), ng},
      {"hull_adr", in_.hull_adr.size(), ng},
      {"hull_num", in_.hull_num.size(), ng},
      {"hull_polyadr", in_.hull_polyadr.size(), ng},
      {"hull_polynum", in_.hull_polynum.size(), ng},
      {"ray_adr", in_.ray_adr.size(), in_.ray_adr.empty() ? 0 : ng},
      {"ray_num", in_.ray_num.size(), in_.ray_adr.size()},
      {"pair_geom2", in_.pair_geom2.size(), np},
      {"pair_mu_from", in_.pair_mu_from.size(), np},
      {"pair_condim", in_.pair_condim.size(), np},
      {"pair_friction", in_.pair_friction.size(), 3 * np},
      {"pair_margin", in_.pair_margin.size(), np},
      {"pair_gap", in_.pair_gap.size(), np},
      {"eq_obj1", in_.eq_obj1.size(), in_.eq_type.size()},
      {"eq_obj2", in_.eq_obj2.size(), in_.eq_type.size()},
      {"eq_data", in_.eq_data.size(), 11 * in_.eq_type.size()},
      {"act_dof", in_.act_dof.size(), nu},
      {"act_qpos", in_.act_qpos.size(), nu},
      {"act_ctrllimited", in_.act_ctrllimited.size(), nu},
      {"act_forcelimited", in_.act_forcelimited.size(), nu},
      {"act_ctrlrange", in_.act_ctrlrange.size(), 2 * nu},
      {"act_forcerange", in_.act_forcerange.size(), 2 * nu},
      {"act_tendon", in_.act_tendon.size(), nu},
      {"act_trn", in_.act_trn.size(), nu},
      {"act_dyn", in_.act_dyn.size(), nu},
      {"act_adr", in_.act_adr.size(), nu},
      {"act_early", in_.act_early.size(), nu},
      {"act_actlimited", in_.act_actlimited.size(), nu},
      {"act_dynprm", in_.act_dynprm.size(), 3 * nu},
      {"act_actrange", in_.act_actrange.size(), 2 * nu},
      {"act_musclegain", in_.act_musclegain.size(), nu},
      {"act_musclebias", in_.act_musclebias.size(), nu},
      {"act_musclegainprm", in_.act_musclegainprm.size(), 9 * nu},
      {"act_musclebiasprm", in_.act_musclebiasprm.size(), 9 * nu},
      {"act_lengthrange", in_.act_lengthrange.size(), 2 * nu},
      {"jnt_actfrclimited", in_.jnt_actfrclimited.size(), nj},
      {"jnt_actgravcomp", in_.jnt_actgravcomp.size(), nj},
      {"jnt_actfrcrange", in_.jnt_actfrcrange.size(), 2 * nj},
      {"body_gravcomp", in_.body_gravcomp.size(), nb},
      {"wind", in_.wind.size(), 3}};
  for (const auto& [name, got, wanted] : sizes) expect(name, got, wanted);
  const MujocoArrays& m = in_;
#define REVOLUTE_EXPECT(name, array, wanted, ...) expect(#array, m.array.size(), std::size_t(wanted));
  REVOLUTE_PARAMETERS(REVOLUTE_EXPECT, REVOLUTE_EXPECT)
#undef REVOLUTE_EXPECT
  if (soft()) check_soft_sizes();
}

void ModelBuilder::check_soft_sizes() const {
  const std::size_t nv = in_.nv, nb = in_.nbody, nj = in_.njnt, np = in_.pair_geom1.size(),
                    ne = in_.eq_type.size();
  const std::vector<std::tuple<const char*, std::size_t, std::size_t>> sizes = {
      {"body_invweight0", in_.body_invweight0.size(), 2 * nb},
      {"dof_invweight0", in_.dof_invweight0.size(), nv},
      {"jnt_solref", in_.jnt_solref.size(), 2 * nj},
      {"jnt_solimp", in_.jnt_solimp.size(), 5 * nj},
      {"jnt_margin", in_.jnt_margin.size(), nj},
      {"dof_solref", in_.dof_solref.size(), 2 * nv},
      {"dof_solimp", in_.dof_solimp.size(), 5 * nv},
      {"eq_solref", in_.eq_solref.size(), 2 * ne},
      {"eq_solimp", in_.eq_solimp.size(), 5 * ne},
      {"pair_weight", in_.pair_weight.size(), np},
      {"pair_solref", in_.pair_solref.size(), 2 * np},
      {"pair_solreffriction", in_.pair_solreffriction.size(), 2 * np},
      {"pair_solimp", in_.pair_solimp.size(), 5 * np},
      {"pair_friction5", in_.pair_friction5.size(), 5 * np}};
  for (const auto& [name, got, wanted] : sizes) expect(name, got, wanted);
}

void ModelBuilder::expect(const char* name, std::size_t got, std::size_t wanted) {
  if (got != wanted)
    throw std::invalid_argument(std::string(name) + ": expected " + std::to_string(wanted) +
                                " numbers, got " + std::to_string(got));
}

}  // namespace revolute
