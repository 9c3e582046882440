#include "scalars/jet.hpp"

#include "module.hpp"

PYBIND11_MODULE(autodiff_jet, module) {
  revolute::define_programs<revolute::ByStepJacobians<revolute::Jet>>(module);
}
