// The system of the integrators implicitfast and implicit, for forces whose dependence on velocity is more than a diagonal:
//   N = M + E + h dC/dv,  N a^ = M a                                                          (1)
// dC/dv is included for the gyroscopic trees: all trees (implicit), or those of a single free joint (implicitfast). It is
// not symmetric; an entry couples a degree of freedom with its ancestors, as in mass_matrix.hpp. Column j, for k beyond j:
//   dV_k = S_j,   dA_k = dA_p + v_k (dV_base x S_k) + [k = j] V_base x S_j,                    (2)
//   dF_k = I_k dA_k + S_j x* I_k V_k + V_k x* I_k S_j,   (dC/dv)_ij = S_i . (sum of dF beyond i)
// Factors N = P Q from the leaves on, P with unit diagonal: N_ij -= N_ik N_kj / N_kk.
// Source: Featherstone 2008, section 5.3, differentiated by v.
//
// Adjoint: C is quadratic in v, so  p . (dC/dv) a^ = (p . C(v + a^) - p . C(v - a^))/2. Its gradient by the configuration, v and
// parameters is two sweeps of acceleration.hpp.                                                (3)
#pragma once

#include "revolute/stages/acceleration.hpp"
#include "revolute/stages/mass_matrix.hpp"
#include "revolute/stages/medium.hpp"

namespace revolute {

template <class Real>
struct ImplicitVelocity {
  Real *lower, *upper;  // rows as in the mass matrix: N_kj, and N_jk; factors: Q with 1/N_kk, P
  Motion<Real>* dA;     // [nv] scratch
  Force<Real>* dF;      // [nv] scratch
  // for (3), at v + a^ and v - a^
  Real* velocity[2];
  Motion<Real>* V[2];
  Acceleration<Real> plus, minus;

