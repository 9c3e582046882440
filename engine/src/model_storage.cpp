// Builds a model from the arrays of a compiled MuJoCo model, and points it to its own arrays.
#include "revolute/model/model_storage.hpp"

#include <algorithm>

#include "model_builder.hpp"

namespace revolute {

void ModelBuilder::build() {
  check_sizes();
  add_options();
  add_bodies();
  add_dof_supports();
  find_single_free();
  add_tendons();
  add_actuators();
  add_link_forces();
  add_geoms();
  add_sites();
  add_candidates();
  if (in_.unlisted_pairs) add_filters();
  out_.near_pairs_.build(out_.model_, out_.dofs_, out_.candidates_, out_.geoms_);
  add_dof_constraints();
  add_equalities();
  add_parameters();
  point_model();
}

void ModelBuilder::add_options() {
  Model& m = out_.model_;
  static_cast<Options&>(m) = in_;
  m.nq = in_.nq;
  m.nv = in_.nv;
  m.nu = in_.nu;
  m.na = in_.na;
  m.nbody = in_.nbody;
  m.ngeom = in_.ngeom;
  m.njnt = in_.njnt;
  m.nsite = in_.nsite;
  m.integrator = Integrator(in_.integrator);
  m.friction_to_normal = in_.impratio;
  m.safe_solref = in_.refsafe;
  m.implicit_damping = in_.eulerdamp;
}

void ModelBuilder::add_parameters() {
  for (int b = 0; b < in_.nbody; ++b) {
    Body body{};
    body.link = body_link_[b];
    body.body = b;
    body.parent = in_.body_parentid[b];
    store(body_pose_[b].R, body.rotation);
    store(body_pose_[b].p, body.position);
    const Pose principal = body_pose_[b] * pose(&in_.body_ipos[3 * b], &in_.body_iquat[4 * b]);
    store(principal.R, body.principal);
    store(principal.q, body.principal_orientation);
    store(body_pose_[b].q, body.orientation);
    out_.map_.bodies.push_back(body);
  }
#define REVOLUTE_DEFAULT(name, array, ...) out_.map_.defaults[int(Parameter::name)] = in_.array;
  REVOLUTE_PARAMETERS(REVOLUTE_DEFAULT, REVOLUTE_DEFAULT)
#undef REVOLUTE_DEFAULT
}

void ModelBuilder::point_model() {
  Model& m = out_.model_;
  m.ncandidate = int(out_.candidates_.size());
  m.nlimit = int(out_.limits_.size());
  m.nequality = int(out_.equalities_.size());
  m.joints = out_.joints_.data();
  m.dofs = out_.dofs_.data();
  m.mocap_pos = out_.mocap_pos_.data();
  m.mocap_quat = out_.mocap_quat_.data();
  m.dof_joints = out_.dof_joints_.data();
  m.actuators = out_.actuators_.data();
  m.bodies = out_.map_.bodies.data();
  m.sites = out_.sites_.data();
  m.tendons = out_.tendons_.data();
  m.transmissions = out_.transmissions_.data();
  m.tendon_joints = out_.tendon_joints_.data();
  m.path_segments = out_.path_segments_.data();
  m.path_wraps = out_.path_wraps_.data();
  m.medium_bodies = out_.medium_bodies_.data();
  m.medium_ellipsoids = out_.medium_ellipsoids_.data();
  m.geoms = out_.geoms_.data();
  m.candidates = out_.candidates_.data();
  out_.near_pairs_.point(m);
  m.limits_list = out_.limits_.data();
  m.equalities = out_.equalities_.data();
  m.paths = out_.paths_.data();
  m.path_dofs = out_.path_dofs_.data();
  m.dof_paths = out_.dof_paths_.data();
  for (Support& support : out_.supports_) {
    support.dofs = out_.support_dofs_.data() + support.first;
    support.sides = out_.support_sides_.data() + support.first;
  }
  m.supports = out_.supports_.data();
  point_filters(m);
  m.mass_rows = out_.mass_rows_.data();
  m.dof_softness = out_.dof_softness_.data();
  m.dof_weight = out_.dof_weight_.data();
  m.vertices = out_.hulls_.vertices.data();
  m.faces = out_.hulls_.faces.data();
  m.edges = out_.hulls_.edges.data();
  m.corners = out_.hulls_.corners.data();
  m.vertex_faces = out_.hulls_.vertex_faces.data();
  m.vertex_faces_begin = out_.hulls_.vertex_faces_begin.data();
  m.height_fields = out_.height_fields_.data();
  m.triangles = out_.triangles_.data();
  m.hull_nodes = out_.hulls_.nodes.data();
  m.hull_items = out_.hulls_.items.data();
  m.support_cells = out_.hulls_.cells.data();
  m.cell_members = out_.hulls_.cell_members.data();
  m.tree_origin = out_.tree_origin_.data();
  m.tree_qpos = out_.tree_qpos_.data();
  m.single_free = out_.single_free_.get();
  const Doubles& loss = out_.map_.defaults[int(Parameter::dof_frictionloss)];
  out_.model_as_loaded_ = m;
  out_.model_as_loaded_.dry_friction =
      m.dry_friction && std::any_of(loss.begin(), loss.end(), [](double value) { return value > 0; });
}

ModelStorage::ModelStorage(const MujocoArrays& arrays) { ModelBuilder(arrays, *this).build(); }

std::size_t ModelStorage::bytes() const {
  const auto sum = [](const auto&... arrays) {
    return (std::size_t(0) + ... + (arrays.capacity() * sizeof(arrays[0])));
  };
  std::size_t parameters = sum(map_.bodies);
  for (const std::vector<double>& values : map_.defaults) parameters += sum(values);
  return sizeof(*this) + parameters +
         sum(joints_, dofs_, mocap_pos_, mocap_quat_, actuators_, geoms_, sites_, candidates_, limits_) +
         sum(tendons_, transmissions_, tendon_joints_, path_segments_, path_wraps_, medium_bodies_,
             medium_ellipsoids_, dof_joints_) +
         sum(equalities_, paths_, path_dofs_, dof_paths_, supports_, support_dofs_, support_sides_) +
         sum(geom_filters_, excluded_bodies_, excluded_geoms_, own_softness_) +
         sum(mass_rows_, dof_softness_, dof_weight_, tree_origin_, tree_qpos_, heights_, height_fields_,
             triangles_) +
         sum(hulls_.vertices, hulls_.faces, hulls_.edges, hulls_.corners, hulls_.nodes, hulls_.items) +
         sum(hulls_.vertex_faces, hulls_.vertex_faces_begin, hulls_.cells, hulls_.cell_members);
}

}  // namespace revolute
