// Constraint rows: which there are, their Jacobians against MuJoCo's arrays and the rates of gaps, right
// sides and bounds by their formulae, and the adjoint of all of them together.
#include <algorithm>
#include <tuple>

#include "allocation.hpp"
#include "packing.hpp"
#include "reference.hpp"
#include "stages.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

constexpr double h = 0.01, erp = 0.2, step_depth = 10 * h * h;
// What is deeper comes back with 80 of itself a second, and not faster than 0.45 m/s.
double deep_bias(double gap) { return -step_depth / h + std::fmax(80 * (gap + step_depth), -0.45); }

// b - J v*
double bias_of(Stages<double>& at, int r) {
  return at.rows->b[r] - row_times(at.rows->J[r], at.v_free.data(), at.V_free.data());
}

// --- which rows there are ----------------------------------------------------------------------------------

// The crowd has dry friction, limits and contacts of every pair; the rock stands alone.
void rows_are_grouped_by_islands() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(120);
  const State state = crowd_state(storage, arrays, random);
  Stages<double> at = stages_at(storage, state.qpos, state.qvel, state.qvel);
  int sources[4] = {0, 0, 0, 0}, islands = 0, by_condim[7] = {};
  for (int r = 0; r < at.rows->count; ++r) {
    const RowOrigin& origin = at.rows->origin[r];
    const SolverRow& row = at.rows->solver[r];
    ++sources[int(origin.source)];
    islands += row.begin == r;
    CHECK(row.begin <= r && r < row.end);
    if (row.kind == RowKind::friction) CHECK(row.normal == r - origin.component && row.normal >= row.begin);
    if (origin.source == RowSource::contact) ++by_condim[at.contacts->list[origin.index].candidate->condim];
    // rows of an island keep the order equality, dry friction, limits, contacts
    if (r > row.begin) CHECK(int(at.rows->origin[r - 1].source) <= int(origin.source));
  }
  CHECK(sources[0] == 0 && sources[1] == 4 && sources[2] == 2 && islands == 2);
  // two feet, a rock on five vertices, two pairs of dimension 3; one pair each of dimension 1, 4 and 6
  CHECK(by_condim[1] == 1 && by_condim[3] == 3 * 9 && by_condim[4] == 4 && by_condim[6] == 6);

  MujocoArrays without = arrays;
  without.contact = without.limits = without.dry_friction = false;
  CHECK(stages_at(ModelStorage(without), state.qpos, state.qvel, state.qvel).rows->count == 0);
}

// --- Jacobians ---------------------------------------------------------------------------------------------

// J v of contact rows: relative velocity along the axis, or relative turning about it.
void contact_rows_are_relative_velocities() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(121);
  const State state = crowd_state(storage, arrays, random);
  const Doubles v = random.normals(arrays.nv);
  Stages<double> at = stages_at(storage, state.qpos, state.qvel, state.qvel);
  std::vector<Motion<double>> V(arrays.nv);
  link_velocities(storage.model(), at.kinematics->S, v.data(), V.data());
  const ReferencePose pose = reference_pose(arrays, state.qpos);
  for (int r = 0; r < at.rows->count; ++r) {
    const RowOrigin& origin = at.rows->origin[r];
    if (origin.source != RowSource::contact) continue;
    const Contact<double>& contact = at.contacts->list[origin.index];
    const Candidate& candidate = *contact.candidate;
    const Dense relative =
        jacobian(pose, arrays.geom_bodyid[candidate.geom_b], contact.at.point) * column(v) +
        -1.0 * (jacobian(pose, arrays.geom_bodyid[candidate.geom_a], contact.at.point) * column(v));
    const double* velocity = &relative.entries[origin.component < 3 ? 3 : 0];
    CHECK_CLOSE(row_times(at.rows->J[r], v.data(), V.data()),
                dot(contact.axis[origin.component % 3], vector3<double>(velocity)), rounding);
  }
}

