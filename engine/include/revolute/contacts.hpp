// The contacts of one state as a list, for reports and for tests against MuJoCo.
#pragma once

#include <vector>

#include "revolute/model/model_storage.hpp"
#include "revolute/model/step_inputs.hpp"

namespace revolute {

struct ContactRecord {
  int geom_a, geom_b;
  double distance;
  double position[3];
  double frame[9];  // rows: normal from a to b, two tangents; as MuJoCo's mjContact.frame
  // On b along these axes, then torques about them, in the order of MuJoCo's mj_contactForce. Zero beyond the contact's condim,
  // for contacts that do not act, and from find_contacts(), which computes no forces.
  double force[6];
};

// Returns the contacts of a pose at rest with the parameters' defaults, in the order of the solver's rows.
std::vector<ContactRecord> find_contacts(const ModelStorage& storage, const double* qpos);
// Returns the contacts of the step from this state with one row of inputs, and their forces. For ContactModel::hard these are
// impulses divided by the time step, with those that stop an impact or repair a penetration; after an impact within the step,
// the contacts are those at its moment.
std::vector<ContactRecord> find_contact_forces(const ModelStorage& storage,
                                               const ParameterPointers& parameters, const double* qpos,
                                               const double* qvel, const double* ctrl,
                                               const InputRows& inputs);

}  // namespace revolute
