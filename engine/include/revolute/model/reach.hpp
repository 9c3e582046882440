// The regions of the world that shapes can reach, whatever their joints do: boxes that may be infinite.
//
// Joint limits do not count, since a simulation may pass them. A slide makes the region infinite along its axis. A hinge or
// ball turns everything beyond it, so that only its distance is known. Beyond a free joint or a mocap body nothing is known.
#pragma once

#include <vector>

#include "revolute/model/model.hpp"
#include "revolute/model/mujoco_arrays.hpp"

namespace revolute {

// A box along the world's axes; its ends may be infinite.
struct Region {
  double low[3], high[3];
};

// The part of a compiled MuJoCo model that places shapes, by MuJoCo's names.
struct PairTree {
  int nbody = 0, njnt = 0, ngeom = 0;
  Ints body_parentid, body_mocapid;
  Doubles body_pos, body_quat;
  Ints jnt_type, jnt_bodyid;
  Doubles jnt_pos, jnt_axis;
  Ints geom_type, geom_bodyid;
  Doubles geom_pos, geom_rbound;
};

// The region of each shape, enlarged on all sides by `margin` [ngeom].
std::vector<Region> reach_of_geoms(const PairTree& tree, const Doubles& margin);

}  // namespace revolute
