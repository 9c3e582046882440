// Constraint rows: A against J M^-1 J', right sides and bounds by their formulae, islands, and both adjoints.
#include "allocation.hpp"
#include "models.hpp"
#include "packing.hpp"
#include "reference.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// All stages up to the rows, with v* = qvel.
template <class Real>
struct Rows {
  Owned<Parameters<Real>> parameters;
  Owned<Kinematics<Real>> kinematics;
  Owned<Factors<Real>> factors;
  Owned<Contacts<Real>> contacts;
  Owned<ConstraintRows<Real>> rows;

  explicit Rows(const Model& model)
      : parameters(model), kinematics(model), factors(model), contacts(model), rows(model) {}
  Rows(const ModelStorage& storage, const std::vector<Real>& qpos, const std::vector<Real>& v_free)
      : Rows(storage.model()) {
    const Model& model = storage.model();
    const Real h(model.timestep);
    load_defaults(storage, *parameters);
    revolute::kinematics(model, *parameters, qpos.data(), v_free.data(), *kinematics);
    articulated_inertia(model, *parameters, h, *kinematics, *factors);
    collision_detection(model, *kinematics, kinematics->V, h, *contacts);
    constraint_rows(model, *parameters, h, *kinematics, *factors, qpos.data(), v_free.data(), kinematics->V,
                    *contacts, *rows);
  }
};

// J from MuJoCo's arrays
Dense row_jacobian(const ModelStorage& storage, const MujocoArrays& arrays, const ReferencePose& pose,
                   Rows<double>& at) {
  Dense J(at.rows->count, arrays.nv);
  for (int r = 0; r < at.rows->count; ++r) {
    const RowOrigin& origin = at.rows->origin[r];
    if (origin.source != RowSource::contact) {
      const DofRow& row = dof_row(storage.model(), origin);
      J(r, row.dof) = row.sign;
      continue;
    }
    const Contact<double>& contact = at.contacts->list[origin.index];
    const Candidate& candidate = storage.model().candidates[contact.candidate];
    const Dense relative = jacobian(pose, arrays.geom_bodyid[candidate.geom_b], contact.at.point) +
                           -1.0 * jacobian(pose, arrays.geom_bodyid[candidate.geom_a], contact.at.point);
    const Doubles axis = numbers(contact.axis[origin.component]);
    for (int k = 0; k < arrays.nv; ++k)
      for (int i = 0; i < 3; ++i) J(r, k) += axis[i] * relative(3 + i, k);
  }
  return J;
}

void A_and_velocity_change_match_dense_matrices() {
  MujocoArrays arrays = crowd();
  arrays.cfm = 1e-3;
  const ModelStorage storage(arrays);
  Random random(120);
  for (int trial = 0; trial < 5; ++trial) {
    const State state = crowd_state(storage, arrays, random);
    Rows<double> at(storage, state.qpos, state.qvel);
    const int n = at.rows->count;
    const ReferencePose pose = reference_pose(arrays, state.qpos);
    const Dense J = row_jacobian(storage, arrays, pose, at),
                X = solve_dense(mass_matrix(arrays, pose), transposed(J));
    const Dense A = J * X;
    Doubles got, wanted;
    for (int r = 0; r < n; ++r)
      for (int s = 0; s < n; ++s) {
        const SolverRow& row = at.rows->solver[r];
        // no entries between islands, because they are zero
        got.push_back(s < row.begin || s >= row.end ? 0.0 : at.rows->A[row.A + s - row.begin]);
        wanted.push_back(A(r, s) + (r == s ? arrays.cfm : 0.0));
      }
    CHECK_CLOSE(got, wanted, solved);
    const Doubles lambda = random.normals(n);
    Doubles x(arrays.nv);
    velocity_change(storage.model(), *at.kinematics, *at.factors, *at.rows, lambda.data(), x.data());
    CHECK_CLOSE(x, (X * column(lambda)).entries, solved);
  }
}