// J v = d/dt of the gap or violation that the bias is made of.
void check_rates(const ModelStorage& storage, const Doubles& qpos, Random& random,
                 double bias_per_violation) {
  const Model& model = storage.model();
  const Doubles still(model.nv, 0.0), v = random.normals(model.nv);
  const double t = 1e-5;
  const auto at = [&](double by) {
    Doubles tangent = v;
    for (double& entry : tangent) entry *= by;
    return stages_at(storage, displaced(model, qpos, tangent), still, still);
  };
  Stages<double> now = at(0), later = at(t), earlier = at(-t);
  std::vector<Motion<double>> V(model.nv);
  link_velocities(model, now.kinematics->S, v.data(), V.data());
  for (int r = 0; r < now.rows->count; ++r) {
    if (now.rows->origin[r].source == RowSource::dry_friction) continue;
    const double rate = (later.rows->b[r] - earlier.rows->b[r]) / (2 * t * bias_per_violation);
    CHECK_CLOSE(row_times(now.rows->J[r], v.data(), V.data()), rate, differenced);
  }
}
void rows_are_rates_of_gaps_and_violations() {
  Random random(122);
  MujocoArrays limits = limited_chain();
  limits.margin = 10;  // all limits act, none is reached
  const ModelStorage chain(limits);
  check_rates(chain, {0.1, 0.2, 0.05, 0.3, 0.96, 0.2, -0.1, 0.1}, random, 1 / h);

  // anywhere, but for the turning rows of a weld, which are rates only where it holds
  MujocoArrays links = linked_bodies();
  links.eq_type[2] = int(EqualityType::connect);
  const ModelStorage open(links);
  check_rates(open, random_qpos(open, links, random, 0.3), random, erp / h);
}

// A weld that holds: body b stands where the pose in body a says.
void a_weld_turns_with_both_bodies() {
  const MujocoArrays arrays = linked_bodies();
  const ModelStorage storage(arrays);
  Random random(123);
  Doubles qpos = random_qpos(storage, arrays, random, 0.3);
  const ReferencePose pose = reference_pose(arrays, qpos);
  const double* data = &arrays.eq_data[2 * 11];
  const ReferenceBody& a = pose.bodies[arrays.eq_obj1[2]];
  const int address = arrays.jnt_qposadr[3];
  // orientation by the third body's own joint: R_b = R_a R(data), anchor_b = anchor_a
  const Matrix3<double> R = a.R * rotation_of(data + 6);
  const Point at = a.position + a.R * vector3<double>(data + 3) - R * vector3<double>(data);
  const double w = 0.5 * std::sqrt(1 + R(0, 0) + R(1, 1) + R(2, 2));
  const Doubles placed = {at.x,
                          at.y,
                          at.z,
                          w,
                          (R(2, 1) - R(1, 2)) / (4 * w),
                          (R(0, 2) - R(2, 0)) / (4 * w),
                          (R(1, 0) - R(0, 1)) / (4 * w)};
  std::copy(placed.begin(), placed.end(), qpos.begin() + address);
  const Doubles still(arrays.nv, 0.0);
  Stages<double> held = stages_at(storage, qpos, still, still);
  for (int r = 0; r < held.rows->count; ++r)
    if (held.rows->origin[r].index == 2) CHECK_CLOSE(held.rows->b[r], 0.0, 1e-11);
  check_rates(storage, qpos, random, erp / h);
}

// --- right sides and bounds --------------------------------------------------------------------------------

// A ball over a plane at `gap`, moving at `before` now and at `after` without contact: the bias of its normal
// row.
double contact_bias(double gap, double before, double after, double restitution, double impact_time = 0) {
  ModelMaker m;
  m.arrays.restitution = {restitution};
  m.arrays.margin = 1.0;
  const int plane = m.add_geom(0, plane_geom, {0, 0, 1});
  const int body = m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1.0);
  m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
  m.add_pair(plane, m.add_geom(body, sphere_geom, {0.1, 0, 0}));
  const ModelStorage storage(m.arrays);
  Stages<double> at(storage, {0, 0, 0.1 + gap, 1, 0, 0, 0}, {0, 0, before, 0, 0, 0}, {0, 0, after, 0, 0, 0});
  at.impact_time[0] = impact_time;
  at.run();
  return bias_of(at, 0);
}

