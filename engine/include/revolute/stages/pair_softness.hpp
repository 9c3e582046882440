// Friction of a pair of shapes, and in the contact model "mujoco" its softness, from those of its geoms by MuJoCo's rules.
//
//   friction: the larger of the two, or that of the geom with priority; in "mujoco" at least 1e-5           (1)
//   solimp:   w a + (1 - w) b                                                                               (2)
//   solref:   as (2); with equal priorities and one of the two in direct form, the smaller numbers               (3)
// A pair that the file names has its own numbers, which are constants. If the two frictions are equal, each gets half of the
// cotangent (the central difference of max).
#pragma once

#include "revolute/model/parameters.hpp"
#include "revolute/scalar/scalar.hpp"

namespace revolute {

// The column of geom_friction for each of a pair's five coefficients.
REVOLUTE_HD inline int friction_column(int coefficient) {
  return coefficient < 2 ? 0 : coefficient == 2 ? 1 : 2;
}

namespace detail {

// d(1)/da and d(1)/db
template <class Real>
struct FrictionShares {
  Real a, b, friction;
};
template <class Real>
REVOLUTE_HD FrictionShares<Real> friction_shares(const PairMixing& mixing, const Real& a, const Real& b,
                                                 double smallest) {
  FrictionShares<Real> out = {Real(double(mixing.from_a)), Real(double(mixing.from_b)), Real(0)};
  if (mixing.from_a && mixing.from_b) {
    out.a = select(less(b, a), Real(1), select(less(a, b), Real(0), Real(0.5)));
    out.b = Real(1) - out.a;
    out.friction = select(less(a, b), b, select(less(b, a), a, Real(0.5) * (a + b)));
  } else {
    out.friction = mixing.from_a ? a : b;
  }
  const auto least = less(out.friction, Real(smallest));
  out.friction = select(least, Real(smallest), out.friction);
  out.a = select(least, Real(0), out.a);
  out.b = select(least, Real(0), out.b);
  return out;
}
// The environments in which solref follows (2).
template <class Real>
REVOLUTE_HD MaskOf<Real> mixes_solref(const PairMixing& mixing, const Real& a, const Real& b) {
  const auto always = less(Real(0), Real(1));
  if (mixing.from_a != mixing.from_b) return always;
  return less(Real(0), a) & less(Real(0), b);
}

}  // namespace detail

// (1) for one of the five coefficients, in the hard contact model.
template <class Real>
REVOLUTE_HD inline Real pair_friction(const Model& model, const Parameters<Real>& parameters,
                                      const Candidate& candidate, int coefficient) {
  if (candidate.mixing.own >= 0) return Real(model.own_softness[candidate.mixing.own].friction[coefficient]);
  const Real* const column = parameters.geom_friction + friction_column(coefficient);
  return detail::friction_shares(candidate.mixing, column[3 * candidate.geom_a], column[3 * candidate.geom_b],
                                 0.0)
      .friction;
}
template <class Real, class Bar>
REVOLUTE_HD inline void pair_friction_adjoint(const Parameters<Real>& parameters, const Candidate& candidate,
                                              int coefficient, const Bar& friction_bar,
                                              Parameters<Bar>& parameters_bar) {
  if (candidate.mixing.own >= 0) return;
  const int at_a = 3 * candidate.geom_a + friction_column(coefficient),
            at_b = 3 * candidate.geom_b + friction_column(coefficient);
  const detail::FrictionShares<Real> shares = detail::friction_shares(
      candidate.mixing, parameters.geom_friction[at_a], parameters.geom_friction[at_b], 0.0);
  parameters_bar.geom_friction[at_a] += shares.a * friction_bar;
  parameters_bar.geom_friction[at_b] += shares.b * friction_bar;
}

template <class Real>
REVOLUTE_HD PairSoftness<Real> pair_softness(const Model& model, const Parameters<Real>& parameters,
                                             const Candidate& candidate) {
  PairSoftness<Real> out;
  const PairMixing& mixing = candidate.mixing;
  if (mixing.own >= 0) {
    const PairSoftness<double>& own = model.own_softness[mixing.own];
    for (int i = 0; i < 5; ++i) out.friction[i] = Real(own.friction[i]), out.solimp[i] = Real(own.solimp[i]);
    for (int i = 0; i < 2; ++i)
      out.solref[i] = Real(own.solref[i]), out.solref_friction[i] = Real(own.solref_friction[i]);
    return out;
  }
  const int a = candidate.geom_a, b = candidate.geom_b;
  for (int i = 0; i < 5; ++i) {
    const Real* const column = parameters.geom_friction + friction_column(i);
    out.friction[i] =
        detail::friction_shares(mixing, column[3 * a], column[3 * b], least_friction).friction;  // (1)
  }
  const Real w(mixing.weight_a), rest(1.0 - mixing.weight_a);
  for (int i = 0; i < 5; ++i)
    out.solimp[i] = w * parameters.geom_solimp[5 * a + i] + rest * parameters.geom_solimp[5 * b + i];  // (2)
  const Real *of_a = parameters.geom_solref + 2 * a, *of_b = parameters.geom_solref + 2 * b;
  const auto mean = detail::mixes_solref(mixing, of_a[0], of_b[0]);
  for (int i = 0; i < 2; ++i) {
    out.solref[i] = select(mean, Real(w * of_a[i] + rest * of_b[i]), minimum(of_a[i], of_b[i]));  // (3)
    out.solref_friction[i] = Real(0);
  }
  return out;
}

template <class Real, class Bar>
REVOLUTE_HD void pair_softness_adjoint(const Parameters<Real>& parameters, const Candidate& candidate,
                                       const PairSoftness<Bar>& bar, Parameters<Bar>& parameters_bar) {
  const PairMixing& mixing = candidate.mixing;
  if (mixing.own >= 0) return;
  const int a = candidate.geom_a, b = candidate.geom_b;
  for (int i = 0; i < 5; ++i) {
    const int at_a = 3 * a + friction_column(i), at_b = 3 * b + friction_column(i);
    const detail::FrictionShares<Real> shares = detail::friction_shares(
        mixing, parameters.geom_friction[at_a], parameters.geom_friction[at_b], least_friction);
    parameters_bar.geom_friction[at_a] += shares.a * bar.friction[i];
    parameters_bar.geom_friction[at_b] += shares.b * bar.friction[i];
  }
  const Real w(mixing.weight_a), rest(1.0 - mixing.weight_a);
  for (int i = 0; i < 5; ++i) {
    parameters_bar.geom_solimp[5 * a + i] += w * bar.solimp[i];
    parameters_bar.geom_solimp[5 * b + i] += rest * bar.solimp[i];
  }
  const Real *of_a = parameters.geom_solref + 2 * a, *of_b = parameters.geom_solref + 2 * b;
  const auto mean = detail::mixes_solref(mixing, of_a[0], of_b[0]);
  for (int i = 0; i < 2; ++i) {
    const Real share = select(mean, w, select(less(of_b[i], of_a[i]), Real(0), Real(1)));
    parameters_bar.geom_solref[2 * a + i] += share * bar.solref[i];
    parameters_bar.geom_solref[2 * b + i] += (Real(1) - share) * bar.solref[i];
  }
}

}  // namespace revolute
