// The adjoint of the whole step by state, control and every parameter: sliding, sticking, colliding, limits, dry
// friction, equality constraints; and packs against single runs.
#include <algorithm>
#include <set>
#include <utility>

#include "reference.hpp"
#include "steps.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// Differences across the solver: its clamps leave room for small steps only.
constexpr double through_contact = 1e-7;

// in: tangent of qpos, qvel, ctrl, all parameters by MuJoCo's names. out: tangent of the next qpos at `next`,
// next qvel.
struct Step {
  const ModelStorage& storage;
  Doubles qpos, next;

  const Model& model() const { return storage.model(); }
  // Inputs with a strong effect take small steps: depths are within a millimetre of their kinks.
  static double scale_of(Parameter p) {
    switch (p) {
      case Parameter::body_inertia:
      case Parameter::dof_armature:
        return 1e-3;
      case Parameter::body_ipos:
      case Parameter::geom_friction:
      case Parameter::restitution:
        return 1e-2;
      case Parameter::jnt_stiffness:
        return 1.0;
      default:
        return 0.1;
    }
  }
  // Dry friction has a kink at zero: only what is above is differentiated, which in these models follows each
  // other.
  static void only_positive(const Doubles& values, Block& block) {
    const auto positive = [](double value) { return value > 0; };
    const auto first = std::find_if(values.begin(), values.end(), positive);
    block.begin += int(first - values.begin());
    block.size = int(std::find_if_not(first, values.end(), positive) - first);
  }
  // Without names: all of them, whole.
  std::vector<Block> blocks(const std::set<std::string>& names) const {
    const int nv = model().nv;
    std::vector<Block> all = {
        {"qpos", 0, nv, 1e-3}, {"qvel", nv, nv, 1e-2}, {"ctrl", 2 * nv, model().nu, 1.0}};
    for (int p = 0; p < parameter_count; ++p)
      all.push_back({parameter_names[p], all.back().begin + all.back().size,
                     storage.parameter_size(Parameter(p)), scale_of(Parameter(p))});
    std::vector<Block> out;
    for (Block block : all) {
      if (!names.empty() && !names.count(block.name)) continue;
      if (block.name == "dof_frictionloss" && !names.empty())
        only_positive(storage.parameters().defaults[int(Parameter::dof_frictionloss)], block);
      out.push_back(block);
    }
    return out;
  }
  int n_in() const { return blocks({}).back().begin + blocks({}).back().size; }
  int n_out() const { return 2 * model().nv; }
  Doubles inputs(const Doubles& qvel, const Doubles& ctrl) const {
    Doubles in(model().nv, 0.0);
    in.insert(in.end(), qvel.begin(), qvel.end());
    in.insert(in.end(), ctrl.begin(), ctrl.end());
    for (const Doubles& values : storage.parameters().defaults)
      in.insert(in.end(), values.begin(), values.end());
    return in;
  }

  // one environment's parameters as the parameter map takes them
  template <class Real>
  Doubles parameter_values(const Real* in, int lane) const {
    Doubles out;
    for (int i = 2 * model().nv + model().nu; i < n_in(); ++i) out.push_back(get_lane(in[i], lane));
    return out;
  }
  template <class Pointers, class Number>
  Pointers pointers(Number* values) const {
    Pointers out;
    for (int p = 0; p < parameter_count; ++p) {
      out[p] = values;
      values += storage.parameter_size(Parameter(p));
    }
    return out;
  }
  template <class Real>
  struct Done {
    Workspace<Real> ws;
    std::vector<Real> moved, reached, qvel_next;
  };
  template <class Real>
  Done<Real> run(const Real* in) const {
    Done<Real> done{Workspace<Real>(model()), std::vector<Real>(model().nq), std::vector<Real>(model().nq),
                    std::vector<Real>(model().nv)};
    for (int lane = 0; lane < Width<Real>::value; ++lane) {
      const Doubles values = parameter_values(in, lane);
      load_parameters(storage.parameters(), pointers<ParameterPointers>(values.data()), lane, model(),
                      *done.ws.parameters);
    }
    const std::vector<Real> start(qpos.begin(), qpos.end());
    displace(model(), start.data(), in, done.moved.data());
    step(model(), *done.ws.parameters, done.moved.data(), in + model().nv, in + 2 * model().nv, true,
         *done.ws.step, done.reached.data(), done.qvel_next.data());
    return done;
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    const Done<Real> done = run(in);
    tangent_between(model(), next, done.reached.data(), out);
    for (int k = 0; k < model().nv; ++k) out[model().nv + k] += done.qvel_next[k];
  }
};
struct StepPullback {
  const Step& of;
  // Bar: as Real, or a pack of cotangents of one environment
  template <class Real, class Bar>
  void operator()(const Real* in, const Bar* out_bar, Bar* in_bar) const {
    const Model& model = of.model();
    const int nv = model.nv;
    Step::Done<Real> done = of.run(in);
    Owned<StepAdjointWorkspace<Bar>> ws(model);
    Owned<StateCotangent<Bar>> state(model);
    Owned<Parameters<Bar>> parameters_bar(model);
    parameters_bar->clear(model);
    std::copy_n(out_bar, nv, state->qpos);
    std::copy_n(out_bar + nv, nv, state->qvel);
    step_adjoint(model, *done.ws.parameters, done.moved.data(), in + nv, in + 2 * nv, *done.ws.step, *ws,
                 *state, in_bar + 2 * nv, *parameters_bar);
    for (int k = 0; k < nv; ++k) {
      in_bar[k] += state->qpos[k];
      in_bar[nv + k] += state->qvel[k];
    }
    for (int lane = 0; lane < Width<Bar>::value; ++lane) {
      const Doubles values = of.parameter_values(in, lane);
      Doubles bar(values.size(), 0.0);
      add_parameter_cotangents(of.storage.parameters(), of.pointers<ParameterPointers>(values.data()), lane,
                               model, *parameters_bar, of.pointers<ParameterBarPointers>(bar.data()));
      for (std::size_t i = 0; i < bar.size(); ++i) set_lane(in_bar[2 * nv + model.nu + i], lane, bar[i]);
    }
  }
};

