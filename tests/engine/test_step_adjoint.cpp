// The adjoint of the whole step by state, control and every parameter: sliding, sticking, colliding, limits, dry
// friction, equality constraints; and packs against single runs.
#include "reference.hpp"
#include "step_function.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// Differences across the solver: its clamps leave room for small steps only.
constexpr double through_contact = 1e-7;

// Rows of the solver by where they ended.
struct Ends {
  int open = 0, pressed = 0, sliding = 0, sticking = 0;
};
Ends ends_of(const StepWorkspace<double>& ws) {
  Ends ends;
  for (int r = 0; r < ws.rows.count; ++r) {
    const SolverRow& row = ws.rows.solver[r];
    const double x = ws.solver.x[r];
    if (row.kind == RowKind::unilateral) {
      ++(x > 0 ? ends.pressed : ends.open);
    } else if (row.kind == RowKind::box && ws.rows.bound[r] > 0) {
      ++(std::fabs(x) < ws.rows.bound[r] ? ends.sticking : ends.sliding);
    } else if (row.kind == RowKind::friction && row.normal == r - 1) {
      const double normal = ws.solver.x[row.normal];
      double reach = 0;
      for (int i = r; i < ws.rows.count && ws.rows.solver[i].normal == row.normal; ++i)
        reach += std::pow(ws.solver.x[i] / ws.rows.bound[i], 2);
      if (normal > 0) ++(reach < (1 - 1e-9) * normal * normal ? ends.sticking : ends.sliding);
    }
  }
  return ends;
}

Ends check_step(const char* name, Random& random, const ModelStorage& storage, const State& state,
                const std::set<std::string>& names, double tolerance = through_contact) {
  Workspace<double> ws(storage.model());
  const Doubles ctrl = random.normals(storage.model().nu);
  const Step function{storage, state.qpos, next_state(storage, state, ctrl, ws).qpos};
  const StepPullback adjoint{function};
  const Doubles in = function.inputs(state.qvel, ctrl);
  check_adjoint(name, random, in, function.n_out(), function, adjoint,
                ws.step->rows.count ? tolerance : smooth, function.blocks(names));
  check_side_by_side(name, adjoint, in);
  check_packs(name, random, adjoint, in);
  return ends_of(*ws.step);
}

const std::set<std::string> body_names = {"qpos", "qvel", "body_mass", "body_ipos", "body_inertia"};

void adjoint_of_smooth_motion() {
  MujocoArrays arrays = two_trees();
  Random random(133);
  for (int trial = 0; trial < 4; ++trial) {
    arrays.integrator = trial % 2;
    const ModelStorage storage(arrays);
    check_step("two trees", random, storage,
               {random_qpos(storage, arrays, random, 0.7), random.normals(arrays.nv)},
               with(body_names, {"ctrl", "dof_damping", "dof_armature", "jnt_stiffness", "gravity",
                                 "actuator_gear", "actuator_gainprm", "actuator_biasprm", "qpos_spring"}));
  }
}

// On the plane's frame, a third of a millimetre in; what sticks after many sweeps depends on the depth alone.
void adjoint_of_sliding_and_sticking() {
  MujocoArrays arrays = box_on_plane();
  Random random(234);
  const Matrix3<double> R = rotation_of(&arrays.geom_quat[0]);
  const Point up = R.column(2), at = vector3<double>(&arrays.geom_pos[0]) + 0.0997 * up;
  const std::set<std::string> sliding = with(body_names, {"gravity", "geom_friction"}),
                              unsettled = with(body_names, {"gravity"});
  for (double slip : {3.0, 0.0}) {
    for (int iterations : {3, 50}) {
      arrays.iterations = iterations;
      const ModelStorage storage(arrays);
      const Point velocity = slip * (0.8 * R.column(0) + 0.6 * R.column(1)) - 0.3 * up;
      Doubles qvel = {velocity.x, velocity.y, velocity.z};
      for (int i = 0; i < 3; ++i) qvel.push_back(0.05 * random.normal());
      const double* q = &arrays.geom_quat[0];
      const Ends ends =
          check_step("box on plane", random, storage, {{at.x, at.y, at.z, q[0], q[1], q[2], q[3]}, qvel},
                     slip > 0          ? sliding
                     : iterations == 3 ? unsettled
                                       : std::set<std::string>{"qpos"});
      CHECK(ends.pressed > 0 && (slip > 0 ? ends.sliding : ends.sticking) > 0);
    }
  }
}

