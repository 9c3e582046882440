// ADOL-C: reverse mode from a trace of the whole rollout. Traces beyond its buffers go to files in the working directory.
#pragma once

#include <adolc/adolc.h>

#include "foreign.hpp"

namespace revolute {

template <>
struct Reading<adouble> {
  static double value(const adouble& a) { return a.value(); }
};

struct AdolcTape {
  static constexpr const char* name = "adolc";
  using Scalar = adouble;

  std::vector<Foreign<Scalar>> begin(const std::vector<double>& inputs) {
    inputs_ = inputs;
    trace_on(tag);
    std::vector<Foreign<Scalar>> out(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) out[i].scalar <<= inputs[i];
    return out;
  }
  void end(const Foreign<Scalar>& loss) {
    double value;
    adouble result = loss.scalar;
    result >>= value;
    trace_off();
  }
  std::vector<double> reverse() {
    std::vector<double> out(inputs_.size());
    ::gradient(tag, int(inputs_.size()), inputs_.data(), out.data());
    return out;
  }

 private:
  static constexpr short tag = 1;
  std::vector<double> inputs_;
};

}  // namespace revolute
