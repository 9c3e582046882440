// The forward derivative of a rollout: each step runs on dual numbers from its stored state. Without this, rounding alone would
// drive an unstable trajectory away from the stored one, whose gradient the backward pass gives.
#include "forward_runner.hpp"
#include "revolute/scalar/dual.hpp"

namespace revolute {

namespace {

using Real = Dual<1>;

void seed(const double* tangents, std::size_t offset, int size, Real* out) {
  for (int i = 0; tangents && i < size; ++i) out[i].tangent[0] = tangents[offset + i];
}
void load_values(const double* values, std::size_t offset, int size, Real* out) {
  for (int i = 0; i < size; ++i) out[i] = Real(values[offset + i]);
}
// Sets the values to a stored state; the tangents stay those of the step that led to it.
void set_values(const double* values, std::size_t offset, int size, Real* out) {
  for (int i = 0; i < size; ++i) out[i].value = values[offset + i];
}

struct JvpRunner : ForwardRunner<Real> {
  using ForwardRunner<Real>::ForwardRunner;

  bool run(const ModelStorage& storage, const JvpArrays& arrays, const Slice& slice,
           const CancelToken* cancel) {
    const Model& model = model_for(storage, arrays.parameters);
    const std::size_t b = slice.first, steps = arrays.shape.steps;
    load_dual_parameters(storage, arrays, int(b));
    inputs.attach(model, [&](int i) { return arrays.controller.inputs[i].values != nullptr; }, parameters);
    OptionalController<Real> controller(model, arrays.controller);
    if (controller) {
      controller->take_tangents(arrays.controller_tangents);
      controller->start(slice);
    }
    load_values(arrays.qpos, b * (steps + 1) * model.nq, model.nq, qpos);
    const int nv = velocities(model);
    load_values(arrays.qvel, b * (steps + 1) * nv, nv, qvel);
    seed(arrays.qvel0_tan, b * nv, nv, qvel);
    if (arrays.qpos0_tan)
      seed_configuration(model, [&](int i) { return arrays.qpos0_tan[b * model.nv + i]; }, qpos);
    write_state(model, arrays, b, 0);
    for (std::size_t t = 0; t < steps; ++t) {
      if (cancel && cancel->cancelled()) return false;
      if (arrays.shape.starts_period(std::int64_t(t)))
        begin_period(model, arrays, slice, std::int64_t(t), controller);
      step(model, parameters, qpos, qvel, ctrl, false, workspace, qpos, qvel);
      set_values(arrays.qpos, (b * (steps + 1) + t + 1) * model.nq, model.nq, qpos);
      set_values(arrays.qvel, (b * (steps + 1) + t + 1) * nv, nv, qvel);
      write_state(model, arrays, b, t + 1);
    }
    return true;
  }

  // Sets the controls of the period that begins at step t: the stored values, with the tangents of the given controls and of
  // the controller's part, which is added to zero.
  void begin_period(const Model& model, const JvpArrays& arrays, const Slice& slice, std::int64_t t,
                    OptionalController<Real>& controller) {
    const std::int64_t c = arrays.shape.period(t);
    const std::size_t row = (slice.first * std::size_t(arrays.shape.periods()) + std::size_t(c)) * model.nu;
    gather_inputs(model, arrays.controller, c, slice, inputs);
    for (int i = 0; i < input_count; ++i)
      seed_period(arrays.controller_tangents.inputs[i], c, input_size(model, i), slice, inputs.of[i]);
    std::fill_n(ctrl, model.nu, Real(0));
    seed(arrays.ctrl_tan, row, model.nu, ctrl);
    if (controller) controller->add({model, arrays.shape, slice, t, qpos, qvel, parameters}, ctrl);
    set_values(arrays.ctrl, row, model.nu, ctrl);
    for (int a = 0; arrays.applied_tan && a < model.nu; ++a) arrays.applied_tan[row + a] = ctrl[a].tangent[0];
    if (controller) controller->remember(ctrl);
  }

  void load_dual_parameters(const ModelStorage& storage, const JvpArrays& arrays, int environment) {
    const ParameterPointers values = parameter_values(storage, arrays.parameters, environment);
    std::array<std::vector<Real>, parameter_count> duals;
    ParameterValues<Real> pointers;
    for (int p = 0; p < parameter_count; ++p) {
      const int size = storage.parameter_size(Parameter(p));
      duals[p].resize(size);
      load_values(values[p], 0, size, duals[p].data());
      const ParameterRows& tangents = arrays.parameter_tangents[p];
      seed(tangents.values, tangents.rows > 1 ? std::size_t(environment) * size : 0, size, duals[p].data());
      pointers[p] = duals[p].data();
    }
    const Model& model = model_for(storage, arrays.parameters);
    load_parameters(storage.parameters(), pointers, 0, model, parameters);
    if (arrays.controller.mlp.probes.size > 0)
      load_body_parameters(storage.parameters(), pointers, 0, model, parameters);
  }

  // d = 2 E(q)' dq/|q|^2, with half of E(q)' dq from a cotangent's projection
  void write_state(const Model& model, const JvpArrays& arrays, std::size_t b, std::size_t t) const {
    const std::size_t row = b * (arrays.shape.steps + 1) + t;
    double *dq = arrays.qpos_tan + row * model.nv, *dv = arrays.qvel_tan + row * velocities(model);
    for (int k = 0; k < velocities(model); ++k) dv[k] = qvel[k].tangent[0];
    for (int j = 0; j < model.njnt; ++j) {
      const Joint& joint = model.joints[j];
      const int linear = linear_coordinates(joint.type);
      for (int i = 0; i < linear; ++i) dq[joint.dof + i] = qpos[joint.qpos + i].tangent[0];
      if (joint.type > JointType::ball) continue;
      const Real* q = qpos + joint.qpos + linear;
      const Vector3<double> half = tangent_cotangent(
          Quaternion<double>{q[0].value, q[1].value, q[2].value, q[3].value},
          Quaternion<double>{q[0].tangent[0], q[1].tangent[0], q[2].tangent[0], q[3].tangent[0]});
      const double scale = 4.0 / (q[0].value * q[0].value + q[1].value * q[1].value +
                                  q[2].value * q[2].value + q[3].value * q[3].value);
      dq[joint.dof + linear] = scale * half.x;
      dq[joint.dof + linear + 1] = scale * half.y;
      dq[joint.dof + linear + 2] = scale * half.z;
    }
  }
};

}  // namespace

bool jvp(const ModelStorage& storage, const JvpArrays& arrays, const Execution& execution) {
  std::vector<Slice> environments;
  for (int b = 0; b < arrays.shape.batch; ++b) environments.push_back({b, 1});
  const Model& model = model_for(storage, arrays.parameters);
  // each environment runs alone here instead of in a pack, and carries tangents
  const double steps = 2.0 * lanes * arrays.shape.batch * arrays.shape.steps;
  return spread(environments, worthwhile_threads(execution, model, steps), [&] {
    return [&, runner = std::make_unique<LazyRunner<JvpRunner>>(model)](const Slice& slice) {
      return (**runner).run(storage, arrays, slice, execution.cancel);
    };
  });
}

}  // namespace revolute
