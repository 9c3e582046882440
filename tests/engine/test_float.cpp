// The step and its adjoint in single precision, as a device may run them: equal to double up to the digits of a float.
#include "reference.hpp"
#include "steps.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// Relative to the largest entry of a result: a float's rounding times the length of the chains of sums in a step. The
// largest found is 3.2e-6, in either direction.
constexpr double few_float_digits = 2e-5;

struct Results {
  Doubles qpos, qvel, qpos_bar, qvel_bar, ctrl_bar;
  int rows;
};

template <class Real>
std::vector<Real> converted(const Doubles& values) {
  return std::vector<Real>(values.begin(), values.end());
}

// One step from `state` and the pull-back of `bar` (tangent of qpos, then qvel).
template <class Real>
Results run_step(const ModelStorage& storage, const State& state, const Doubles& ctrl, const Doubles& bar) {
  const Model& model = storage.model();
  Workspace<Real> ws(model);
  Owned<StepAdjointWorkspace<Real>> adjoint(model);
  Owned<StateCotangent<Real>> state_bar(model);
  Owned<Parameters<Real>> parameters_bar(model);
  parameters_bar->clear(model);
  load_defaults(storage, *ws.parameters);
  const std::vector<Real> qpos = converted<Real>(state.qpos), qvel = converted<Real>(state.qvel),
                          control = converted<Real>(ctrl);
  std::vector<Real> qpos_next(model.nq), qvel_next(model.nv), ctrl_bar(model.nu, Real(0));
  step(model, *ws.parameters, qpos.data(), qvel.data(), control.data(), true, *ws.step, qpos_next.data(),
       qvel_next.data());
  for (int k = 0; k < model.nv; ++k) {
    state_bar->qpos[k] = Real(bar[k]);
    state_bar->qvel[k] = Real(bar[model.nv + k]);
  }
  step_adjoint(model, *ws.parameters, qpos.data(), qvel.data(), control.data(), *ws.step, *adjoint,
               *state_bar, ctrl_bar.data(), *parameters_bar);
  return {Doubles(qpos_next.begin(), qpos_next.end()),
          Doubles(qvel_next.begin(), qvel_next.end()),
          Doubles(state_bar->qpos, state_bar->qpos + model.nv),
          Doubles(state_bar->qvel, state_bar->qvel + model.nv),
          Doubles(ctrl_bar.begin(), ctrl_bar.end()),
          ws.step->rows.count};
}

void check_values(const Doubles& single, const Doubles& full) {
  double scale = 1e-3, worst = 0;
  for (std::size_t i = 0; i < full.size(); ++i) {
    scale = std::fmax(scale, std::fabs(full[i]));
    worst = std::fmax(worst, std::fabs(single[i] - full[i]));
  }
  CHECK_FINITE(single);
  CHECK(worst <= few_float_digits * scale);
  // a step that ran in double would agree better
  CHECK(full.empty() || worst > 0);
}

void check_scene(const MujocoArrays& arrays, const State& state, Random& random, bool touches) {
  const ModelStorage storage(arrays);
  const Doubles ctrl = random.normals(arrays.nu), bar = random.normals(2 * arrays.nv);
  const Results single = run_step<float>(storage, state, ctrl, bar),
                full = run_step<double>(storage, state, ctrl, bar);
  CHECK(single.rows == full.rows && (full.rows > 0) == touches);
  check_values(single.qpos, full.qpos);
  check_values(single.qvel, full.qvel);
  check_values(single.qpos_bar, full.qpos_bar);
  check_values(single.qvel_bar, full.qvel_bar);
  check_values(single.ctrl_bar, full.ctrl_bar);
}

void smooth_motion() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  Random random(171);
  for (int trial = 0; trial < 4; ++trial)
    check_scene(arrays, {random_qpos(storage, arrays, random, 0.7), random.normals(arrays.nv)}, random,
                false);
}

// sliding, so that no friction row is near its bound
void contact_with_friction() {
  MujocoArrays arrays = box_on_plane();
  Random random(172);
  const Matrix3<double> R = rotation_of(&arrays.geom_quat[0]);
  const Point up = R.column(2), at = vector3<double>(&arrays.geom_pos[0]) + 0.0997 * up,
              velocity = 3.0 * (0.8 * R.column(0) + 0.6 * R.column(1)) - 0.3 * up;
  const double* q = &arrays.geom_quat[0];
  check_scene(
      arrays,
      {{at.x, at.y, at.z, q[0], q[1], q[2], q[3]}, {velocity.x, velocity.y, velocity.z, 0.02, -0.03, 0.01}},
      random, true);
}

void limits_and_dry_friction() {
  const MujocoArrays arrays = limited_chain();
  Random random(173);
  const Quaternion<double> turn = exponential(Point{0.4995 * 0.6, 0, 0.4995 * 0.8});
  check_scene(
      arrays,
      {{0.399, 0.3, -0.299, 0.1, turn.w, turn.x, turn.y, turn.z}, {0.5, 0.2, -0.6, 0.3, 0.6, 0.1, 0.8}},
      random, true);
}

// both sides of every quarter turn, and beyond the reduction's range
void sines_of_single_precision() {
  for (float x = -9000.0f; x < 9000.0f; x += 0.37f) {
    float s, c;
    sincos(x, s, c);
    CHECK_CLOSE(double(s), std::sin(double(x)), 2e-7);
    CHECK_CLOSE(double(c), std::cos(double(x)), 2e-7);
  }
}

}  // namespace

int main() {
  return run({{"smooth motion", smooth_motion},
              {"contact with friction", contact_with_friction},
              {"limits and dry friction", limits_and_dry_friction},
              {"sines", sines_of_single_precision}});
}
