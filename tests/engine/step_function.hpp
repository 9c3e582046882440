// The whole step as a function of state, control and every parameter, and its adjoint: for the harness of check.hpp.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "steps.hpp"

namespace revolute::check {

// in: tangent of qpos, qvel, ctrl, all parameters by MuJoCo's names. out: tangent of the next qpos at `next`,
// next qvel.
struct Step {
  const ModelStorage& storage;
  Doubles qpos, next;

  const Model& model() const { return storage.model(); }
  // Inputs with a strong effect take small steps: depths are within a millimetre of their kinks.
  static double scale_of(Parameter p) {
    switch (p) {
      case Parameter::body_inertia:
      case Parameter::dof_armature:
        return 1e-3;
      case Parameter::body_ipos:
      case Parameter::restitution:
        return 1e-2;
      case Parameter::jnt_stiffness:
      case Parameter::actuator_gainprm:
        return 1.0;
      case Parameter::jnt_range:
        return 1e-3;
      case Parameter::geom_friction:
      case Parameter::geom_solref:
        return 1e-3;
      case Parameter::geom_solimp:
        return 1e-4;
      default:
        return 0.1;
    }
  }
  // Dry friction has a kink at zero: only what is above is differentiated, which in these models follows each
  // other.
  static void only_positive(const Doubles& values, Block& block) {
    const auto positive = [](double value) { return value > 0; };
    const auto first = std::find_if(values.begin(), values.end(), positive);
    block.begin += int(first - values.begin());
    block.size = int(std::find_if_not(first, values.end(), positive) - first);
  }
  // Without names: all of them, whole.
  std::vector<Block> blocks(const std::set<std::string>& names) const {
    const int nv = model().nv;
    std::vector<Block> all = {
        {"qpos", 0, nv, 1e-3}, {"qvel", nv, nv, 1e-2}, {"ctrl", 2 * nv, model().nu, 1.0}};
    for (int p = 0; p < parameter_count; ++p)
      all.push_back({parameter_names[p], all.back().begin + all.back().size,
                     storage.parameter_size(Parameter(p)), scale_of(Parameter(p))});
    std::vector<Block> out;
    for (Block block : all) {
      if (!names.empty() && !names.count(block.name)) continue;
      if (block.name == "dof_frictionloss" && !names.empty())
        only_positive(storage.parameters().defaults[int(Parameter::dof_frictionloss)], block);
      out.push_back(block);
    }
    return out;
  }
  int n_in() const { return blocks({}).back().begin + blocks({}).back().size; }
  int n_out() const { return 2 * model().nv; }
  Doubles inputs(const Doubles& qvel, const Doubles& ctrl) const {
    Doubles in(model().nv, 0.0);
    in.insert(in.end(), qvel.begin(), qvel.end());
    in.insert(in.end(), ctrl.begin(), ctrl.end());
    for (const Doubles& values : storage.parameters().defaults)
      in.insert(in.end(), values.begin(), values.end());
    return in;
  }

