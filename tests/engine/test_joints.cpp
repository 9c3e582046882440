// Joints: where each type places its link, its axes, its integration and its spring, with their adjoints.
#include <algorithm>

#include "dense.hpp"
#include "models.hpp"
#include "packing.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

constexpr JointType types[] = {JointType::free, JointType::ball, JointType::prismatic, JointType::revolute};
int dofs(JointType type) { return type == JointType::free ? 6 : type == JointType::ball ? 3 : 1; }
int positions(JointType type) { return type == JointType::free ? 7 : type == JointType::ball ? 4 : 1; }

Quaternion<double> random_quaternion(Random& random) {
  return normalized(Quaternion<double>{random.normal(), random.normal(), random.normal(), random.normal()});
}
Joint random_joint(JointType type, Random& random) {
  Joint joint{};
  joint.type = type;
  joint.parent = -1;
  std::copy_n(rotation_matrix(random_quaternion(random)).m, 9, joint.rotation);
  for (double& entry : joint.position) entry = random.normal();
  joint.reference = random.normal();
  return joint;
}
// unit quaternions; those of the state may have any length
Doubles random_state(JointType type, Random& random, double length = 1.0) {
  Doubles out = random.normals(positions(type));
  if (type > JointType::ball) return out;
  const Quaternion<double> q = random_quaternion(random);
  std::copy_n(&q.w, 4, out.begin() + linear_coordinates(type));
  for (int i = 0; i < 4; ++i) out[linear_coordinates(type) + i] *= length;
  return out;
}

// qpos moved by a tangent
template <class Real>
void move(JointType type, const Doubles& qpos, const Real* tangent, Real* out) {
  const int n = linear_coordinates(type);
  for (int i = 0; i < n; ++i) out[i] = Real(qpos[i]) + tangent[i];
  if (type > JointType::ball) return;
  const Quaternion<Real> q = {Real(qpos[n]), Real(qpos[n + 1]), Real(qpos[n + 2]), Real(qpos[n + 3])};
  const Quaternion<Real> turned = normalized(q) * exponential(load3(tangent + n));
  std::copy_n(&turned.w, 4, out + n);
}
// the tangent that moves `from` to `to`
template <class Real>
void difference(JointType type, const Doubles& from, const Real* to, Real* out) {
  const int n = linear_coordinates(type);
  for (int i = 0; i < n; ++i) out[i] = to[i] - Real(from[i]);
  if (type > JointType::ball) return;
  const Quaternion<Real> q = {Real(from[n]), Real(from[n + 1]), Real(from[n + 2]), Real(from[n + 3])};
  const Vector3<Real> d = logarithm(conjugate(q) * load_quaternion(to + n));
  out[n] = d.x;
  out[n + 1] = d.y;
  out[n + 2] = d.z;
}

struct Placed {
  Placement<double> links[6];
  Motion<double> S[6];
  const Placement<double>& link(JointType type) const { return links[dofs(type) - 1]; }
};
Placed place(const Joint& joint, const Placement<double>& base, const Doubles& qpos) {
  Placed out;
  switch (joint.type) {
    case JointType::free:
      FreeJoint::place(joint, qpos.data(), out.links, out.S);
      break;
    case JointType::ball:
      BallJoint::place(joint, base, qpos.data(), out.links, out.S);
      break;
    case JointType::prismatic:
      PrismaticJoint::place(joint, base, qpos.data(), out.links, out.S);
      break;
    case JointType::revolute:
      RevoluteJoint::place(joint, base, qpos.data(), out.links, out.S);
  }
  return out;
}

// --- placement ---------------------------------------------------------------------------------------------

void placements() {
  Random random(30);
  for (JointType type : types) {
    for (int trial = 0; trial < 10; ++trial) {
      const Joint joint = random_joint(type, random);
      const Placement<double> base = {rotation_matrix(random_quaternion(random)),
                                      {random.normal(), random.normal(), random.normal()}};
      const Doubles qpos = random_state(type, random, 1.7);
      const Placed placed = place(joint, base, qpos);
      const Dense E = dense(base.R) * dense(matrix3<double>(joint.rotation));
      const Point anchor = base.p + base.R * vector3<double>(joint.position);
      Dense R = E;
      Point p = anchor;
      switch (type) {
        case JointType::free:
          R = dense(rotation_matrix(load_quaternion(&qpos[3])));
          p = {0, 0, 0};  // its origin is the reference point
          break;
        case JointType::ball:
          R = E * dense(rotation_matrix(load_quaternion(&qpos[0])));
          break;
        case JointType::prismatic:
          p += (qpos[0] - joint.reference) * Point{E(0, 2), E(1, 2), E(2, 2)};
          break;
        case JointType::revolute:
          R = E * matrix_exponential(cross_matrix({0, 0, qpos[0] - joint.reference}));
      }
      CHECK_CLOSE(numbers(placed.link(type).R), R.entries, rounding);
      CHECK_CLOSE(numbers(placed.link(type).p), numbers(p), rounding);
    }
  }
}

