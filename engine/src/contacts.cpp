#include "revolute/contacts.hpp"

#include <algorithm>

#include "packs.hpp"

namespace revolute {

namespace {

struct Workspace {
  InputArrays<double> inputs;
  Parameters<double> parameters;
  Kinematics<double> kinematics;
  Contacts<double> contacts;

  Workspace(const Model& model, Arena& arena)
      : inputs(model, arena), parameters(model, arena), kinematics(model, arena), contacts(model, arena) {}
};

ContactRecord record(const Contact<double>& contact) {
  const Candidate& candidate = *contact.candidate;
  ContactRecord out{candidate.geom_a, candidate.geom_b, contact.gap, {}, {}, {}};
  const auto write = [](const Vector3<double>& a, double* to) { to[0] = a.x, to[1] = a.y, to[2] = a.z; };
  write(contact.at.point, out.position);
  for (int d = 0; d < 3; ++d) write(contact.axis[d], out.frame + 3 * d);
  return out;
}

struct StepAt {
  InputArrays<double> inputs;
  Parameters<double> parameters;
  StepWorkspace<double> step;
  double *qpos_next, *qvel_next;

  StepAt(const Model& model, Arena& arena)
      : inputs(model, arena),
        parameters(model, arena),
        step(model, arena),
        qpos_next(arena.take<double>(model.nq)),
        qvel_next(arena.take<double>(velocities(model))) {}
};

std::vector<ContactRecord> soft_forces(const SoftStage<double>& stage) {
  std::vector<ContactRecord> out;
  for (int c = 0; c < stage.contacts.count; ++c) out.push_back(record(stage.contacts.list[c]));
  for (int i = 0; i < stage.constraints.count; ++i) {
    const SoftConstraint<double>& c = stage.constraints.list[i];
    for (int r = 0; c.source == RowSource::contact && r < c.cost.rows; ++r)
      out[c.index].force[r] = -stage.newton.slope[c.row + r];
  }
  return out;
}

std::vector<ContactRecord> hard_forces(const Model& model, const StepWorkspace<double>& step) {
  std::vector<ContactRecord> out;
  for (int c = 0; c < step.contacts.count; ++c) out.push_back(record(step.contacts.list[c]));
  for (int r = 0; r < step.rows.count; ++r) {
    const RowOrigin& origin = step.rows.origin[r];
    if (origin.source == RowSource::contact)
      out[origin.index].force[origin.component] = step.solver.x[r] / model.timestep;
  }
  return out;
}

}  // namespace

std::vector<ContactRecord> find_contact_forces(const ModelStorage& storage,
                                               const ParameterPointers& parameters, const double* qpos,
                                               const double* qvel, const double* ctrl,
                                               const InputRows& inputs) {
  const Model& model = storage.model();
  Arena measured;
  StepAt(model, measured);
  Arena arena(measured.used());
  StepAt at(model, arena);
  load_parameters(storage.parameters(), parameters, 0, model, at.parameters);
  at.inputs.attach(model, [&](int i) { return inputs[i] != nullptr; }, at.parameters);
  for (int i = 0; i < input_count; ++i)
    if (inputs[i]) std::copy_n(inputs[i], input_size(model, i), at.inputs.of[i]);
  step(model, at.parameters, qpos, qvel, ctrl, true, at.step, at.qpos_next, at.qvel_next);
  return is_soft(model) ? soft_forces(at.step.soft.stage) : hard_forces(model, at.step);
}

std::vector<ContactRecord> find_contacts(const ModelStorage& storage, const double* qpos) {
  const Model& model = storage.model();
  Arena measured;
  Workspace(model, measured);
  Arena arena(measured.used());
  Workspace at(model, arena);
  ParameterPointers values;
  for (int p = 0; p < parameter_count; ++p) values[p] = storage.parameters().defaults[p].data();
  load_parameters(storage.parameters(), values, 0, model, at.parameters);
  at.inputs.attach(model, [](int) { return false; }, at.parameters);
  const std::vector<double> still(model.nv, 0.0);
  kinematics(model, at.parameters, qpos, still.data(), at.kinematics);
  collision_detection(model, at.kinematics, at.kinematics.V, model.timestep, at.contacts);
  std::vector<ContactRecord> out;
  for (int c = 0; c < at.contacts.count; ++c) out.push_back(record(at.contacts.list[c]));
  return out;
}

}  // namespace revolute
