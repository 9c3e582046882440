// Bodies, joints and degrees of freedom, and which of them move a link: paths (hard) and supports (mujoco).
#include <algorithm>
#include <cmath>
#include <memory>

#include "model_builder.hpp"

namespace revolute {

namespace {

// A rotation whose third column is the axis.
Matrix3<double> frame_with_z(const Vector3<double>& axis) {
  const Vector3<double> z = (1.0 / std::sqrt(dot(axis, axis))) * axis;
  const Vector3<double> other = std::fabs(z.x) < 0.8 ? Vector3<double>{1, 0, 0} : Vector3<double>{0, 1, 0};
  Vector3<double> x = other - dot(other, z) * z;
  x = (1.0 / std::sqrt(dot(x, x))) * x;
  const Vector3<double> y = cross(z, x);
  return {{x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z}};
}

}  // namespace

void ModelBuilder::add_bodies() {
  body_link_.assign(in_.nbody, -1);
  body_pose_.assign(in_.nbody, identity());
  int joint = 0;
  for (int b = 1; b < in_.nbody; ++b) {
    const int parent = in_.body_parentid[b];
    int link = body_link_[parent];
    // the body frame before its joints move, in the frame of the link that carries it
    Pose at = body_pose_[parent] * pose(&in_.body_pos[3 * b], &in_.body_quat[4 * b]);
    if (in_.body_mocapid[b] >= 0) {
      add_mocap(b);
      continue;
    }
    for (; joint < in_.njnt && in_.jnt_bodyid[joint] == b; ++joint) add_joint(joint, link, at);
    body_link_[b] = link;
    body_pose_[b] = at;
    if (link >= 0) out_.dofs_[link].has_inertia = true;
  }
}

// Adds a mocap body, a child of the world without joints, with its own frame.
void ModelBuilder::add_mocap(int b) {
  const std::size_t i = std::size_t(in_.body_mocapid[b]), count = std::max(out_.mocap_pos_.size() / 3, i + 1);
  out_.model_.nmocap = int(count);
  out_.mocap_pos_.resize(3 * count);
  out_.mocap_quat_.resize(4 * count);
  std::copy_n(&in_.body_pos[3 * b], 3, &out_.mocap_pos_[3 * i]);
  std::copy_n(&in_.body_quat[4 * b], 4, &out_.mocap_quat_[4 * i]);
  body_link_[b] = mocap_link(int(i));
}

// Adds a joint on `link`. Afterwards `link` is the link that the joint moves, and `at` is the body frame in it.
void ModelBuilder::add_joint(int j, int& link, Pose& at) {
  Joint joint{};
  joint.type = JointType(in_.jnt_type[j]);
  joint.qpos = in_.jnt_qposadr[j];
  joint.dof = in_.jnt_dofadr[j];
  joint.parent = link;
  joint.limited = in_.jnt_limited[j] != 0;
  joint.reference = in_.qpos0[joint.qpos];
  joint.force_limited = in_.jnt_actfrclimited[j] != 0;
  std::copy_n(&in_.jnt_actfrcrange[2 * j], 2, joint.force_range);
  joint.lifted = in_.jnt_actgravcomp[j] != 0;
  const Vector3<double> anchor = vector3<double>(&in_.jnt_pos[3 * j]);
  const bool along_axis = joint.type == JointType::prismatic || joint.type == JointType::revolute;
  const Matrix3<double> axes =
      along_axis ? frame_with_z(vector3<double>(&in_.jnt_axis[3 * j])) : identity().R;
  const Pose moved = {axes, anchor, quaternion_of(axes)};
  const Pose frame = at * moved;
  store(frame.R, joint.rotation);
  store(frame.p, joint.position);
  store(frame.q, joint.orientation);
  add_dofs(joint);
  if (joint.type == JointType::free) {
    at = identity();
  } else {
    at = {transpose(moved.R), -transpose_times(moved.R, anchor), conjugate(moved.q)};
  }
  link = int(out_.dofs_.size()) - 1;
  out_.joints_.push_back(joint);
}

void ModelBuilder::add_dofs(const Joint& joint) {
  if (joint.parent < 0) {
    const bool floating = joint.type == JointType::free;
    out_.tree_qpos_.push_back(floating ? joint.qpos : -1);
    double origin[3];
    store(at_rest(joint.parent, vector3<double>(joint.position)), origin);
    out_.tree_origin_.insert(out_.tree_origin_.end(), origin, origin + 3);
    ++out_.model_.ntree;
  }
  const int tree = joint.parent < 0 ? out_.model_.ntree - 1 : out_.dofs_[joint.parent].tree,
            first = joint.dof;
  const int parent = moved_link(joint.parent);
  const auto add = [&](int base, int carrier) {
    const int k = int(out_.dofs_.size());
    out_.dofs_.push_back({k == first ? parent : k - 1, base, carrier, tree, false});
    out_.dof_joints_.push_back(int(out_.joints_.size()));
  };
  switch (joint.type) {
    case JointType::free:
      for (int i = 0; i < 3; ++i) add(-1, -1);
      for (int i = 0; i < 3; ++i) add(first + 2, first + 5);
      break;
    case JointType::ball:
      for (int i = 0; i < 3; ++i) add(parent, first + 2);
      break;
    default:
      add(parent, first);
  }
}

// World position of a point in the frame of a link or mocap body, at the poses of the file.
Vector3<double> ModelBuilder::at_rest(int link, const Vector3<double>& p) const {
  if (!is_mocap(link)) return p;
  const Pose at = pose(&out_.mocap_pos_[3 * mocap_index(link)], &out_.mocap_quat_[4 * mocap_index(link)]);
  return at.p + at.R * p;
}

void ModelBuilder::place(int body, const double* local, double* out) const {
  store(body_pose_[body].p + body_pose_[body].R * vector3<double>(local), out);
}

void ModelBuilder::turn(int body, const double* quat, double* out) const {
  const double origin[3] = {0, 0, 0};
  store(body_pose_[body].R * pose(origin, quat).R, out);
}

// Finds the trees with a free joint and no other joint.
void ModelBuilder::find_single_free() {
  std::vector<int> dofs(out_.model_.ntree, 0);
  for (const Dof& dof : out_.dofs_) ++dofs[dof.tree];
  out_.single_free_ = std::make_unique<bool[]>(dofs.size());
  for (std::size_t t = 0; t < dofs.size(); ++t)
    out_.single_free_[t] = out_.tree_qpos_[t] >= 0 && dofs[t] == 6;
}

// Ancestors of both links, leaf to root.
int ModelBuilder::path(int link_a, int link_b) {
  const int below = moved_link(std::max(link_a, link_b)), above = moved_link(std::min(link_a, link_b));
  const auto found = path_of_.find({above, below});
  if (found != path_of_.end()) return found->second;
  out_.paths_.push_back(carries(above, below) ? chain(below) : merged_chains(above, below));
  return path_of_[{above, below}] = int(out_.paths_.size()) - 1;
}

// Whether `above`, the world or a link, is an ancestor of `below`.
bool ModelBuilder::carries(int above, int below) const {
  while (below > above) below = out_.dofs_[below].parent;
  return below == above;
}

// A link and its ancestors. It is the end of the list of a leaf below it, so a long chain is listed once.
Path ModelBuilder::chain(int link) {
  if (link < 0) return {0, 0};
  if (chain_of_.empty()) list_chains();
  return chain_of_[link];
}

void ModelBuilder::list_chains() {
  chain_of_.assign(in_.nv, {-1, 0});
  for (int leaf = in_.nv - 1; leaf >= 0; --leaf) {
    if (chain_of_[leaf].count > 0) continue;
    const int first = int(out_.path_dofs_.size());
    for (int k = leaf; k >= 0; k = out_.dofs_[k].parent) out_.path_dofs_.push_back(k);
    const int end = int(out_.path_dofs_.size());
    for (int i = first; i < end; ++i) {
      Path& suffix = chain_of_[out_.path_dofs_[i]];
      if (suffix.count == 0) suffix = {i, end - i};
    }
  }
}

Path ModelBuilder::merged_chains(int link_a, int link_b) {
  const int first = int(out_.path_dofs_.size());
  for (int a = link_a, b = link_b; a >= 0 || b >= 0;) {
    const int k = std::max(a, b);
    out_.path_dofs_.push_back(k);
    if (a == k) a = out_.dofs_[k].parent;
    if (b == k) b = out_.dofs_[k].parent;
  }
  return {first, int(out_.path_dofs_.size()) - first};
}

// mujoco: the degrees of freedom that move only one of the links; those that move both leave the constraint as it is.
int ModelBuilder::support(int link_a, int link_b) {
  link_a = moved_link(link_a);
  link_b = moved_link(link_b);
  const auto found = support_of_.find({link_a, link_b});
  if (found != support_of_.end()) return found->second;
  std::vector<std::pair<int, int>> dofs;
  // leaf to root, until the chains meet
  for (int a = link_a, b = link_b; a != b;) {
    const int side = b > a, k = std::max(a, b);
    dofs.push_back({k, side});
    (side ? b : a) = out_.dofs_[k].parent;
  }
  return support_of_[{link_a, link_b}] = add_support(std::move(dofs));
}

// mujoco: the degrees of freedom that move either link. Two points that should coincide but do not, move against each other
// when both turn with the same joint.
int ModelBuilder::whole_support(int link_a, int link_b) {
  std::vector<std::pair<int, int>> dofs;
  for (int a = link_a, b = link_b; link_a != link_b && (a >= 0 || b >= 0);) {
    const int k = std::max(a, b);
    const bool of_a = a == k, of_b = b == k;
    dofs.push_back({k, of_a && of_b ? both_sides : int(of_b)});
    if (of_a) a = out_.dofs_[k].parent;
    if (of_b) b = out_.dofs_[k].parent;
  }
  return add_support(std::move(dofs));
}

// Returns the support of the degrees of freedom that move some of the links, but not all.
int ModelBuilder::support_of_links(const std::vector<int>& links) {
  std::map<int, std::size_t> movers;
  for (int link : links)
    for (int k = link; k >= 0; k = out_.dofs_[k].parent) ++movers[k];
  std::vector<std::pair<int, int>> dofs;
  for (const auto& [k, count] : movers)
    if (count < links.size()) dofs.push_back({k, 0});
  return add_support(std::move(dofs));
}

int ModelBuilder::support_of_all() {
  std::vector<std::pair<int, int>> dofs;
  for (int k = 0; k < in_.nv; ++k) dofs.push_back({k, 0});
  return add_support(std::move(dofs));
}

// Adds degrees of freedom, each with its side.
int ModelBuilder::add_support(std::vector<std::pair<int, int>> dofs) {
  std::sort(dofs.rbegin(), dofs.rend());
  Support support = {int(out_.support_dofs_.size()), int(dofs.size()), true, nullptr, nullptr};
  int k = dofs.empty() ? -1 : dofs[0].first;
  for (const auto& [dof, side] : dofs) {
    out_.support_dofs_.push_back(dof);
    out_.support_sides_.push_back(side);
    while (k > dof) k = out_.dofs_[k].parent;
    support.chain = support.chain && k == dof;
  }
  out_.supports_.push_back(support);
  return int(out_.supports_.size()) - 1;
}

void ModelBuilder::add_dof_supports() {
  int entries = 0;
  for (int k = 0; k < in_.nv; ++k) {
    add_support({{k, 0}});
    out_.mass_rows_.push_back(entries);
    for (int j = k; j >= 0; j = out_.dofs_[j].parent) ++entries;
    out_.dof_softness_.push_back(soft() ? softness(in_.dof_solref, in_.dof_solimp, k) : Softness{});
    out_.dof_weight_.push_back(soft() ? in_.dof_invweight0[k] : 0.0);
  }
  out_.mass_rows_.push_back(entries);
}

}  // namespace revolute