// S_i is the twist with which the link moves when the i-th tangent does.
void axes_are_derivatives_of_placements() {
  Random random(31);
  const double t = 1e-3;
  for (JointType type : types) {
    const Joint joint = random_joint(type, random);
    const Placement<double> base = {rotation_matrix(random_quaternion(random)),
                                    {random.normal(), random.normal(), random.normal()}};
    const Doubles qpos = random_state(type, random);
    const Placed placed = place(joint, base, qpos);
    for (int i = 0; i < dofs(type); ++i) {
      // rotation and origin, in world axes
      const auto pose = [&](double s) {
        Doubles tangent(dofs(type), 0.0), moved(qpos.size());
        tangent[i] = s * t;
        move(type, qpos, tangent.data(), moved.data());
        const Placed at = place(joint, base, moved);
        Doubles out = numbers(at.link(type).R), p = numbers(at.link(type).p);
        for (int j = 0; j < 3; ++j)
          out.push_back(p[j] + (type == JointType::free ? moved[j] - qpos[j] : 0.0));
        return column(out);
      };
      const Doubles rate =
          ((1 / (12 * t)) * (8.0 * (pose(1) + -1.0 * pose(-1)) + -1.0 * (pose(2) + -1.0 * pose(-2)))).entries;
      const Point w = placed.S[i].w, v = placed.S[i].v + cross(w, placed.link(type).p);
      const Doubles turning = (cross_matrix(w) * dense(placed.link(type).R)).entries;
      CHECK_CLOSE(Doubles(rate.begin(), rate.begin() + 9), turning, smooth);
      CHECK_CLOSE(Doubles(rate.begin() + 9, rate.end()), numbers(v), smooth);
    }
  }
}

// --- integration -------------------------------------------------------------------------------------------

template <class Real>
void integrate(const Joint& joint, Real h, const Real* qpos, const Real* qvel, Real* next) {
  switch (joint.type) {
    case JointType::free:
      return FreeJoint::integrate(joint, h, qpos, qvel, next);
    case JointType::ball:
      return BallJoint::integrate(joint, h, qpos, qvel, next);
    case JointType::prismatic:
      return PrismaticJoint::integrate(joint, h, qpos, qvel, next);
    case JointType::revolute:
      return RevoluteJoint::integrate(joint, h, qpos, qvel, next);
  }
}

// A turning velocity that stays constant in the moving frame for a time h turns by exp(h [w]x).
void integration_is_exact_for_constant_velocity() {
  Random random(32);
  const double h = 0.3;
  for (JointType type : types) {
    for (double speed : {1e-9, 1.0, 9.0}) {
      const Joint joint = random_joint(type, random);
      const Doubles qpos = random_state(type, random, 0.4);
      Doubles qvel = random.normals(dofs(type)), next(qpos.size());
      for (double& v : qvel) v *= speed;
      integrate(joint, h, qpos.data(), qvel.data(), next.data());
      const int n = linear_coordinates(type);
      for (int i = 0; i < n; ++i) CHECK_CLOSE(next[i], qpos[i] + h * qvel[i], rounding);
      if (type > JointType::ball) continue;
      const Dense turn = matrix_exponential(h * cross_matrix(load3(&qvel[n])));
      const Dense wanted = dense(rotation_matrix(load_quaternion(&qpos[n]))) * turn;
      CHECK_CLOSE(numbers(rotation_matrix(load_quaternion(&next[n]))), wanted.entries, rounding);
      CHECK_CLOSE(next[n] * next[n] + next[n + 1] * next[n + 1] + next[n + 2] * next[n + 2] +
                      next[n + 3] * next[n + 3],
                  1.0, rounding);
    }
  }
}

// in: tangent of qpos, qvel. out: tangent of the next position at `next`.
struct Integration {
  Joint joint;
  double h;
  Doubles qpos, next;

  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Real moved[7], reached[7], tangent[6];
    move(joint.type, qpos, in, moved);
    integrate(joint, Real(h), moved, in + dofs(joint.type), reached);
    difference(joint.type, next, reached, tangent);
    for (int i = 0; i < dofs(joint.type); ++i) out[i] += tangent[i];
  }
};
struct IntegrationAdjoint {
  const Integration& of;

  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Joint& joint = of.joint;
    const int n = dofs(joint.type);
    const Real h(of.h);
    switch (joint.type) {
      case JointType::free:
        return FreeJoint::integrate_adjoint(joint, h, in + n, out_bar, in_bar, in_bar + n);
      case JointType::ball:
        return BallJoint::integrate_adjoint(joint, h, in + n, out_bar, in_bar, in_bar + n);
      case JointType::prismatic:
        return PrismaticJoint::integrate_adjoint(joint, h, in + n, out_bar, in_bar, in_bar + n);
      case JointType::revolute:
        return RevoluteJoint::integrate_adjoint(joint, h, in + n, out_bar, in_bar, in_bar + n);
    }
  }
};

