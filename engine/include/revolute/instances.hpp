// The step and its adjoint for one environment and for a pack, declared as compiled elsewhere: src/step.cpp and
// src/step_adjoint.cpp instantiate them once for all that call them.
#pragma once

#include "revolute/scalar/lanes.hpp"
#include "revolute/step.hpp"

#ifndef REVOLUTE_LANES
#define REVOLUTE_LANES 4
#endif

namespace revolute {

constexpr int lanes = REVOLUTE_LANES;
using Pack = Lanes<lanes>;

#define REVOLUTE_STEP(external, Real)                                                                       \
  external template void step(const Model&, const Parameters<Real>&, const Real*, const Real*, const Real*, \
                              bool, StepWorkspace<Real>&, Real*, Real*);
#define REVOLUTE_STEP_ADJOINT(external, Real)                                                               \
  external template void step_adjoint(const Model&, const Parameters<Real>&, const Real*, const Real*,      \
                                      const Real*, const StepWorkspace<Real>&, StepAdjointWorkspace<Real>&, \
                                      StateCotangent<Real>&, Real*, Parameters<Real>&);

REVOLUTE_STEP(extern, double)
REVOLUTE_STEP(extern, Pack)
REVOLUTE_STEP_ADJOINT(extern, double)
REVOLUTE_STEP_ADJOINT(extern, Pack)

}  // namespace revolute