// The crowd has dry friction, limits and contacts of every pair; the rock stands alone.
void rows_are_grouped_by_islands() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(121);
  const State state = crowd_state(storage, arrays, random);
  Rows<double> at(storage, state.qpos, state.qvel);
  int sources[3] = {0, 0, 0}, islands = 0, frictionless = 0;
  for (int r = 0; r < at.rows->count; ++r) {
    const RowOrigin& origin = at.rows->origin[r];
    const SolverRow& row = at.rows->solver[r];
    ++sources[int(origin.source)];
    islands += row.begin == r;
    CHECK(row.begin <= r && r < row.end);
    if (row.kind == RowKind::friction) CHECK(row.normal == r - origin.component && row.normal >= row.begin);
    if (origin.source == RowSource::contact &&
        storage.model().candidates[at.contacts->list[origin.index].candidate].frictionless)
      frictionless += row.kind == RowKind::unilateral;
    // rows of an island keep the order dry friction, limits, contacts
    if (r > row.begin) CHECK(int(at.rows->origin[r - 1].source) <= int(origin.source));
  }
  CHECK(sources[0] == 2 && sources[1] == 2 && sources[2] == 31);
  CHECK(islands == 2 && frictionless == 1);

  MujocoArrays without = arrays;
  without.contact = without.limits = without.dry_friction = false;
  const ModelStorage free(without);
  CHECK(Rows<double>(free, state.qpos, state.qvel).rows->count == 0);
}

// --- right sides
// --------------------------------------------------------------------------------------------------------

constexpr double h = 0.01, erp = 0.2, step_depth = 10 * h * h;

// A ball over a plane at `gap`, moving at `before` now and at `after` without contact: the bias of its normal
// row.
double contact_bias(double gap, double before, double after, double restitution) {
  ModelMaker m;
  m.arrays.restitution = restitution;
  m.arrays.margin = 1.0;
  const int plane = m.add_geom(0, plane_geom, {0, 0, 1});
  const int body = m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1.0);
  m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
  m.add_pair(plane, m.add_geom(body, sphere_geom, {0.1, 0, 0}));
  const ModelStorage storage(m.arrays);
  const Model& model = storage.model();
  const Doubles qpos = {0, 0, 0.1 + gap, 1, 0, 0, 0}, v_free = {0, 0, after, 0, 0, 0},
                qvel = {0, 0, before, 0, 0, 0};
  Rows<double> at(storage, qpos, v_free);
  std::vector<Motion<double>> V_free(at.kinematics->V, at.kinematics->V + model.nv);
  link_velocities(model, at.kinematics->S, qvel.data(), at.kinematics->V);
  fill_right_side(model, *at.parameters, h, *at.kinematics, qpos.data(), v_free.data(), V_free.data(),
                  *at.contacts, *at.rows);
  return at.rows->b[0] - after;
}

void gaps_are_closed_and_depth_is_given_back() {
  for (double gap : {0.02, 1e-5, 0.0, -0.5 * step_depth})
    CHECK_CLOSE(contact_bias(gap, -1, -1, 0), gap / h, rounding);
  for (double gap : {-2 * step_depth, -0.1})
    CHECK_CLOSE(contact_bias(gap, -1, -1, 0), (-step_depth + erp * (gap + step_depth)) / h, rounding);
  // continuous at the switch
  CHECK_CLOSE(contact_bias(-step_depth * (1 - 1e-9), 0, 0, 0),
              contact_bias(-step_depth * (1 + 1e-9), 0, 0, 0), 1e-8);
}

void what_is_reached_bounces() {
  const double e = 0.5;
  // approached and reached in this step: b = v* + e v
  CHECK_CLOSE(contact_bias(0.001, -2, -2.1, e), -2 * e, rounding);
  // approached, not reached; moving away; no restitution
  CHECK_CLOSE(contact_bias(0.05, -2, -2.1, e), 0.05 / h, rounding);
  CHECK_CLOSE(contact_bias(-0.0005, 1, 0.9, e), -0.0005 / h, rounding);
  CHECK_CLOSE(contact_bias(0.001, -2, -2.1, 0), 0.001 / h, rounding);
  // giving back depth is faster than the bounce
  CHECK_CLOSE(contact_bias(-0.0009, -0.1, -0.2, e), -0.0009 / h, rounding);
}

