// Owns the arrays that a Model points to, and the map of its parameters.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "revolute/model/mujoco_arrays.hpp"
#include "revolute/model/near_pairs.hpp"
#include "revolute/model/parameter_map.hpp"

namespace revolute {

// The hulls of all shapes. A Geom holds its ranges of these arrays.
struct Hulls {
  std::vector<double> vertices;  // [vertex, 3] in their link frames
  std::vector<HullFace> faces;
  std::vector<HullEdge> edges;
  std::vector<int> corners;
  std::vector<int> vertex_faces, vertex_faces_begin = {0};
  std::vector<HullNode> nodes;
  std::vector<int> items;
  std::vector<SupportCell> cells;
  std::vector<CellMember> cell_members;
};

class ModelStorage {
 public:
  // Throws std::invalid_argument, naming the array, when sizes do not fit together.
  explicit ModelStorage(const MujocoArrays& arrays);
  ModelStorage(const ModelStorage&) = delete;
  ModelStorage& operator=(const ModelStorage&) = delete;

  const Model& model() const { return model_; }
  // The same model, but with dry friction switched off if no degree of freedom has any: for calls that give none either. It
  // has no room for friction rows; memory for rows grows with the square of their number.
  const Model& model_as_loaded() const { return model_as_loaded_; }
  const ParameterMap& parameters() const { return map_; }
  int parameter_size(Parameter p) const { return int(map_.defaults[int(p)].size()); }
  // Memory of all arrays together.
  std::size_t bytes() const;

 private:
  friend class ModelBuilder;
  Model model_{}, model_as_loaded_{};
  ParameterMap map_;
  std::vector<Joint> joints_;
  std::vector<Dof> dofs_;
  Doubles mocap_pos_, mocap_quat_;
  std::vector<int> dof_joints_;
  std::vector<Actuator> actuators_;
  std::vector<Tendon> tendons_;
  std::vector<Transmission> transmissions_;
  std::vector<TendonJoint> tendon_joints_;
  std::vector<PathSegment> path_segments_;
  std::vector<PathWrap> path_wraps_;
  std::vector<MediumBody> medium_bodies_;
  std::vector<MediumEllipsoid> medium_ellipsoids_;
  std::vector<Geom> geoms_;
  std::vector<FixedFrame> sites_;
  Hulls hulls_;
  std::vector<HeightField> height_fields_;
  std::vector<double> heights_, triangles_;
  std::vector<Candidate> candidates_;
  NearPairTables near_pairs_;
  std::vector<GeomFilter> geom_filters_;
  std::vector<std::int64_t> excluded_bodies_, excluded_geoms_;
  std::vector<PairSoftness<double>> own_softness_;
  std::vector<Limit> limits_;
  std::vector<Equality> equalities_;
  std::vector<Path> paths_;
  std::vector<int> path_dofs_, dof_paths_;
  std::vector<Support> supports_;
  std::vector<int> support_dofs_, support_sides_, mass_rows_;
  std::vector<Softness> dof_softness_;
  std::vector<double> dof_weight_;
  std::vector<double> tree_origin_;
  std::vector<int> tree_qpos_;
  std::unique_ptr<bool[]> single_free_;
};

}  // namespace revolute
