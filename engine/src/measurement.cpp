// The one place where measurements are compiled (stages/measurement.hpp).
#include "packs.hpp"
#include "revolute/scalar/dual.hpp"
#include "revolute/stages/measured_cotangents.hpp"

namespace revolute {

#define REVOLUTE_MEASUREMENT(Real)                                                                   \
  template void measurement<Real>(const Model&, const Parameters<Real>&, const Probes&, const Real&, \
                                  const Real*, const Real*, const Real*, Measurement<Real>&, Real*);
#define REVOLUTE_MEASUREMENT_ADJOINT(Real)                                                                   \
  template void measurement_adjoint<Real>(const Model&, const Parameters<Real>&, const Probes&, const Real*, \
                                          const Real*, const Real*, const Measurement<Real>&, const Real*,   \
                                          MeasurementAdjointWorkspace<Real>&, const InputCotangents<Real>&);
REVOLUTE_MEASUREMENT(double)
REVOLUTE_MEASUREMENT(Pack)
REVOLUTE_MEASUREMENT(Dual<1>)
REVOLUTE_MEASUREMENT_ADJOINT(double)
REVOLUTE_MEASUREMENT_ADJOINT(Pack)

}  // namespace revolute