void limits_and_bounds() {
  const MujocoArrays arrays = limited_chain();
  const ModelStorage storage(arrays);
  // dof 0 beyond its upper limit, dof 2 near its lower one, moving
  const Doubles qpos = {0.41, 0.3, -0.295, 0.1}, v_free = {0.5, 0.2, -0.6, 0.3};
  Rows<double> at(storage, qpos, v_free);
  CHECK(at.rows->count == 5);
  for (int r = 0; r < at.rows->count; ++r) {
    const DofRow& row = dof_row(storage.model(), at.rows->origin[r]);
    if (at.rows->origin[r].source == RowSource::dry_friction) {
      CHECK_CLOSE(at.rows->b[r], v_free[row.dof], rounding);
      CHECK_CLOSE(at.rows->bound[r], h * arrays.dof_frictionloss[row.dof], rounding);
      continue;
    }
    const bool upper = row.dof == 0;
    const double gap = upper ? -0.01 : 0.005;
    CHECK(row.dof == 0 || row.dof == 2);
    CHECK_CLOSE(row.sign, upper ? -1.0 : 1.0, 0.0);
    CHECK_CLOSE(at.rows->b[r],
                row.sign * v_free[row.dof] + (upper ? -step_depth + erp * (gap + step_depth) : gap) / h,
                rounding);
    CHECK_CLOSE(at.rows->bound[r], 1.0, 0.0);
  }
  CHECK(Rows<double>(storage, {0.0, 0.3, 0.0, 0.1}, v_free).rows->count == 3);
}

// --- adjoint of A
// -------------------------------------------------------------------------------------------------------

// The rows of one state, which stay the same; in: axes, link inertias, armature, damping, wrenches. out: A.
struct Delassus {
  const ModelStorage& storage;
  State state;
  int contacts, A_size;

