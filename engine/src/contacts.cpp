#include "revolute/contacts.hpp"

#include <algorithm>

#include "revolute/stages/collision_detection.hpp"

namespace revolute {

namespace {

struct Workspace {
  Parameters<double> parameters;
  Kinematics<double> kinematics;
  Contacts<double> contacts;

  Workspace(const Model& model, Arena& arena)
      : parameters(model, arena), kinematics(model, arena), contacts(model, arena) {}
};

ContactRecord record(const Contact<double>& contact) {
  const Candidate& candidate = *contact.candidate;
  ContactRecord out{candidate.geom_a, candidate.geom_b, contact.gap, {}, {}};
  const auto write = [](const Vector3<double>& a, double* to) { to[0] = a.x, to[1] = a.y, to[2] = a.z; };
  write(contact.at.point, out.position);
  for (int d = 0; d < 3; ++d) write(contact.axis[d], out.frame + 3 * d);
  return out;
}

}  // namespace

std::vector<ContactRecord> find_contacts(const ModelStorage& storage, const double* qpos) {
  const Model& model = storage.model();
  Arena measured;
  Workspace(model, measured);
  Arena arena(measured.used());
  Workspace at(model, arena);
  ParameterPointers values;
  for (int p = 0; p < parameter_count; ++p) values[p] = storage.parameters().defaults[p].data();
  load_parameters(storage.parameters(), values, 0, model, at.parameters);
  const std::vector<double> still(model.nv, 0.0);
  kinematics(model, at.parameters, qpos, still.data(), at.kinematics);
  collision_detection(model, at.kinematics, at.kinematics.V, model.timestep, at.contacts);
  std::vector<ContactRecord> out;
  for (int c = 0; c < at.contacts.count; ++c) out.push_back(record(at.contacts.list[c]));
  return out;
}

}  // namespace revolute
