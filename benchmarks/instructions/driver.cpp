// Runs one kind of call on a model from a file of arrays: what valgrind counts the instructions of.
//
//   instructions FILE WHAT BATCH STEPS      WHAT: forward | backward | jacobian
//
// FILE holds lines `name count values…`: MuJoCo's arrays by name, `start` (qpos) and `controls` [at least STEPS, nu]. A
// backward call comes after a rollout. Counts at two lengths give that of a step by their difference; loading cancels.
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "revolute/batch.hpp"

using namespace revolute;

namespace {

using Values = std::map<std::string, Doubles>;

Values read_values(const char* path) {
  Values out;
  std::ifstream in(path);
  std::string name, number;
  std::size_t count;
  while (in >> name >> count) {
    Doubles& values = out[name];
    values.resize(count);
    for (double& value : values) {
      in >> number;
      value = std::stod(number);  // a stream does not read nan
    }
  }
  return out;
}

template <class Number>
void assign(const Doubles& from, Number& value) {
  value = Number(from.at(0));
}
template <class Number>
void assign(const Doubles& from, std::vector<Number>& values) {
  values.assign(from.begin(), from.end());
}

// `batch` copies of an array
Doubles repeated(const Doubles& values, std::size_t count, int batch) {
  Doubles out;
  for (int b = 0; b < batch; ++b) out.insert(out.end(), values.begin(), values.begin() + count);
  return out;
}

struct Run {
  const ModelStorage& storage;
  BatchShape shape;
  Doubles start, rest, ctrl, qpos, qvel;
  std::vector<std::int32_t> status;

  Run(const ModelStorage& model_storage, const Values& values, BatchShape run_shape)
      : storage(model_storage), shape(run_shape) {
    const Model& model = storage.model();
    const std::size_t states = std::size_t(shape.steps) + 1;
    start = repeated(values.at("start"), model.nq, shape.batch);
    rest.assign(std::size_t(shape.batch) * model.nv, 0.0);
    ctrl = repeated(values.at("controls"), std::size_t(shape.steps) * model.nu, shape.batch);
    status.resize(shape.batch);
    qpos.resize(shape.batch * states * model.nq);
    qvel.resize(shape.batch * states * model.nv);
  }
  bool forward() {
    std::vector<std::int64_t> diverged(shape.batch);
    Doubles last_qpos(start.size()), last_qvel(rest.size());
    RolloutArrays arrays{};
    arrays.shape = shape;
    arrays.qpos0 = start.data();
    arrays.qvel0 = rest.data();
    arrays.ctrl = ctrl.data();
    arrays.kept = {qpos.data(), qvel.data()};  // every state
    arrays.last = {last_qpos.data(), last_qvel.data()};
    arrays.status = status.data();
    arrays.diverged_step = diverged.data();
    return rollout(storage, arrays, {}) && diverged[0] < 0;
  }
  bool backward() {
    const Model& model = storage.model();
    const Doubles qpos_bar(qpos.size(), 1.0), qvel_bar(qvel.size(), 1.0);
    std::vector<std::int64_t> replayed(shape.batch);
    Doubles qpos0_bar(start.size()), qvel0_bar(rest.size()), ctrl_bar(ctrl.size());
    BackwardArrays arrays{};
    arrays.shape = shape;
    arrays.cotangents = 1;
    arrays.kept = {qpos.data(), qvel.data()};
    arrays.ctrl = ctrl.data();
    arrays.status = status.data();
    arrays.bars.qpos = qpos_bar.data();
    arrays.bars.qvel = qvel_bar.data();
    arrays.replayed_steps = replayed.data();
    arrays.qpos0_bar = qpos0_bar.data();
    arrays.qvel0_bar = qvel0_bar.data();
    arrays.ctrl_bar = ctrl_bar.data();
    return revolute::backward(storage, arrays, {}) && model.nv > 0;
  }
  bool jacobian() {
    const Model& model = storage.model();
    const int nx = 2 * model.nv;
    Doubles A(std::size_t(nx) * nx), B(std::size_t(nx) * model.nu);
    const double *q = &qpos[shape.steps * model.nq], *v = &qvel[shape.steps * model.nv];
    JacobianArrays arrays{};
    arrays.batch = 1;
    arrays.qpos = q;
    arrays.qvel = v;
    arrays.ctrl = ctrl.data();
    arrays.A = A.data();
    arrays.B = B.data();
    std::uint8_t finite;
    arrays.finite = &finite;
    return revolute::jacobian(storage, arrays, {}) && finite;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: instructions FILE forward|backward|jacobian BATCH STEPS\n";
    return 2;
  }
  const Values values = read_values(argv[1]);
  MujocoArrays arrays;
  visit_arrays(arrays, [&](const char* name, auto& member) { assign(values.at(name), member); });
  const ModelStorage storage(arrays);
  const std::string what = argv[2];
  Run run(storage, values, {std::stoi(argv[3]), std::stoi(argv[4])});
  const bool done =
      run.forward() && (what == "forward" || (what == "backward" ? run.backward() : run.jacobian()));
  return done ? 0 : 1;
}
