// Kinematics: links, velocities and inertias against poses straight from MuJoCo's arrays; the adjoint as
// moments.
#include "allocation.hpp"
#include "models.hpp"
#include "packing.hpp"
#include "reference.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

// The stage at one state, in double.
struct At {
  const ModelStorage& storage;
  Owned<Parameters<double>> parameters;
  Owned<Kinematics<double>> kinematics;

  At(const ModelStorage& storage, const Doubles& qpos, const Doubles& qvel)
      : storage(storage), parameters(storage.model()), kinematics(storage.model()) {
    load_defaults(storage, *parameters);
    revolute::kinematics(storage.model(), *parameters, qpos.data(), qvel.data(), *kinematics);
  }
};

void links_carry_the_bodies() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  Random random(20);
  for (int trial = 0; trial < 10; ++trial) {
    const Doubles qpos = random_qpos(storage, arrays, random, 1.0);
    At at(storage, qpos, random.normals(arrays.nv));
    const ReferencePose pose = reference_pose(arrays, qpos);
    for (int b = 1; b < arrays.nbody; ++b) {
      const Body& body = storage.parameters().bodies[b];
      const Placement<double>& link = at.kinematics->links[body.link];
      const Point origin = at.kinematics->origin[storage.model().dofs[body.link].tree];
      CHECK_CLOSE(numbers(link.R * matrix3<double>(body.rotation)), numbers(pose.bodies[b].R), rounding);
      CHECK_CLOSE(numbers(origin + link.p + link.R * vector3<double>(body.position)),
                  numbers(pose.bodies[b].position), rounding);
    }
  }
}

void velocities_are_those_of_the_bodies() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  Random random(21);
  for (int trial = 0; trial < 10; ++trial) {
    const Doubles qpos = random_qpos(storage, arrays, random, 1.0), qvel = random.normals(arrays.nv);
    At at(storage, qpos, qvel);
    const ReferencePose pose = reference_pose(arrays, qpos);
    for (int b = 1; b < arrays.nbody; ++b) {
      const int link = storage.parameters().bodies[b].link;
      const Point origin = at.kinematics->origin[storage.model().dofs[link].tree];
      CHECK_CLOSE(numbers(at.kinematics->V[link]), (jacobian(pose, b, origin) * column(qvel)).entries,
                  rounding);
    }
  }
}

// The inertia of the bodies in a link, about the reference point.
void inertias_are_those_of_the_bodies() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  Random random(22);
  const Doubles qpos = random_qpos(storage, arrays, random, 1.0);
  At at(storage, qpos, random.normals(arrays.nv));
  const ReferencePose pose = reference_pose(arrays, qpos);
  for (int k = 0; k < arrays.nv; ++k) {
    if (!storage.model().dofs[k].has_inertia) continue;
    const Point origin = at.kinematics->origin[storage.model().dofs[k].tree];
    Dense sum(6, 6);
    for (int b = 1; b < arrays.nbody; ++b) {
      if (storage.parameters().bodies[b].link != k) continue;
      // motion vectors at the mass centre from those at the origin
      const Point c = mass_centre(arrays, pose, b) - origin;
      const Dense X = blocks(identity(3), Dense(3, 3), -1.0 * cross_matrix(c), identity(3));
      sum = sum + transposed(X) * body_inertia_matrix(arrays, pose, b) * X;
    }
    for (int i = 0; i < 6; ++i) {
      Doubles unit(6, 0.0);
      unit[i] = 1;
      const Motion<double> motion = Reader<double>{unit.data()}.motion();
      CHECK_CLOSE(numbers(at.kinematics->I[k] * motion), (sum * column(unit)).entries, rounding);
    }
  }
}

// A point in a link's frame.
template <class Real>
Vector3<Real> marker() {
  return {Real(0.3), Real(-0.2), Real(0.5)};
}

// in: tangent of qpos, inertias of the links. out: axes, inertias and a point of every link, about reference
// points that stay where they are at tangent zero.
struct Stage {
  const ModelStorage& storage;
  Doubles qpos;