void gaps_are_closed_and_depth_is_given_back() {
  for (double gap : {0.02, 1e-5, 0.0, -0.5 * step_depth})
    CHECK_CLOSE(contact_bias(gap, 1, 1, 0), gap / h, rounding);
  for (double gap : {-2 * step_depth, -0.1})
    CHECK_CLOSE(contact_bias(gap, 1, 1, 0), deep_bias(gap), rounding);
  // continuous at the switch
  CHECK_CLOSE(contact_bias(-step_depth * (1 - 1e-9), 0, 0, 0),
              contact_bias(-step_depth * (1 + 1e-9), 0, 0, 0), 1e-8);
}

// An impact at the time t within the step, with the acceleration a = (v* - v)/h: parting with -e (v + a t) -
// a t.
void what_is_reached_bounces() {
  const double e = 0.5, a = -0.1 / h;
  for (double gap : {0.001, 0.0, -0.0005})
    for (double t : {0.0, 0.004})
      CHECK_CLOSE(contact_bias(gap, -2, -2.1, e, t), e * (-2 + a * t) + a * t, rounding);
  // without restitution what is reached stays closed
  for (double gap : {0.0005, 0.0, -0.0005}) CHECK_CLOSE(contact_bias(gap, -2, -2.1, 0, 0.004), 0.0, rounding);
  // approached but not reached, moving away, not the first without restitution, no faster than a step's acceleration
  const std::tuple<double, double, double, double> without[] = {
      {0.05, -2, -2.1, e}, {-0.0005, 1, 0.9, e}, {0.002, -2, -2.1, 0}, {0.0, -0.09, -0.19, e}};
  for (const auto& [gap, before, after, restitution] : without)
    CHECK_CLOSE(contact_bias(gap, before, after, restitution), gap / h, rounding);
}

void limits_and_bounds() {
  const MujocoArrays arrays = limited_chain();
  const ModelStorage storage(arrays);
  // dof 0 beyond its upper limit, dof 2 near its lower one and moving, the ball at 0.49 of 0.5
  const Quaternion<double> turn = exponential(Point{0.49 * 0.6, 0, 0.49 * 0.8});
  const Doubles v = {0.5, 0.2, -0.6, 0.3, 0.1, 0.2, 0.4};
  Stages<double> at = stages_at(storage, {0.41, 0.3, -0.295, 0.1, turn.w, turn.x, turn.y, turn.z}, v, v);
  CHECK(at.rows->count == 7);
  for (int r = 0; r < at.rows->count; ++r) {
    const RowJacobian<double>& J = at.rows->J[r];
    if (at.rows->origin[r].source == RowSource::dry_friction) {
      CHECK_CLOSE(at.rows->b[r], v[J.dof[0]], rounding);
      CHECK_CLOSE(at.rows->bound[r], h * arrays.dof_frictionloss[J.dof[0]], rounding);
      continue;
    }
    // slope of the gap along v, and the gap
    const std::tuple<int, double, double> wanted[] = {
        {0, -0.5, -0.01}, {2, -0.6, 0.005}, {4, -(0.1 * 0.6 + 0.4 * 0.8), 0.01}};
    const auto [dof, rate, gap] = wanted[J.dof[0] == 0 ? 0 : J.dof[0] == 2 ? 1 : 2];
    CHECK(J.dof[0] == dof && at.rows->solver[r].kind == RowKind::unilateral);
    CHECK_CLOSE(at.rows->b[r], rate + (gap < -step_depth ? deep_bias(gap) : gap / h), rounding);
    CHECK_CLOSE(at.rows->bound[r], 1.0, 0.0);
  }
  // far from all limits
  CHECK(stages_at(storage, {0.0, 0.3, 0.0, 0.1, 1, 0, 0, 0}, v, v).rows->count == 4);
}

// --- adjoint -----------------------------------------------------------------------------------------------

// in: tangent of qpos, qvel, v*, restitution, friction, frictionloss, time of the impact. out: J about
// reference points that stay where they are at tangent zero, b, and the bounds that are numbers, row by row.
struct Rows {
  const ModelStorage& storage;
  Doubles qpos;
  int count = 0;

