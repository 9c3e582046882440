// Turns a caller's requests for measurements into the probes of the stage.
#pragma once

#include <array>
#include <vector>

#include "revolute/model/model_storage.hpp"
#include "revolute/model/probe.hpp"

namespace revolute {

// Objects that have a frame, by MuJoCo's mjtObj; `body` is the frame of the body's inertia.
enum class PlaceType : int { none = 0, body = 1, body_frame = 2, geom = 5, site = 6 };

struct ProbeRequest {
  ProbeKind kind;
  int index;  // qpos, dof, actuator, tendon or body, by kind
  PlaceType type;
  int id;
  PlaceType reference_type;
  int reference_id;
  int shape;                     // mjtGeom of the site that is a zone
  std::array<double, 3> vector;  // local_field: the field; zones: the site's size
  double cutoff;
  bool positive;
  int size;  // number of values, for kinds whose number differs
  // further data of the kind (stages/measurement.hpp)
  std::vector<int> integers;
  std::vector<double> numbers;
  // position and quaternion of the frame, and of the reference frame, in the objects'; empty: their own frames
  std::vector<double> offset, reference_offset;
};

// Appends a request to `probes`. The caller has checked the indices.
void add_probe(const ModelStorage& storage, const ProbeRequest& request, Probes& probes);

}  // namespace revolute
