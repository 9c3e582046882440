// Activation states of actuators: their rates, and the step to the next states. They are stored after qvel: act = qvel + nv.
//
//   integrator:           rate = u                                                            (1)
//   filter, filterexact:  rate = (u - act)/tau                                                (2)
//   muscle:               rate = (u - act)/tau(u - act, act),  u within [0, 1]                (3)
//   act+ = clamp(act + s rate),   s = h; filterexact: s = tau (1 - exp(-h/tau))                (4)
// tau of a muscle is tau_act (1/2 + 3/2 act) if act grows, tau_deact/(1/2 + 3/2 act) if it falls, or a smooth step between
// the two. u is the control within its range.
// Source: MuJoCo, Computation, section Actuation model; Millard et al. 2013. Beyond a range there is no derivative.
#pragma once

#include "revolute/stages/ranges.hpp"

namespace revolute {

template <class Real>
struct ActivationRate {
  Real value, by_ctrl, by_act;
};

namespace detail {

template <class Real>
REVOLUTE_HD ActivationRate<Real> muscle_rate(const Actuator& actuator, const Real& ctrl, const Real& act) {
  const double unit[2] = {0, 1};
  Real ctrl_cut, act_cut;
  const Real u = within_range(true, unit, ctrl, ctrl_cut), a = within_range(true, unit, act, act_cut);
  const Real one(1), half(0.5), stretch = half + Real(1.5) * a, stretch_slope = Real(1.5) * act_cut;
  const Real up = Real(actuator.time[0]) * stretch, down = Real(actuator.time[1]) / stretch;
  const Real up_slope = Real(actuator.time[0]) * stretch_slope,
             down_slope = -(down / stretch) * stretch_slope;
  const Real excess = u - act;
  Real share, share_slope(0);  // share of `up`
  const double width = actuator.time[2];
  if (width < 1e-15) {
    share = indicator<Real>(less(Real(0), excess));
  } else {
    Real cut;
    const Real x = within_range(true, unit, excess * Real(1 / width) + half, cut);
    share = x * x * x * (x * (Real(6) * x - Real(15)) + Real(10));
    share_slope = cut * Real(30 / width) * x * x * (one - x) * (one - x);
  }
  const Real tau = maximum(Real(1e-15), down + (up - down) * share), inverse = one / tau;
  const Real tau_by_act = down_slope + (up_slope - down_slope) * share;
  const Real by_excess = inverse - excess * inverse * inverse * (up - down) * share_slope;
  return {excess * inverse, ctrl_cut * by_excess, -by_excess - excess * inverse * inverse * tau_by_act};
}

}  // namespace detail

// (1) to (3), for a control within its range
template <class Real>
REVOLUTE_HD ActivationRate<Real> activation_rate(const Actuator& actuator, const Real& ctrl,
                                                 const Real& act) {
  const Real inverse(1 / actuator.time[0]);
  switch (actuator.dynamics) {
    case ActivationType::integrator:
      return {ctrl, Real(1), Real(0)};
    case ActivationType::muscle:
      return detail::muscle_rate(actuator, ctrl, act);
    default:
      return {(ctrl - act) * inverse, inverse, -inverse};
  }
}

// (4); `cut` is 0 if the range cut the activation off
template <class Real>
REVOLUTE_HD Real next_activation(const Actuator& actuator, const Real& act, const Real& rate, Real& cut) {
  return within_range(actuator.act_limited, actuator.act_range, act + Real(actuator.act_step) * rate, cut);
}

// Calls visit(actuator, its activation, its number) for the actuators with an activation.
template <class Visit>
REVOLUTE_HD void visit_activations(const Model& model, const Visit& visit) {
  for (int a = 0; model.na > 0 && a < model.nu; ++a)
    if (const Actuator& actuator = model.actuators[a]; actuator.dynamics != ActivationType::none)
      visit(actuator, actuator.act, a);
}

// Rates of all activations.
template <class Real>
REVOLUTE_HD void activation_rates(const Model& model, const Real* ctrl, const Real* act, Real* rates) {
  visit_activations(model, [&](const Actuator& actuator, int i, int a) {
    Real cut;
    const Real u = within_range(actuator.ctrl_limited, actuator.ctrl_range, ctrl[a], cut);
    rates[i] = activation_rate(actuator, u, act[i]).value;
  });
}
// Adds to ctrl_bar and act_bar.
template <class Real, class Bar>
REVOLUTE_HD void activation_rates_adjoint(const Model& model, const Real* ctrl, const Real* act,
                                          const Bar* rates_bar, Bar* ctrl_bar, Bar* act_bar) {
  visit_activations(model, [&](const Actuator& actuator, int i, int a) {
    Real cut;
    const Real u = within_range(actuator.ctrl_limited, actuator.ctrl_range, ctrl[a], cut);
    const ActivationRate<Real> rate = activation_rate(actuator, u, act[i]);
    ctrl_bar[a] += (cut * rate.by_ctrl) * rates_bar[i];
    act_bar[i] += rate.by_act * rates_bar[i];
  });
}

// Computes the activations of the next step.
template <class Real>
REVOLUTE_HD void advance_activations(const Model& model, const Real* act, const Real* rates, Real* next) {
  visit_activations(model, [&](const Actuator& actuator, int i, int) {
    Real cut;
    next[i] = next_activation(actuator, act[i], rates[i], cut);
  });
}
// Sets rates_bar; adds to act_bar.
template <class Real, class Bar>
REVOLUTE_HD void advance_activations_adjoint(const Model& model, const Real* act, const Real* rates,
                                             const Bar* next_bar, Bar* rates_bar, Bar* act_bar) {
  visit_activations(model, [&](const Actuator& actuator, int i, int) {
    Real cut;
    next_activation(actuator, act[i], rates[i], cut);
    const Bar bar = cut * next_bar[i];
    rates_bar[i] = Real(actuator.act_step) * bar;
    act_bar[i] += bar;
  });
}

}  // namespace revolute