  Delassus(const ModelStorage& storage, const State& state) : storage(storage), state(state) {
    Rows<double> at(storage, state.qpos, state.qvel);
    contacts = at.contacts->count;
    const SolverRow& last = at.rows->solver[at.rows->count - 1];
    A_size = int(last.A) + last.end - last.begin;
  }
  const Model& model() const { return storage.model(); }
  std::vector<Block> blocks() const {
    const int nv = model().nv;
    return {{"S", 0, 6 * nv},
            {"I", 6 * nv, 10 * nv},
            {"armature", 16 * nv, nv},
            {"damping", 17 * nv, nv},
            {"wrenches", 18 * nv, 36 * contacts}};
  }
  Doubles inputs() const {
    Rows<double> at(storage, state.qpos, state.qvel);
    const int nv = model().nv;
    Doubles in(18 * nv + 36 * contacts, 0.0);
    Writer<double> to{in.data()};
    for (int k = 0; k < nv; ++k) to.add(at.kinematics->S[k]);
    for (int k = 0; k < nv; ++k)
      to.add(model().dofs[k].has_inertia ? at.kinematics->I[k] : zero_inertia<double>());
    for (int k = 0; k < nv; ++k) to.add(at.parameters->armature[k]);
    for (int k = 0; k < nv; ++k) to.add(at.parameters->damping[k]);
    for (int c = 0; c < contacts; ++c) {
      for (const Force<double>& force : at.contacts->list[c].force_a) to.add(force);
      for (const Force<double>& force : at.contacts->list[c].force_b) to.add(force);
    }
    return in;
  }
  template <class Real>
  void run(const Real* in, Rows<Real>& at) const {
    const int nv = model().nv;
    Reader<Real> from{in};
    for (int k = 0; k < nv; ++k) at.kinematics->S[k] = from.motion();
    for (int k = 0; k < nv; ++k) at.kinematics->I[k] = from.inertia();
    for (int k = 0; k < nv; ++k) at.parameters->armature[k] = from.scalar();
    for (int k = 0; k < nv; ++k) at.parameters->damping[k] = from.scalar();
    for (int c = 0; c < contacts; ++c) {
      for (Force<Real>& force : at.contacts->list[c].force_a) force = from.force();
      for (Force<Real>& force : at.contacts->list[c].force_b) force = from.force();
    }
    articulated_inertia(model(), *at.parameters, Real(model().timestep), *at.kinematics, *at.factors);
    for (int r = 0; r < at.rows->count; ++r)
      fill_row(model(), *at.kinematics, *at.factors, *at.contacts, at.rows->origin[r], *at.rows);
    fill_A(model(), *at.factors, *at.rows);
  }
  template <class Real>
  Rows<Real> rows() const {
    return Rows<Real>(storage, std::vector<Real>(state.qpos.begin(), state.qpos.end()),
                      std::vector<Real>(state.qvel.begin(), state.qvel.end()));
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Rows<Real> at = rows<Real>();
    run(in, at);
    for (int i = 0; i < A_size; ++i) out[i] += at.rows->A[i];
  }
};
struct DelassusAdjoint {
  const Delassus& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Model& model = of.model();
    Rows<Real> at = of.rows<Real>();
    of.run(in, at);
    Owned<ConstraintRowsCotangent<Real>> bar(model);
    Owned<FactorsCotangent<Real>> factors_bar(model);
    Owned<KinematicsCotangent<Real>> kin_bar(model);
    Owned<Parameters<Real>> parameters_bar(model);
    bar->clear(*at.rows, *at.contacts);
    factors_bar->clear(model);
    kin_bar->clear(model);
    parameters_bar->clear(model);
    for (int i = 0; i < of.A_size; ++i) bar->A[i] += out_bar[i];
    rows_adjoint(model, *at.kinematics, *at.factors, *at.contacts, *at.rows, *bar, *factors_bar, *kin_bar);
    articulated_inertia_adjoint(model, Real(model.timestep), *at.kinematics, *at.factors, *factors_bar,
                                *kin_bar, *parameters_bar);
    Writer<Real> to{in_bar};
    for (int k = 0; k < model.nv; ++k) to.add(kin_bar->S[k]);
    for (int k = 0; k < model.nv; ++k) to.add_cotangent(kin_bar->I[k]);
    for (int k = 0; k < model.nv; ++k) to.add(parameters_bar->armature[k]);
    for (int k = 0; k < model.nv; ++k) to.add(parameters_bar->damping[k]);
    for (int c = 0; c < of.contacts; ++c) {
      for (const Force<Real>& force : bar->contacts[c].force_a) to.add(force);
      for (const Force<Real>& force : bar->contacts[c].force_b) to.add(force);
    }
  }
};

void adjoint_of_A() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(122);
  const Delassus function(storage, crowd_state(storage, arrays, random));
  const DelassusAdjoint adjoint{function};
  const Doubles in = function.inputs();
  check_adjoint("A", random, in, function.A_size, function, adjoint, smooth, function.blocks());
  const std::vector<Doubles> environments = environments_around(random, in, 0.01);
  check_lanes("A", environments, function.A_size, function);
  check_adjoint_lanes("A", random, environments, function.A_size, adjoint);
}

// --- adjoint of the right sides
// -----------------------------------------------------------------------------------------

// in: v*, link velocities of v* and of qvel, gaps and wrenches, qpos, restitution, friction, frictionloss.
// out: b, and the bounds that are numbers.
struct RightSide {
  const ModelStorage& storage;
  State state;
  int contacts, rows;