  ImplicitVelocity(const Model& model, Arena& arena) : plus(model, arena), minus(model, arena) {
    for (Real** array : {&lower, &upper})
      *array = arena.take<Real>(model.mass_rows ? model.mass_rows[model.nv] : 0);
    dA = arena.take<Motion<Real>>(model.nv);
    dF = arena.take<Force<Real>>(model.nv);
    for (int i = 0; i < 2; ++i) {
      velocity[i] = arena.take<Real>(model.nv);
      V[i] = arena.take<Motion<Real>>(model.nv);
    }
  }
};

REVOLUTE_HD inline bool is_gyroscopic(const Model& model, int dof) {
  return model.integrator == Integrator::implicit ||
         (model.integrator == Integrator::implicitfast && model.single_free[model.dofs[dof].tree]);
}
REVOLUTE_HD inline bool any_gyroscopic(const Model& model) {
  if (model.integrator == Integrator::implicit) return true;
  if (model.integrator != Integrator::implicitfast) return false;
  for (int t = 0; t < model.ntree; ++t)
    if (model.single_free[t]) return true;
  return false;
}

// (2), times h
template <class Real>
REVOLUTE_HD void add_bias_slopes(const Model& model, const Kinematics<Real>& kin, Real h, const Real* qvel,
                                 int j, ImplicitVelocity<Real>& out) {
  int end = j + 1;
  while (end < model.nv && model.dofs[end].parent >= j) ++end;
  const Motion<Real>& S_j = kin.S[j];
  for (int k = j; k < end; ++k) {
    const Dof& dof = model.dofs[k];
    Motion<Real> dA = k == j ? zero_motion<Real>() : out.dA[dof.parent];
    if (dof.velocity_base >= j) dA += qvel[k] * cross_motion(S_j, kin.S[k]);
    if (k == j && dof.velocity_base >= 0) dA += cross_motion(kin.V[dof.velocity_base], S_j);
    out.dA[k] = dA;
    out.dF[k] = zero_force<Real>();
    if (dof.has_inertia)
      out.dF[k] =
          kin.I[k] * dA + cross_force(S_j, kin.I[k] * kin.V[k]) + cross_force(kin.V[k], kin.I[k] * S_j);
  }
  const int depth = tree_row(model, j).count;
  for (int k = end - 1; k > j; --k) {
    const int place = tree_row(model, k).count - depth;
    out.lower[model.mass_rows[k] + place] += h * dot(kin.S[k], out.dF[k]);
    out.dF[model.dofs[k].parent] += out.dF[k];
  }
  const MatrixRow row = tree_row(model, j);
  out.lower[model.mass_rows[j]] += h * dot(S_j, out.dF[j]);
  for (int i = 1; i < row.count; ++i)
    out.upper[model.mass_rows[j] + i] += h * dot(kin.S[row.dofs[i]], out.dF[j]);
}

// (1) and its factors
template <class Real>
REVOLUTE_HD void implicit_velocity(const Model& model, const Parameters<Real>& parameters,
                                   const Kinematics<Real>& kin, const MassMatrix<Real>& M,
                                   const Real* diagonal, const Real* coupling, Real h, const Real* qvel,
                                   ImplicitVelocity<Real>& out) {
  const int count = model.mass_rows[model.nv];
  for (int i = 0; i < count; ++i) out.lower[i] = out.upper[i] = M.entries[i];
  for (int i = 0; coupling && i < count; ++i) out.lower[i] = out.upper[i] = M.entries[i] + coupling[i];
  for (int k = 0; k < model.nv; ++k) out.lower[model.mass_rows[k]] += diagonal[k];
  if (model.integrator == Integrator::implicit)
    add_medium_slopes(model, parameters, kin, h, out.lower, out.upper);
  for (int j = 0; j < model.nv; ++j)
    if (is_gyroscopic(model, j)) add_bias_slopes(model, kin, h, qvel, j, out);
  for (int k = model.nv - 1; k >= 0; --k) {
    const MatrixRow row = tree_row(model, k);
    Real *const Q = out.lower + model.mass_rows[k], *const P = out.upper + model.mass_rows[k];
    Q[0] = Real(1) / Q[0];
    for (int i = 1; i < row.count; ++i) {
      P[i] = P[i] * Q[0];
      Real* const of_i = out.lower + model.mass_rows[row.dofs[i]];
      for (int j = i; j < row.count; ++j) of_i[j - i] = multiply_add(-P[i], Q[j], of_i[j - i]);
      for (int j = 1; j < i; ++j) {
        Real* const of_j = out.upper + model.mass_rows[row.dofs[j]];
        of_j[i - j] = multiply_add(-P[i], Q[j], of_j[i - j]);
      }
    }
  }
}

// x = N^-1 x
template <class Real>
REVOLUTE_HD void solve(const Model& model, const ImplicitVelocity<Real>& N, Real* x) {
  for (int k = model.nv - 1; k >= 0; --k) {
    const MatrixRow row = tree_row(model, k);
    const Real* const P = N.upper + model.mass_rows[k];
    for (int i = 1; i < row.count; ++i) x[row.dofs[i]] = multiply_add(-P[i], x[k], x[row.dofs[i]]);
  }
  for (int k = 0; k < model.nv; ++k) {
    const MatrixRow row = tree_row(model, k);
    const Real* const Q = N.lower + model.mass_rows[k];
    for (int i = 1; i < row.count; ++i) x[k] = multiply_add(-Q[i], x[row.dofs[i]], x[k]);
    x[k] = x[k] * Q[0];
  }
}
// x = N^-T x
template <class Real, class X>
REVOLUTE_HD void solve_transposed(const Model& model, const ImplicitVelocity<Real>& N, X* x) {
  for (int k = model.nv - 1; k >= 0; --k) {
    const MatrixRow row = tree_row(model, k);
    const Real* const Q = N.lower + model.mass_rows[k];
    x[k] = x[k] * Q[0];
    for (int i = 1; i < row.count; ++i) x[row.dofs[i]] = multiply_add(-Q[i], x[k], x[row.dofs[i]]);
  }
  for (int k = 0; k < model.nv; ++k) {
    const MatrixRow row = tree_row(model, k);
    const Real* const P = N.upper + model.mass_rows[k];
    for (int i = 1; i < row.count; ++i) x[k] = multiply_add(-P[i], x[row.dofs[i]], x[k]);
  }
}

// The kinematics at another velocity.
template <class Real>
REVOLUTE_HD inline Kinematics<Real> at_velocity(Kinematics<Real> kin, Motion<Real>* V) {
  kin.V = V;
  return kin;
}

// Computes what (3) needs.
template <class Real>
REVOLUTE_HD void record_implicit_velocity(const Model& model, const Parameters<Real>& parameters,
                                          const Kinematics<Real>& kin, const Real* qvel, const Real* a_next,
                                          ImplicitVelocity<Real>& at) {
  for (int side = 0; side < 2; ++side) {
    Acceleration<Real>& out = side == 0 ? at.plus : at.minus;
    for (int k = 0; k < model.nv; ++k) {
      at.velocity[side][k] = side == 0 ? qvel[k] + a_next[k] : qvel[k] - a_next[k];
      out.a0[k] = Real(0);
    }
    link_velocities(model, kin.S, at.velocity[side], at.V[side]);
    record_acceleration(model, parameters, at_velocity(kin, at.V[side]), at.velocity[side],
                        static_cast<const Real*>(nullptr), out);
  }
}

// Adds the gradient of -h p . (dC/dv) a^; `scaled`, `F_v` and `unused` are scratch.
template <class Real, class Bar>
REVOLUTE_HD void implicit_velocity_adjoint(const Model& model, const Kinematics<Real>& kin,
                                           const ImplicitVelocity<Real>& at, Real h, const Bar* p,
                                           Bar* scaled, Force<Bar>* F_v,
                                           AccelerationAdjointScratch<Bar>& scratch,
                                           KinematicsCotangent<Bar>& kin_bar, Bar* qvel_bar, Bar* unused,
                                           Parameters<Bar>& parameters_bar) {
  for (int side = 0; side < 2; ++side) {
    const Real half = Real(side == 0 ? 0.5 : -0.5) * h;
    for (int k = 0; k < model.nv; ++k) {
      scaled[k] = is_gyroscopic(model, k) ? half * p[k] : Bar(0);
      F_v[k] = zero_force<Bar>();
      unused[k] = Bar(0);
    }
    const AccelerationAdjointInput<Real, Bar> in = {scaled, nullptr, nullptr, F_v};
    acceleration_adjoint(model, at_velocity(kin, at.V[side]), side == 0 ? at.plus : at.minus,
                         at.velocity[side], in, scratch, kin_bar, qvel_bar, unused, parameters_bar);
  }
}

}  // namespace revolute
