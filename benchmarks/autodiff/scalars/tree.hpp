// A reverse-mode scalar that is a tree of its operations, without a tape and without sharing: the cotangent of a result is
// pushed down every path to the inputs. A value that is used twice is walked twice, so that the reverse pass costs as many
// visits as there are paths: exponential in the number of steps. (The `var` of the header-only library ADF works this way.)
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "foreign.hpp"

namespace revolute {

struct TreeNode {
  double value, cotangent;
  std::shared_ptr<TreeNode> a, b;
  double by_a, by_b;

  void push(double bar) {
    cotangent += bar;
    if (a) a->push(bar * by_a);
    if (b) b->push(bar * by_b);
  }
};

struct Tree {
  std::shared_ptr<TreeNode> node;

  Tree() = default;
  Tree(double constant) : node(std::make_shared<TreeNode>(TreeNode{constant, 0, {}, {}, 0, 0})) {}
  static Tree operation(double value, const Tree& a, double by_a) {
    Tree out(value);
    out.node->a = a.node;
    out.node->by_a = by_a;
    return out;
  }
  static Tree operation(double value, const Tree& a, double by_a, const Tree& b, double by_b) {
    Tree out = operation(value, a, by_a);
    out.node->b = b.node;
    out.node->by_b = by_b;
    return out;
  }
  double value() const { return node->value; }

  friend Tree operator+(const Tree& a, const Tree& b) { return operation(a.value() + b.value(), a, 1, b, 1); }
  friend Tree operator-(const Tree& a, const Tree& b) {
    return operation(a.value() - b.value(), a, 1, b, -1);
  }
  friend Tree operator*(const Tree& a, const Tree& b) {
    return operation(a.value() * b.value(), a, b.value(), b, a.value());
  }
  friend Tree operator/(const Tree& a, const Tree& b) {
    const double quotient = a.value() / b.value();
    return operation(quotient, a, 1 / b.value(), b, -quotient / b.value());
  }
  friend Tree operator-(const Tree& a) { return operation(-a.value(), a, -1); }
  Tree& operator+=(const Tree& b) { return *this = *this + b; }
  Tree& operator-=(const Tree& b) { return *this = *this - b; }
  Tree& operator*=(const Tree& b) { return *this = *this * b; }
  friend Tree sqrt(const Tree& a) {
    const double root = std::sqrt(a.value());
    return operation(root, a, 0.5 / root);
  }
  friend Tree sin(const Tree& a) { return operation(std::sin(a.value()), a, std::cos(a.value())); }
  friend Tree cos(const Tree& a) { return operation(std::cos(a.value()), a, -std::sin(a.value())); }
  friend Tree atan2(const Tree& s, const Tree& c) {
    const double square = s.value() * s.value() + c.value() * c.value();
    return operation(std::atan2(s.value(), c.value()), s, c.value() / square, c, -s.value() / square);
  }
};

template <>
struct Reading<Tree> {
  static double value(const Tree& a) { return a.value(); }
};

struct TreeTape {
  static constexpr const char* name = "tree";
  using Scalar = Tree;

  std::vector<Foreign<Scalar>> begin(const std::vector<double>& inputs) {
    inputs_.assign(inputs.begin(), inputs.end());
    std::vector<Foreign<Scalar>> out;
    for (const Tree& input : inputs_) out.push_back(Foreign<Scalar>::of(input));
    return out;
  }
  void end(const Foreign<Scalar>& loss) { loss_ = loss.scalar; }
  std::vector<double> reverse() {
    loss_.node->push(1.0);
    std::vector<double> out;
    for (const Tree& input : inputs_) out.push_back(input.node->cotangent);
    return out;
  }

 private:
  std::vector<Tree> inputs_;
  Tree loss_;
};

}  // namespace revolute
