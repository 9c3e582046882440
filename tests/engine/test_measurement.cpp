// Measurement: its adjoint by state, control and parameters in a crowd of contacts, and no allocation. That the numbers are
// MuJoCo's, and that packs give the bits of single states, is checked in tests/revolute_engine/test_sensors.py.
#include <string>

#include "allocation.hpp"
#include "models.hpp"
#include "revolute/probes.hpp"
#include "revolute/stages/measurement.hpp"
#include "states.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

constexpr double through_constraints = 1e-7;

// What some kinds need besides a frame: the last body against all others.
void add_data(const Model& m, int body, ProbeRequest& request) {
  std::vector<int> others;
  int own = -1;
  for (int g = 0; g < m.ngeom; ++g) {
    if (m.geoms[g].body == body)
      own = g;
    else
      others.push_back(g);
  }
  switch (request.kind) {
    case ProbeKind::camera_projection:
      request.numbers = {300, 320, 50, 60};
      break;
    case ProbeKind::range_finder:
      request.size = 14;
      request.integers = {63};
      request.integers.insert(request.integers.end(), others.begin(), others.end());
      break;
    case ProbeKind::geom_distance:
    case ProbeKind::geom_normal:
    case ProbeKind::geom_points:
      request.numbers = {10};
      for (int other : others)
        if (!is_ground(m.geoms[other].shape)) request.integers.insert(request.integers.end(), {own, other});
      break;
    case ProbeKind::contacts:
      request.size = 3 * 23;
      request.integers = {511, 1, 3, 0};
      request.integers.resize(4 + m.ngeom, 3);
      break;
    default:
      break;
  }
}

// One probe of every kind, at the last body.
Probes every_kind(const ModelStorage& storage) {
  const Model& m = storage.model();
  int ball = 0;
  while (m.joints[ball].type != JointType::ball && ball + 1 < m.njnt) ++ball;
  const int body = m.nbody - 1;
  Probes out;
  for (std::size_t kind = 0; kind < sizeof probe_sizes / sizeof *probe_sizes; ++kind) {
    ProbeRequest request{};
    request.kind = ProbeKind(kind);
    const bool of_ball =
        request.kind == ProbeKind::ball_quaternion || request.kind == ProbeKind::ball_velocity;
    if (of_ball && m.joints[ball].type != JointType::ball) continue;
    const bool of_tendon = std::string(probe_names[kind]).find("tendon") != std::string::npos;
    if (of_tendon && m.ntendon == 0) continue;
    request.type = PlaceType::body;
    request.id = body;
    request.shape = 2;
    request.vector = {1.0, 0.5, 0.2};
    if (request.kind == ProbeKind::ball_quaternion) request.index = m.joints[ball].qpos;
    if (request.kind == ProbeKind::ball_velocity) request.index = m.joints[ball].dof;
    if (request.kind >= ProbeKind::limit_position && request.kind <= ProbeKind::limit_velocity)
      request.index = m.limits_list[0].dof;
    if (request.kind == ProbeKind::limit_force) request.index = m.limits_list[0].dof;
    const bool relative = request.kind >= ProbeKind::position && request.kind <= ProbeKind::angular_velocity;
    add_data(m, body, request);
    const bool two = request.kind == ProbeKind::distance || request.kind == ProbeKind::inside_site ||
                     request.kind == ProbeKind::camera_projection;
    if (relative || two) {
      request.reference_type = PlaceType::body_frame;
      request.reference_id = 1;
    }
    add_probe(storage, request, out);
  }
  return out;
}

const Probes* probes_of_stage = nullptr;
struct Stage {
  Measurement<double> at;
  MeasurementAdjointWorkspace<double> adjoint;
  Stage(const Model& model, Arena& arena)
      : at(model, *probes_of_stage, arena), adjoint(model, *probes_of_stage, arena) {}
};

struct Scene {
  MujocoArrays arrays = softened(crowd(), Cone::elliptic, Integrator::euler);
  ModelStorage storage{arrays};
  Probes probes = every_kind(storage);
  Owned<Parameters<double>> parameters{storage.model()};

  Scene() {
    load_defaults(storage, *parameters);
    ParameterPointers values;
    for (int p = 0; p < parameter_count; ++p) values[p] = storage.parameters().defaults[p].data();
    load_body_parameters(storage.parameters(), values, 0, storage.model(), *parameters);
    probes_of_stage = &probes;
  }
};

// Inputs: tangent of qpos, qvel, ctrl.
void adjoint() {
  Random random(61);
  Scene scene;
  const Model& m = scene.storage.model();
  const State state = crowd_state(scene.storage, scene.arrays, random);
  Owned<Stage> stage(m);
  const auto measured = [&](const double* in, double* out) {
    const Doubles qpos = displaced(m, state.qpos, Doubles(in, in + m.nv));
    measurement(m, *scene.parameters, scene.probes, 0.0, qpos.data(), in + m.nv, in + 2 * m.nv, stage->at,
                out);
  };
  const auto pulled = [&](const double* in, const double* out_bar, double* in_bar) {
    Doubles out(scene.probes.size);
    measured(in, out.data());
    const Doubles qpos = displaced(m, state.qpos, Doubles(in, in + m.nv));
    Owned<Parameters<double>> bar(m);
    bar->clear(m);
    measurement_adjoint(m, *scene.parameters, scene.probes, qpos.data(), in + m.nv, in + 2 * m.nv, stage->at,
                        out_bar, stage->adjoint, {in_bar, in_bar + m.nv, in_bar + 2 * m.nv, &*bar});
  };
  Doubles in(2 * m.nv + m.nu, 0.0);
  std::copy(state.qvel.begin(), state.qvel.end(), in.begin() + m.nv);
  const Doubles ctrl = random.normals(m.nu);
  std::copy(ctrl.begin(), ctrl.end(), in.begin() + 2 * m.nv);
  check_adjoint("measurement", random, in, scene.probes.size, measured, pulled, through_constraints,
                {{"qpos", 0, m.nv, 1e-3}, {"qvel", m.nv, m.nv}, {"ctrl", 2 * m.nv, m.nu}});
}

void takes_nothing_from_the_heap() {
  Random random(62);
  Scene scene;
  const Model& m = scene.storage.model();
  const State state = crowd_state(scene.storage, scene.arrays, random);
  Owned<Stage> stage(m);
  Owned<Parameters<double>> bar(m);
  bar->clear(m);
  Doubles values(scene.probes.size), ctrl(m.nu, 0.1), bars(scene.probes.size, 1.0);
  Doubles qpos_bar(m.nv, 0.0), qvel_bar(m.nv, 0.0), ctrl_bar(m.nu, 0.0);
  check_no_allocation("measurement", [&] {
    measurement(m, *scene.parameters, scene.probes, 0.0, state.qpos.data(), state.qvel.data(), ctrl.data(),
                stage->at, values.data());
    measurement_adjoint(m, *scene.parameters, scene.probes, state.qpos.data(), state.qvel.data(), ctrl.data(),
                        stage->at, bars.data(), stage->adjoint,
                        {qpos_bar.data(), qvel_bar.data(), ctrl_bar.data(), &*bar});
  });
}

}  // namespace

int main() {
  return run({{"adjoint", adjoint}, {"takes nothing from the heap", takes_nothing_from_the_heap}});
}
