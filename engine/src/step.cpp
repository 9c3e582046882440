#include "revolute/instances.hpp"

namespace revolute {

REVOLUTE_STEP(, double)
REVOLUTE_STEP(, Pack)

}  // namespace revolute