  static constexpr int per_row = 12 + row_dofs + 2;
  const Model& model() const { return storage.model(); }
  int n_out() const { return per_row * count; }
  std::vector<Block> blocks() const {
    const int nv = model().nv, frictions = 3 * model().ngeom;
    // depths and limits are within a millimetre of their kinks
    return {{"qpos", 0, nv, 1e-3},
            {"qvel", nv, nv, 1e-2},
            {"v_free", 2 * nv, nv, 1e-2},
            {"restitution", 3 * nv, 1},
            {"friction", 3 * nv + 1, frictions},
            {"frictionloss", 3 * nv + 1 + frictions, nv},
            {"time", 4 * nv + 1 + frictions, 1, 1e-3}};
  }
  Doubles inputs(const Doubles& qvel, Random& random) const {
    Doubles in(model().nv, 0.0);
    in.insert(in.end(), qvel.begin(), qvel.end());
    // a little slower without constraints
    for (double v : qvel) in.push_back(random.uniform(0.8, 0.9) * v);
    Owned<Parameters<double>> parameters(model());
    load_defaults(storage, *parameters);
    in.push_back(0.4);
    in.insert(in.end(), parameters->geom_friction, parameters->geom_friction + 3 * model().ngeom);
    in.insert(in.end(), parameters->frictionloss, parameters->frictionloss + model().nv);
    in.push_back(0.003);
    return in;
  }
  template <class Real>
  Stages<Real> run(const Real* in) const {
    const int nv = model().nv, frictions = 3 * model().ngeom;
    std::vector<Real> start(qpos.begin(), qpos.end()), moved(model().nq);
    displace(model(), start.data(), in, moved.data());
    Stages<Real> at(storage, moved, std::vector<Real>(in + nv, in + 2 * nv),
                    std::vector<Real>(in + 2 * nv, in + 3 * nv));
    *at.parameters->restitution = in[3 * nv];
    std::copy_n(in + 3 * nv + 1, frictions, at.parameters->geom_friction);
    std::copy_n(in + 3 * nv + 1 + frictions, nv, at.parameters->frictionloss);
    std::fill(at.impact_time.begin(), at.impact_time.end(), in[4 * nv + 1 + frictions]);
    at.run();
    return at;
  }
  template <class Real>
  Force<Real> about_fixed_point(Stages<Real>& at, int link, const Force<Real>& force) const {
    const int address = link < 0 ? -1 : model().tree_qpos[model().dofs[link].tree];
    if (link < 0) return zero_force<Real>();
    if (address < 0) return force;
    return {
        force.n + cross(tree_origin(model(), *at.kinematics, link) - vector3<Real>(&qpos[address]), force.f),
        force.f};
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Stages<Real> at = run(in);
    for (int r = 0; r < at.rows->count; ++r) {
      const RowJacobian<Real>& J = at.rows->J[r];
      Writer<Real> to{out + per_row * r};
      to.add(about_fixed_point(at, J.link_a, J.force_a));
      to.add(about_fixed_point(at, J.link_b, J.force_b));
      for (int i = 0; i < J.dofs; ++i) to.next[i] += J.coefficient[i];
      to.next += row_dofs;
      to.add(at.rows->b[r]);
      if (at.rows->solver[r].kind != RowKind::unilateral) to.add(at.rows->bound[r]);
    }
  }
};
struct RowsPullback {
  const Rows& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Model& m = of.model();
    const int nv = m.nv;
    Stages<Real> at = of.run(in);
    Owned<ConstraintRowsCotangent<Real>> bar(m);
    Owned<KinematicsCotangent<Real>> kin_bar(m);
    Owned<Parameters<Real>> parameters_bar(m);
    bar->clear(*at.rows, *at.contacts);
    kin_bar->clear(m);
    parameters_bar->clear(m);
    for (int r = 0; r < at.rows->count; ++r) {
      Reader<Real> from{out_bar + Rows::per_row * r};
      const Force<Real> force_a = from.force(), force_b = from.force();
      if (at.rows->J[r].link_a >= 0) bar->J[r].force_a += force_a;
      if (at.rows->J[r].link_b >= 0) bar->J[r].force_b += force_b;
      for (Real& coefficient : bar->J[r].coefficient) coefficient += from.scalar();
      bar->b[r] += from.scalar();
      bar->bound[r] += from.scalar();
    }
    std::vector<Force<Real>> F_b(nv, zero_force<Real>()), F_v = F_b;
    std::vector<Real> time_bar(m.ntree, Real(0));
    add_right_side_adjoint(at.context(), *at.rows, in_bar + 2 * nv, F_b.data(), *bar);
    constraint_rows_adjoint(m, *at.parameters, at.context(), *at.contacts, *at.rows, in_bar, F_v.data(),
                            F_b.data(), time_bar.data(), *bar, *kin_bar, *parameters_bar);
    for (const Real& of_tree : time_bar) in_bar[4 * nv + 1 + 3 * m.ngeom] += of_tree;
    for (int c = 0; c < at.contacts->count; ++c)
      collision_detection_adjoint(m, *at.kinematics, at.contacts->list[c], bar->contacts[c], *kin_bar);
    // V* = S v*, V = S qvel
    sum_towards_root(m, F_b.data());
    sum_towards_root(m, F_v.data());
    for (int k = 0; k < nv; ++k) {
      in_bar[nv + k] += dot(at.kinematics->S[k], F_v[k]);
      in_bar[2 * nv + k] += dot(at.kinematics->S[k], F_b[k]);
      kin_bar->S[k] += at.qvel[k] * F_v[k] + at.v_free[k] * F_b[k];
    }
    kinematics_adjoint(m, *at.parameters, *at.kinematics, *kin_bar, in_bar, *parameters_bar);
    Writer<Real> to{in_bar + 3 * nv};
    to.add(*parameters_bar->restitution);
    for (int i = 0; i < 3 * m.ngeom; ++i) to.add(parameters_bar->geom_friction[i]);
    for (int k = 0; k < nv; ++k) to.add(parameters_bar->frictionloss[k]);
  }
};

