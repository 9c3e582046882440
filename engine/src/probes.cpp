#include "revolute/probes.hpp"

#include <algorithm>

namespace revolute {

namespace {

FixedFrame fixed_frame(const Model& model, PlaceType type, int id) {
  if (type == PlaceType::site) return model.sites[id];
  if (type == PlaceType::geom) {
    const Geom& geom = model.geoms[id];
    FixedFrame out{geom.link, geom.body, {}, {}, {}};
    std::copy_n(geom.rotation, 9, out.rotation);
    std::copy_n(geom.position, 3, out.position);
    std::copy_n(geom.orientation, 4, out.orientation);
    return out;
  }
  FixedFrame out = model.bodies[id];
  if (type == PlaceType::body) {
    std::copy_n(model.bodies[id].principal, 9, out.rotation);
    std::copy_n(model.bodies[id].principal_orientation, 4, out.orientation);
  }
  return out;
}

// Adds the joints from the root to a link, starting with the last joint that frees the link from its ancestors.
void add_joints(const Model& model, int link, Place& place, Probes& probes) {
  place.first_joint = int(probes.joints.size());
  while (link >= 0) {
    int joint = model.njnt - 1;
    while (model.joints[joint].dof > link) --joint;
    probes.joints.push_back(joint);
    link = model.joints[joint].parent;
  }
  place.root = link;
  std::reverse(probes.joints.begin() + place.first_joint, probes.joints.end());
  place.joints = int(probes.joints.size()) - place.first_joint;
}

Place make_place(const Model& model, PlaceType type, int id, Probes& probes) {
  Place out{};
  if (type == PlaceType::none) return out;
  static_cast<FixedFrame&>(out) = fixed_frame(model, type, id);
  out.mass_centre = type == PlaceType::body;
  add_joints(model, out.link, out, probes);
  return out;
}

void add_subtree(const Model& model, int root, Probe& probe, Probes& probes) {
  std::vector<std::uint8_t> inside(model.nbody, 0);
  probe.first_body = int(probes.bodies.size());
  // parents come first; the world is its own parent
  for (int b = root; b < model.nbody; ++b) {
    inside[b] = b == root || inside[model.bodies[b].parent];
    if (inside[b]) probes.bodies.push_back(b);
  }
  probe.bodies = int(probes.bodies.size()) - probe.first_body;
  if (probe.kind != ProbeKind::force && probe.kind != ProbeKind::torque) return;
  probe.membership = int(probes.in_subtree.size()) / model.nbody;
  probes.in_subtree.insert(probes.in_subtree.end(), inside.begin(), inside.end());
}

}  // namespace

void add_probe(const ModelStorage& storage, const ProbeRequest& request, Probes& probes) {
  const Model& model = storage.model();
  Probe probe{};
  probe.kind = request.kind;
  probe.index = request.index;
  probe.relative = request.reference_type != PlaceType::none;
  probe.of = make_place(model, request.type, request.id, probes);
  probe.reference = make_place(model, request.reference_type, request.reference_id, probes);
  probe.zone.shape = request.shape;
  std::copy_n(request.vector.data(), 3, probe.field);
  std::copy_n(request.vector.data(), 3, probe.zone.size);
  probe.cutoff = request.cutoff;
  probe.positive = request.positive;
  probe.first = probes.size;
  probe.size = probe_sizes[int(probe.kind)];
  switch (probe.kind) {
    case ProbeKind::subtree_com:
    case ProbeKind::subtree_linear_velocity:
    case ProbeKind::subtree_angular_momentum:
      add_subtree(model, request.index, probe, probes);
      break;
    case ProbeKind::force:
    case ProbeKind::torque:
      add_subtree(model, probe.of.body, probe, probes);
      break;
    default:
      break;
  }
  probes.size += probe.size;
  probes.ctrl = probes.ctrl || needs_ctrl(probe.kind);
  probes.acceleration = probes.acceleration || needs_acceleration(probe.kind);
  probes.list.push_back(probe);
}

}  // namespace revolute
