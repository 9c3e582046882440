// Costs of soft constraints: slopes and curvatures against differences of each other, the cost along a line, and the adjoint by
// the numbers that the cost is made of. Values of the slopes against MuJoCo's formulae.
#include "allocation.hpp"
#include "revolute/solvers/constraint_cost.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

constexpr CostKind kinds[] = {CostKind::quadratic, CostKind::huber, CostKind::unilateral, CostKind::pyramid,
                              CostKind::ellipse};
int rows_of(CostKind kind, int trial) {
  constexpr int contact[] = {3, 4, 6};
  if (kind == CostKind::quadratic) return trial % 2 ? 6 : 3;
  return kind == CostKind::pyramid || kind == CostKind::ellipse ? contact[trial % 3] : 1;
}

// in: D (2), bound, mu (5), m of the ellipse, y
template <class Real>
ConstraintCost<Real> cost_at(CostKind kind, int rows, const Real* in) {
  ConstraintCost<Real> cost;
  cost.kind = kind;
  cost.rows = rows;
  cost.D[0] = in[0];
  cost.D[1] = in[1];
  cost.bound = in[2];
  for (int k = 0; k < 5; ++k) cost.mu[k] = in[3 + k];
  cost.normal_mu = in[8];
  return cost;
}
constexpr int numbers_of_cost = 9;

// z . s'(y), for fixed z
struct Slope {
  CostKind kind;
  int rows;
  Doubles z;
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Real slope[most_rows];
    cost_slope(cost_at(kind, rows, in), in + numbers_of_cost, slope);
    for (int r = 0; r < rows; ++r) out[0] += z[r] * slope[r];
  }
};
struct SlopeAdjoint {
  const Slope& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const ConstraintCost<Real> cost = cost_at(of.kind, of.rows, in);
    const Real* const y = in + numbers_of_cost;
    Real B[most_rows * most_rows], z[most_rows];
    for (int r = 0; r < of.rows; ++r) z[r] = Real(of.z[r]);
    cost_curvature(cost, y, B);
    const ConstraintCostCotangent<Real> bar = cost_adjoint(cost, y, z);  // minus the derivative
    in_bar[0] -= out_bar[0] * bar.D[0];
    in_bar[1] -= out_bar[0] * bar.D[1];
    in_bar[2] -= out_bar[0] * bar.bound;
    for (int k = 0; k < 5; ++k) in_bar[3 + k] -= out_bar[0] * bar.mu[k];
    in_bar[8] -= out_bar[0] * bar.normal_mu;
    for (int r = 0; r < of.rows; ++r)
      for (int s = 0; s < of.rows; ++s) in_bar[numbers_of_cost + r] += out_bar[0] * B[r * of.rows + s] * z[s];
  }
};

// the slope of the cost along a line, by alpha
struct Along {
  const ConstraintCost<double>& cost;
  const Doubles &y, &p;
  void operator()(const double* in, double* out) const {
    double second = 0;
    add_cost_along(cost, y.data(), p.data(), in[0], out[0], second);
  }
};

Doubles random_inputs(Random& random, int rows, double normal) {
  Doubles in = {random.uniform(1, 3), random.uniform(1, 3), random.uniform(0.5, 1)};
  for (int k = 0; k < 5; ++k) in.push_back(random.uniform(0.2, 0.8));
  in.push_back(random.uniform(0.2, 0.8));
  for (int r = 0; r < rows; ++r) in.push_back(random.normal());
  in[numbers_of_cost] = normal;
  return in;
}

void slopes_and_curvatures() {
  Random random(241);
  for (CostKind kind : kinds)
    for (int trial = 0; trial < 9; ++trial) {
      const int rows = rows_of(kind, trial);
      // pressed in, sliding, apart: all zones of the cones
      const Doubles in = random_inputs(random, rows, trial < 3 ? -5.0 : trial < 6 ? -0.3 : 0.2);
      const Slope function{kind, rows, random.normals(rows)};
      const SlopeAdjoint adjoint{function};
      Doubles direction = random.normals(in.size()), in_bar(in.size(), 0.0);
      const Doubles one = {1.0};
      adjoint(in.data(), one.data(), in_bar.data());
      const double exact = inner(in_bar, direction),
                   wanted = differences(function, in, direction, 1e-4, 1)[0];
      CHECK(std::fabs(exact - wanted) <= smooth * (1 + std::fabs(wanted)) * 10);
      const std::vector<Doubles> environments = environments_around(random, in, 0.05);
      check_lanes("cost", environments, 1, function);
      check_adjoint_lanes("cost", random, environments, 1, adjoint);

      const ConstraintCost<double> cost = cost_at(kind, rows, in.data());
      const Doubles y(in.begin() + numbers_of_cost, in.end()), p = random.normals(rows);
      double first = 0, second = 0;
      add_cost_along(cost, y.data(), p.data(), 0.3, first, second);
      const Doubles at = along(y, 0.3, p);
      Doubles slope(rows);
      cost_slope(cost, at.data(), slope.data());
      CHECK_CLOSE(first, inner(slope, p), rounding);
      CHECK_CLOSE(second, differences(Along{cost, y, p}, {0.3}, {1.0}, 1e-4, 1)[0], 10 * smooth);
    }
}

// A pyramid is the sum of its edges, each a unilateral cost; the ellipse is what MuJoCo's zones say.
void formulae() {
  Random random(242);
  for (int trial = 0; trial < 30; ++trial) {
    const Doubles in = random_inputs(random, 3, random.normal());
    const double* const y = &in[numbers_of_cost];
    const ConstraintCost<double> pyramid = cost_at(CostKind::pyramid, 3, in.data()),
                                 ellipse = cost_at(CostKind::ellipse, 3, in.data());
    double slope[3], wanted[3] = {0, 0, 0};
    cost_slope(pyramid, y, slope);
    for (int k = 1; k < 3; ++k)
      for (double sign : {1.0, -1.0}) {
        const double force = pyramid.D[0] * std::fmin(y[0] + sign * pyramid.mu[k - 1] * y[k], 0.0);
        wanted[0] += force;
        wanted[k] += sign * pyramid.mu[k - 1] * force;
      }
    for (int r = 0; r < 3; ++r) CHECK_CLOSE(slope[r], wanted[r], rounding);
    cost_slope(ellipse, y, slope);
    const double m = ellipse.normal_mu, T = std::hypot(ellipse.mu[0] * y[1], ellipse.mu[1] * y[2]);
    const double pressed = ellipse.D[0] / (1 + m * m) * (y[0] - T);
    const bool top = y[0] >= T, bottom = m * m * y[0] + T <= 0;
    CHECK_CLOSE(slope[0], top ? 0.0 : bottom ? ellipse.D[0] * y[0] : pressed, rounding);
    const double t = ellipse.mu[0] * ellipse.mu[0] * y[1];
    CHECK_CLOSE(slope[1], top ? 0.0 : bottom ? ellipse.D[0] * t / (m * m) : -pressed * t / T, rounding);
  }
}

}  // namespace

int main() { return run({{"slopes and curvatures", slopes_and_curvatures}, {"formulae", formulae}}); }