  // one environment's parameters as the parameter map takes them
  template <class Real>
  Doubles parameter_values(const Real* in, int lane) const {
    Doubles out;
    for (int i = 2 * model().nv + model().nu; i < n_in(); ++i) out.push_back(get_lane(in[i], lane));
    return out;
  }
  template <class Pointers, class Number>
  Pointers pointers(Number* values) const {
    Pointers out;
    for (int p = 0; p < parameter_count; ++p) {
      out[p] = values;
      values += storage.parameter_size(Parameter(p));
    }
    return out;
  }
  template <class Real>
  struct Done {
    Workspace<Real> ws;
    std::vector<Real> moved, reached, qvel_next;
  };
  template <class Real>
  Done<Real> run(const Real* in) const {
    Done<Real> done{Workspace<Real>(model()), std::vector<Real>(model().nq), std::vector<Real>(model().nq),
                    std::vector<Real>(model().nv)};
    for (int lane = 0; lane < Width<Real>::value; ++lane) {
      const Doubles values = parameter_values(in, lane);
      load_parameters(storage.parameters(), pointers<ParameterPointers>(values.data()), lane, model(),
                      *done.ws.parameters);
    }
    const std::vector<Real> start(qpos.begin(), qpos.end());
    displace(model(), start.data(), in, done.moved.data());
    step(model(), *done.ws.parameters, done.moved.data(), in + model().nv, in + 2 * model().nv, true,
         *done.ws.step, done.reached.data(), done.qvel_next.data());
    return done;
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    const Done<Real> done = run(in);
    tangent_between(model(), next, done.reached.data(), out);
    for (int k = 0; k < model().nv; ++k) out[model().nv + k] += done.qvel_next[k];
  }
};
struct StepPullback {
  const Step& of;
  // Bar: as Real, or a pack of cotangents of one environment
  template <class Real, class Bar>
  void operator()(const Real* in, const Bar* out_bar, Bar* in_bar) const {
    const Model& model = of.model();
    const int nv = model.nv;
    Step::Done<Real> done = of.run(in);
    Owned<StepAdjointWorkspace<Bar>> ws(model);
    Owned<StateCotangent<Bar>> state(model);
    Owned<Parameters<Bar>> parameters_bar(model);
    parameters_bar->clear(model);
    std::copy_n(out_bar, nv, state->qpos);
    std::copy_n(out_bar + nv, nv, state->qvel);
    step_adjoint(model, *done.ws.parameters, done.moved.data(), in + nv, in + 2 * nv, *done.ws.step, *ws,
                 *state, in_bar + 2 * nv, *parameters_bar);
    for (int k = 0; k < nv; ++k) {
      in_bar[k] += state->qpos[k];
      in_bar[nv + k] += state->qvel[k];
    }
    for (int lane = 0; lane < Width<Bar>::value; ++lane) {
      const Doubles values = of.parameter_values(in, lane);
      Doubles bar(values.size(), 0.0);
      add_parameter_cotangents(of.storage.parameters(), of.pointers<ParameterPointers>(values.data()), lane,
                               model, *parameters_bar, of.pointers<ParameterBarPointers>(bar.data()));
      for (std::size_t i = 0; i < bar.size(); ++i) set_lane(in_bar[2 * nv + model.nu + i], lane, bar[i]);
    }
  }
};

// Cotangents of one environment in the lanes of a pack have the bits of one by one.
inline void check_side_by_side(const std::string& name, const StepPullback& pullback, const Doubles& in) {
  Random random(140);
  using Pack = Lanes<native_lanes>;
  const int n_in = pullback.of.n_in(), n_out = pullback.of.n_out();
  std::vector<Pack> packed_bar(n_out), packed(n_in, Pack(0));
  std::vector<Doubles> one_by_one;
  for (int lane = 0; lane < native_lanes; ++lane) {
    const Doubles out_bar = random.normals(n_out);
    for (int i = 0; i < n_out; ++i) set_lane(packed_bar[i], lane, out_bar[i]);
    one_by_one.emplace_back(n_in, 0.0);
    pullback(in.data(), out_bar.data(), one_by_one.back().data());
  }
  pullback(in.data(), packed_bar.data(), packed.data());
  bool equal = true;
  for (int lane = 0; lane < native_lanes; ++lane)
    for (int i = 0; i < n_in; ++i) equal = equal && same(get_lane(packed[i], lane), one_by_one[lane][i]);
  expect(equal, (name + ": cotangents side by side").c_str(), __FILE__, __LINE__);
}

// Packs of environments near `in` have the bits of single runs; some have contacts that others do not. One width only: the
// whole step is slow to compile, and its stages are checked in both.
inline void check_packs(const std::string& name, Random& random, const StepPullback& pullback,
                        const Doubles& in) {
  const Step& function = pullback.of;
  std::vector<Doubles> environments(8, in);
  for (Doubles& environment : environments)
    for (const Block& block : function.blocks({}))
      for (int i = block.begin; i < block.begin + block.size; ++i)
        environment[i] += (block.begin ? 0.1 * in[i] : 0.003) * random.normal();
  check_width<native_lanes>(name, environments, function.n_out(), function);
  check_width<native_lanes>(name + " adjoint", with_cotangents(random, environments, function.n_out()),
                            function.n_in(), Pullback<StepPullback>{pullback, function.n_in()});
}

inline std::set<std::string> with(std::set<std::string> names, std::initializer_list<const char*> more) {
  names.insert(more.begin(), more.end());
  return names;
}

}  // namespace revolute::check
