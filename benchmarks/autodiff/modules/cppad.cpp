#include "scalars/cppad.hpp"

#include "module.hpp"

PYBIND11_MODULE(autodiff_cppad, module) {
  revolute::define_programs<revolute::ByTape<revolute::CppADTape>>(module);
}
