#include "scalars/tree.hpp"

#include "module.hpp"

PYBIND11_MODULE(autodiff_tree, module) {
  revolute::define_programs<revolute::ByTape<revolute::TreeTape>>(module);
}
