#include "revolute/probes.hpp"

#include <algorithm>

#include "pose.hpp"
#include "revolute/model/pair_kinds.hpp"

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

// Moves a frame to a pose in it.
void shift(const std::vector<double>& offset, FixedFrame& frame) {
  if (offset.empty()) return;
  const Pose own = {matrix3<double>(frame.rotation),
                    vector3<double>(frame.position),
                    {frame.orientation[0], frame.orientation[1], frame.orientation[2], frame.orientation[3]}};
  const Pose at = own * pose(offset.data(), offset.data() + 3);
  std::copy_n(at.R.m, 9, frame.rotation);
  const double position[3] = {at.p.x, at.p.y, at.p.z}, orientation[4] = {at.q.w, at.q.x, at.q.y, at.q.z};
  std::copy_n(position, 3, frame.position);
  std::copy_n(orientation, 4, frame.orientation);
}

Place make_place(const Model& model, PlaceType type, int id, const std::vector<double>& offset,
                 Probes& probes) {
  Place out{};
  if (type == PlaceType::none) return out;
  static_cast<FixedFrame&>(out) = fixed_frame(model, type, id);
  shift(offset, out);
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

// Adds the points at which a pair of shapes is nearest, by MuJoCo's formulae, or one candidate for the general search. Points
// of b against a plane are in its link's frame.
void add_distance(const Model& model, int one, int other, double most, Probes& probes) {
  const bool ordered = model.geoms[one].shape < model.geoms[other].shape ||
                       (model.geoms[one].shape == model.geoms[other].shape && one < other);
  Candidate candidate{};
  candidate.geom_a = ordered ? one : other;
  candidate.geom_b = ordered ? other : one;
  const Geom &a = model.geoms[candidate.geom_a], &b = model.geoms[candidate.geom_b];
  PairKind kind = mujoco_pair_kind(a.shape, b.shape);
  // MuJoCo's formulae for the contacts of these with boxes do not give the distance from afar
  if (kind.pair == Pair::box_box || kind.pair == Pair::capsule_box) kind = {Pair::convex_convex, 0};
  if (kind.slots == 0) kind.slots = 1;
  candidate.pair = kind.pair;
  candidate.slots = kind.slots;
  candidate.link_a = a.link;
  candidate.link_b = b.link;
  candidate.margin = most;
  candidate.radius = b.radius;
  for (candidate.slot = 0; candidate.slot < candidate.slots; ++candidate.slot) {
    const int s = candidate.slot;
    for (int i = 0; i < 3; ++i) {
      candidate.point[i] = b.position[i];
      if (kind.pair == Pair::plane_capsule)
        candidate.point[i] += (s == 0 ? 1 : -1) * b.half[2] * b.rotation[3 * i + 2];
      for (int d = 0; kind.pair == Pair::plane_box && d < 3; ++d)
        candidate.point[i] += (s >> d & 1 ? 1 : -1) * b.half[d] * b.rotation[3 * i + d];
    }
    probes.candidates.push_back(candidate);
  }
}

}  // namespace

void add_probe(const ModelStorage& storage, const ProbeRequest& request, Probes& probes) {
  const Model& model = storage.model();
  Probe probe{};
  probe.kind = request.kind;
  probe.index = request.index;
  probe.relative = request.reference_type != PlaceType::none;
  probe.of = make_place(model, request.type, request.id, request.offset, probes);
  probe.reference =
      make_place(model, request.reference_type, request.reference_id, request.reference_offset, probes);
  probe.zone.shape = request.shape;
  std::copy_n(request.vector.data(), 3, probe.field);
  std::copy_n(request.vector.data(), 3, probe.zone.size);
  probe.cutoff = request.cutoff;
  probe.positive = request.positive;
  probe.first = probes.size;
  probe.size = probe_sizes[int(probe.kind)];
  if (probe.size == 0) probe.size = request.size;
  probe.first_integer = int(probes.integers.size());
  probe.integers = int(request.integers.size());
  probe.first_number = int(probes.numbers.size());
  probes.integers.insert(probes.integers.end(), request.integers.begin(), request.integers.end());
  probes.numbers.insert(probes.numbers.end(), request.numbers.begin(), request.numbers.end());
  probe.first_candidate = int(probes.candidates.size());
  switch (probe.kind) {
    case ProbeKind::subtree_com:
    case ProbeKind::subtree_linear_velocity:
    case ProbeKind::subtree_angular_momentum:
      add_subtree(model, request.index, probe, probes);
      break;
    case ProbeKind::potential_energy:
      add_subtree(model, 0, probe, probes);
      break;
    case ProbeKind::force:
    case ProbeKind::torque:
      add_subtree(model, probe.of.body, probe, probes);
      break;
    case ProbeKind::geom_distance:
    case ProbeKind::geom_normal:
    case ProbeKind::geom_points:
      for (int i = 0; i + 1 < probe.integers; i += 2)
        add_distance(model, request.integers[i], request.integers[i + 1], request.numbers[0], probes);
      probe.candidates = int(probes.candidates.size()) - probe.first_candidate;
      break;
    default:
      break;
  }
  probes.size += probe.size;
  probes.ctrl = probes.ctrl || needs_ctrl(probe.kind);
  probes.acceleration = probes.acceleration || needs_acceleration(probe.kind);
  const bool of_paths =
      probe.integers > 0 && (probe.kind == ProbeKind::force || probe.kind == ProbeKind::torque);
  probes.transmissions = probes.transmissions || needs_transmissions(probe.kind) || of_paths;
  probes.list.push_back(probe);
}

}  // namespace revolute