void integration_adjoints() {
  Random random(33);
  for (JointType type : types) {
    const int n = dofs(type);
    for (double h : {0.01, 0.9}) {
      Integration function{random_joint(type, random), h, random_state(type, random),
                           Doubles(positions(type))};
      Doubles in(2 * n, 0.0);
      for (int i = 0; i < n; ++i) in[n + i] = random.normal();
      integrate(function.joint, h, function.qpos.data(), in.data() + n, function.next.data());
      const IntegrationAdjoint adjoint{function};
      check_adjoint("integrate", random, in, n, function, adjoint, smooth, {{"qpos", 0, n}, {"qvel", n, n}});
      const std::vector<Doubles> environments = environments_around(random, in, 0.5);
      check_lanes("integrate", environments, n, function);
      check_adjoint_lanes("integrate", random, environments, n, adjoint);
    }
  }
}

// --- springs -----------------------------------------------------------------------------------------------

// in: tangent of qpos, stiffness, rest position. out: generalized force.
struct Spring {
  Joint joint;
  Doubles qpos;

  template <class Real>
  void operator()(const Real* in, Real* out) const {
    Real moved[7];
    move(joint.type, qpos, in, moved);
    const Real stiffness = in[dofs(joint.type)];
    const Real* const rest = in + dofs(joint.type) + 1;
    if (joint.type == JointType::ball) return BallJoint::add_spring(joint, stiffness, rest, moved, out);
    RevoluteJoint::add_spring(joint, stiffness, rest, moved, out);
  }
};
struct SpringAdjoint {
  const Spring& of;

  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Joint& joint = of.joint;
    Real moved[7];
    move(joint.type, of.qpos, in, moved);
    const int n = dofs(joint.type);
    if (joint.type == JointType::ball)
      return BallJoint::add_spring_adjoint(joint, in[n], in + n + 1, moved, out_bar, in_bar, in_bar[n],
                                           in_bar + n + 1);
    RevoluteJoint::add_spring_adjoint(joint, in[n], in + n + 1, moved, out_bar, in_bar, in_bar[n],
                                      in_bar + n + 1);
  }
};

// stiffness / 2 times the square of the angle or length from the rest position
struct SpringEnergy {
  const Spring& of;
  void operator()(const double* in, double* out) const {
    const Joint& joint = of.joint;
    double moved[7];
    move(joint.type, of.qpos, in, moved);
    const double* const at_rest = in + dofs(joint.type) + 1;
    double length = moved[0] - at_rest[0];
    if (joint.type == JointType::ball) {
      const Quaternion<double> rest = load_quaternion(at_rest), q = load_quaternion(moved);
      length = 2 * std::acos(std::fabs(rest.w * q.w + rest.x * q.x + rest.y * q.y + rest.z * q.z));
    }
    out[0] = 0.5 * in[dofs(joint.type)] * length * length;
  }
};

void springs() {
  Random random(34);
  for (JointType type : {JointType::ball, JointType::prismatic, JointType::revolute}) {
    const int n = dofs(type);
    for (int trial = 0; trial < 4; ++trial) {
      const Spring function{random_joint(type, random), random_state(type, random)};
      Doubles in(n + 1, 0.0);
      in[n] = 3.5;
      const Doubles rest = random_state(type, random, 1.3);
      in.insert(in.end(), rest.begin(), rest.end());
      // force = -dE/dq
      const Doubles force = value(function, in, n);
      for (int i = 0; i < n; ++i) {
        Doubles direction(in.size(), 0.0);
        direction[i] = 1;
        CHECK_CLOSE(-force[i], differences(SpringEnergy{function}, in, direction, 1e-3, 1)[0], smooth);
      }
      const SpringAdjoint adjoint{function};
      check_adjoint("spring", random, in, n, function, adjoint, smooth,
                    {{"qpos", 0, n}, {"stiffness", n, 1}, {"rest", n + 1, positions(type)}});
      const std::vector<Doubles> environments = environments_around(random, in, 0.5);
      check_lanes("spring", environments, n, function);
      check_adjoint_lanes("spring", random, environments, n, adjoint);
    }
  }
}

void springs_are_finite_at_rest() {
  Random random(35);
  for (JointType type : {JointType::ball, JointType::revolute}) {
    const Spring function{random_joint(type, random), random_state(type, random)};
    Doubles in(dofs(type) + 1, 0.0);
    in.back() = 2.0;
    in.insert(in.end(), function.qpos.begin(), function.qpos.end());
    Doubles in_bar(in.size(), 0.0);
    CHECK_CLOSE(value(function, in, dofs(type)), Doubles(dofs(type), 0.0), rounding);
    const Doubles out_bar = random.normals(dofs(type));
    SpringAdjoint{function}(in.data(), out_bar.data(), in_bar.data());
    for (int i = 0; i < dofs(type); ++i) CHECK_CLOSE(in_bar[i], -2.0 * out_bar[i], rounding);
  }
}

}  // namespace

int main() {
  return run({{"placements", placements},
              {"axes", axes_are_derivatives_of_placements},
              {"integration", integration_is_exact_for_constant_velocity},
              {"adjoints of integration", integration_adjoints},
              {"springs and their adjoints", springs},
              {"springs at rest", springs_are_finite_at_rest}});
}