// `names`: the blocks that have an effect.
void check_rows(const char* name, Random& random, const ModelStorage& storage, const State& state,
                std::vector<std::string> names) {
  Rows function{storage, state.qpos};
  const RowsPullback adjoint{function};
  const Doubles in = function.inputs(state.qvel, random);
  function.count = function.run(in.data()).rows->count;
  std::vector<Block> blocks;
  for (const Block& block : function.blocks())
    if (std::find(names.begin(), names.end(), block.name) != names.end()) blocks.push_back(block);
  check_adjoint(name, random, in, function.n_out(), function, adjoint, smooth, blocks);
  const std::vector<Doubles> environments = environments_around(random, in, 1e-2);
  check_lanes(name, environments, function.n_out(), function);
  check_adjoint_lanes(name, random, environments, function.n_out(), adjoint);
}

// <lambda, J w> by J row by row, and by the link velocities of w.
void impulses_pull_back_to_rows_and_links() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(126);
  const State state = crowd_state(storage, arrays, random);
  Stages<double> at = stages_at(storage, state.qpos, state.qvel, state.qvel);
  const int n = at.rows->count;
  const Doubles lambda = random.normals(n), w = random.normals(arrays.nv);
  std::vector<Motion<double>> W(arrays.nv);
  link_velocities(storage.model(), at.kinematics->S, w.data(), W.data());
  Owned<ConstraintRowsCotangent<double>> bar(storage.model());
  std::vector<Force<double>> F_w(arrays.nv);
  bar->clear(*at.rows, *at.contacts);
  impulse_forces(storage.model(), *at.rows, lambda.data(), F_w.data());
  add_impulse_adjoint(*at.rows, lambda.data(), w.data(), W.data(), *bar);
  double by_rows = 0, by_links = 0, wanted = 0;
  for (int r = 0; r < n; ++r) {
    const RowJacobian<double>& J = at.rows->J[r];
    const RowJacobianCotangent<double>& J_bar = bar->J[r];
    wanted += lambda[r] * row_times(J, w.data(), W.data());
    by_rows +=
        inner(numbers(J.force_a), numbers(J_bar.force_a)) + inner(numbers(J.force_b), numbers(J_bar.force_b));
    for (int i = 0; i < J.dofs; ++i) by_rows += J.coefficient[i] * J_bar.coefficient[i];
    // rows on degrees of freedom reach w directly
    for (int i = 0; i < J.dofs; ++i) by_links += lambda[r] * J.coefficient[i] * w[J.dof[i]];
  }
  for (int k = 0; k < arrays.nv; ++k) by_links += dot(W[k], F_w[k]);
  CHECK_CLOSE(by_rows, wanted, rounding);
  CHECK_CLOSE(by_links, wanted, rounding);
}