  RightSide(const ModelStorage& storage, const State& state) : storage(storage), state(state) {
    Rows<double> at(storage, state.qpos, state.qvel);
    contacts = at.contacts->count;
    rows = at.rows->count;
  }
  const Model& model() const { return storage.model(); }
  std::vector<Block> blocks() const {
    const int nv = model().nv;
    std::vector<Block> out;
    int begin = 0;
    const std::pair<const char*, int> sizes[] = {{"v_free", nv},
                                                 {"V_free", 6 * nv},
                                                 {"V", 6 * nv},
                                                 {"gap", contacts},
                                                 {"wrenches", 36 * contacts},
                                                 {"qpos", model().nq},
                                                 {"restitution", 1},
                                                 {"friction", model().nfriction_pair},
                                                 {"frictionloss", nv}};
    for (const auto& [name, size] : sizes) {
      out.push_back({name, begin, size});
      begin += size;
    }
    out[3].scale = out[5].scale = 1e-3;  // depths and limits are within a millimetre of their kinks
    return out;
  }
  Doubles inputs(Random& random) const {
    Rows<double> at(storage, state.qpos, state.qvel);
    const Model& m = model();
    Doubles in(blocks().back().begin + m.nv, 0.0);
    Writer<double> to{in.data()};
    for (double v : state.qvel) to.add(v);
    for (int k = 0; k < m.nv; ++k) to.add(at.kinematics->V[k]);
    // before the step: a little slower
    for (int k = 0; k < m.nv; ++k) to.add(random.uniform(0.8, 0.9) * at.kinematics->V[k]);
    for (int c = 0; c < contacts; ++c) to.add(at.contacts->list[c].gap);
    for (int c = 0; c < contacts; ++c) {
      for (const Force<double>& force : at.contacts->list[c].force_a) to.add(force);
      for (const Force<double>& force : at.contacts->list[c].force_b) to.add(force);
    }
    for (double q : state.qpos) to.add(q);
    to.add(0.4);
    for (int p = 0; p < m.nfriction_pair; ++p) to.add(at.parameters->friction[p]);
    for (int k = 0; k < m.nv; ++k) to.add(at.parameters->frictionloss[k]);
    return in;
  }
  template <class Real>
  struct Loaded {
    Rows<Real> at;
    const Real *v_free, *qpos;
    std::vector<Motion<Real>> V_free;
  };
  template <class Real>
  Loaded<Real> run(const Real* in) const {
    const Model& m = model();
    Loaded<Real> out{Rows<Real>(storage, std::vector<Real>(state.qpos.begin(), state.qpos.end()),
                                std::vector<Real>(state.qvel.begin(), state.qvel.end())),
                     in, nullptr, std::vector<Motion<Real>>(m.nv)};
    Reader<Real> from{in + m.nv};
    for (Motion<Real>& V : out.V_free) V = from.motion();
    for (int k = 0; k < m.nv; ++k) out.at.kinematics->V[k] = from.motion();
    for (int c = 0; c < contacts; ++c) out.at.contacts->list[c].gap = from.scalar();
    for (int c = 0; c < contacts; ++c) {
      for (Force<Real>& force : out.at.contacts->list[c].force_a) force = from.force();
      for (Force<Real>& force : out.at.contacts->list[c].force_b) force = from.force();
    }
    out.qpos = from.next;
    from.next += m.nq;
    *out.at.parameters->restitution = from.scalar();
    for (int p = 0; p < m.nfriction_pair; ++p) out.at.parameters->friction[p] = from.scalar();
    for (int k = 0; k < m.nv; ++k) out.at.parameters->frictionloss[k] = from.scalar();
    fill_right_side(m, *out.at.parameters, Real(m.timestep), *out.at.kinematics, out.qpos, out.v_free,
                    out.V_free.data(), *out.at.contacts, *out.at.rows);
    return out;
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Loaded<Real> loaded = run(in);
    for (int r = 0; r < rows; ++r) {
      out[r] += loaded.at.rows->b[r];
      if (loaded.at.rows->solver[r].kind != RowKind::unilateral) out[rows + r] += loaded.at.rows->bound[r];
    }
  }
};
struct RightSidePullback {
  const RightSide& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Model& m = of.model();
    RightSide::Loaded<Real> loaded = of.run(in);
    Rows<Real>& at = loaded.at;
    Owned<ConstraintRowsCotangent<Real>> bar(m);
    Owned<Parameters<Real>> parameters_bar(m);
    bar->clear(*at.rows, *at.contacts);
    parameters_bar->clear(m);
    for (int r = 0; r < of.rows; ++r) {
      bar->b[r] += out_bar[r];
      bar->bound[r] += out_bar[of.rows + r];
    }
    // without impulses the terms of the solve vanish
    const std::vector<Real> lambda(of.rows, Real(0));
    std::vector<Force<Real>> F_b(m.nv, zero_force<Real>()), F_w = F_b, F_v = F_b;
    std::vector<Real> qpos_bar(m.nv, Real(0));
    const std::vector<Motion<Real>> W(m.nv, zero_motion<Real>());
    const RightSideAdjoint<Real> input = {loaded.V_free.data(), W.data(),   lambda.data(), F_b.data(),
                                          F_w.data(),           F_v.data(), in_bar,        qpos_bar.data()};
    right_side_adjoint(m, *at.parameters, Real(m.timestep), *at.kinematics, loaded.qpos, *at.contacts,
                       *at.rows, input, *bar, *parameters_bar);
    Writer<Real> to{in_bar + m.nv};
    for (const Force<Real>& force : F_b) to.add(force);
    for (const Force<Real>& force : F_v) to.add(force);
    for (int c = 0; c < of.contacts; ++c) to.add(bar->contacts[c].gap);
    for (int c = 0; c < of.contacts; ++c) {
      for (const Force<Real>& force : bar->contacts[c].force_a) to.add(force);
      for (const Force<Real>& force : bar->contacts[c].force_b) to.add(force);
    }
    for (int j = 0; j < m.njnt; ++j)
      if (m.joints[j].type > JointType::ball) to.next[m.joints[j].qpos] += qpos_bar[m.joints[j].dof];
    to.next += m.nq;
    to.add(*parameters_bar->restitution);
    for (int p = 0; p < m.nfriction_pair; ++p) to.add(parameters_bar->friction[p]);
    for (int k = 0; k < m.nv; ++k) to.add(parameters_bar->frictionloss[k]);
  }
};

