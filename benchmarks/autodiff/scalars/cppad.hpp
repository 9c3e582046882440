// CppAD: reverse mode from a recorded tape of the whole rollout.
#pragma once

#include <cppad/cppad.hpp>

#include "foreign.hpp"

namespace revolute {

template <>
struct Reading<CppAD::AD<double>> {
  static double value(const CppAD::AD<double>& a) { return CppAD::Value(CppAD::Var2Par(a)); }
};

struct CppADTape {
  static constexpr const char* name = "cppad";
  using Scalar = CppAD::AD<double>;

  std::vector<Foreign<Scalar>> begin(const std::vector<double>& inputs) {
    inputs_.assign(inputs.begin(), inputs.end());
    values_ = inputs;
    CppAD::Independent(inputs_);
    std::vector<Foreign<Scalar>> out;
    for (const Scalar& input : inputs_) out.push_back(Foreign<Scalar>::of(input));
    return out;
  }
  void end(const Foreign<Scalar>& loss) { recorded_.Dependent(inputs_, std::vector<Scalar>{loss.scalar}); }
  std::vector<double> reverse() {
    recorded_.Forward(0, values_);  // Reverse needs the tape's values
    return recorded_.Reverse(1, std::vector<double>{1.0});
  }

 private:
  std::vector<double> values_;
  std::vector<Scalar> inputs_;
  CppAD::ADFun<double> recorded_;
};

}  // namespace revolute
