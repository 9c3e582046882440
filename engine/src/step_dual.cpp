// The step on dual numbers: forward derivatives.
#include "revolute/instances.hpp"

namespace revolute {

REVOLUTE_STEP(, Dual<1>)

}  // namespace revolute
