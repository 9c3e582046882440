// Builds MuJoCo's arrays for small models, as the loader would give them.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "check.hpp"
#include "revolute/model/model_storage.hpp"
#include "revolute/spatial/quaternion.hpp"

namespace revolute::check {

using Point = Vector3<double>;

constexpr int plane_geom = 0, sphere_geom = 2, capsule_geom = 3, ellipsoid_geom = 4, cylinder_geom = 5,
              box_geom = 6, mesh_geom = 7;  // MuJoCo's numbers

// Appends bodies, joints, shapes in MuJoCo's order: depth first, a body's joints directly after it.
class ModelMaker {
 public:
  MujocoArrays arrays;

  ModelMaker() {
    arrays.timestep = 0.01;
    arrays.iterations = 30;
    arrays.erp = 0.2;
    arrays.margin = 0.01;
    arrays.gravity = {0, 0, -9.81};
    arrays.restitution = {0};
    add_body(-1, {0, 0, 0}, {0, 0, 0}, 0);
  }

  // A body with a mass centre off its origin and turned axes of inertia; `turn` is a rotation vector.
  int add_body(int parent, Point position, Point turn, double mass) {
    MujocoArrays& a = arrays;
    a.body_parentid.push_back(std::max(parent, 0));
    a.body_mocapid.push_back(-1);
    append(a.body_pos, position);
    append(a.body_quat, exponential(turn));
    append(a.body_ipos, Point{0.03, -0.02, 0.04});
    append(a.body_iquat, exponential(Point{0.3, -0.4, 0.2}));
    a.body_mass.push_back(mass);
    append(a.body_inertia, mass * Point{0.02, 0.03, 0.04});
    a.body_gravcomp.push_back(0);
    return a.nbody++;
  }
  void centre_mass(int body, Point inertia) {
    for (int i = 0; i < 3; ++i) arrays.body_ipos[3 * body + i] = 0;
    set(arrays.body_inertia, body, inertia);
  }

  // A joint on the body that was added last.
  int add_joint(JointType type, Point anchor, Point axis) {
    MujocoArrays& a = arrays;
    const int body = a.nbody - 1;
    a.jnt_type.push_back(int(type));
    a.jnt_bodyid.push_back(body);
    a.jnt_qposadr.push_back(a.nq);
    a.jnt_dofadr.push_back(a.nv);
    append(a.jnt_pos, anchor);
    append(a.jnt_axis, axis);
    a.jnt_stiffness.push_back(0);
    a.jnt_limited.push_back(0);
    a.jnt_actfrclimited.push_back(0);
    a.jnt_actgravcomp.push_back(0);
    a.jnt_actfrcrange.insert(a.jnt_actfrcrange.end(), {0, 0});
    a.jnt_range.insert(a.jnt_range.end(), {0, 0});
    if (type == JointType::free)
      append(a.qpos0, Point{a.body_pos[3 * body], a.body_pos[3 * body + 1], a.body_pos[3 * body + 2]});
    if (type == JointType::free || type == JointType::ball) {
      append(a.qpos0, Quaternion<double>{1, 0, 0, 0});
    } else {
      a.qpos0.push_back(0);
    }
    a.nq = int(a.qpos0.size());
    a.nv += type == JointType::free ? 6 : type == JointType::ball ? 3 : 1;
    a.qpos_spring.resize(a.nq);
    std::copy(a.qpos0.begin() + a.jnt_qposadr.back(), a.qpos0.end(),
              a.qpos_spring.begin() + a.jnt_qposadr.back());
    for (Doubles* array : {&a.dof_armature, &a.dof_damping, &a.dof_frictionloss}) array->resize(a.nv, 0.0);
    return a.njnt++;
  }
  int dof(int joint) const { return arrays.jnt_dofadr[joint]; }
  void limit(int joint, double lower, double upper) {
    arrays.jnt_limited[joint] = 1;
    arrays.jnt_range[2 * joint] = lower;
    arrays.jnt_range[2 * joint + 1] = upper;
  }
  // Distinct, non-zero values of all that acts along single degrees of freedom; free joints stay free.
  void add_joint_dynamics() {
    for (int j = 0; j < arrays.njnt; ++j) {
      if (arrays.jnt_type[j] == int(JointType::free)) continue;
      arrays.jnt_stiffness[j] = 2 + j;
      const int last = j + 1 < arrays.njnt ? arrays.jnt_dofadr[j + 1] : arrays.nv;
      for (int k = arrays.jnt_dofadr[j]; k < last; ++k) {
        arrays.dof_armature[k] = 0.01 + 0.002 * k;
        arrays.dof_damping[k] = 0.1 + 0.03 * k;
      }
    }
  }

