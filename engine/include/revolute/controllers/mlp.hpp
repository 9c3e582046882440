// A policy: a small network of dense layers, the same for all environments.
//
//   x_0 = observations,   x_l = f(W_l x_{l-1} + b_l) of the hidden layers                                (1)
//   u = ctrl + scale y,   y = W_L x_{L-1} + b_L, or its tanh with `squash`                               (2)
//
// f is tanh, elu (x above 0, exp(x) - 1 below) or relu. Their slopes follow from their values: 1 - x^2; 1 or 1 + x; 1 or 0. (3)
// `weights` holds W_1 (rows by output), b_1, W_2, b_2, ...
//
// Adjoint of a layer with d the cotangent of its argument:  x_bar = W' d,  W_bar += d x',  b_bar += d.     (4)
//
// Each output has its own sum, which runs through the inputs in order, so that no width changes a bit.
#pragma once

#include <vector>

#include "revolute/arena.hpp"
#include "revolute/controllers/observations.hpp"
#include "revolute/model/probe.hpp"
#include "revolute/scalar/exponential.hpp"

namespace revolute {

enum class Activation : int { tanh, elu, relu };

struct MlpShape {
  std::vector<Observed> observe;
  Probes probes;            // source of the numbers of ObservationKind::measured
  std::vector<int> hidden;  // sizes of the hidden layers
  Activation activation = Activation::tanh;
  bool squash = false;
  int goal_size = 0;
  const double *weights = nullptr, *scale = nullptr;  // [weight_count], [nu]

  // Sizes of x_0, the hidden layers and y.
  std::vector<int> sizes(const Model& model) const {
    std::vector<int> out = {0};
    for (const Observed& part : observe) out[0] += part.size;
    out.insert(out.end(), hidden.begin(), hidden.end());
    out.push_back(model.nu);
    return out;
  }
  std::size_t weight_count(const Model& model) const {
    const std::vector<int> widths = sizes(model);
    std::size_t count = 0;
    for (std::size_t l = 0; l + 1 < widths.size(); ++l) count += std::size_t(widths[l] + 1) * widths[l + 1];
    return count;
  }
};

// The inputs of one period besides the state, and the results of (1) and (2) that the adjoint reads.
template <class Real>
struct Mlp {
  std::vector<int> sizes;
  std::vector<Real*> x;        // of each layer, y last
  Real *goal, *previous_ctrl;  // [goal_size], [nu]
  Real *x_bar, *d;             // scratch: cotangents of a layer's values and arguments

