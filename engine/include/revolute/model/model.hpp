// The engine's model: plain arrays that the stages read, in the order of MuJoCo's degrees of freedom.
//
// Every degree of freedom k carries a link; a body's mass sits in the link of its last degree of freedom (or of its
// nearest ancestor that has one). Link frames are chosen for cheap kinematics: a hinge or slide frame has its origin at
// the joint's anchor and its z axis along the joint's axis; a ball or free frame is the body frame moved to the anchor.
// Index -1 is the world, -2 - i the i-th mocap body: a frame without velocity whose pose is an input of each step
// (step_inputs.hpp). Parents come before children. All arrays are constants of the model, owned by ModelStorage.
#pragma once

#include <cstdint>

#include "revolute/model/options.hpp"
#include "revolute/scalar/scalar.hpp"

namespace revolute {

// MuJoCo's integrators. euler: joint damping is implicit; implicitfast: the velocity gains of actuators as well; implicit:
// the Coriolis and gyroscopic forces as well; rk4: Runge-Kutta of order four. The hard contact model has the first two.
enum class Integrator : int { euler, implicitfast, implicit, rk4 };
enum class JointType : int { free = 0, ball = 1, prismatic = 2, revolute = 3 };  // MuJoCo's numbers
// Number of a joint's positions that are plain numbers. Free and ball joints have a quaternion behind them.
REVOLUTE_HD inline int linear_coordinates(JointType type) {
  return type == JointType::free ? 3 : type == JointType::ball ? 0 : 1;
}
// Number of positions of a joint.
REVOLUTE_HD inline int coordinates(JointType type) {
  return type == JointType::free ? 7 : type == JointType::ball ? 4 : 1;
}

// Number of degrees of freedom of a joint.
REVOLUTE_HD inline int degrees_of_freedom(JointType type) {
  return type == JointType::free ? 6 : type == JointType::ball ? 3 : 1;
}

// How soft a constraint is, by MuJoCo's names.
struct Softness {
  double solref[2], solimp[5];
};

REVOLUTE_HD inline bool is_world(int link) { return link == -1; }
REVOLUTE_HD inline bool is_mocap(int link) { return link < -1; }
// From the link of a mocap body to the body's index, and back.
REVOLUTE_HD inline int mocap_index(int link) { return -2 - link; }
inline int mocap_link(int mocap) { return -2 - mocap; }
// The link as the joints see it: -1 for the world and for mocap bodies, since no joint moves them.
REVOLUTE_HD inline int moved_link(int link) { return link < -1 ? -1 : link; }

struct Joint {
  JointType type;
  int qpos, dof;       // first position, first degree of freedom
  int parent;          // link that the joint is attached to
  double rotation[9];  // joint frame in the parent link's frame, before the joint moves
  double position[3];
  double
      orientation[4];  // `rotation` as a quaternion, with the sign that MuJoCo's products of quaternions have
  double reference;    // hinge, slide: position at which the joint frame is unmoved (MuJoCo's qpos0)
  bool limited;
  bool force_limited;  // whether the sum of its actuators' forces is limited
  double force_range[2];
  bool lifted;  // gravity compensation counts as a force of its actuators
};

struct Dof {
  int parent;         // link that this one hangs on; -1 if that is a mocap body
  int velocity_base;  // link whose velocity turns this axis: dS/dt = V_base x S
  int carrier;        // last degree of freedom whose motion carries the axis along; -1: fixed in the world
  int tree;
  bool has_inertia;  // false for the massless links between the degrees of freedom of one body
};

// A frame that is fixed in a link.
struct FixedFrame {
  int link, body;
  double rotation[9], position[3];
  double orientation[4];  // `rotation` as a quaternion, with MuJoCo's sign
};

// A body: its frame, the axes of body_inertia, and the body it hangs on. Its mass centre is a parameter. Link -1: it is fixed
// in the world.
struct Body : FixedFrame {
  double principal[9], principal_orientation[4];
  int parent;
};

// A length along the mechanism and its rate J qvel: of a tendon, or of an actuator that drives no hinge or slide.
enum class TransmissionType : int { joints, path, ball, free, site, slider_crank, body };
struct Transmission {
  TransmissionType type;
  int support;         // degrees of freedom of J
  int entry;           // first of its entries in Transmissions::J
  int first, count;    // joints: range of Model::tendon_joints; path: of path_segments
  int dof, qpos;       // ball, free
  bool in_parent;      // ball, free: gear in the axes of the parent
  int link_a, link_b;  // site, and its reference (-1 and `referred` false: none); crank and slider
  double position_a[3], position_b[3];  // in the link frames
  double rotation_a[9], rotation_b[9];
  bool referred;
  double gear
      [6];  // ball, free, site: of the three forces and three torques; the first is parameter actuator_gear
  int actuator;  // ball, free, site: its actuator
  double rod;    // slider_crank
  int body;      // body: the body whose contacts it pulls
};
// A joint in the sum of a tendon, with its coefficient.
struct TendonJoint {
  int dof, qpos;
  double coefficient;
};
// A straight piece of a path between two points; `wrap`: index of the surface it may bend around, or -1.
struct PathSegment {
  int link_a, link_b;
  double point_a[3], point_b[3];  // in the link frames
  double divisor;                 // of the pulley before it
  int wrap;
};
struct PathWrap {
  bool cylinder;
  int link;
  double position[3], rotation[9], radius;
  bool sided;
  int side_link;
  double side[3];
};
// The first transmissions are those of the tendons.
struct Tendon {
  double stiffness, damping, armature;
  double spring[2];  // no force between these lengths
  bool limited;
  double range[2], margin;
  double frictionloss;
  double weight;  // mujoco: tendon_invweight0
  Softness limit_softness, friction_softness;
  bool force_limited;  // whether the sum of its actuators' forces is limited
  double force_range[2];
};

// A muscle's numbers, see stages/muscle.hpp.
struct Muscle {
  double range[2], force, lmin, lmax, fpmax, fvmax;
  double lowest, optimum, fastest;  // lowest length, L0, L0 vmax
};
enum class ActivationType : int { none, integrator, filter, filterexact, muscle };
// force = (gain . (1, length, velocity)) input + bias . (1, length, velocity); input is the control, or the activation
struct Actuator {
  int dof, qpos;     // of the hinge or slide that it drives
  int transmission;  // index of the transmission that it drives instead of a joint, or -1
  bool geared;       // whether the gear multiplies its length
  bool ctrl_limited, force_limited;
  double ctrl_range[2], force_range[2];
  ActivationType dynamics;
  int act;         // index of its activation
  bool early;      // whether the activation at the end of the step acts
  double time[3];  // MuJoCo's dynprm
  double act_step;
  bool act_limited;
  double act_range[2];
  bool muscle_gain, muscle_bias;
  Muscle gain, bias;
};
// A body that a medium resists, see stages/medium.hpp.
struct MediumBody {
  int link;
  double axes[9];  // of its inertia, in the link frame
};
// An ellipsoid that a medium resists, in its link's frame; the coefficients are MuJoCo's fluidcoef.
struct MediumEllipsoid {
  int link;
  double axes[9], position[3], half[3];
  double density, viscosity;
  double blunt, slender, angular, kutta, magnus;
  double virtual_mass[3], virtual_inertia[3];
};

// A shape in the frame of its link.
enum class Shape : int { plane, height_field, sphere, capsule, ellipsoid, cylinder, box, mesh };
// Shapes that are fixed in the world and lie below others: their pairs are checked in every step.
REVOLUTE_HD inline bool is_ground(Shape shape) {
  return shape == Shape::plane || shape == Shape::height_field;
}
struct Geom {
  Shape shape;
  int link, body;
  bool adheres;  // whether an actuator pulls the body's contacts
  double rotation[9], position[3];
  double orientation[4];  // `rotation` as a quaternion, with MuJoCo's sign
  double radius;          // sphere, capsule, cylinder
  double half[3];         // box half sizes, ellipsoid half axes; capsule, cylinder: half length in half[2]
  double bound;           // radius of a sphere about `position` that holds the shape
  double watched;         // half of the largest distance at which one of its pairs is watched for contact
  // hull of a box or mesh, and the core of a sphere (one vertex) or capsule (one edge), in the link frame
  int vertex, vertices;  // first vertex and their number
  int face, faces;
  int edge, edges;
  int vertex_tree, face_tree, edge_tree;  // roots among Model::hull_nodes, or no_tree
  int support_cells;                      // first of six among HullArrays::support_cells, or no_cells
  double box_centre[3], box_half[3];  // smallest box about the shape along its own axes; unused for planes
  int field;                          // height field: index in Model::height_fields
  double extent[2];                   // plane: half sizes of its rectangle, for rays; 0: unbounded
  int first_triangle, triangles;      // mesh: range of Model::triangles
};

// MuJoCo's height field: heights over a grid, row r at y = -half[1] + r step[1], column c at x = -half[0] + c step[0], above a
// base that ends `base` below the frame's origin.
struct HeightField {
  int rows, columns;
  double half[2], step[2], base;
  const double* heights;  // [rows, columns]
};

// A face of a hull: its outward normal, and its corners in order about that normal, counted from the geom's first vertex.
struct HullFace {
  double normal[3], offset;      // of its plane: normal.x = offset
  int corner, corners;           // range of Model::corners, thinned out to polygon_corners
  int polygon, polygon_corners;  // all corners, in the file's order; also in Model::corners
};
// An edge of a hull: its ends, counted from the geom's first vertex, and its inward directions in its two faces (zero for the
// core of a capsule).
struct HullEdge {
  int from, to;
  double inward[2][3];
};

// A cell of the map from directions to a hull's farthest vertices (hull_search.hpp). It holds, ascending, the vertices that
// are farthest in some of its directions, or names the first of the four cells that divide it.
struct SupportCell {
  int first, count;  // range of HullArrays::cell_members; count 0: the first of four cells
};
constexpr int no_cells = -1;
// One of a cell's vertices: its place, as a copy that stands beside those of its cell, and its index from the hull's first.
struct CellMember {
  double at[3];
  int vertex;
};

// A node of a tree of discs over the vertices, faces or edges of a hull (hull_search.hpp). Its disc holds all points of its
// items, and is a little larger, so that rounding never hides one.
struct HullNode {
  double centre[3], axis[3];
  double radius, thickness;  // across the axis; along it, to either side
  int first, count;  // leaf: range of Model::hull_items; count 0: a branch, whose left child follows it
  int right;         // branch: its right child
};
// The hulls of several shapes. A Geom holds its ranges of these arrays.
struct HullArrays {
  const double* vertices;  // in their link frames
  const HullFace* faces;
  const HullEdge* edges;
  const int* corners;
  const int* vertex_faces;        // faces around each hull vertex, in their order
  const int* vertex_faces_begin;  // [vertices + 1] ranges of vertex_faces
  const HullNode* hull_nodes;
  const int* hull_items;  // items of the trees' leaves, counted from the geom's first vertex, face or edge
  const SupportCell* support_cells;
  const CellMember* cell_members;
};
constexpr int no_tree = -1;
constexpr int deepest_tree = 32;  // deeper than a tree over as many items as an int can count

// A place where two geoms may touch: one contact when active. From plane_capsule on: ContactModel::mujoco only.
enum class Pair : int {
  plane_point,
  sphere_sphere,
  sphere_capsule,
  capsule_capsule,
  sphere_box,
  plane_convex,
  convex_convex,
  field_convex,
  plane_capsule,
  plane_box,
  plane_cylinder,
  plane_ellipsoid,
  plane_mesh,
  sphere_cylinder,
  capsule_box,
  box_box
};
// How the friction of a pair, and in mujoco its softness, follow from those of its geoms (stages/pair_softness.hpp).
struct PairMixing {
  bool from_a, from_b;  // geoms whose friction counts: the larger of both, or that of the geom with priority
  double weight_a;      // mujoco: of a's softness
  int own;              // index of Model::own_softness, or -1
};
struct Candidate {
  Pair pair;
  int geom_a, geom_b;  // the normal points from a to b
  int link_a, link_b;
  PairMixing mixing;
  int slot, slots;  // index of this point among the pair's points, and their number; they are consecutive
  double point[3];  // plane_point, plane_capsule, plane_box: in b's link frame; and the radius about it
  double radius;
  int path;    // degrees of freedom that move a or b; -1: found when the pair touches
  int condim;  // rows: 1 frictionless, 3 sliding, 4 and torsion, 6 and rolling
  // mujoco: contacts act below the margin. The closed formulae choose their points among those below margin + gap; contacts
  // that do not act are kept only up to there, and only where an actuator adheres (contact_distance).
  double margin, gap;
  double weight;  // mujoco: inverse masses of the two bodies (body_invweight0), summed
  int support;    // mujoco: degrees of freedom that move a against b; -1: found when the pair touches
};

// Decides whether two shapes of an unlisted pair may touch, and how (stages/unlisted_pairs.hpp).
struct GeomFilter {
  int contype, conaffinity;
  int body, weld,
      parent_weld;  // the body, the body it is welded to, and the body that the latter's parent is welded to
  int priority, condim, points;
  double margin, gap, mixing, weight;  // mujoco; solmix, body_invweight0
};
// How a pair of shapes touches in the contact model "mujoco": friction for the two sliding directions, torsion and the two
// rolling ones. solref_friction is zero if solref serves friction as well.
template <class Real>
struct PairSoftness {
  Real friction[5], solref[2], solref_friction[2], solimp[5];
};
constexpr double least_friction = 1e-5;  // MuJoCo's mjMINMU

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

// Equality constraints; fields by type, see rows/equality.hpp. Link -1 is the world; dof_b -1: no second joint.
enum class EqualityType : int { connect, weld, joint, tendon };
struct Equality {
  EqualityType type;
  int link_a, link_b;
  int body_a, body_b;                   // connect, weld
  double anchor_a[3], anchor_b[3];      // connect, weld: in the link frames
  double rotation_a[9], rotation_b[9];  // weld: frames that the weld makes coincide, in the link frames
  int dof_a, dof_b, qpos_a, qpos_b;     // joint
  int tendon_a, tendon_b;               // tendon
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
struct RowPath {
  int count;
  const int* dofs;
};

// mujoco: the degrees of freedom whose motion a constraint feels, descending; `chain`: all are on one path to the root.
constexpr int both_sides = 2;
struct Support {
  int first, count;  // range of all supports' degrees of freedom, while a model is built
  bool chain;
  const int *dofs, *sides;  // side 0: the degree of freedom moves a, 1: b
};

// Points at which two convex shapes, or a convex shape and a plane, may touch at once.
constexpr int manifold_points = 8;
constexpr int most_slots = 8;          // of any unlisted pair
constexpr int most_field_points = 50;  // of a height field and another shape; MuJoCo's mjMAXCONPAIR
// Corners of a face that bound a contact area; a face of more corners is thinned out when the model is built.
constexpr int polygon_corners = 24;

struct Model : Options, HullArrays {
  int nq, nv, nu, na, nbody, ngeom, njnt, nsite, nmocap;
  const double *mocap_pos, *mocap_quat;  // [nmocap, 3], [nmocap, 4] poses of mocap bodies in the file
  int ntree, ncandidate, nconvex, nlimit, nequality;
  int ntendon, ntransmission, ntransmission_entry;
  bool total_limits;     // whether the forces of several actuators are limited together
  bool tendon_friction;  // whether a tendon has dry friction
  bool compensated;      // whether gravity is compensated anywhere
  bool adhesive;         // whether an actuator pulls a body's contacts
  bool tendon_inertia;   // whether a tendon has armature
  int nmedium, nellipsoid;
  double wind[3];
  const MediumBody* medium_bodies;           // [nmedium]
  const MediumEllipsoid* medium_ellipsoids;  // [nellipsoid]
  Integrator integrator;
  double friction_to_normal;           // mujoco: impratio
  bool safe_solref, implicit_damping;  // mujoco: unless a file turns refsafe or eulerdamp off
  const Joint* joints;
  const Dof* dofs;
  const int* dof_joints;  // [nv]
  const Actuator* actuators;
  const Body* bodies;
  const FixedFrame* sites;
  const Tendon* tendons;
  const Transmission* transmissions;  // [ntransmission]
  const TendonJoint* tendon_joints;
  const PathSegment* path_segments;
  const PathWrap* path_wraps;
  const Geom* geoms;
  const Candidate* candidates;
  int nalways, nswept, nswept_group, npartner;  // broad phase
  const int* always;  // [nalways] first candidates of the pairs that are checked in every step, ascending
  // [nswept] shapes of the other pairs, grouped by tree; each shape that is fixed in the world is a group
  const int* swept;
  const int* swept_begin;     // [nswept_group + 1] where each group begins
  const Partner* partners;    // [npartner] for each shape, its partners of higher index, ascending
  const int* partners_begin;  // [ngeom + 1]; null without swept shapes
  const Limit* limits_list;
  const Equality* equalities;
  const Path* paths;
  const int* path_dofs;
  const int* dof_paths;     // [nv] path of each degree of freedom
  const Support* supports;  // mujoco; supports of single degrees of freedom come first
  // pairs that are not candidates, but are found in each step; null filters: all pairs are listed
  const GeomFilter* geom_filters;  // [ngeom]
  bool filter_parent;
  int nexcluded_bodies, nexcluded_geoms;
  const std::int64_t *excluded_bodies, *excluded_geoms;  // pair_key of pairs, ascending
  int longest_support;  // most degrees of freedom that move either of two links
  int unlisted_condim;  // largest of an unlisted pair
  const PairSoftness<double>*
      own_softness;              // of pairs to which the file gives friction or softness of their own
  const int* mass_rows;          // [nv + 1] where the rows of the mass matrix begin (mass_matrix.hpp)
  const Softness* dof_softness;  // [nv] of dry friction
  const double* dof_weight;      // [nv] dof_invweight0
  const HeightField* height_fields;
  const double* triangles;    // [.., 9] corners of meshes that rays may meet, in their shapes' frames
  const double* tree_origin;  // [ntree, 3] reference point of a tree that has a fixed base
  const bool* single_free;    // [ntree] whether a tree is one body with a free joint
  const int* tree_qpos;       // [ntree] qpos address of the reference point of a floating tree, or -1
};

// Most contacts of unlisted pairs for each shape.
constexpr int unlisted_contacts_per_geom = 32;
REVOLUTE_HD inline bool has_unlisted_pairs(const Model& model) { return model.geom_filters != nullptr; }
// Most pairs that the broad phase can find.
REVOLUTE_HD inline std::size_t near_pair_capacity(const Model& model) {
  const std::size_t n = model.nswept;
  return has_unlisted_pairs(model) ? n * (n + 1) / 2 : std::size_t(model.npartner);
}
REVOLUTE_HD inline std::size_t unlisted_contact_capacity(const Model& model) {
  return has_unlisted_pairs(model) ? unlisted_contacts_per_geom * std::size_t(model.ngeom) : 0;
}
REVOLUTE_HD inline std::size_t contact_capacity(const Model& model) {
  return model.ncandidate + unlisted_contact_capacity(model);
}
// mujoco: whether contacts within the pair's gap, which do not act, are wanted too.
REVOLUTE_HD inline bool adheres(const Model& model, const Candidate& candidate) {
  return model.adhesive && (model.geoms[candidate.geom_a].adheres || model.geoms[candidate.geom_b].adheres);
}
// mujoco: the largest distance at which contacts of a pair are looked for.
REVOLUTE_HD inline double contact_distance(const Model& model, const Candidate& candidate) {
  return adheres(model, candidate) ? candidate.margin + candidate.gap : candidate.margin;
}
// The rows of pairs come in ascending order of this number: pairs of moving shapes first, then by the first and the second
// shape. A sweep of the hard model then ends with the contacts that carry the most load.
REVOLUTE_HD inline std::int64_t pair_rank(const Model& model, int geom_a, int geom_b) {
  const std::int64_t rests = model.geoms[geom_a].link < 0 || model.geoms[geom_b].link < 0;
  return rests << 62 | std::int64_t(geom_a) << 31 | geom_b;
}
struct RankedPair {
  int geom_a, geom_b;
};
REVOLUTE_HD inline RankedPair ranked_pair(std::int64_t rank) {
  return {int(rank >> 31 & 0x7fffffff), int(rank & 0x7fffffff)};
}
REVOLUTE_HD inline RowPath row_path(const Model& model, int path) {
  return {model.paths[path].count, model.path_dofs + model.paths[path].first};
}
// One number for two indices, the same in either order.
REVOLUTE_HD inline std::int64_t pair_key(int one, int other) {
  const std::int64_t low = one < other ? one : other, high = one < other ? other : one;
  return low << 32 | high;
}

// Whether environments of this model are simulated one by one, in mujoco also their islands
// (solvers/soft_islands.hpp). Environments of many bodies have too few contacts in common for a pack. For eight heaps that
// moved differently, a pack is 1.4 times as fast with 20 boxes and 1.1 times with 30. One environment alone is 3 to 8 %
// slower without islands.
constexpr int most_packed_trees = 30;
REVOLUTE_HD inline bool is_crowded(const Model& model) {
  return model.ntree > most_packed_trees &&
         (model.contact_model == ContactModel::mujoco || has_unlisted_pairs(model));
}

// Length of the arrays called qvel: velocities, then the activations.
REVOLUTE_HD inline int velocities(const Model& model) { return model.nv + model.na; }

}  // namespace revolute
