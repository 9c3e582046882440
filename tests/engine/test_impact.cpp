// Impact: the time within the step at which the first contact that bounces is reached, and its adjoint.
#include "allocation.hpp"
#include "packing.hpp"
#include "stages.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// The time is a ratio of lengths of a few millimetres.
constexpr double small_ratio = 1e-8;

template <class Real>
struct Found {
  Stages<Real> at;
  Owned<Impact<Real>> impact;
};
template <class Real>
Found<Real> find(const ModelStorage& storage, const std::vector<Real>& qpos, const std::vector<Real>& qvel) {
  Found<Real> out{Stages<Real>(storage, qpos, qvel, qvel), Owned<Impact<Real>>(storage.model())};
  out.at.run();
  find_impact(storage.model(), *out.at.parameters, out.at.context(), *out.at.contacts, *out.at.rows,
              *out.impact);
  return out;
}

// Two balls of radius 0.1 over a plane, at the given gaps and vertical speeds.
MujocoArrays two_balls(double restitution) {
  ModelMaker m;
  m.arrays.restitution = {restitution};
  const int plane = m.add_geom(0, plane_geom, {0, 0, 1});
  for (int i = 0; i < 2; ++i) {
    const int body = m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1.0);
    m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
    m.add_pair(plane, m.add_geom(body, sphere_geom, {0.1, 0, 0}));
  }
  return m.arrays;
}
Found<double> find_balls(double restitution, double gap_a, double speed_a, double gap_b, double speed_b) {
  const ModelStorage storage(two_balls(restitution));
  Found<double> out = find<double>(storage, {0, 0, 0.1 + gap_a, 1, 0, 0, 0, 1, 0, 0.1 + gap_b, 1, 0, 0, 0},
                                   {0.3, 0, speed_a, 0, 0, 1, 0, 0.2, speed_b, 0, 0, 0});
  return out;
}

void the_first_contact_sets_the_time() {
  for (double restitution : {0.0, 0.5})
    CHECK_CLOSE(find_balls(restitution, 0.004, -2, 1.0, 0).impact->time[0], 0.002, rounding);
  CHECK_CLOSE(find_balls(0.5, 0.004, -2, 0.0005, 0.1).impact->time[0], 0.002,
              rounding);  // the near one parts
}

// Two balls that do not touch have each a time of their own; held by an equality or near each other they share the first.
void islands_have_times_of_their_own() {
  const auto times = [](auto&& found) { return Doubles(found.impact->time, found.impact->time + 2); };
  CHECK_CLOSE(times(find_balls(0.5, 0.004, -2, 0.001, -1)), Doubles({0.002, 0.001}), rounding);
  CHECK_CLOSE(times(find_balls(0.5, -0.001, -2, 0.004, -2)), Doubles({0, 0.002}), rounding);
  CHECK_CLOSE(times(find_balls(0.5, 0.5, -2, 0.004, -2)), Doubles({0, 0.002}), rounding);
  MujocoArrays arrays = two_balls(0.5);
  ModelMaker m;
  m.arrays = arrays;
  m.add_pair(1, 2);
  const ModelStorage storage(m.arrays);
  Doubles qpos = {0, 0, 0.104, 1, 0, 0, 0, 0.201, 0, 0.4, 1, 0, 0, 0}, qvel(12, 0.0);
  qvel[2] = -2;
  CHECK_CLOSE(times(find<double>(storage, qpos, qvel)), Doubles({0.002, 0}), rounding);
  qpos[9] = 0.104;
  CHECK_CLOSE(times(find<double>(storage, qpos, qvel)), Doubles({0.002, 0.002}), rounding);
}

void no_impact_is_no_time() {
  CHECK(!find_balls(0.5, 0.5, -2, 1.0, 0).impact->any);     // not reached
  CHECK(!find_balls(0.5, 0.004, 2, 1.0, 0).impact->any);    // moving away
  CHECK(!find_balls(0.5, -0.001, -2, 1.0, 0).impact->any);  // closed already
  CHECK(find_balls(0.5, 0.5, -2, 1.0, 0).impact->time[0] == 0.0);
}

void the_configuration_is_that_of_the_moment() {
  const ModelStorage storage(two_balls(0.5));
  const Doubles qpos = {0, 0, 0.104, 1, 0, 0, 0, 1, 0, 1, 0.6, 0, 0.8, 0},
                qvel = {0.3, 0, -2, 0, 0, 1, 0, 0.2, 0, 3, 2, 1};
  Found<double> found = find<double>(storage, qpos, qvel);
  Doubles moved = qvel;
  for (int k = 0; k < 12; ++k) moved[k] *= k < 6 ? 0.002 : 0.0;  // the other ball has no impact
  CHECK_CLOSE(Doubles(found.impact->qpos, found.impact->qpos + 14), displaced(storage.model(), qpos, moved),
              rounding);
}

// --- adjoint -----------------------------------------------------------------------------------------------

// in: tangent of qpos, qvel. out: the time.
struct Time {
  const ModelStorage& storage;
  Doubles qpos;

