// The costs s(y) whose slopes are MuJoCo's constraint forces, f = -s'(y), of one constraint with rows y = J a - aref.
//
//   quadratic:   sum D y^2/2                                                                  (1)
//   huber:       D y^2/2 up to |D y| = bound, linear beyond (dry friction)
//   unilateral:  D min(y, 0)^2/2 (limits, contacts without friction)
//   pyramid:     sum over edges y0 +- mu_k y_k of the unilateral cost                         (2)
//   ellipse:     with t_k = mu_k y_k, T = |t|, m = mu_1/sqrt(impratio):                        (3)
//     zero for y0 >= T;  (D y0^2 + D T^2/m^2)/2 for m^2 y0 + T <= 0;  psi (y0 - T)^2/2 between, psi = D/(1 + m^2)
// The rows of a contact are its normal and its friction directions for either cone: a pyramid of 2(n-1) edges costs n rows.
// Source: MuJoCo, Computation, sections Friction loss and Contact; docs/algorithm.md.
// The adjoint differentiates z.s'(y) by D, bound, mu and m, for fixed y and z.
#pragma once

#include <type_traits>

#include "revolute/scalar/scalar.hpp"

namespace revolute {

enum class CostKind : int { quadratic, huber, unilateral, pyramid, ellipse };
constexpr int most_rows = 6;

template <class Real>
struct ConstraintCost {
  CostKind kind;
  int rows;
  Real D[2];   // quadratic: D of the position rows and of the rotation rows (from the fourth on)
  Real bound;  // huber
  Real mu[most_rows - 1];
  Real normal_mu;  // ellipse: m of (3)
};
// Calls call(rows), with a number that the compiler knows for the usual numbers of rows, and 0 for the others.
template <class Real, class Call>
REVOLUTE_HD inline void with_rows(const ConstraintCost<Real>& cost, const Call& call) {
  switch (cost.rows) {
    case 1:
      return call(std::integral_constant<int, 1>());
    case 3:
      return call(std::integral_constant<int, 3>());
    case 4:
      return call(std::integral_constant<int, 4>());
    default:
      call(std::integral_constant<int, 0>());
  }
}
template <class Bar>
struct ConstraintCostCotangent {
  Bar D[2], bound, mu[most_rows - 1], normal_mu;
};

namespace detail {

// The quantities of (3) at y.
template <class Real>
struct Ellipse {
  Real T, inverse_T, excess, psi;  // excess: y0 - T
  Real n[most_rows - 1];           // dT/dy_k = mu_k t_k / T
  MaskOf<Real> bottom, middle;
};
template <class Real>
REVOLUTE_HD inline Ellipse<Real> ellipse(const ConstraintCost<Real>& cost, const Real* y) {
  Ellipse<Real> e;
  Real squared(0);
  for (int k = 1; k < cost.rows; ++k) {
    const Real t = cost.mu[k - 1] * y[k];
    squared = multiply_add(t, t, squared);
  }
  const auto zero = less_equal(squared, Real(Precision<Real>::tiny_square));
  e.T = select(zero, Real(0), sqrt(select(zero, Real(1), squared)));
  e.inverse_T = select(zero, Real(0), Real(1) / select(zero, Real(1), e.T));
  const Real m_squared = cost.normal_mu * cost.normal_mu;
  e.bottom = less_equal(m_squared * y[0] + e.T, Real(0));
  e.middle = less(y[0], e.T) & !e.bottom;
  e.excess = y[0] - e.T;
  e.psi = cost.D[0] / (Real(1) + m_squared);
  for (int k = 1; k < cost.rows; ++k) e.n[k - 1] = cost.mu[k - 1] * (cost.mu[k - 1] * y[k]) * e.inverse_T;
  return e;
}
// The weight of friction row k in the bottom zone of (3).
template <class Real>
REVOLUTE_HD inline Real bottom_weight(const ConstraintCost<Real>& cost, int k) {
  const Real ratio = cost.mu[k - 1] / cost.normal_mu;
  return cost.D[0] * ratio * ratio;
}
template <class Real>
REVOLUTE_HD inline Real weight(const ConstraintCost<Real>& cost, int row) {
  return cost.D[row < 3 ? 0 : 1];
}
template <class Real>
REVOLUTE_HD inline MaskOf<Real> quadratic_zone(const ConstraintCost<Real>& cost, const Real& y) {
  return less(abs(cost.D[0] * y), cost.bound);
}
// The value if the edge y0 +- mu y_k pushes, else 0.
template <class Real>
REVOLUTE_HD inline Real pushing(const Real& edge) {
  return minimum(edge, Real(0));
}
template <class Real>
REVOLUTE_HD inline Real pushes(const Real& edge) {
  return indicator<Real>(less(edge, Real(0)));
}

}  // namespace detail

// s'(y)
template <class Real>
REVOLUTE_HD void cost_slope(const ConstraintCost<Real>& cost, const Real* y, Real* slope) {
  using namespace detail;
  switch (cost.kind) {
    case CostKind::quadratic:
      for (int r = 0; r < cost.rows; ++r) slope[r] = weight(cost, r) * y[r];
      return;
    case CostKind::huber:
      slope[0] = select(quadratic_zone(cost, y[0]), cost.D[0] * y[0], flip_sign(cost.bound, y[0]));
      return;
    case CostKind::unilateral:
      slope[0] = cost.D[0] * pushing(y[0]);
      return;
    case CostKind::pyramid: {
      Real normal(0);
      for (int k = 1; k < cost.rows; ++k) {
        const Real t = cost.mu[k - 1] * y[k], up = pushing(y[0] + t), down = pushing(y[0] - t);
        normal += up + down;
        slope[k] = cost.D[0] * cost.mu[k - 1] * (up - down);
      }
      slope[0] = cost.D[0] * normal;
      return;
    }
    case CostKind::ellipse: {
      const Ellipse<Real> e = ellipse(cost, y);
      const Real middle = select(e.middle, e.psi * e.excess, Real(0));
      slope[0] = select(e.bottom, cost.D[0] * y[0], middle);
      for (int k = 1; k < cost.rows; ++k)
        slope[k] = select(e.bottom, bottom_weight(cost, k) * y[k], -middle * e.n[k - 1]);
    }
  }
}

// s''(y), row by row
template <class Real>
REVOLUTE_HD void cost_curvature(const ConstraintCost<Real>& cost, const Real* y, Real* B) {
  using namespace detail;
  const int n = cost.rows;
  for (int i = 0; i < n * n; ++i) B[i] = Real(0);
  switch (cost.kind) {
    case CostKind::quadratic:
      for (int r = 0; r < n; ++r) B[r * n + r] = weight(cost, r);
      return;
    case CostKind::huber:
      B[0] = select(quadratic_zone(cost, y[0]), cost.D[0], Real(0));
      return;
    case CostKind::unilateral:
      B[0] = cost.D[0] * pushes(y[0]);
      return;
    case CostKind::pyramid:
      for (int k = 1; k < n; ++k) {
        const Real mu = cost.mu[k - 1], t = mu * y[k], up = pushes(y[0] + t), down = pushes(y[0] - t);
        const Real both = cost.D[0] * (up + down);
        B[0] += both;
        B[k] = B[k * n] = cost.D[0] * mu * (up - down);
        B[k * n + k] = mu * mu * both;
      }
      return;
    case CostKind::ellipse: {
      const Ellipse<Real> e = ellipse(cost, y);
      const Real psi = select(e.middle, e.psi, Real(0)), curved = psi * e.excess * e.inverse_T;
      B[0] = select(e.bottom, cost.D[0], psi);
      for (int k = 1; k < n; ++k) {
        const Real mu = cost.mu[k - 1], turned = psi * e.n[k - 1];
        B[k] = B[k * n] = -turned;
        for (int j = 1; j < n; ++j) B[k * n + j] = (psi + curved) * e.n[k - 1] * e.n[j - 1];
        B[k * n + k] = select(e.bottom, bottom_weight(cost, k), B[k * n + k] - curved * mu * mu);
      }
    }
  }
}

// Adds the first two derivatives of s(y + alpha p) by alpha to `first` and `second`.
template <class Real>
REVOLUTE_HD void add_cost_along(const ConstraintCost<Real>& cost, const Real* y, const Real* p,
                                const Real& alpha, Real& first, Real& second) {
  using namespace detail;
  Real at[most_rows];
  for (int r = 0; r < most_rows; ++r) at[r] = r < cost.rows ? multiply_add(alpha, p[r], y[r]) : Real(0);
  switch (cost.kind) {
    case CostKind::quadratic:
      for (int r = 0; r < cost.rows; ++r) {
        const Real Dp = weight(cost, r) * p[r];
        first += Dp * at[r];
        second += Dp * p[r];
      }
      return;
    case CostKind::huber: {
      const auto inside = quadratic_zone(cost, at[0]);
      first += select(inside, cost.D[0] * at[0], flip_sign(cost.bound, at[0])) * p[0];
      second += select(inside, cost.D[0] * p[0] * p[0], Real(0));
      return;
    }
    case CostKind::unilateral:
      first += cost.D[0] * pushing(at[0]) * p[0];
      second += cost.D[0] * pushes(at[0]) * p[0] * p[0];
      return;
    case CostKind::pyramid: {
      Real one(0), two(0);
      for (int k = 1; k < cost.rows; ++k) {
        const Real t = cost.mu[k - 1] * at[k], dt = cost.mu[k - 1] * p[k];
        const Real up = p[0] + dt, down = p[0] - dt;
        one += pushing(at[0] + t) * up + pushing(at[0] - t) * down;
        two += pushes(at[0] + t) * up * up + pushes(at[0] - t) * down * down;
      }
      first += cost.D[0] * one;
      second += cost.D[0] * two;
      return;
    }
    case CostKind::ellipse: {
      const Ellipse<Real> e = ellipse(cost, at);
      Real along(0), squared(0), bottom_first = cost.D[0] * at[0] * p[0],
                                 bottom_second = cost.D[0] * p[0] * p[0];
      for (int k = 1; k < cost.rows; ++k) {
        const Real dt = cost.mu[k - 1] * p[k], w = bottom_weight(cost, k);
        along += e.n[k - 1] * p[k];
        squared += dt * dt;
        bottom_first += w * at[k] * p[k];
        bottom_second += w * p[k] * p[k];
      }
      const Real rate = p[0] - along, turning = (squared - along * along) * e.inverse_T;
      first += select(e.bottom, bottom_first, select(e.middle, e.psi * e.excess * rate, Real(0)));
      second += select(e.bottom, bottom_second,
                       select(e.middle, e.psi * (rate * rate - e.excess * turning), Real(0)));
    }
  }
}

namespace detail {

template <class Real>
REVOLUTE_HD Real zone_number(const ConstraintCost<Real>& cost, const Real* y, MaskOf<Real>& curved) {
  switch (cost.kind) {
    case CostKind::quadratic:
      return Real(0);
    case CostKind::huber:
      return select(quadratic_zone(cost, y[0]), Real(0), flip_sign(Real(1), y[0]));
    case CostKind::unilateral:
      return pushes(y[0]);
    case CostKind::pyramid: {
      Real zone(0);
      for (int k = 1; k < cost.rows; ++k) {
        const Real t = cost.mu[k - 1] * y[k];
        zone = Real(4) * zone + pushes(y[0] + t) + Real(2) * pushes(y[0] - t);
      }
      return zone;
    }
    default: {
      const Ellipse<Real> e = ellipse(cost, y);
      curved = curved | (e.middle & less(Real(0), cost.D[0]));
      return select(e.bottom, Real(1), select(e.middle, Real(2), Real(0)));
    }
  }
}

}  // namespace detail

// Returns the number of the quadratic piece of the cost that y lies in, 0 if the constraint does not act. Sets `curved` where
// the piece is not quadratic.
template <class Real>
REVOLUTE_HD inline Real cost_zone(const ConstraintCost<Real>& cost, const Real* y, MaskOf<Real>& curved) {
  const Real zone = detail::zone_number(cost, y, curved);
  return select(less(Real(0), cost.D[0]), zone, Real(0));
}

// Returns minus the derivatives of z.s'(y).
template <class Real, class Bar>
REVOLUTE_HD ConstraintCostCotangent<Bar> cost_adjoint(const ConstraintCost<Real>& cost, const Real* y,
                                                      const Bar* z) {
  using namespace detail;
  ConstraintCostCotangent<Bar> bar{};
  switch (cost.kind) {
    case CostKind::quadratic:
      for (int r = 0; r < cost.rows; ++r) bar.D[r < 3 ? 0 : 1] -= y[r] * z[r];
      break;
    case CostKind::huber: {
      const Real inside = indicator<Real>(quadratic_zone(cost, y[0]));
      bar.D[0] = -(inside * y[0]) * z[0];
      bar.bound = -((Real(1) - inside) * flip_sign(Real(1), y[0])) * z[0];
      break;
    }
    case CostKind::unilateral:
      bar.D[0] = -pushing(y[0]) * z[0];
      break;
    case CostKind::pyramid:
      for (int k = 1; k < cost.rows; ++k) {
        const Real mu = cost.mu[k - 1], t = mu * y[k], up = pushing(y[0] + t), down = pushing(y[0] - t);
        const Real on_up = pushes(y[0] + t), on_down = pushes(y[0] - t);
        const Bar tz = mu * z[k], z_up = z[0] + tz, z_down = z[0] - tz;
        bar.D[0] -= up * z_up + down * z_down;
        bar.mu[k - 1] = -cost.D[0] * ((on_up * y[k]) * z_up - (on_down * y[k]) * z_down + (up - down) * z[k]);
      }
      break;
    case CostKind::ellipse: {
      const Ellipse<Real> e = ellipse(cost, y);
      const Real bottom = indicator<Real>(e.bottom), middle = indicator<Real>(e.middle);
      const Real m = cost.normal_mu, one_plus = Real(1) + m * m;
      Bar zn(0), squared(0);
      for (int k = 1; k < cost.rows; ++k) {
        const Real mu = cost.mu[k - 1];
        zn += e.n[k - 1] * z[k];
        squared += (mu * mu * y[k]) * z[k];
      }
      const Bar sigma = z[0] - zn;
      const Real pulled = middle * e.excess;
      bar.D[0] = -bottom * (y[0] * z[0] + squared * (Real(1) / (m * m))) - (pulled / one_plus) * sigma;
      bar.normal_mu = (bottom * Real(2) * cost.D[0] / (m * m * m)) * squared +
                      (Real(2) * m / one_plus * e.psi * pulled) * sigma;
      for (int k = 1; k < cost.rows; ++k) {
        const Real mu = cost.mu[k - 1], by_mu = mu * y[k] * y[k] * e.inverse_T;
        bar.mu[k - 1] =
            (-bottom * cost.D[0] * Real(2) * mu * y[k] / (m * m)) * z[k] + (middle * e.psi * by_mu) * sigma +
            (pulled * e.psi) * ((Real(2) * mu * y[k] * e.inverse_T) * z[k] - (by_mu * e.inverse_T) * zn);
      }
    }
  }
  return bar;
}

}  // namespace revolute
