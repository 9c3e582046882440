// Quantities to measure at a state: places in the task space, and MuJoCo's sensors. stages/measurement.hpp computes them.
#pragma once

#include <cstdint>
#include <vector>

#include "revolute/model/model.hpp"

namespace revolute {

// X(kind, number of values; 0: as many as its request says). Kinds from force_of_actuator on depend on the control. Kinds from limit_force on also depend on
// the acceleration and the forces of constraints.
#define REVOLUTE_PROBES(X)       \
  X(clock, 1)                    \
  X(joint_position, 1)           \
  X(joint_velocity, 1)           \
  X(ball_quaternion, 4)          \
  X(ball_velocity, 3)            \
  X(actuator_position, 1)        \
  X(actuator_velocity, 1)        \
  X(limit_position, 1)           \
  X(limit_velocity, 1)           \
  X(tendon_position, 1)          \
  X(tendon_velocity, 1)          \
  X(tendon_limit_position, 1)    \
  X(tendon_limit_velocity, 1)    \
  X(potential_energy, 1)         \
  X(kinetic_energy, 1)           \
  X(inside_site, 1)              \
  X(camera_projection, 2)        \
  X(range_finder, 0)             \
  X(geom_distance, 1)            \
  X(geom_normal, 3)              \
  X(geom_points, 6)              \
  X(position, 3)                 \
  X(quaternion, 4)               \
  X(rotation, 9)                 \
  X(x_axis, 3)                   \
  X(y_axis, 3)                   \
  X(z_axis, 3)                   \
  X(linear_velocity, 3)          \
  X(angular_velocity, 3)         \
  X(local_linear_velocity, 3)    \
  X(local_angular_velocity, 3)   \
  X(local_field, 3)              \
  X(distance, 1)                 \
  X(subtree_com, 3)              \
  X(subtree_linear_velocity, 3)  \
  X(subtree_angular_momentum, 3) \
  X(force_of_actuator, 1)        \
  X(actuator_force_on_joint, 1)  \
  X(actuator_force_on_tendon, 1) \
  X(limit_force, 1)              \
  X(tendon_limit_force, 1)       \
  X(local_acceleration, 3)       \
  X(linear_acceleration, 3)      \
  X(angular_acceleration, 3)     \
  X(force, 3)                    \
  X(torque, 3)                   \
  X(touch, 1)                    \
  X(contacts, 0)

#define REVOLUTE_PROBE_KIND(kind, size) kind,
enum class ProbeKind : int { REVOLUTE_PROBES(REVOLUTE_PROBE_KIND) };
#undef REVOLUTE_PROBE_KIND
#define REVOLUTE_PROBE_NAME(kind, size) #kind,
constexpr const char* probe_names[] = {REVOLUTE_PROBES(REVOLUTE_PROBE_NAME)};
#undef REVOLUTE_PROBE_NAME
#define REVOLUTE_PROBE_SIZE(kind, size) size,
constexpr int probe_sizes[] = {REVOLUTE_PROBES(REVOLUTE_PROBE_SIZE)};
#undef REVOLUTE_PROBE_SIZE

inline bool needs_ctrl(ProbeKind kind) { return kind >= ProbeKind::force_of_actuator; }
inline bool needs_acceleration(ProbeKind kind) { return kind >= ProbeKind::limit_force; }
// Kinds that read the lengths of tendons or the forces of actuators.
inline bool needs_transmissions(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::actuator_position:
    case ProbeKind::actuator_velocity:
    case ProbeKind::tendon_position:
    case ProbeKind::tendon_velocity:
    case ProbeKind::tendon_limit_position:
    case ProbeKind::tendon_limit_velocity:
    case ProbeKind::potential_energy:
    case ProbeKind::kinetic_energy:
    case ProbeKind::force_of_actuator:
    case ProbeKind::actuator_force_on_joint:
    case ProbeKind::actuator_force_on_tendon:
      return true;
    default:
      return false;
  }
}

// A frame in its link, or the mass centre of its body if `mass_centre` is set, and the joints that carry the link.
struct Place : FixedFrame {
  bool mass_centre;
  int first_joint, joints;  // range of Probes::joints, root first
  int root;                 // what the first of them hangs on, or the link itself: the world or a mocap body
};

// The volume of a site, by MuJoCo's mjtGeom.
struct Zone {
  int shape;
  double size[3];
};

struct Probe {
  ProbeKind kind;
  int index;      // by kind: qpos, dof, actuator, tendon, joint or body
  bool relative;  // in the frame of `reference`
  Place of, reference;
  double field[3];
  Zone zone;
  double cutoff;           // 0: none
  bool positive;           // cut off above only
  int first, size;         // range of its numbers
  int first_body, bodies;  // subtree: range of Probes::bodies
  int membership;          // force, torque: row of Probes::in_subtree
  // by kind: range of Probes::integers; of Probes::numbers; of Probes::candidates
  int first_integer, integers, first_number, first_candidate, candidates;
};

struct Probes {
  std::vector<Probe> list;
  std::vector<int> joints, bodies, integers;
  std::vector<double> numbers;
  std::vector<Candidate> candidates;  // of pairs of shapes whose distance is measured
  std::vector<std::uint8_t>
      in_subtree;  // [probe, nbody] of force and torque; 1: the body is in the probe's subtree
  int size = 0;
  bool ctrl = false, acceleration = false, transmissions = false;
};

}  // namespace revolute