void adjoint_of_right_sides() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(123);
  for (int trial = 0; trial < 3; ++trial) {
    const RightSide function(storage, crowd_state(storage, arrays, random));
    const RightSidePullback adjoint{function};
    const Doubles in = function.inputs(random);
    int bounced = 0;
    RightSide::Loaded<double> loaded = function.run(in.data());
    for (int c = 0; c < function.contacts; ++c) bounced += loaded.at.rows->bounced[c].bit;
    CHECK(bounced > 0 && bounced < function.contacts);
    check_adjoint("right side", random, in, 2 * function.rows, function, adjoint, smooth, function.blocks());
    const std::vector<Doubles> environments = environments_around(random, in, 0.001);
    check_lanes("right side", environments, 2 * function.rows, function);
    check_adjoint_lanes("right side", random, environments, 2 * function.rows, adjoint);
  }
}

void takes_nothing_from_the_heap() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  Random random(124);
  const State state = crowd_state(storage, arrays, random);
  Rows<double> at(storage, state.qpos, state.qvel);
  Owned<ConstraintRowsCotangent<double>> bar(model);
  Owned<FactorsCotangent<double>> factors_bar(model);
  Owned<KinematicsCotangent<double>> kin_bar(model);
  factors_bar->clear(model);
  kin_bar->clear(model);
  Doubles x(model.nv);
  check_no_allocation("constraint_rows", [&] {
    constraint_rows(model, *at.parameters, h, *at.kinematics, *at.factors, state.qpos.data(),
                    state.qvel.data(), at.kinematics->V, *at.contacts, *at.rows);
    velocity_change(model, *at.kinematics, *at.factors, *at.rows, at.rows->b, x.data());
    bar->clear(*at.rows, *at.contacts);
    rows_adjoint(model, *at.kinematics, *at.factors, *at.contacts, *at.rows, *bar, *factors_bar, *kin_bar);
  });
}

}  // namespace

int main() {
  return run({{"A and the velocity change", A_and_velocity_change_match_dense_matrices},
              {"islands", rows_are_grouped_by_islands},
              {"gaps", gaps_are_closed_and_depth_is_given_back},
              {"bounce", what_is_reached_bounces},
              {"limits and bounds", limits_and_bounds},
              {"adjoint of A", adjoint_of_A},
              {"adjoint of right sides", adjoint_of_right_sides},
              {"allocation", takes_nothing_from_the_heap}});
}
