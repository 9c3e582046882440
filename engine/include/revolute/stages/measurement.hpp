// Measurement: numbers in the task space and MuJoCo's sensors, at one state, from a list of probes (model/probe.hpp).
// measured_values.hpp computes them, measured_cotangents.hpp pulls their cotangents back; only measurement.cpp includes both, so
// that they are compiled once.
//
// Probes of accelerations and forces need those of a step from the state:
//   "mujoco":  the acceleration and the constraint forces of soft_stage.hpp
//   "hard":    the mean ones of the step: (qvel+ - qvel)/h and impulses/h. With an impact within the step, the wrenches of
//              impulses are those of the configuration at the impact.
#pragma once

#include "revolute/model/probe.hpp"
#include "revolute/step.hpp"

namespace revolute {

// Where a ray of one environment meets a shape.
struct RayContact {
  int geom;  // -1: nowhere
  double distance;
  Vector3<double> gradient, curvature;  // rays.hpp, in the shape's frame
};

template <class Real>
struct Measurement {
  Kinematics<Real> own;  // used if the stage has none of this state
  SoftStage<Real> stage;
  StepWorkspace<Real> hard;
  Transmissions<Real> transmissions;
  LinkForceSums<Real> link_forces;
  Real* raw;                    // before the cutoff; behind the numbers room for one contact's
  Real* no_ctrl;                // [nu] zeros
  Real* of_joint;               // [nv] actuators' forces
  Real *a, *force;              // [nv] acceleration; [rows] forces of constraints
  Real *qpos_next, *qvel_next;  // hard: scratch
  Motion<Real>* hard_A;         // hard: [nv]
  Contact<Real>* points;        // [probes.candidates] nearest points of shapes
  Touch* touches;               // [probes.candidates, lane]
  MaskOf<Real>* exists;         // [probes.candidates]
  RayContact* rays;             // [probe, lane]
  int* order;                   // scratch: contacts that a sensor counts
  const Kinematics<Real>* kinematics;
  const Motion<Real>* A;
  const Real* ctrl;

  Measurement(const Model& model, const Probes& probes, Arena& arena)
      : Measurement(model, model_if(probes.acceleration && is_soft(model), model),
                    model_if(probes.acceleration && !is_soft(model), model), probes, arena) {}

 private:
  Measurement(const Model& model, const Model& soft, const Model& rigid, const Probes& probes, Arena& arena)
      : own(model, arena),
        stage(soft, arena),
        hard(rigid, arena),
        transmissions(model_if(probes.transmissions, model), arena),
        link_forces(model_if(probes.transmissions, model), arena) {
    constexpr int most_of_contact = 23;
    raw = arena.take<Real>(probes.size + most_of_contact);
    no_ctrl = arena.take<Real>(model.nu);
    for (Real** array : {&of_joint, &a, &qvel_next}) *array = arena.take<Real>(velocities(model));
    qpos_next = arena.take<Real>(model.nq);
    force =
        arena.take<Real>(SoftConstraints<Real>::row_capacity(soft) + ConstraintRows<Real>::capacity(rigid));
    hard_A = arena.take<Motion<Real>>(rigid.nv);
    points = arena.take<Contact<Real>>(probes.candidates.size());
    touches = arena.take<Touch>(probes.candidates.size() * Width<Real>::value);
    exists = arena.take<MaskOf<Real>>(probes.candidates.size());
    rays = arena.take<RayContact>(probes.list.size() * Width<Real>::value);
    order = arena.take<int>(contact_capacity(soft) + contact_capacity(rigid));
  }
};

// The cotangents that the adjoints of all frames add to.
template <class Real>
struct LinkCotangents {
  KinematicsCotangent<Real> kinematics;
  Force<Real>*V, *A;  // [nv]

  LinkCotangents(const Model& model, Arena& arena)
      : kinematics(model, arena),
        V(arena.take<Force<Real>>(model.nv)),
        A(arena.take<Force<Real>>(model.nv)) {}
  REVOLUTE_HD void clear(const Model& model) {
    kinematics.clear(model);
    for (int k = 0; k < model.nv; ++k) V[k] = A[k] = zero_force<Real>();
  }
};

template <class Real>
struct MeasurementAdjointWorkspace {
  LinkCotangents<Real> links;
  SoftStageAdjointWorkspace<Real> stage;
  StepAdjointWorkspace<Real> hard;
  StateCotangent<Real> state;  // hard
  TransmissionsCotangent<Real> transmissions;
  Real *a_bar, *zero, *force_bar, *cut, *lift;
  Motion<Real>*on_a, *on_b;  // of constraints ("mujoco") or rows ("hard")
  ContactCotangent<Real>* contacts;
  Real *actuator_length, *actuator_velocity, *actuator_force, *joint_force, *no_ctrl_bar;
  Motion<Real>* scratch;  // [nv]

  MeasurementAdjointWorkspace(const Model& model, const Probes& probes, Arena& arena)
      : MeasurementAdjointWorkspace(model, model_if(probes.acceleration && is_soft(model), model),
                                    model_if(probes.acceleration && !is_soft(model), model), probes, arena) {}

 private:
  MeasurementAdjointWorkspace(const Model& model, const Model& soft, const Model& rigid, const Probes& probes,
                              Arena& arena)
      : links(model, arena),
        stage(soft, arena),
        hard(rigid, arena),
        state(rigid, arena),
        transmissions(model_if(probes.transmissions, model), arena) {
    for (Real** array : {&a_bar, &zero, &lift, &joint_force}) *array = arena.take<Real>(model.nv);
    const std::size_t rows =
        SoftConstraints<Real>::row_capacity(soft) + ConstraintRows<Real>::capacity(rigid);
    force_bar = arena.take<Real>(rows);
    cut = arena.take<Real>(probes.size);
    for (Motion<Real>** array : {&on_a, &on_b})
      *array = arena.take<Motion<Real>>(SoftConstraints<Real>::capacity(soft) +
                                        ConstraintRows<Real>::capacity(rigid));
    contacts = arena.take<ContactCotangent<Real>>(contact_capacity(soft) + contact_capacity(rigid));
    for (Real** array : {&actuator_length, &actuator_velocity, &actuator_force, &no_ctrl_bar})
      *array = arena.take<Real>(model.nu);
    scratch = arena.take<Motion<Real>>(model.nv);
  }
};

// The cotangents of the inputs, which are added to: configuration tangents [nv], velocities, controls, parameters. `ctrl` may
// be null.
template <class Real>
struct InputCotangents {
  Real *qpos, *qvel, *ctrl;
  Parameters<Real>* parameters;
};

// Fills values [probes.size], and records what measurement_adjoint() reads. `ctrl` may be null if probes.ctrl is false.
template <class Real>
void measurement(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                 const Real& time, const Real* qpos, const Real* qvel, const Real* ctrl,
                 Measurement<Real>& ws, Real* values);

// Adds to `inputs`. `at` must be the workspace of measurement() at this state; bar has [probes.size].
template <class Real>
void measurement_adjoint(const Model& model, const Parameters<Real>& parameters, const Probes& probes,
                         const Real* qpos, const Real* qvel, const Real* ctrl, const Measurement<Real>& at,
                         const Real* bar, MeasurementAdjointWorkspace<Real>& ws,
                         const InputCotangents<Real>& inputs);

}  // namespace revolute
