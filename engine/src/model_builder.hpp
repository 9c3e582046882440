// Translates a compiled MuJoCo model into the engine's links, shapes, contact candidates and paths. Each group of functions is
// defined in the file that its comment names.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pose.hpp"
#include "revolute/model/model_storage.hpp"
#include "revolute/stages/pair_softness.hpp"

namespace revolute {

class ModelBuilder {
 public:
  ModelBuilder(const MujocoArrays& in, ModelStorage& out) : in_(in), out_(out) {}
  void build();

 private:
  const MujocoArrays& in_;
  ModelStorage& out_;
  std::vector<int> body_link_;
  std::vector<Pose> body_pose_;  // in the link's frame
  std::map<std::pair<int, int>, int> path_of_, support_of_;
  std::vector<Path> chain_of_;  // of each degree of freedom, once listed

  bool soft() const { return in_.contact_model == ContactModel::mujoco; }

  // model_storage.cpp
  void add_options();
  void add_parameters();
  void point_model();

  // model_sizes.cpp
  void check_sizes() const;

  // model_tree.cpp
  void add_bodies();
  void add_mocap(int b);
  void add_joint(int j, int& link, Pose& at);
  void add_dofs(const Joint& joint);
  Vector3<double> at_rest(int link, const Vector3<double>& p) const;
  void place(int body, const double* local, double* out) const;
  void turn(int body, const double* quat, double* out) const;
  void find_single_free();
  int path(int link_a, int link_b);
  bool carries(int above, int below) const;
  Path chain(int link);
  void list_chains();
  Path merged_chains(int link_a, int link_b);
  int support(int link_a, int link_b);
  int whole_support(int link_a, int link_b);
  int support_of_links(const std::vector<int>& links);
  int support_of_all();
  int add_support(std::vector<std::pair<int, int>> dofs);
  void add_dof_supports();

  // model_drives.cpp
  void add_transmission(Transmission transmission);
  void add_tendons();
  Tendon tendon(std::size_t t) const;
  void add_tendon_joints(std::size_t t, Transmission& out);
  void add_path(std::size_t t, Transmission& out);
  void add_path_wraps();
  void add_other_transmission(int row, int actuator);
  static Muscle muscle(const double* prm, const double* lengths);
  void add_activation(int a, Actuator& out) const;
  void add_actuators();
  void add_link_forces();
  bool add_medium_ellipsoids(int body);

  // model_shapes.cpp
  void add_height_fields();
  static int field_points(const HeightField& field, const Geom& geom);
  void add_geoms();
  void add_sites();

  // model_pairs.cpp
  PairMixing mixing(std::size_t i);
  double body_weight(int a, int b, int part) const;
  void add_candidates();
  void add_pair(Candidate candidate);
  void add_slots(Candidate candidate);
  bool add_mujoco_pair(Candidate candidate);
  void add_plane_points(Candidate candidate, const Geom& shape);
  void add_filters();
  void point_filters(Model& m) const;

  // model_constraints.cpp
  static Softness softness(const Doubles& solref, const Doubles& solimp, std::size_t i);
  void add_dof_constraints();
  void add_equalities();
  void soften(std::size_t i, Equality& equality);
  void add_tendon_equality(int a, int b, const double* data, Equality& out) const;
  int support_of_tendons(int a, int b);
  void add_joint_equality(int a, int b, const double* data, Equality& out);
  void add_body_equality(int a, int b, const double* data, Equality& out);
};

}  // namespace revolute