  int add_geom(int body, int type, Point size, Point position = {0, 0, 0}, Point turn = {0, 0, 0},
               double friction = 0.5) {
    MujocoArrays& a = arrays;
    a.geom_type.push_back(type);
    a.geom_bodyid.push_back(body);
    append(a.geom_pos, position);
    append(a.geom_quat, exponential(turn));
    append(a.geom_size, size);
    append(a.geom_friction, Point{friction, 0.02, 0.003});
    a.geom_rbound.push_back(std::sqrt(dot(size, size)));
    a.geom_field.push_back(-1);
    a.geom_fluid.insert(a.geom_fluid.end(), 12, 0.0);
    append(a.geom_semiaxes, size);
    a.hull_adr.push_back(int(a.hull_vert.size() / 3));
    a.hull_num.push_back(0);
    a.hull_polyadr.push_back(int(a.hull_polyvertnum.size()));
    a.hull_polynum.push_back(0);
    return a.ngeom++;
  }
  int add_mesh(int body, const std::vector<Point>& vertices, Point position, Point turn,
               double friction = 0.5) {
    const int geom = add_geom(body, mesh_geom, {0, 0, 0}, position, turn, friction);
    for (const Point& vertex : vertices) {
      append(arrays.hull_vert, vertex);
      arrays.geom_rbound[geom] = std::max(arrays.geom_rbound[geom], std::sqrt(dot(vertex, vertex)));
    }
    arrays.hull_num[geom] = int(vertices.size());
    return geom;
  }
  // The faces of the mesh that was added last: corners in order, turning either way.
  void add_faces(const std::vector<std::vector<int>>& faces) {
    for (const auto& face : faces) {
      arrays.hull_polyvertnum.push_back(int(face.size()));
      arrays.hull_polyvert.insert(arrays.hull_polyvert.end(), face.begin(), face.end());
      ++arrays.hull_polynum.back();
    }
  }
  // friction NaN: the larger of the two coefficients
  void add_pair(int geom_a, int geom_b, double friction = std::numeric_limits<double>::quiet_NaN(),
                int from = 0, int condim = 3) {
    arrays.pair_geom1.push_back(geom_a);
    arrays.pair_geom2.push_back(geom_b);
    append(arrays.pair_friction, Point{friction, 0.02, 0.003});
    arrays.pair_margin.push_back(arrays.margin);
    arrays.pair_gap.push_back(0);
    arrays.pair_mu_from.push_back(from);
    arrays.pair_condim.push_back(condim);
  }
  // Turns the finished model into one of MuJoCo's contact model, with MuJoCo's defaults and unit weights.
  void make_soft() {
    MujocoArrays& a = arrays;
    a.contact_model = ContactModel::mujoco;
    const Doubles solref = {0.02, 1}, solimp = {0.9, 0.95, 0.001, 0.5, 2};
    const auto repeat = [](Doubles& array, std::size_t count, const Doubles& row) {
      array.clear();
      for (std::size_t i = 0; i < count; ++i) array.insert(array.end(), row.begin(), row.end());
    };
    const std::size_t nv = a.nv, ng = a.ngeom, np = a.pair_geom1.size(), ne = a.eq_type.size();
    repeat(a.body_invweight0, a.nbody, {1, 1});
    repeat(a.dof_invweight0, nv, {1});
    repeat(a.jnt_margin, a.njnt, {0});
    for (auto [array, count] : {std::pair(&a.jnt_solref, std::size_t(a.njnt)),
                                {&a.dof_solref, nv},
                                {&a.eq_solref, ne},
                                {&a.geom_solref, ng},
                                {&a.pair_solref, np}})
      repeat(*array, count, solref);
    for (auto [array, count] : {std::pair(&a.jnt_solimp, std::size_t(a.njnt)),
                                {&a.dof_solimp, nv},
                                {&a.eq_solimp, ne},
                                {&a.geom_solimp, ng},
                                {&a.pair_solimp, np}})
      repeat(*array, count, solimp);
    for (std::size_t g = 0; g < ng; ++g)
      a.geom_friction[3 * g + 1] = 0.005, a.geom_friction[3 * g + 2] = 0.0001;
    repeat(a.pair_weight, np, {0.5});
    repeat(a.pair_solreffriction, np, {0, 0});
    repeat(a.pair_friction5, np, {1, 1, 0.005, 0.0001, 0.0001});
  }
  // MuJoCo's data: connect, weld: by bodies; joint: polynomial of joint b, which may be -1
  void add_equality(EqualityType type, int a, int b, Doubles data) {
    data.resize(11, 0.0);
    arrays.eq_type.push_back(int(type));
    arrays.eq_obj1.push_back(a);
    arrays.eq_obj2.push_back(b);
    arrays.eq_data.insert(arrays.eq_data.end(), data.begin(), data.end());
  }

