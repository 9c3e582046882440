// The step of the contact model "mujoco": its adjoint by state, control and every parameter, for all integrators and both
// cones; packs against single runs; forward derivatives; no allocation. That a step equals MuJoCo's is checked in
// tests/revolute_engine/test_mujoco_contact.py.
#include "allocation.hpp"
#include "reference.hpp"
#include "revolute/scalar/dual.hpp"
#include "step_function.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// Forces of stiff constraints lose digits in differences of positions.
constexpr double through_constraints = 1e-7;

constexpr Integrator integrators[] = {Integrator::euler, Integrator::implicitfast, Integrator::implicit,
                                      Integrator::rk4};
constexpr Cone cones[] = {Cone::pyramidal, Cone::elliptic};

const std::set<std::string> of_bodies = {"qpos",         "qvel",         "body_mass",     "body_ipos",
                                         "body_inertia", "dof_armature", "jnt_stiffness", "actuator_gear",
                                         "dof_damping",  "gravity"};

// Constraints that act, and those of each kind whose cost is at work.
struct Acting {
  int constraints = 0, pressed = 0;
};
Acting check_soft_step(const char* name, Random& random, const ModelStorage& storage, const State& state,
                       const std::set<std::string>& names, bool packs) {
  Workspace<double> ws(storage.model());
  const Doubles ctrl = random.normals(storage.model().nu);
  const Step function{storage, state.qpos, next_state(storage, state, ctrl, ws).qpos};
  const StepPullback adjoint{function};
  const Doubles in = function.inputs(state.qvel, ctrl);
  CHECK(get_lane(ws.step->soft.settled, 0));
  check_adjoint(name, random, in, function.n_out(), function, adjoint, through_constraints,
                function.blocks(names));
  check_side_by_side(name, adjoint, in);
  if (packs) check_packs(name, random, adjoint, in);
  Acting acting;
  const SoftStage<double>& stage = ws.step->soft.stage;
  for (int i = 0; i < stage.constraints.count; ++i) {
    ++acting.constraints;
    if (std::fabs(stage.newton.slope[stage.constraints.list[i].row]) > 1e-9) ++acting.pressed;
  }
  return acting;
}

void smooth_motion() {
  Random random(233);
  for (Integrator integrator : integrators) {
    const MujocoArrays arrays = softened(two_trees(), Cone::pyramidal, integrator);
    const ModelStorage storage(arrays);
    check_soft_step("two trees", random, storage,
                    {random_qpos(storage, arrays, random, 0.7), random.normals(arrays.nv)},
                    with(of_bodies, {"ctrl", "actuator_gainprm", "actuator_biasprm", "qpos_spring"}), false);
  }
}

void limits_and_dry_friction() {
  Random random(234);
  for (Integrator integrator : {Integrator::euler, Integrator::rk4}) {
    const MujocoArrays arrays = softened(limited_chain(), Cone::pyramidal, integrator);
    const ModelStorage storage(arrays);
    const Quaternion<double> turn = exponential(Point{0.497 * 0.6, 0, 0.497 * 0.8});
    const State state = {{0.403, 0.3, -0.304, 0.1, turn.w, turn.x, turn.y, turn.z},
                         {0.5, 0.2, -0.6, 0.3, 0.6, 0.1, 0.8}};
    const Acting acting = check_soft_step("limited chain", random, storage, state,
                                          with(of_bodies, {"ctrl", "dof_frictionloss", "jnt_range"}), true);
    CHECK(acting.pressed > 5);
  }
}

void equality_constraints() {
  Random random(235);
  for (Integrator integrator : {Integrator::euler, Integrator::rk4}) {
    const MujocoArrays arrays = softened(linked_bodies(), Cone::pyramidal, integrator);
    const ModelStorage storage(arrays);
    const Acting acting = check_soft_step(
        "linked bodies", random, storage,
        {random_qpos(storage, arrays, random, 0.1), random.normals(arrays.nv)},
        {"qpos", "qvel", "body_mass", "body_ipos", "body_inertia", "dof_armature", "gravity"}, true);
    CHECK(acting.pressed == 5);
  }
}