// Under a wide margin, and with dry friction everywhere, all rows are there whatever the differences' steps.
MujocoArrays with_all_rows(MujocoArrays arrays) {
  arrays.margin = 10;
  for (double& loss : arrays.dof_frictionloss) loss += 1;
  return arrays;
}

void adjoint_and_lanes() {
  Random random(124);
  const MujocoArrays pile = with_all_rows(crowd()), links = with_all_rows(linked_bodies());
  const ModelStorage piled(pile), linked(links), chain(with_all_rows(limited_chain()));
  for (int trial = 0; trial < 3; ++trial) {
    check_rows("crowd", random, piled, crowd_state(piled, pile, random),
               {"qpos", "qvel", "v_free", "restitution", "friction", "frictionloss", "time"});
    check_rows("links", random, linked, {random_qpos(linked, links, random, 0.4), random.normals(links.nv)},
               {"qpos", "v_free"});
    check_rows("limits", random, chain, {{0.41, 0.3, -0.295, 0.1, 0.97, 0.1, -0.2, 0.08}, random.normals(7)},
               {"qpos", "v_free", "frictionloss"});
  }
}

void takes_nothing_from_the_heap() {
  for (const MujocoArrays& arrays : {crowd(), linked_bodies()}) {
    const ModelStorage storage(arrays);
    Random random(125);
    const State state = arrays.ngeom > 0 ? crowd_state(storage, arrays, random)
                                         : State{arrays.qpos0, random.normals(arrays.nv)};
    Stages<double> at = stages_at(storage, state.qpos, state.qvel, state.qvel);
    const int nv = arrays.nv;
    Owned<ConstraintRowsCotangent<double>> bar(storage.model());
    Owned<KinematicsCotangent<double>> kin_bar(storage.model());
    Owned<Parameters<double>> parameters_bar(storage.model());
    kin_bar->clear(storage.model());
    parameters_bar->clear(storage.model());
    Doubles lambda(at.rows->count, 1.0), w(nv, 1.0), v_bar(nv, 0.0), q_bar(nv, 0.0);
    Doubles time_bar(storage.model().ntree, 0.0);
    std::vector<Force<double>> F(nv, zero_force<double>());
    check_no_allocation("constraint_rows", [&] {
      constraint_rows(storage.model(), *at.parameters, at.context(), *at.contacts, *at.rows);
      bar->clear(*at.rows, *at.contacts);
      impulse_forces(storage.model(), *at.rows, lambda.data(), F.data());
      add_impulse_adjoint(*at.rows, lambda.data(), w.data(), at.V_free.data(), *bar);
      add_right_side_adjoint(at.context(), *at.rows, v_bar.data(), F.data(), *bar);
      constraint_rows_adjoint(storage.model(), *at.parameters, at.context(), *at.contacts, *at.rows,
                              q_bar.data(), F.data(), F.data(), time_bar.data(), *bar, *kin_bar,
                              *parameters_bar);
    });
  }
}

}  // namespace

int main() {
  return run({{"islands", rows_are_grouped_by_islands},
              {"contact rows", contact_rows_are_relative_velocities},
              {"rates", rows_are_rates_of_gaps_and_violations},
              {"weld", a_weld_turns_with_both_bodies},
              {"gaps", gaps_are_closed_and_depth_is_given_back},
              {"bounce", what_is_reached_bounces},
              {"limits and bounds", limits_and_bounds},
              {"impulses", impulses_pull_back_to_rows_and_links},
              {"adjoint and lanes", adjoint_and_lanes},
              {"allocation", takes_nothing_from_the_heap}});
}
