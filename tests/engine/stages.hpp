// The stages before the solver, run at one state: for tests of what comes late in a step.
#pragma once

#include "models.hpp"

namespace revolute::check {

template <class Real>
struct Stages {
  const ModelStorage& storage;
  Real h;
  std::vector<Real> qpos, qvel, v_free, diagonal, impact_time;  // impact_time [ntree]
  std::vector<Motion<Real>> V_free;
  Owned<Parameters<Real>> parameters;
  Owned<Kinematics<Real>> kinematics;
  Owned<Factors<Real>> factors;
  Owned<SolveScratch<Real>> scratch;
  Owned<Contacts<Real>> contacts;
  Owned<ConstraintRows<Real>> rows;

  // With the model's own parameters; they and the times of an impact may be changed before run().
  Stages(const ModelStorage& storage, std::vector<Real> qpos, std::vector<Real> qvel,
         std::vector<Real> v_free)
      : storage(storage),
        h(storage.model().timestep),
        qpos(std::move(qpos)),
        qvel(std::move(qvel)),
        v_free(std::move(v_free)),
        diagonal(model().nv),
        impact_time(model().ntree, Real(0)),
        V_free(model().nv),
        parameters(model()),
        kinematics(model()),
        factors(model()),
        scratch(model()),
        contacts(model()),
        rows(model()) {
    load_defaults(storage, *parameters);
  }
  const Model& model() const { return storage.model(); }
  RowContext<Real> context() {
    return {h, &*kinematics, qpos.data(), qvel.data(), v_free.data(), V_free.data(), impact_time.data()};
  }
  void run() {
    revolute::kinematics(model(), *parameters, qpos.data(), qvel.data(), *kinematics);
    for (int k = 0; k < model().nv; ++k) diagonal[k] = parameters->armature[k] + h * parameters->damping[k];
    articulated_inertia(model(), diagonal.data(), *kinematics, *factors);
    link_velocities(model(), kinematics->S, v_free.data(), V_free.data());
    collision_detection(model(), *kinematics, V_free.data(), h, *contacts);
    constraint_rows(model(), *parameters, context(), *contacts, *rows);
  }
};

inline Stages<double> stages_at(const ModelStorage& storage, const Doubles& qpos, const Doubles& qvel,
                                const Doubles& v_free) {
  Stages<double> out(storage, qpos, qvel, v_free);
  out.run();
  return out;
}

}  // namespace revolute::check