  template <class Real>
  Found<Real> run(const Real* in) const {
    const Model& m = storage.model();
    const std::vector<Real> start(qpos.begin(), qpos.end());
    std::vector<Real> moved(m.nq);
    displace(m, start.data(), in, moved.data());
    return find(storage, moved, std::vector<Real>(in + m.nv, in + 2 * m.nv));
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    out[0] += run(in).impact->time[0];
  }
};
struct TimeAdjoint {
  const Time& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Model& m = of.storage.model();
    Found<Real> found = of.run(in);
    Stages<Real>& at = found.at;
    Owned<KinematicsCotangent<Real>> kin_bar(m);
    Owned<Parameters<Real>> parameters_bar(m);
    std::vector<Force<Real>> V_bar(m.nv);
    parameters_bar->clear(m);
    std::vector<Real> time_bar(m.ntree, Real(0));
    time_bar[0] = out_bar[0];
    find_impact_adjoint(m, *at.parameters, at.context(), *at.contacts, *found.impact, time_bar.data(),
                        *kin_bar, V_bar.data(), in_bar, in_bar + m.nv, *parameters_bar);
  }
};

// The bodies come together: the state of two_shapes() in which b is thrown at a from a millimetre away.
void check_pair(Random& random, int type_a, int type_b) {
  MujocoArrays arrays = two_shapes(type_a, type_b);
  arrays.restitution = {0.5};
  const ModelStorage storage(arrays);
  Doubles in(12, 0.0);
  Time time{storage, random_qpos(storage, arrays, random, 0.4)};
  for (double v : random.normals(12)) in.push_back(0.1 * v);
  // 0.4 m are reached with 100 m/s
  MujocoArrays far = arrays;
  far.margin = 100;
  const ModelStorage seen(far);
  Found<double> start = find<double>(seen, time.qpos, Doubles(12, 0.0));
  const Contact<double>& contact = start.at.contacts->list[0];
  const double* n = &contact.at.normal.x;
  for (int i = 0; i < 3; ++i) {
    time.qpos[7 + i] -= (contact.gap - 0.004) * n[i];
    in[18 + i] -= 1.0 * n[i];
  }
  const TimeAdjoint adjoint{time};
  CHECK(time.run(in.data()).impact->any);
  check_adjoint("time of impact", random, in, 1, time, adjoint, small_ratio,
                {{"qpos", 0, 12, 1e-3}, {"qvel", 12, 12, 1e-2}});
  // impacts in some of the environments
  const std::vector<Doubles> environments = environments_around(random, in, 0.01);
  check_lanes("time of impact", environments, 1, time);
  check_adjoint_lanes("time of impact", random, environments, 1, adjoint);
}

void adjoint_and_lanes() {
  Random random(160);
  for (int trial = 0; trial < 3; ++trial) {
    check_pair(random, sphere_geom, sphere_geom);
    check_pair(random, sphere_geom, capsule_geom);
    check_pair(random, capsule_geom, capsule_geom);
    check_pair(random, sphere_geom, box_geom);
  }
}

// A box that lands flat: its four corners are first together and share the cotangent, so that turning it has
// none, as the central difference says.
void corners_that_land_together_share() {
  ModelMaker m;
  m.arrays.restitution = {0.5};
  const int plane = m.add_geom(0, plane_geom, {0, 0, 1});
  const int body = m.add_body(0, {0, 0, 0}, {0, 0, 0}, 1.0);
  m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
  m.add_pair(plane, m.add_geom(body, box_geom, {0.25, 0.5, 0.125}));
  const ModelStorage storage(m.arrays);
  const Time time{storage, {0, 0, 0.129, 1, 0, 0, 0}};
  const TimeAdjoint adjoint{time};
  const Doubles in = {0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0}, out_bar = {1};
  Doubles in_bar(12, 0.0);
  adjoint(in.data(), out_bar.data(), in_bar.data());
  for (int i : {2, 3, 4, 8, 9, 10}) {
    Doubles direction(12, 0.0);
    direction[i] = 1;
    CHECK_CLOSE(in_bar[i], differences(time, in, direction, 1e-4, 1)[0], differenced);
  }
}

void takes_nothing_from_the_heap() {
  const MujocoArrays arrays = crowd();
  const ModelStorage storage(arrays);
  Random random(161);
  const State state = crowd_state(storage, arrays, random);
  Found<double> found = find<double>(storage, state.qpos, state.qvel);
  Owned<KinematicsCotangent<double>> kin_bar(storage.model());
  Owned<Parameters<double>> parameters_bar(storage.model());
  parameters_bar->clear(storage.model());
  std::vector<Force<double>> V_bar(arrays.nv);
  Doubles q_bar(arrays.nv, 0.0), v_bar(arrays.nv, 0.0), time_bar(storage.model().ntree, 1.0);
  Stages<double>& at = found.at;
  check_no_allocation("impact", [&] {
    find_impact(storage.model(), *at.parameters, at.context(), *at.contacts, *at.rows, *found.impact);
    find_impact_adjoint(storage.model(), *at.parameters, at.context(), *at.contacts, *found.impact,
                        time_bar.data(), *kin_bar, V_bar.data(), q_bar.data(), v_bar.data(), *parameters_bar);
  });
}

}  // namespace

int main() {
  return run({{"time", the_first_contact_sets_the_time},
              {"islands", islands_have_times_of_their_own},
              {"no impact", no_impact_is_no_time},
              {"configuration", the_configuration_is_that_of_the_moment},
              {"adjoint and lanes", adjoint_and_lanes},
              {"corners that land together", corners_that_land_together_share},
              {"allocation", takes_nothing_from_the_heap}});
}