  Mlp(const Model& model, const MlpShape& shape, Arena& arena) : sizes(shape.sizes(model)) {
    int widest = 0;
    for (const int size : sizes) {
      x.push_back(arena.take<Real>(size));
      widest = size > widest ? size : widest;
    }
    goal = arena.take<Real>(shape.goal_size);
    previous_ctrl = arena.take<Real>(model.nu);
    x_bar = arena.take<Real>(widest);
    d = arena.take<Real>(widest);
  }
};

// y = W x + b of `Rows` outputs side by side, which hides the latency of each addition
template <int Rows, class Weight, class Real>
void dense_rows(const Weight* W, const Weight* b, int inputs, const Real* x, Real* y) {
  Real sums[Rows];
  for (int r = 0; r < Rows; ++r) sums[r] = Real(b[r]);
  for (int i = 0; i < inputs; ++i)
    for (int r = 0; r < Rows; ++r) sums[r] = multiply_add(Real(W[r * inputs + i]), x[i], sums[r]);
  for (int r = 0; r < Rows; ++r) y[r] = sums[r];
}
template <class Weight, class Real>
void dense(const Weight* W, const Weight* b, int inputs, int outputs, const Real* x, Real* y) {
  constexpr int rows = 8;
  int o = 0;
  for (; o + rows <= outputs; o += rows) dense_rows<rows>(W + o * inputs, b + o, inputs, x, y + o);
  for (; o < outputs; ++o) dense_rows<1>(W + o * inputs, b + o, inputs, x, y + o);
}

// x_bar = W' d of `Columns` inputs side by side
template <int Columns, class Real>
void dense_columns(const double* W, int inputs, int outputs, const Real* d, Real* x_bar) {
  Real sums[Columns];
  for (int i = 0; i < Columns; ++i) sums[i] = Real(0);
  for (int o = 0; o < outputs; ++o)
    for (int i = 0; i < Columns; ++i) sums[i] = multiply_add(Real(W[o * inputs + i]), d[o], sums[i]);
  for (int i = 0; i < Columns; ++i) x_bar[i] = sums[i];
}
// (4); weights_bar may be null
template <class Real>
void dense_adjoint(const double* W, int inputs, int outputs, const Real* x, const Real* d, Real* x_bar,
                   Real* weights_bar) {
  constexpr int columns = 8;
  int i = 0;
  for (; i + columns <= inputs; i += columns) dense_columns<columns>(W + i, inputs, outputs, d, x_bar + i);
  for (; i < inputs; ++i) dense_columns<1>(W + i, inputs, outputs, d, x_bar + i);
  if (!weights_bar) return;
  Real* bias_bar = weights_bar + inputs * outputs;
  for (int o = 0; o < outputs; ++o) {
    Real* row = weights_bar + o * inputs;
    for (int k = 0; k < inputs; ++k) row[k] = multiply_add(d[o], x[k], row[k]);
    bias_bar[o] += d[o];
  }
}

template <class Real>
Real activated(Activation activation, const Real& x) {
  switch (activation) {
    case Activation::tanh:
      return hyperbolic_tangent(x);
    case Activation::elu:
      return select(less(Real(0), x), x, natural_exponential(minimum(x, Real(0))) - Real(1));
    default:
      // keeps NaN
      return select(less(x, Real(0)), Real(0), x);
  }
}
// (3), by the value
template <class Real>
Real activation_slope(Activation activation, const Real& x) {
  switch (activation) {
    case Activation::tanh:
      return Real(1) - x * x;
    case Activation::elu:
      return select(less(Real(0), x), Real(1), Real(1) + x);
    default:
      return select(less(Real(0), x), Real(1), Real(0));
  }
}

// (1) and (2) up to y, with the numbers of shape.weights, which may carry derivatives
template <class Weight, class Real>
void evaluate_mlp(const Model& model, const MlpShape& shape, const Weight* weights,
                  const Observable<Real>& seen, Mlp<Real>& at) {
  Real* out = at.x[0];
  for (const Observed& part : shape.observe)
    with_observation(part.kind, [&](auto observation) {
      observation.observe(model, seen, part, out);
      out += part.size;
    });
  const std::size_t layers = at.sizes.size() - 1;
  for (std::size_t l = 0; l < layers; ++l) {
    const int inputs = at.sizes[l], outputs = at.sizes[l + 1];
    Real* y = at.x[l + 1];
    dense(weights, weights + inputs * outputs, inputs, outputs, at.x[l], y);
    weights += (inputs + 1) * outputs;
    if (l + 1 < layers)
      for (int o = 0; o < outputs; ++o) y[o] = activated(shape.activation, y[o]);
    else if (shape.squash)
      for (int o = 0; o < outputs; ++o) y[o] = hyperbolic_tangent(y[o]);
  }
}

// (2)
template <class Real>
void add_policy(const Model& model, const MlpShape& shape, const Mlp<Real>& at, Real* ctrl) {
  for (int a = 0; a < model.nu; ++a) ctrl[a] = multiply_add(Real(shape.scale[a]), at.x.back()[a], ctrl[a]);
}

// (4) from the last layer to the first, then the observations' adjoints. weights_bar may be null: not wanted.
template <class Real>
void mlp_adjoint(const Model& model, const MlpShape& shape, const Observable<Real>& seen, const Mlp<Real>& at,
                 const Real* ctrl_bar, Real* weights_bar, const ObservableCotangent<Real>& bar) {
  const std::size_t layers = at.sizes.size() - 1;
  for (int a = 0; a < model.nu; ++a) {
    const Real y = at.x.back()[a], y_bar = Real(shape.scale[a]) * ctrl_bar[a];
    at.d[a] = shape.squash ? (Real(1) - y * y) * y_bar : y_bar;
  }
  std::size_t place = shape.weight_count(model);
  for (std::size_t l = layers; l-- > 0;) {
    const int inputs = at.sizes[l], outputs = at.sizes[l + 1];
    place -= std::size_t(inputs + 1) * outputs;
    dense_adjoint(shape.weights + place, inputs, outputs, at.x[l], at.d, at.x_bar,
                  weights_bar ? weights_bar + place : nullptr);
    if (l == 0) break;
    for (int i = 0; i < inputs; ++i) at.d[i] = activation_slope(shape.activation, at.x[l][i]) * at.x_bar[i];
  }
  const Real* observed_bar = at.x_bar;
  for (const Observed& part : shape.observe)
    with_observation(part.kind, [&](auto observation) {
      observation.adjoint(model, seen, part, observed_bar, bar);
      observed_bar += part.size;
    });
}

}  // namespace revolute
