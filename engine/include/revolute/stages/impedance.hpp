// The stiffness and damping of MuJoCo's soft constraints, from solimp, solref and the violation x = pos - margin.
//
//   I = d0 + y (dmax - d0),  y a sigmoid of |x|/width in two pieces of order p that meet at `midpoint`      (1)
//     piece: b = x/mid (or (1-x)/(1-mid)),  s = mid (or 1-mid),  y = s b^p (or 1 - s b^p)
//   standard form, solref = (timeconst, dampratio):  K = 1/(dmax timeconst dampratio)^2,  B = 2/(dmax timeconst)      (2)
//   direct form, both <= 0:  K = -solref0/dmax^2,  B = -solref1/dmax                                  (3)
// Source: MuJoCo, Computation, section Constraint model: Parameters. refsafe raises timeconst to 2 h, and solimp is clipped to
// its range: there is no derivative there. If width is zero, I is the mean.
#pragma once

#include "revolute/model/model.hpp"
#include "revolute/scalar/power.hpp"

namespace revolute {

constexpr double least_value = 1e-15, least_impedance = 1e-4, most_impedance = 0.9999;  // as in MuJoCo

template <class Real>
struct Impedance {
  Real value, slope;  // I, dI/dx
  Real most;          // dmax, within its range
};
// The derivatives of I by solimp.
template <class Real>
struct ImpedanceSlopes {
  Real by_solimp[5];
};

template <class Real>
REVOLUTE_HD inline MaskOf<Real> within(const Real& value, double lower, double upper) {
  return less(Real(lower), value) & less(value, Real(upper));
}

// (1); `slopes` may be null
template <class Real>
REVOLUTE_HD Impedance<Real> impedance(const Real* solimp, const Real& x0, ImpedanceSlopes<Real>* slopes) {
  const auto clipped = [](const Real& a) { return clamp(a, Real(least_impedance), Real(most_impedance)); };
  const Real d0 = clipped(solimp[0]), dmax = clipped(solimp[1]), mid = clipped(solimp[3]);
  const Real width = maximum(Real(0), solimp[2]), p = maximum(Real(1), solimp[4]), one(1);
  const auto flat = less_equal(width, Real(least_value));
  const Real inverse_width = one / select(flat, one, width);
  const Real x = minimum(abs(x0) * inverse_width, one);
  const auto inside = less(Real(0), x) & less(x, one) & !flat;
  const auto lower = less_equal(x, mid);
  const Real size = select(lower, mid, one - mid);
  const Real base = select(inside, select(lower, x, one - x), one) / size;
  const Real raised = power(base, p);
  const Real piece = size * raised;
  // outside a constant: x itself has a tangent at 0
  const Real outside = select(flat, Real(0.5), select(less(x, one), Real(0), one));
  const Real y = select(inside, select(lower, piece, one - piece), outside);
  const Real by_x = select(inside, p * raised / base, Real(0)), range = dmax - d0;
  Impedance<Real> out;
  out.value = d0 + y * range;
  out.slope = flip_sign(range * by_x * inverse_width, x0);
  out.most = dmax;
  if (slopes) {
    const auto cut = [&](int i) { return within(solimp[i], least_impedance, most_impedance); };
    const Real o(0), logarithm = natural_logarithm(select(inside, base, one));
    slopes->by_solimp[0] = select(cut(0), one - y, o);
    slopes->by_solimp[1] = select(cut(1), y, o);
    slopes->by_solimp[2] = select(inside, -range * by_x * x * inverse_width, o);
    slopes->by_solimp[3] = select(inside & cut(3), range * (one - p) * raised, o);
    slopes->by_solimp[4] =
        select(inside & less(one, solimp[4]), range * select(lower, piece, -piece) * logarithm, o);
  }
  return out;
}

// K and B, and their derivatives.
template <class Real>
struct Reference {
  Real stiffness, damping;
  Real stiffness_by_solref[2], damping_by_solref[2], stiffness_by_most, damping_by_most;
};

// (2), (3)
template <class Real>
REVOLUTE_HD Reference<Real> reference(const Model& model, const Real& h, const Real* solref,
                                      const Real& most) {
  const Real o(0), one(1), tiny(least_value);
  const auto positive0 = less(o, solref[0]), positive1 = less(o, solref[1]);
  const auto mixed = (positive0 & !positive1) | (positive1 & !positive0);
  const Real given = select(mixed, Real(0.02), solref[0]), ratio = select(mixed, one, solref[1]);
  const auto standard = less(o, given);
  const auto raised = standard & less(given, Real(2) * h);
  const Real time = model.safe_solref ? select(raised, Real(2) * h, given) : given;
  auto free = !mixed;
  if (model.safe_solref) free = free & !raised;
  const Real inverse_most = one / maximum(tiny, most);
  // standard form
  const Real safe_time = select(standard, time, one), safe_ratio = select(standard, ratio, one);
  const Real damped = most * safe_time, stiff = damped * safe_ratio;
  const Real B = Real(2) / maximum(tiny, damped), K = one / maximum(tiny, stiff * stiff);
  // direct form
  const Real direct_K = -time * inverse_most * inverse_most, direct_B = -ratio * inverse_most;
  Reference<Real> out;
  out.stiffness = select(standard, K, direct_K);
  out.damping = select(standard, B, direct_B);
  out.stiffness_by_solref[0] = select(standard, select(free, Real(-2) * K / safe_time, o),
                                      select(mixed, o, -inverse_most * inverse_most));
  out.stiffness_by_solref[1] = select(standard & !mixed, Real(-2) * K / safe_ratio, o);
  out.damping_by_solref[0] = select(standard & free, -B / safe_time, o);
  out.damping_by_solref[1] = select(standard, o, -inverse_most);
  out.stiffness_by_most = Real(-2) * out.stiffness * inverse_most;
  out.damping_by_most = -out.damping * inverse_most;
  return out;
}

}  // namespace revolute
