// The whole step: textbook motions, conservation of momentum, purity, allocation.
#include <cmath>
#include <utility>

#include "allocation.hpp"
#include "reference.hpp"
#include "steps.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// Thirty sweeps of Gauss-Seidel on four corners that share one normal force.
constexpr double settled = 1e-9;
// A flight is followed in steps of a hundredth of a second; the top lies between two.
constexpr double within_a_step = 2e-3;

// --- motions -----------------------------------------------------------------------------------------------

// A ball of radius 0.1 above a plane; isotropic, so that spins are momenta.
ModelMaker balls(int count, double restitution, double friction) {
  ModelMaker m;
  m.arrays.restitution = {restitution};
  m.arrays.iterations = 200;
  m.add_geom(0, plane_geom, {0, 0, 1}, {0, 0, 0}, {0, 0, 0}, friction);
  for (int i = 0; i < count; ++i) {
    const int body = m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1.0 + i);
    m.centre_mass(body, {0.004, 0.004, 0.004});
    m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
    m.add_geom(body, sphere_geom, {0.1, 0, 0}, {0, 0, 0}, {0, 0, 0}, friction);
  }
  return m;
}

void free_fall() {
  const ModelStorage storage(balls(1, 0, 0).arrays);
  State state = {{0, 0, 10, 1, 0, 0, 0}, {1, 0, 0, 0, 0, 2}};
  for (int n = 1; n <= 50; ++n) {
    state = next_state(storage, state);
    // semi-implicit Euler: v = -g n h, z = z0 - g h^2 n (n + 1) / 2
    CHECK_CLOSE(state.qvel[2], -9.81 * n * 0.01, rounding);
    CHECK_CLOSE(state.qpos[2], 10 - 9.81 * 1e-4 * n * (n + 1) / 2, rounding);
    CHECK_CLOSE(state.qpos[0], 0.01 * n, rounding);
  }
}

// With e = 1 a ball comes back to the height it fell from, though it meets the plane anywhere within a step.
void a_ball_bounces_back_to_its_height() {
  ModelMaker m = balls(1, 1.0, 0.0);
  m.add_pair(0, 1);
  const ModelStorage storage(m.arrays);
  for (double height : {1.0, 1.013, 1.031}) {
    State state = {{0, 0, 0.1 + height, 1, 0, 0, 0}, {0.3, 0, 0, 0, 0, 0}};
    double top = 0;
    for (int n = 1; n < 90; ++n) {
      state = next_state(storage, state);
      if (n > 60) top = std::fmax(top, state.qpos[2] - 0.1);
    }
    CHECK_CLOSE(top, height, within_a_step);
    CHECK_CLOSE(state.qvel[0], 0.3, rounding);
  }
}

// Two equal balls, one at rest: after e = 1 they have exchanged their velocities, where the impact puts them.
void balls_exchange_their_velocities() {
  ModelMaker m = balls(2, 1.0, 0.0);
  m.arrays.gravity = {0, 0, 0};
  m.arrays.body_mass[2] = m.arrays.body_mass[1];
  m.add_pair(1, 2);
  const ModelStorage storage(m.arrays);
  const double gap = 0.004, speed = 1.0, left = m.arrays.timestep - gap / speed;
  const State next = next_state(storage, {{0, 0, 0, 1, 0, 0, 0, 0.2 + gap, 0, 0, 1, 0, 0, 0},
                                          {speed, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}});
  CHECK_CLOSE(next.qvel, Doubles({0, 0, 0, 0, 0, 0, speed, 0, 0, 0, 0, 0}), rounding);
  CHECK_CLOSE(next.qpos[0], gap, rounding);
  CHECK_CLOSE(next.qpos[7], 0.2 + gap + left * speed, rounding);
}

// A box on a plane tilted by 0.5 about y: it slides with g (sin - mu cos), or stays.
void a_box_on_a_slope_slides_or_sticks() {
  for (double mu : {0.3, 0.8}) {
    ModelMaker m;
    const double tilt = 0.5;
    m.arrays.iterations = 300;
    const int plane = m.add_geom(0, plane_geom, {0, 0, 1}, {0, 0, 0}, {0, tilt, 0}, mu);
    const int body = m.add_body(0, {0, 0, 0}, {0, 0, 0}, 2.0);
    m.centre_mass(body, {0.02, 0.03, 0.04});
    m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
    m.add_pair(plane, m.add_geom(body, box_geom, {0.2, 0.2, 0.05}, {0, 0, 0}, {0, 0, 0}, mu));
    const ModelStorage storage(m.arrays);
    const Quaternion<double> turn = exponential(Point{0, tilt, 0});
    State state = {{0.05 * std::sin(tilt), 0, 0.05 * std::cos(tilt), turn.w, turn.x, turn.y, turn.z},
                   Doubles(6, 0.0)};
    const double speed = std::fmax(0.0, 9.81 * 0.01 * (std::sin(tilt) - mu * std::cos(tilt)));
    for (int n = 1; n <= 3; ++n) {
      state = next_state(storage, state);
      CHECK_CLOSE(state.qvel, Doubles({n * speed * std::cos(tilt), 0, -n * speed * std::sin(tilt), 0, 0, 0}),
                  settled);
    }
  }
}

