#include "revolute/instances.hpp"

namespace revolute {

REVOLUTE_MEASUREMENT(, double)
REVOLUTE_MEASUREMENT(, Pack)

}  // namespace revolute
