// The step, its adjoint and the stages that measurements and contacts run by themselves, declared as compiled elsewhere:
// src/step.cpp, src/step_adjoint.cpp and src/step_dual.cpp instantiate them once for all that call them, tests included.
#pragma once

#include "revolute/scalar/dual.hpp"
#include "revolute/scalar/lanes.hpp"
#include "revolute/step.hpp"

#ifndef REVOLUTE_LANES
#define REVOLUTE_LANES 4
#endif

namespace revolute {

constexpr int lanes = REVOLUTE_LANES;
using Pack = Lanes<lanes>;

#define REVOLUTE_STEP(external, Real)                                                                       \
  external template void collision_detection(const Model&, const Kinematics<Real>&, const Motion<Real>*,    \
                                             Real, Contacts<Real>&);                                        \
  external template void soft_stage(const Model&, const Parameters<Real>&, const Real*, const Real*,        \
                                    const Real*, bool, SoftStage<Real>&);                                   \
  external template void step(const Model&, const Parameters<Real>&, const Real*, const Real*, const Real*, \
                              bool, StepWorkspace<Real>&, Real*, Real*);
#define REVOLUTE_STEP_ADJOINT(external, Real)                                                               \
  external template void soft_stage_adjoint(                                                                \
      const Model&, const Parameters<Real>&, const Real*, const Real*, const Real*, const SoftStage<Real>&, \
      const Real*, const IntegratorCotangent<Real, Real>&, SoftStageAdjointWorkspace<Real>&, Real*, Real*,  \
      Real*, Parameters<Real>&, const SoftForceCotangent<Real>*);                                           \
  external template void step_adjoint(const Model&, const Parameters<Real>&, const Real*, const Real*,      \
                                      const Real*, const StepWorkspace<Real>&, StepAdjointWorkspace<Real>&, \
                                      StateCotangent<Real>&, Real*, Parameters<Real>&,                      \
                                      const ImpulseCotangent<Real>*);

REVOLUTE_STEP(extern, double)
REVOLUTE_STEP(extern, Pack)
REVOLUTE_STEP(extern, Dual<1>)
REVOLUTE_STEP_ADJOINT(extern, double)
REVOLUTE_STEP_ADJOINT(extern, Pack)

}  // namespace revolute
