#include "revolute/instances.hpp"

namespace revolute {

REVOLUTE_STEP_ADJOINT(, double)
REVOLUTE_STEP_ADJOINT(, Pack)

}  // namespace revolute
