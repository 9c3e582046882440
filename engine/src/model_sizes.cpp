// Checks that the sizes of the arrays fit together.
#include <stdexcept>
#include <string>

#include "model_builder.hpp"

namespace revolute {

void ModelBuilder::check_sizes() const {
  visit_sizes(in_, [](const char* name, std::size_t got, std::size_t wanted) {
    if (got != wanted)
      throw std::invalid_argument(std::string(name) + ": expected " + std::to_string(wanted) +
                                  " numbers, got " + std::to_string(got));
  });
}

}  // namespace revolute
