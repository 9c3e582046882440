// Whole steps with the model's own parameters.
#pragma once

#include "dense.hpp"
#include "models.hpp"

namespace revolute::check {

template <class Real>
struct Workspace {
  Owned<Parameters<Real>> parameters;
  Owned<StepWorkspace<Real>> step;
  explicit Workspace(const Model& model) : parameters(model), step(model) {}
};

inline State next_state(const ModelStorage& storage, const State& state, const Doubles& ctrl,
                        Workspace<double>& ws) {
  State next = {Doubles(state.qpos.size()), Doubles(state.qvel.size())};
  load_defaults(storage, *ws.parameters);
  step(storage.model(), *ws.parameters, state.qpos.data(), state.qvel.data(), ctrl.data(), true, *ws.step,
       next.qpos.data(), next.qvel.data());
  return next;
}
inline State next_state(const ModelStorage& storage, const State& state) {
  Workspace<double> ws(storage.model());
  return next_state(storage, state, Doubles(storage.model().nu, 0.0), ws);
}

// b is moved along the normal until it is `gap` away from a, and thrown at it.
inline State collision_state(const ModelStorage& storage, const MujocoArrays& arrays, double gap,
                             Random& random) {
  State state = {random_qpos(storage, arrays, random, 0.4), random.normals(12)};
  Workspace<double> ws(storage.model());
  next_state(storage, state, {}, ws);
  const Contact<double>& contact = ws.step->contacts.list[0];
  const Doubles normal = numbers(contact.at.normal);
  for (int i = 0; i < 3; ++i) {
    state.qpos[7 + i] -= (contact.at.gap - gap) * normal[i];
    state.qvel[6 + i] -= 4 * normal[i];
  }
  return state;
}

}  // namespace revolute::check