// --- conservation ------------------------------------------------------------------------------------------

void colliding_balls_keep_their_momentum() {
  Random random(130);
  for (double restitution : {0.0, 0.4}) {
    ModelMaker m = balls(2, restitution, 0.7);
    m.arrays.gravity = {0, 0, 0};
    m.add_pair(1, 2);
    const ModelStorage storage(m.arrays);
    for (int trial = 0; trial < 10; ++trial) {
      const double gap = random.uniform(-0.001, 0.002);
      State state = {{1, 2, 3, 1, 0, 0, 0, 1.2 + gap, 2, 3, 0, 1, 0, 0}, random.normals(12)};
      state.qvel[0] = 2;
      state.qvel[6] = -1;
      const State next = next_state(storage, state);
      CHECK(next.qvel[0] < 1.9 &&
            std::fabs(next.qvel[1] - state.qvel[1]) > 1e-3);  // they collide, with friction
      const Doubles before = total_momentum(m.arrays, state.qpos, state.qvel);
      CHECK_CLOSE(total_momentum(m.arrays, next.qpos, next.qvel), before, 1e-12);
    }
  }
}

// Contact impulses between free bodies of any shape add up to no momentum.
void contact_impulses_are_equal_and_opposite() {
  Random random(131);
  const std::pair<int, int> pairs[] = {{sphere_geom, sphere_geom},
                                       {sphere_geom, capsule_geom},
                                       {capsule_geom, capsule_geom},
                                       {sphere_geom, box_geom}};
  for (const auto& [type_a, type_b] : pairs) {
    MujocoArrays arrays = two_shapes(type_a, type_b);
    arrays.margin = 10;  // all velocities below reach it
    const ModelStorage storage(arrays);
    const State state = collision_state(storage, arrays, -1e-4, random);
    Workspace<double> ws(storage.model());
    next_state(storage, state, {}, ws);
    const Doubles change(ws.step->velocity_change, ws.step->velocity_change + 12);
    const double* configuration = ws.step->configuration(state.qpos.data());
    const Doubles at(configuration, configuration + 14);
    CHECK(std::sqrt(inner(change, change)) > 0.1);
    CHECK_CLOSE(total_momentum(arrays, at, change), Doubles(6, 0.0), 1e-12);
  }
}

// The same state gives the same bits, whatever the workspace held before.
void a_step_is_a_pure_function() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(132);
  Workspace<double> ws(storage.model());
  const State one = crowd_state(storage, arrays, random), other = crowd_state(storage, arrays, random);
  const Doubles ctrl = random.normals(arrays.nu);
  const State first = next_state(storage, one, ctrl, ws);
  next_state(storage, other, ctrl, ws);
  const State again = next_state(storage, one, ctrl, ws);
  for (int i = 0; i < arrays.nq; ++i) CHECK(same(first.qpos[i], again.qpos[i]));
  for (int i = 0; i < arrays.nv; ++i) CHECK(same(first.qvel[i], again.qvel[i]));
}

void takes_nothing_from_the_heap() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  Random random(138);
  const State state = crowd_state(storage, arrays, random);
  Workspace<double> ws(model);
  Owned<StepAdjointWorkspace<double>> adjoint(model);
  Owned<StateCotangent<double>> bar(model);
  Owned<Parameters<double>> parameters_bar(model);
  load_defaults(storage, *ws.parameters);
  parameters_bar->clear(model);
  Doubles ctrl(arrays.nu, 0.1), ctrl_bar(arrays.nu, 0.0), qpos(arrays.nq), qvel(arrays.nv);
  std::fill_n(bar->qpos, arrays.nv, 1.0);
  std::fill_n(bar->qvel, arrays.nv, 1.0);
  check_no_allocation("step", [&] {
    step(model, *ws.parameters, state.qpos.data(), state.qvel.data(), ctrl.data(), true, *ws.step,
         qpos.data(), qvel.data());
    step_adjoint(model, *ws.parameters, state.qpos.data(), state.qvel.data(), ctrl.data(), *ws.step, *adjoint,
                 *bar, ctrl_bar.data(), *parameters_bar);
  });
  CHECK(ws.step->rows.count > 20);
}

}  // namespace

int main() {
  return run({{"free fall", free_fall},
              {"bounce", a_ball_bounces_back_to_its_height},
              {"exchange", balls_exchange_their_velocities},
              {"a box on a slope", a_box_on_a_slope_slides_or_sticks},
              {"momentum of colliding balls", colliding_balls_keep_their_momentum},
              {"contact impulses", contact_impulses_are_equal_and_opposite},
              {"purity", a_step_is_a_pure_function},
              {"allocation", takes_nothing_from_the_heap}});
}