// Every pair of shapes, condim 1 to 6, mixed softness and pairs of their own, limits and dry friction.
void a_crowd() {
  Random random(236);
  for (Cone cone : cones)
    for (Integrator integrator : {Integrator::euler, Integrator::implicit, Integrator::rk4}) {
      const MujocoArrays arrays = softened(crowd(), cone, integrator);
      const ModelStorage storage(arrays);
      const Acting acting = check_soft_step("crowd", random, storage, crowd_state(storage, arrays, random),
                                            with(of_bodies, {"ctrl", "dof_frictionloss", "jnt_range",
                                                             "geom_friction", "geom_solref", "geom_solimp"}),
                                            integrator == Integrator::euler);
      CHECK(acting.pressed > 5);
    }
}

// The step on dual numbers along a direction, against the adjoint.
void forward_derivatives() {
  Random random(237);
  for (Cone cone : cones)
    for (Integrator integrator : integrators) {
      const MujocoArrays arrays = softened(crowd(), cone, integrator);
      const ModelStorage storage(arrays);
      const Model& m = storage.model();
      const State state = crowd_state(storage, arrays, random);
      const Doubles ctrl = random.normals(m.nu);
      Workspace<double> ws(m);
      const Step function{storage, state.qpos, next_state(storage, state, ctrl, ws).qpos};
      const Doubles in = function.inputs(state.qvel, ctrl), out_bar = random.normals(function.n_out());
      Doubles in_bar(in.size(), 0.0), direction(in.size(), 0.0);
      StepPullback{function}(in.data(), out_bar.data(), in_bar.data());
      for (int i = 0; i < 2 * m.nv + m.nu; ++i) direction[i] = random.normal();
      std::vector<Dual<1>> dual(in.begin(), in.end()), out(function.n_out(), Dual<1>(0.0));
      for (std::size_t i = 0; i < in.size(); ++i) dual[i].tangent[0] = direction[i];
      function(dual.data(), out.data());
      double forward = 0, size = 0;
      for (int i = 0; i < function.n_out(); ++i) {
        forward += out_bar[i] * out[i].tangent[0];
        size += std::fabs(out_bar[i] * out[i].tangent[0]);
      }
      CHECK(std::fabs(forward - inner(in_bar, direction)) <= solved * size);
    }
}

void no_allocation() {
  Random random(238);
  for (Integrator integrator : integrators) {
    const MujocoArrays arrays = softened(crowd(), Cone::elliptic, integrator);
    const ModelStorage storage(arrays);
    const Model& m = storage.model();
    const State state = crowd_state(storage, arrays, random);
    Workspace<double> ws(m);
    Owned<StepAdjointWorkspace<double>> adjoint(m);
    Owned<StateCotangent<double>> state_bar(m);
    Owned<Parameters<double>> parameters_bar(m);
    parameters_bar->clear(m);
    load_defaults(storage, *ws.parameters);
    Doubles qpos(m.nq), qvel(m.nv), ctrl(m.nu, 0.1), ctrl_bar(m.nu, 0.0);
    std::fill_n(state_bar->qpos, m.nv, 1.0);
    std::fill_n(state_bar->qvel, m.nv, 1.0);
    check_no_allocation("soft step", [&] {
      step(m, *ws.parameters, state.qpos.data(), state.qvel.data(), ctrl.data(), true, *ws.step, qpos.data(),
           qvel.data());
      step_adjoint(m, *ws.parameters, state.qpos.data(), state.qvel.data(), ctrl.data(), *ws.step, *adjoint,
                   *state_bar, ctrl_bar.data(), *parameters_bar);
    });
  }
}

}  // namespace

int main() {
  return run({{"smooth motion", smooth_motion},
              {"limits and dry friction", limits_and_dry_friction},
              {"equality constraints", equality_constraints},
              {"a crowd", a_crowd},
              {"forward derivatives", forward_derivatives},
              {"no allocation", no_allocation}});
}
