// Ties: which feature decides when two are equally near up to rounding.
//
// Aligned shapes (a box on a box, capsules side by side) often meet with two features equally near. Rounding must not choose
// between them: it changes from step to step, and contacts and gradients would jump. So each choice has a tolerance, within
// which a fixed rule applies:
//   * MuJoCo's formulae (mujoco/): the feature that decides after nearly every small displacement. The derivative is then
//     that of the states around the tie, in which bodies really move.
//   * the searches for general convex shapes: the feature that gives the larger contact area, else the first in order.
// The rules differ because the features do. They are:
//
//   features                                          equal up to                winner
//   box_box.hpp: parallel faces (1')                  tied_faces x sizes         the wider face
//   box_box.hpp: a corner on a side (2')              on_border x side           outside an upper side, inside a lower one
//   box_box.hpp: edges against a face (1)             MuJoCo's 1e-6, 0.99, 0.05  the face
//   mujoco/capsule_box.hpp: an end on a border (2)    on_border x step           the border
//   mujoco/capsule_capsule.hpp: ends side by side     side_by_side x half        first point: b's end, second: a's
//   segment.hpp: a place at the end                   exactly                    the end
//   sphere_box.hpp: nearest faces of a centre inside  exactly                    x before y before z
//   convex_pair.hpp: a face against other features    same_reach x sizes         the face
//   convex_pair.hpp: a face of a, a face of b         same_reach x sizes         a's
//   convex_pair.hpp: two faces of one shape           exactly                    the first
//   convex_pair.hpp: ends of parallel edges           1e-3 x sizes               a's
//   hull.hpp: faces turned most towards a direction   same_turn, of the cosine   the first
//   hull_search.hpp: farthest vertices                exactly                    the first
//   contact_manifold.hpp: points farthest out         same_reach x size          the first
//   contact_manifold.hpp: deepest points              100 same_reach x size      the first
//   height_field.hpp: deepest points                  1e-9 x size                the first
#pragma once

namespace revolute {

constexpr double same_reach =
    1e-6;  // the searches for convex shapes find distances to this share of the sizes
constexpr double same_turn = 1e-6;

namespace mujoco {

constexpr double tied_faces = 1e-14, on_border = 1e-13, side_by_side = 1e-12;

}  // namespace mujoco

}  // namespace revolute
