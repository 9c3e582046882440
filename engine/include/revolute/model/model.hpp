// The engine's model: plain arrays that the stages read, in the order of MuJoCo's degrees of freedom.
//
// Every degree of freedom k carries a link; a body's mass sits in the link of its last degree of freedom (or of its
// nearest ancestor that has one). Link frames are chosen for cheap kinematics: a hinge or slide frame has its origin at
// the joint's anchor and its z axis along the joint's axis; a ball or free frame is the body frame moved to the anchor.
// Index -1 is the world. Parents come before children. All arrays are constants of the model, owned by ModelStorage.
#pragma once

#include "revolute/model/options.hpp"
#include "revolute/scalar/scalar.hpp"

namespace revolute {

// MuJoCo's of these names. euler: joint damping is implicit; implicitfast: the velocity gains of actuators as well; implicit:
// the Coriolis and gyroscopic forces as well; rk4: Runge-Kutta of order four. The hard contact model has the first two.
enum class Integrator : int { euler, implicitfast, implicit, rk4 };
enum class JointType : int { free = 0, ball = 1, prismatic = 2, revolute = 3 };  // MuJoCo's numbers
// How many of a joint's positions are plain numbers; behind them free and ball joints have a quaternion.
REVOLUTE_HD inline int linear_coordinates(JointType type) {
  return type == JointType::free ? 3 : type == JointType::ball ? 0 : 1;
}
// How many positions a joint has.
REVOLUTE_HD inline int coordinates(JointType type) {
  return type == JointType::free ? 7 : type == JointType::ball ? 4 : 1;
}

// How soft a constraint is, by MuJoCo's names.
struct Softness {
  double solref[2], solimp[5];
};

struct Joint {
  JointType type;
  int qpos, dof;       // first position, first degree of freedom
  int parent;          // link the joint hangs on
  double rotation[9];  // joint frame in the parent link's frame, before the joint moves
  double position[3];
  double
      orientation[4];  // `rotation` as a quaternion, of the sign that MuJoCo's products of quaternions have
  double reference;    // hinge, slide: position at which the joint frame is unmoved (MuJoCo's qpos0)
  bool limited;
};

struct Dof {
  int parent;         // link that this one hangs on
  int velocity_base;  // link whose velocity turns this axis: dS/dt = V_base x S
  int carrier;        // last degree of freedom whose motion carries the axis along; -1: fixed in the world
  int tree;
  bool has_inertia;  // false for the massless links between the degrees of freedom of one body
};

// A frame that is fixed in a link.
struct FixedFrame {
  int link, body;
  double rotation[9], position[3];
  double orientation[4];  // `rotation` as a quaternion, of MuJoCo's sign
};

// A body: its frame, the axes of body_inertia, and the body it hangs on. Its mass centre is a parameter. Link -1: it is fixed in
// the world.
struct Body : FixedFrame {
  double principal[9], principal_orientation[4];
  int parent;
};

// force = (gain . (1, length, velocity)) ctrl + bias . (1, length, velocity)
struct Actuator {
  int dof, qpos;
  bool ctrl_limited, force_limited;
  double ctrl_range[2], force_range[2];
};

// A shape in the frame of its link.
enum class Shape : int { plane, sphere, capsule, ellipsoid, cylinder, box, mesh };
struct Geom {
  Shape shape;
  int link, body;
  double rotation[9], position[3];
  double orientation[4];  // `rotation` as a quaternion, of MuJoCo's sign
  double radius;          // sphere, capsule, cylinder
  double half[3];         // box half sizes, ellipsoid half axes; capsule, cylinder: half length in half[2]
  double bound;           // radius of a sphere about `position` that holds the shape
  double watched;         // half of the largest distance at which one of its pairs is watched for contact
  // hull of a box or mesh, and the core of a sphere (one vertex) or capsule (one edge), in the link frame
  int vertex, vertices;  // first vertex and their number
  int face, faces;
  int edge, edges;
  int vertex_tree, face_tree, edge_tree;  // roots among Model::hull_nodes, or no_tree
  double box_centre[3], box_half[3];      // smallest box about the shape along its own axes; not of planes
};

// A face of a hull: its outward normal, and its corners in order about that normal, counted from the geom's first vertex.
struct HullFace {
  double normal[3];
  int corner, corners;           // range of Model::corners, thinned out to polygon_corners
  int polygon, polygon_corners;  // all corners, in the order of the file; also of Model::corners
};
// An edge of a hull: its ends, counted from the geom's first vertex, and in its two faces the directions that lead inwards
// (zero for the core of a capsule).
struct HullEdge {
  int from, to;
  double inward[2][3];
};

// A node of a tree of discs over the vertices, faces or edges of a hull (hull_search.hpp). Its disc holds all points of its
// items, and is a little larger, so that rounding never hides one.
struct HullNode {
  double centre[3], axis[3];
  double radius, thickness;  // across the axis; along it, to either side
  int first, count;  // leaf: range of Model::hull_items; count 0: a branch, whose left child follows it
  int right;         // branch: its right child
};
constexpr int no_tree = -1;
constexpr int deepest_tree = 32;  // more than the tree over as many items as an int can count

// A place where two geoms may touch: one contact of three rows when active. The second line is ContactModel::mujoco's alone.
enum class Pair : int {
  plane_point,
  sphere_sphere,
  sphere_capsule,
  capsule_capsule,
  sphere_box,
  plane_convex,
  convex_convex,
  plane_capsule,
  plane_box,
  plane_cylinder,
  plane_ellipsoid,
  plane_mesh,
  sphere_cylinder,
  capsule_box,
  box_box
};
struct Candidate {
  Pair pair;
  int geom_a, geom_b;  // the normal points from a to b
  int link_a, link_b;
  int friction;     // index of the pair's friction coefficients
  int slot, slots;  // which of the pair's points, of how many; they follow each other
  double point[3];  // plane_point, plane_capsule, plane_box: in b's link frame; and the radius about it
  double radius;
  int path;            // degrees of freedom that move a or b
  int condim;          // rows: 1 frictionless, 3 sliding, 4 and torsion, 6 and rolling
  double margin, gap;  // mujoco: contacts act below the margin, and are looked for below margin + gap
  double weight;       // mujoco: inverse masses of the two bodies (body_invweight0), summed
  int support;         // mujoco: degrees of freedom that move a against b
};

// The broad phase (stages/broad_phase.hpp): the other shape of a pair, and the pair's first candidate.
struct Partner {
  int geom, candidate;
};

// One side of a hinge's or slide's range: gap = sign (q - bound); or the cone of a ball joint: gap = bound - angle.
struct Limit {
  bool ball;
  int dof, qpos;
  double sign;
  int bound;  // index of Parameters::range
  int path;
  double margin, weight;  // mujoco; weight is the inverse inertia of the joint (dof_invweight0)
  Softness softness;
  int support;
};

// Equality constraints; fields by type, see rows/equality.hpp. Link -1 is the world, dof_b -1 is no second joint.
enum class EqualityType : int { connect, weld, joint };
struct Equality {
  EqualityType type;
  int link_a, link_b;
  int body_a, body_b;                   // connect, weld
  double anchor_a[3], anchor_b[3];      // connect, weld: in the link frames
  double rotation_a[9], rotation_b[9];  // weld: frames in the link frames that are to coincide
  int dof_a, dof_b, qpos_a, qpos_b;     // joint
  double reference_a, reference_b, polynomial[5];
  int path;
  double weight[2], torque_scale;  // mujoco; weight of the rows of positions, and of rotations
  Softness softness;
  int support;
};

// Degrees of freedom, from leaf to root.
struct Path {
  int first, count;
};

// mujoco: the degrees of freedom whose motion a constraint feels, descending; `chain`: they lie on one path to the root.
constexpr int both_sides = 2;
struct Support {
  int first, count;  // range of Model::support_dofs and support_sides
  bool chain;
};

// Points at which two convex shapes, or a convex shape and a plane, may touch at once.
constexpr int manifold_points = 8;
// Corners of a face that bound a contact area; a face of more corners is thinned out when the model is built.
constexpr int polygon_corners = 24;

struct Model : Options {
  int nq, nv, nu, nbody, ngeom, njnt, nsite;
  int ntree, ncandidate, nconvex, nlimit, nequality, nfriction_pair;
  Integrator integrator;
  double friction_to_normal;           // mujoco: impratio
  bool safe_solref, implicit_damping;  // mujoco: unless a file turns refsafe or eulerdamp off
  const Joint* joints;
  const Dof* dofs;
  const Actuator* actuators;
  const Body* bodies;
  const FixedFrame* sites;
  const Geom* geoms;
  const Candidate* candidates;
  int nalways, nswept, npartner;  // broad phase
  const int* always;  // [nalways] pairs that are looked at in every step: their first candidates, ascending
  const int* swept;   // [nswept] shapes of the other pairs, ascending
  const Partner* partners;    // [npartner] of each shape those of higher index, ascending
  const int* partners_begin;  // [ngeom + 1]; null without swept shapes
  const Limit* limits_list;
  const Equality* equalities;
  const Path* paths;
  const int* path_dofs;
  const int* dof_paths;                     // [nv] path of each degree of freedom
  const Support* supports;                  // mujoco; those of single degrees of freedom come first
  const int *support_dofs, *support_sides;  // side 0: the degree of freedom moves a, 1: b, both_sides
  const int* mass_rows;          // [nv + 1] where the rows of the mass matrix begin (mass_matrix.hpp)
  const Softness* dof_softness;  // [nv] of dry friction
  const double* dof_weight;      // [nv] dof_invweight0
  const double* vertices;        // hull vertices in their link frames
  const HullFace* faces;
  const HullEdge* edges;
  const int* corners;
  const int* vertex_faces;        // faces around each hull vertex, in their order
  const int* vertex_faces_begin;  // [vertices + 1] ranges of vertex_faces
  const HullNode* hull_nodes;
  const int* hull_items;  // items of the trees' leaves, counted from the geom's first vertex, face or edge
  const double* tree_origin;  // [ntree, 3] reference point of a tree that has a fixed base
  const bool* single_free;    // [ntree] whether a tree is one body with a free joint
  const int* tree_qpos;       // [ntree] qpos address of the reference point of a floating tree, or -1
};

}  // namespace revolute
