// One step and its adjoint for each environment, one thread each: compiled for the device in float and double to keep the
// stages fit for it (test_device_build.py). Workspaces are taken from arenas by the host; a thread only reads their pointers.
#include "revolute/step.hpp"

namespace revolute {

template <class Real>
__global__ void forward(const Model* model, const Parameters<Real>* parameters, const Real* ctrl,
                        StepWorkspace<Real>* workspaces, Real* qpos, Real* qvel) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  Real *q = qpos + i * model->nq, *v = qvel + i * model->nv;
  step(*model, *parameters, q, v, ctrl + i * model->nu, true, workspaces[i], q, v);
}

template <class Real>
__global__ void backward(const Model* model, const Parameters<Real>* parameters, const Real* qpos,
                         const Real* qvel, const Real* ctrl, StepWorkspace<Real>* workspaces,
                         StepAdjointWorkspace<Real>* adjoint, StateCotangent<Real>* state_bar, Real* ctrl_bar,
                         Parameters<Real>* parameters_bar) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  step_adjoint(*model, *parameters, qpos + i * model->nq, qvel + i * model->nv, ctrl + i * model->nu,
               workspaces[i], adjoint[i], state_bar[i], ctrl_bar + i * model->nu, parameters_bar[i]);
}

#define REVOLUTE_FOR_DEVICE(Real)                                                                            \
  template __global__ void forward<Real>(const Model*, const Parameters<Real>*, const Real*,                 \
                                         StepWorkspace<Real>*, Real*, Real*);                                \
  template __global__ void backward<Real>(const Model*, const Parameters<Real>*, const Real*, const Real*,   \
                                          const Real*, StepWorkspace<Real>*, StepAdjointWorkspace<Real>*,    \
                                          StateCotangent<Real>*, Real*, Parameters<Real>*);
REVOLUTE_FOR_DEVICE(float)
REVOLUTE_FOR_DEVICE(double)

}  // namespace revolute