  // MuJoCo's affine actuator: force = gain.(1, length, velocity) ctrl + bias.(1, length, velocity)
  int add_actuator(int joint, double gear, Point gain, Point bias) {
    MujocoArrays& a = arrays;
    a.act_dof.push_back(a.jnt_dofadr[joint]);
    a.act_qpos.push_back(a.jnt_qposadr[joint]);
    a.act_gear.push_back(gear);
    append(a.act_gain, gain);
    append(a.act_bias, bias);
    a.act_ctrllimited.push_back(0);
    a.act_forcelimited.push_back(0);
    for (Doubles* range : {&a.act_ctrlrange, &a.act_forcerange, &a.act_actrange, &a.act_lengthrange})
      range->insert(range->end(), {0, 0});
    for (Ints* index : {&a.act_tendon, &a.act_trn}) index->push_back(-1);
    for (Ints* flag :
         {&a.act_dyn, &a.act_adr, &a.act_early, &a.act_actlimited, &a.act_musclegain, &a.act_musclebias})
      flag->push_back(0);
    append(a.act_dynprm, Point{1, 1, 1});
    for (Doubles* prm : {&a.act_musclegainprm, &a.act_musclebiasprm}) prm->resize(prm->size() + 9, 1.0);
    return a.nu++;
  }
  void limit_ctrl(int actuator, double lower, double upper) {
    arrays.act_ctrllimited[actuator] = 1;
    arrays.act_ctrlrange[2 * actuator] = lower;
    arrays.act_ctrlrange[2 * actuator + 1] = upper;
  }
  void limit_force(int actuator, double lower, double upper) {
    arrays.act_forcelimited[actuator] = 1;
    arrays.act_forcerange[2 * actuator] = lower;
    arrays.act_forcerange[2 * actuator + 1] = upper;
  }

 private:
  static void append(Doubles& array, const Point& a) { array.insert(array.end(), {a.x, a.y, a.z}); }
  static void append(Doubles& array, const Quaternion<double>& q) {
    array.insert(array.end(), {q.w, q.x, q.y, q.z});
  }
  static void set(Doubles& array, int row, const Point& a) {
    array[3 * row] = a.x;
    array[3 * row + 1] = a.y;
    array[3 * row + 2] = a.z;
  }
};

// The same model with MuJoCo's soft constraints: softness and inverse weights that differ from element to element.
inline MujocoArrays softened(MujocoArrays a, Cone cone, Integrator integrator) {
  a.contact_model = ContactModel::mujoco;
  a.cone = cone;
  a.integrator = int(integrator);
  a.impratio = 1.7;
  const auto fill = [](Doubles& out, int rows, std::initializer_list<double> row, double growth) {
    for (int i = 0; i < rows; ++i)
      for (double value : row) out.push_back(value * (1 + growth * i));
  };
  fill(a.body_invweight0, a.nbody, {0.8, 3.0}, 0.2);
  fill(a.dof_invweight0, a.nv, {2.0}, 0.1);
  const std::initializer_list<double> solref = {0.03, 0.9}, solimp = {0.7, 0.9, 0.01, 0.4, 2.3};
  fill(a.jnt_solref, a.njnt, solref, 0.02);
  fill(a.dof_solref, a.nv, solref, 0.02);
  fill(a.geom_solref, a.ngeom, solref, 0.02);
  fill(a.eq_solref, int(a.eq_type.size()), solref, 0.02);
  fill(a.jnt_solimp, a.njnt, solimp, 0.001);
  fill(a.dof_solimp, a.nv, solimp, 0.001);
  fill(a.geom_solimp, a.ngeom, solimp, 0.001);
  fill(a.eq_solimp, int(a.eq_type.size()), solimp, 0.001);
  a.jnt_margin.assign(a.njnt, 0.01);
  const std::size_t pairs = a.pair_geom1.size();
  for (std::size_t i = 0; i < pairs; ++i) {
    const bool own = !std::isnan(a.pair_friction[3 * i]);
    a.pair_weight.push_back(own ? std::numeric_limits<double>::quiet_NaN() : 0.3 + 0.1 * double(i % 4));
    for (double value : {0.025, 1.1}) a.pair_solref.push_back(value);
    for (double value : {0.04, 0.8}) a.pair_solreffriction.push_back(value);
    a.pair_solimp.insert(a.pair_solimp.end(), solimp);
    for (double value : {0.7, 0.5, 0.02, 0.003, 0.004}) a.pair_friction5.push_back(value);
  }
  return a;
}

}  // namespace revolute::check