  template <class Real>
  void run(const Real* in, Parameters<Real>& parameters, Kinematics<Real>& out) const {
    const Model& model = storage.model();
    load_defaults(storage, parameters);
    Reader<Real> from{in + model.nv};
    for (int k = 0; k < model.nv; ++k) parameters.inertia[k] = from.inertia();
    std::vector<Real> start(qpos.begin(), qpos.end()), moved(model.nq), still(model.nv, Real(0));
    displace(model, start.data(), in, moved.data());
    kinematics(model, parameters, moved.data(), still.data(), out);
  }
  // from the fixed reference point to the present one
  template <class Real>
  Vector3<Real> shift(const Kinematics<Real>& at, int tree) const {
    const int address = storage.model().tree_qpos[tree];
    return address < 0 ? zero3<Real>() : at.origin[tree] - vector3<Real>(&qpos[address]);
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    const Model& model = storage.model();
    Owned<Parameters<Real>> parameters(model);
    Owned<Kinematics<Real>> at(model);
    run(in, *parameters, *at);
    Writer<Real> to{out};
    for (int k = 0; k < model.nv; ++k) {
      const Vector3<Real> d = shift(*at, model.dofs[k].tree);
      to.add(Motion<Real>{at->S[k].w, at->S[k].v + cross(d, at->S[k].w)});
      if (!model.dofs[k].has_inertia) continue;
      to.add(to_world(at->I[k], identity3<Real>(), d));
      to.add(d + at->links[k].p + at->links[k].R * marker<Real>());
    }
  }
};

struct StageAdjoint {
  const Stage& stage;

  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Model& model = stage.storage.model();
    Owned<Parameters<Real>> parameters(model), parameters_bar(model);
    Owned<Kinematics<Real>> at(model);
    Owned<KinematicsCotangent<Real>> bar(model);
    stage.run(in, *parameters, *at);
    parameters_bar->clear(model);
    bar->clear(model);
    Reader<Real> from{out_bar};
    for (int k = 0; k < model.nv; ++k) {
      bar->S[k] = from.force();
      if (!model.dofs[k].has_inertia) continue;
      bar->I[k] = from.inertia_cotangent();
      const Vector3<Real> point = at->links[k].p + at->links[k].R * marker<Real>();
      bar->moment[k] = force_at(point, from.vector());
    }
    kinematics_adjoint(model, *parameters, *at, *bar, in_bar, *parameters_bar);
    Writer<Real> to{in_bar + model.nv};
    for (int k = 0; k < model.nv; ++k) to.add_cotangent(parameters_bar->inertia[k]);
  }
};

void adjoint_and_lanes() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  Random random(23);
  int n_out = 6 * model.nv;
  for (int k = 0; k < model.nv; ++k) n_out += model.dofs[k].has_inertia ? 13 : 0;
  for (int trial = 0; trial < 3; ++trial) {
    const Stage stage{storage, random_qpos(storage, arrays, random, 1.0)};
    const StageAdjoint adjoint{stage};
    Doubles in(model.nv, 0.0);
    const Doubles inertias = random.normals(10 * model.nv);
    in.insert(in.end(), inertias.begin(), inertias.end());
    check_adjoint("kinematics", random, in, n_out, stage, adjoint, smooth,
                  {{"qpos", 0, model.nv}, {"inertia", model.nv, 10 * model.nv}});
    const std::vector<Doubles> environments = environments_around(random, in, 0.7);
    check_lanes("kinematics", environments, n_out, stage);
    check_adjoint_lanes("kinematics", random, environments, n_out, adjoint);
  }
}

void takes_nothing_from_the_heap() {
  const MujocoArrays arrays = two_trees();
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  Random random(24);
  const Doubles qpos = random_qpos(storage, arrays, random, 1.0), qvel = random.normals(model.nv);
  At at(storage, qpos, qvel);
  Owned<KinematicsCotangent<double>> bar(model);
  Owned<Parameters<double>> parameters_bar(model);
  Doubles qpos_bar(model.nv, 0.0);
  parameters_bar->clear(model);
  check_no_allocation("kinematics", [&] {
    kinematics(model, *at.parameters, qpos.data(), qvel.data(), *at.kinematics);
    bar->clear(model);
    kinematics_adjoint(model, *at.parameters, *at.kinematics, *bar, qpos_bar.data(), *parameters_bar);
  });
}

}  // namespace

int main() {
  return run({{"links carry the bodies", links_carry_the_bodies},
              {"velocities", velocities_are_those_of_the_bodies},
              {"inertias", inertias_are_those_of_the_bodies},
              {"adjoint and lanes", adjoint_and_lanes},
              {"allocation", takes_nothing_from_the_heap}});
}
