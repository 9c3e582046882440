#include "scalars/adolc.hpp"

#include "module.hpp"

PYBIND11_MODULE(autodiff_adolc, module) {
  revolute::define_programs<revolute::ByTape<revolute::AdolcTape>>(module);
}
