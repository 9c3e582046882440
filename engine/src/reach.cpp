#include "revolute/model/reach.hpp"

#include <cmath>
#include <limits>

#include "pose.hpp"

namespace revolute {

namespace {

constexpr int mujoco_plane = 0;
constexpr double endless = std::numeric_limits<double>::infinity();
// Smaller components of a unit vector are rounding.
constexpr double rounding = 1e-12;
// Added on all sides, for rounding.
constexpr double slack = 1e-6;

// The region in which a frame's origin can be, and the frame's rotation while it is known.
struct Frame {
  Region origin;
  bool turned;  // by joints, so that any rotation is possible
  Matrix3<double> R;

  void widen(double by) {
    for (int i = 0; i < 3; ++i) origin.low[i] -= by, origin.high[i] += by;
  }
  void forget() { widen(endless), turned = true; }
  // Moves the origin to the point p of the frame.
  void move(const Vector3<double>& p) {
    if (turned) return widen(std::sqrt(dot(p, p)));
    const Vector3<double> shift = R * p;
    const double by[3] = {shift.x, shift.y, shift.z};
    for (int i = 0; i < 3; ++i) origin.low[i] += by[i], origin.high[i] += by[i];
  }
  void slide(const Vector3<double>& axis) {
    if (turned) return widen(endless);
    const Vector3<double> along = R * axis;
    const double component[3] = {along.x, along.y, along.z};
    for (int i = 0; i < 3; ++i)
      if (std::fabs(component[i]) > rounding) origin.low[i] = -endless, origin.high[i] = endless;
  }
  // Turns the frame about its point `anchor`.
  void turn(const Vector3<double>& anchor) {
    move(anchor);
    turned = true;
    move(-anchor);
  }
};

Frame world() { return {{{0, 0, 0}, {0, 0, 0}}, false, identity().R}; }

void add_joint(const PairTree& tree, int joint, Frame& frame) {
  const Vector3<double> anchor = vector3<double>(&tree.jnt_pos[3 * joint]);
  switch (JointType(tree.jnt_type[joint])) {
    case JointType::free:
      return frame.forget();
    case JointType::prismatic:
      return frame.slide(vector3<double>(&tree.jnt_axis[3 * joint]));
    default:
      return frame.turn(anchor);
  }
}

std::vector<Frame> frames_of_bodies(const PairTree& tree) {
  std::vector<Frame> frames(tree.nbody, world());
  int joint = 0;
  for (int b = 1; b < tree.nbody; ++b) {
    Frame& frame = frames[b] = frames[tree.body_parentid[b]];
    frame.move(vector3<double>(&tree.body_pos[3 * b]));
    frame.R = frame.R * pose(&tree.body_pos[3 * b], &tree.body_quat[4 * b]).R;
    if (tree.body_mocapid[b] >= 0) frame.forget();
    for (; joint < tree.njnt && tree.jnt_bodyid[joint] == b; ++joint) add_joint(tree, joint, frame);
  }
  return frames;
}

}  // namespace

std::vector<Region> reach_of_geoms(const PairTree& tree, const Doubles& margin) {
  const std::vector<Frame> frames = frames_of_bodies(tree);
  std::vector<Region> regions;
  for (int g = 0; g < tree.ngeom; ++g) {
    Frame frame = frames[tree.geom_bodyid[g]];
    frame.move(vector3<double>(&tree.geom_pos[3 * g]));
    frame.widen(tree.geom_type[g] == mujoco_plane ? endless : tree.geom_rbound[g] + margin[g] + slack);
    regions.push_back(frame.origin);
  }
  return regions;
}

}  // namespace revolute