// In touch already without and with restitution, and reached within the step.
void adjoint_of_collisions() {
  Random random(135);
  const std::pair<int, int> pairs[] = {{sphere_geom, sphere_geom},
                                       {sphere_geom, capsule_geom},
                                       {capsule_geom, capsule_geom},
                                       {sphere_geom, box_geom}};
  const std::pair<double, double> cases[] = {{0.0, -1e-4}, {0.0, 0.012}, {0.5, -1e-4}, {0.5, 0.012}};
  for (const auto& [type_a, type_b] : pairs) {
    for (const auto& [restitution, gap] : cases) {
      MujocoArrays arrays = two_shapes(type_a, type_b);
      arrays.restitution = {restitution};
      arrays.margin = 10;
      const ModelStorage storage(arrays);
      for (int trial = 0; trial < 2; ++trial) {
        State state = collision_state(storage, arrays, gap, random);
        Workspace<double> ws(storage.model());
        next_state(storage, state, {}, ws);
        // some fly past each other
        for (int again = 0; gap > 0 && !ws.step->impact.any && again < 5; ++again) {
          state = collision_state(storage, arrays, gap, random);
          next_state(storage, state, {}, ws);
        }
        CHECK(ws.step->impact.any == (gap > 0));
        const Ends ends =
            check_step("collision", random, storage, state,
                       restitution > 0 ? with(body_names, {"gravity", "restitution"}) : body_names);
        CHECK(ends.pressed == 1);
      }
    }
  }
}

void adjoint_of_limits_and_dry_friction() {
  const MujocoArrays arrays = limited_chain();
  const ModelStorage storage(arrays);
  Random random(136);
  // both ends of a range, the cone of the ball, dry friction that slips and that sticks
  const Quaternion<double> turn = exponential(Point{0.4995 * 0.6, 0, 0.4995 * 0.8});
  const State state = {{0.399, 0.3, -0.299, 0.1, turn.w, turn.x, turn.y, turn.z},
                       {0.5, 0.2, -0.6, 0.3, 0.6, 0.1, 0.8}};
  const Ends ends = check_step("limited chain", random, storage, state,
                               with(body_names, {"ctrl", "dof_damping", "dof_armature", "dof_frictionloss",
                                                 "jnt_stiffness", "gravity", "actuator_gear", "jnt_range"}));
  CHECK(ends.pressed == 3 && ends.sliding > 0 && ends.sticking > 0);
}

void adjoint_of_equality_constraints() {
  MujocoArrays arrays = linked_bodies();
  Random random(139);
  for (int iterations : {5, 100}) {
    arrays.iterations = iterations;
    const ModelStorage storage(arrays);
    check_step("linked bodies", random, storage,
               {random_qpos(storage, arrays, random, 0.1), random.normals(arrays.nv)},
               with(body_names, {"dof_damping", "dof_armature", "jnt_stiffness", "gravity"}));
  }
}

const std::set<std::string> all_names =
    with(body_names, {"ctrl", "dof_damping", "dof_armature", "dof_frictionloss", "jnt_stiffness", "gravity",
                      "actuator_gear", "restitution", "jnt_range", "qpos_spring"});

void adjoint_of_a_crowd() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(237);
  for (int trial = 0; trial < 3; ++trial) {
    const State state = crowd_state(storage, arrays, random);
    const Ends ends = check_step("crowd", random, storage, state, all_names);
    // the three columns of friction are four decades apart
    check_step("crowd", random, storage, state, {"geom_friction"}, 5e-7);
    CHECK(ends.pressed > 5 && ends.sliding > 3 && ends.sticking > 1);
  }
}

}  // namespace

int main() {
  return run({{"smooth motion", adjoint_of_smooth_motion},
              {"sliding and sticking", adjoint_of_sliding_and_sticking},
              {"collisions", adjoint_of_collisions},
              {"limits and dry friction", adjoint_of_limits_and_dry_friction},
              {"equality constraints", adjoint_of_equality_constraints},
              {"a crowd", adjoint_of_a_crowd}});
}
