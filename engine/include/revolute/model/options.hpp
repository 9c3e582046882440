// The options that a user of load_model chooses and the stages read. A new option needs a member and a line of visit_options
// here. Its name, default and bounds are in Python's table (revolute/contract/load_options.py), choices in the same order.
#pragma once

namespace revolute {

// hard: impulses that keep shapes apart, by sweeps; mujoco: MuJoCo's soft constraints and its contact geometry.
enum class ContactModel : int { hard, mujoco };
// Solvers of "hard". pgs: a fixed number of sweeps of projected Gauss-Seidel; exact: to convergence.
enum class Solver : int { pgs, exact };
enum class Cone : int { pyramidal, elliptic };

struct Options {
  double timestep = 0;
  ContactModel contact_model = ContactModel::hard;
  Cone cone = Cone::pyramidal;  // mujoco
  Solver solver = Solver::pgs;
  int iterations = 0;
  bool contact = true, limits = true, dry_friction = true;
  double erp = 0, cfm = 0, margin = 0;
};

// Calls visit(name, member) for every option.
template <class Visit>
void visit_options(Options& options, Visit visit) {
  visit("timestep", options.timestep);
  visit("contact_model", options.contact_model);
  visit("cone", options.cone);
  visit("solver", options.solver);
  visit("iterations", options.iterations);
  visit("contact", options.contact);
  visit("limits", options.limits);
  visit("dry_friction", options.dry_friction);
  visit("erp", options.erp);
  visit("cfm", options.cfm);
  visit("margin", options.margin);
}

}  // namespace revolute
