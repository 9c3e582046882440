// Limits, dry friction and equality constraints.
#include <algorithm>

#include "model_builder.hpp"

namespace revolute {

Softness ModelBuilder::softness(const Doubles& solref, const Doubles& solimp, std::size_t i) {
  Softness out;
  std::copy_n(&solref[2 * i], 2, out.solref);
  std::copy_n(&solimp[5 * i], 5, out.solimp);
  return out;
}

void ModelBuilder::add_dof_constraints() {
  for (int k = 0; k < in_.nv; ++k) out_.dof_paths_.push_back(path(k, -1));
  for (std::size_t j = 0; j < out_.joints_.size(); ++j) {
    const Joint& joint = out_.joints_[j];
    if (!joint.limited) continue;
    const bool ball = joint.type == JointType::ball;
    const int last = ball ? joint.dof + 2 : joint.dof;
    Limit limit{};
    limit.ball = ball;
    limit.dof = joint.dof;
    limit.qpos = joint.qpos;
    limit.path = path(last, -1);
    limit.support = joint.dof;
    if (ball && soft()) limit.support = add_support({{last, 0}, {last - 1, 0}, {last - 2, 0}});
    if (soft()) {
      limit.margin = in_.jnt_margin[j];
      limit.weight = in_.dof_invweight0[joint.dof];
      limit.softness = softness(in_.jnt_solref, in_.jnt_solimp, j);
    }
    for (int side = ball ? 1 : 0; side < 2; ++side) {
      limit.sign = side == 0 ? 1.0 : -1.0;
      limit.bound = int(2 * j) + side;
      out_.limits_.push_back(limit);
    }
  }
}

void ModelBuilder::add_equalities() {
  for (std::size_t i = 0; i < in_.eq_type.size(); ++i) {
    const double* data = &in_.eq_data[11 * i];
    Equality equality{};
    equality.type = EqualityType(in_.eq_type[i]);
    equality.link_a = equality.link_b = equality.dof_a = equality.dof_b = -1;
    equality.tendon_a = equality.tendon_b = -1;
    if (equality.type == EqualityType::tendon) {
      add_tendon_equality(in_.eq_obj1[i], in_.eq_obj2[i], data, equality);
    } else if (equality.type == EqualityType::joint) {
      add_joint_equality(in_.eq_obj1[i], in_.eq_obj2[i], data, equality);
    } else {
      add_body_equality(in_.eq_obj1[i], in_.eq_obj2[i], data, equality);
    }
    if (soft()) soften(i, equality);
    out_.equalities_.push_back(equality);
  }
}

void ModelBuilder::soften(std::size_t i, Equality& equality) {
  const int a = in_.eq_obj1[i], b = in_.eq_obj2[i];
  equality.softness = softness(in_.eq_solref, in_.eq_solimp, i);
  equality.torque_scale = in_.eq_data[11 * i + 10];
  if (equality.type == EqualityType::tendon) {
    equality.weight[0] = in_.ten_invweight0[a] + (b >= 0 ? in_.ten_invweight0[b] : 0.0);
    equality.support = support_of_tendons(a, b);
    return;
  }
  if (equality.type == EqualityType::joint) {
    equality.weight[0] = in_.dof_invweight0[equality.dof_a];
    std::vector<std::pair<int, int>> dofs = {{equality.dof_a, 0}};
    if (b >= 0) {
      equality.weight[0] += in_.dof_invweight0[equality.dof_b];
      dofs.push_back({equality.dof_b, 1});
    }
    equality.support = add_support(std::move(dofs));
    return;
  }
  for (int part : {0, 1}) equality.weight[part] = body_weight(a, b, part);
  equality.support = whole_support(equality.link_a, equality.link_b);
}

// MuJoCo's data are the polynomial of the second tendon's length beyond its length at qpos0.
void ModelBuilder::add_tendon_equality(int a, int b, const double* data, Equality& out) const {
  std::copy_n(data, 5, out.polynomial);
  out.tendon_a = a;
  out.tendon_b = b;
  out.reference_a = in_.ten_length0[a];
  if (b >= 0) out.reference_b = in_.ten_length0[b];
}

int ModelBuilder::support_of_tendons(int a, int b) {
  std::map<int, int> dofs;
  for (int t : {a, b}) {
    if (t < 0) continue;
    const Support& support = out_.supports_[out_.transmissions_[t].support];
    for (int i = 0; i < support.count; ++i) dofs[out_.support_dofs_[support.first + i]] = 0;
  }
  return add_support({dofs.begin(), dofs.end()});
}

// MuJoCo's data are the polynomial of the second joint's displacement from its qpos0.
void ModelBuilder::add_joint_equality(int a, int b, const double* data, Equality& out) {
  std::copy_n(data, 5, out.polynomial);
  const auto set = [&](int joint, int& dof, int& qpos, double& reference) {
    if (joint < 0) return;
    dof = in_.jnt_dofadr[joint];
    qpos = in_.jnt_qposadr[joint];
    reference = in_.qpos0[qpos];
  };
  set(a, out.dof_a, out.qpos_a, out.reference_a);
  set(b, out.dof_b, out.qpos_b, out.reference_b);
  out.path = path(out.dof_a, out.dof_b);
}

// MuJoCo's data. connect: anchor in body 1, anchor in body 2. weld: anchor in body 2, the same in body 1, orientation of
// body 2 in body 1.
void ModelBuilder::add_body_equality(int a, int b, const double* data, Equality& out) {
  const bool weld = out.type == EqualityType::weld;
  const Pose relative = weld ? pose(data + 3, data + 6) : identity();
  const Vector3<double> in_a = vector3<double>(weld ? data + 3 : data),
                        in_b = vector3<double>(weld ? data : data + 3);
  out.link_a = body_link_[a];
  out.link_b = body_link_[b];
  out.body_a = a;
  out.body_b = b;
  store(body_pose_[a].p + body_pose_[a].R * in_a, out.anchor_a);
  store(body_pose_[b].p + body_pose_[b].R * in_b, out.anchor_b);
  store(body_pose_[a].R * relative.R, out.rotation_a);
  store(body_pose_[b].R, out.rotation_b);
  out.path = path(out.link_a, out.link_b);
}

}  // namespace revolute
