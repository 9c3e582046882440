// Turns a caller's requests for measurements into the probes of the stage.
#pragma once

#include <array>

#include "revolute/model/model_storage.hpp"
#include "revolute/model/probe.hpp"

namespace revolute {

// Objects that have a frame, by MuJoCo's mjtObj; `body` is the frame of the body's inertia.
enum class PlaceType : int { none = 0, body = 1, body_frame = 2, geom = 5, site = 6 };

struct ProbeRequest {
  ProbeKind kind;
  int index;  // qpos, dof, actuator or body, by kind
  PlaceType type;
  int id;
  PlaceType reference_type;
  int reference_id;
  int shape;                     // touch: mjtGeom of the site
  std::array<double, 3> vector;  // local_field: the field; touch: the site's size
  double cutoff;
  bool positive;
};

// Appends a request to `probes`. The caller has checked the indices.
void add_probe(const ModelStorage& storage, const ProbeRequest& request, Probes& probes);

}  // namespace revolute