// Cotangents of one environment in the lanes of a pack have the bits of one by one.
void check_side_by_side(const std::string& name, const StepPullback& pullback, const Doubles& in) {
  Random random(140);
  using Pack = Lanes<native_lanes>;
  const int n_in = pullback.of.n_in(), n_out = pullback.of.n_out();
  std::vector<Pack> packed_bar(n_out), packed(n_in, Pack(0));
  std::vector<Doubles> one_by_one;
  for (int lane = 0; lane < native_lanes; ++lane) {
    const Doubles out_bar = random.normals(n_out);
    for (int i = 0; i < n_out; ++i) set_lane(packed_bar[i], lane, out_bar[i]);
    one_by_one.emplace_back(n_in, 0.0);
    pullback(in.data(), out_bar.data(), one_by_one.back().data());
  }
  pullback(in.data(), packed_bar.data(), packed.data());
  bool equal = true;
  for (int lane = 0; lane < native_lanes; ++lane)
    for (int i = 0; i < n_in; ++i) equal = equal && same(get_lane(packed[i], lane), one_by_one[lane][i]);
  expect(equal, (name + ": cotangents side by side").c_str(), __FILE__, __LINE__);
}

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
                const std::set<std::string>& names) {
  Workspace<double> ws(storage.model());
  const Doubles ctrl = random.normals(storage.model().nu);
  const Step function{storage, state.qpos, next_state(storage, state, ctrl, ws).qpos};
  const StepPullback adjoint{function};
  const Doubles in = function.inputs(state.qvel, ctrl);
  check_adjoint(name, random, in, function.n_out(), function, adjoint,
                ws.step->rows.count ? through_contact : smooth, function.blocks(names));
  check_side_by_side(name, adjoint, in);
  // contacts that only some of the environments have
  std::vector<Doubles> environments(8, in);
  for (Doubles& environment : environments)
    for (const Block& block : function.blocks({}))
      for (int i = block.begin; i < block.begin + block.size; ++i)
        environment[i] += (block.begin ? 0.1 * in[i] : 0.003) * random.normal();
  // one width only: the whole step is slow to compile, and its stages are checked in both
  check_width<native_lanes>(name, environments, function.n_out(), function);
  check_width<native_lanes>(name + std::string(" adjoint"),
                            with_cotangents(random, environments, function.n_out()), function.n_in(),
                            Pullback<StepPullback>{adjoint, function.n_in()});
  return ends_of(*ws.step);
}

const std::set<std::string> body_names = {"qpos", "qvel", "body_mass", "body_ipos", "body_inertia"};
std::set<std::string> with(std::set<std::string> names, std::initializer_list<const char*> more) {
  names.insert(more.begin(), more.end());
  return names;
}

void adjoint_of_smooth_motion() {
  MujocoArrays arrays = two_trees();
  Random random(133);
  for (int trial = 0; trial < 4; ++trial) {
    arrays.integrator = trial % 2;
    const ModelStorage storage(arrays);
    check_step("two trees", random, storage,
               {random_qpos(storage, arrays, random, 0.7), random.normals(arrays.nv)},
               with(body_names,
                    {"ctrl", "dof_damping", "dof_armature", "jnt_stiffness", "gravity", "actuator_gear"}));
  }
}

// On the plane's frame, a third of a millimetre in; what sticks after many sweeps depends on the depth alone.
void adjoint_of_sliding_and_sticking() {
  MujocoArrays arrays = box_on_plane();
  Random random(134);
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
      arrays.restitution = restitution;
      arrays.margin = 10;
      const ModelStorage storage(arrays);
      for (int trial = 0; trial < 2; ++trial) {
        const State state = collision_state(storage, arrays, gap, random);
        Workspace<double> ws(storage.model());
        next_state(storage, state, {}, ws);
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
                                                 "jnt_stiffness", "gravity", "actuator_gear"}));
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
                      "actuator_gear", "geom_friction", "restitution"});

void adjoint_of_a_crowd() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(137);
  for (int trial = 0; trial < 3; ++trial) {
    const Ends ends = check_step("crowd", random, storage, crowd_state(storage, arrays, random), all_names);
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
