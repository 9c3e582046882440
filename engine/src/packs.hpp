// Shared parts of all batch calls: packs of environments, gathering and scattering, workspaces, threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "revolute/batch.hpp"
#include "revolute/instances.hpp"

namespace revolute {

// Environments first .. first + count - 1 of the batch. Lanes beyond count repeat the last environment.
struct Slice {
  int first, count;
  int environment(int lane) const { return first + std::min(lane, count - 1); }
};

template <class Real>
void gather(const double* array, std::size_t stride, std::size_t offset, int size, const Slice& slice,
            Real* out) {
  for (int lane = 0; lane < Width<Real>::value; ++lane) {
    const double* row = array + slice.environment(lane) * stride + offset;
    for (int i = 0; i < size; ++i) set_lane(out[i], lane, row[i]);
  }
}
template <class Real>
void scatter(const Real* values, std::size_t stride, std::size_t offset, int size, const Slice& slice,
             double* array) {
  for (int lane = 0; lane < slice.count; ++lane) {
    double* row = array + slice.environment(lane) * stride + offset;
    for (int i = 0; i < size; ++i) row[i] = get_lane(values[i], lane);
  }
}

inline ParameterPointers parameter_values(const ModelStorage& storage, const ParameterInputs& inputs,
                                          int environment) {
  ParameterPointers out;
  for (int p = 0; p < parameter_count; ++p) {
    const std::size_t size = storage.parameter_size(Parameter(p));
    out[p] = !inputs[p].values ? storage.parameters().defaults[p].data()
                               : inputs[p].values + (inputs[p].rows > 1 ? environment * size : 0);
  }
  return out;
}

// The model that a call with these parameters needs.
inline const Model& model_for(const ModelStorage& storage, const ParameterInputs& parameters) {
  return parameters[int(Parameter::dof_frictionloss)].values ? storage.model() : storage.model_as_loaded();
}

inline bool per_environment(const ParameterInputs& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const ParameterRows& given) { return given.rows > 1; });
}

// Environments in packs of `lanes`. A single environment left over runs alone; with a crowded model every one runs alone.
inline std::vector<Slice> slices(const Model& model, int batch) {
  const int size = is_crowded(model) ? 1 : lanes;
  std::vector<Slice> out;
  for (int first = 0; first < batch; first += size) out.push_back({first, std::min(size, batch - first)});
  return out;
}

// Loads the parameters of a slice's environments; `measured` adds those that only measurements read.
template <class Real>
void load_parameters_of(const ModelStorage& storage, const ParameterInputs& inputs, const Slice& slice,
                        const Model& model, bool measured, Parameters<Real>& out) {
  const auto load_into = [&](int lane, int environment) {
    const ParameterPointers values = parameter_values(storage, inputs, environment);
    load_parameters(storage.parameters(), values, lane, model, out);
    if (measured) load_body_parameters(storage.parameters(), values, lane, model, out);
  };
  if (!per_environment(inputs)) return load_into(every_lane, slice.first);
  for (int lane = 0; lane < Width<Real>::value; ++lane) load_into(lane, slice.environment(lane));
}

// One thread's values of the inputs that change with time, or their cotangents.
template <class Real>
struct InputArrays {
  Real* of[input_count];

  InputArrays(const Model& model, Arena& arena) {
    for (int i = 0; i < input_count; ++i) of[i] = arena.take<Real>(input_size(model, i));
  }
  // Makes steps read the inputs for which given(input) holds; mocap bodies that are not given keep the poses of the file.
  template <class Given>
  void attach(const Model& model, const Given& given, Parameters<Real>& parameters) {
    for (int i = 0; i < input_count; ++i) {
      const double* const values = input_default(model, i);
      for (int k = 0; k < input_size(model, i); ++k) of[i][k] = Real(values ? values[k] : 0.0);
      parameters.inputs[i] = given(i) || values ? of[i] : nullptr;
    }
  }
  // Makes adjoints add to these arrays.
  void attach_bars(Parameters<Real>& parameters_bar) {
    for (int i = 0; i < input_count; ++i) parameters_bar.inputs[i] = of[i];
  }
  void clear(const Model& model) {
    for (int i = 0; i < input_count; ++i) std::fill_n(of[i], input_size(model, i), Real(0));
  }
};

template <class Runner, class... Extra>
class LazyRunner {
 public:
  LazyRunner(const Model& model, Extra... extra)
      : arena_(measure(model, extra...)), runner_(model, extra..., arena_) {}
  Runner& operator*() { return runner_; }

 private:
  static std::size_t measure(const Model& model, Extra... extra) {
    Arena counting;
    Runner sized(model, extra..., counting);
    return counting.used();
  }
  Arena arena_;
  Runner runner_;
};

// The number of threads that have enough work. Starting a thread and waiting for it takes about 25 us, and longer if other
// programs want the processor. A step of an environment in a pack takes about 0.03 us per degree of freedom. `steps` counts
// the steps of all environments.
inline int worthwhile_threads(const Execution& execution, const Model& model, double steps) {
  constexpr double steps_of_dofs = 1500;
  return int(std::min<double>(execution.threads, 1 + steps * model.nv / steps_of_dofs));
}

// Calls work(slice) for all slices on up to `threads` threads, or fewer if the system refuses to start one. `make_worker` gives
// each thread its own workspace.
template <class MakeWorker>
bool spread(const std::vector<Slice>& work, int threads, MakeWorker make_worker) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> completed{true};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto run = [&] {
    try {
      auto worker = make_worker();
      for (std::size_t i = next++; i < work.size() && completed; i = next++)
        if (!worker(work[i])) completed = false;
    } catch (...) {
      const std::lock_guard<std::mutex> lock(failure_mutex);
      failure = std::current_exception();
      completed = false;
    }
  };
  std::vector<std::thread> others;
  const int count = std::min<int>(threads, int(work.size()));
  others.reserve(std::max(count, 1));
  try {
    for (int i = 1; i < count; ++i) others.emplace_back(run);
  } catch (const std::exception&) {
    // the system has no room for another thread: the started threads do the work
  }
  run();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
  return completed;
}

// Whether a slice runs as a pack; one environment runs alone.
template <class Arrays>
bool fills_pack(const Arrays&, const Slice& slice) {
  return slice.count > 1;
}

template <class Arrays>
const ParameterInputs& parameters_of(const Arrays& arrays) {
  return arrays.parameters;
}

// A worker that has a runner for single environments and one for packs, each made when first needed.
template <template <class> class Runner, class Arrays, class... Extra>
auto worker(const ModelStorage& storage, const Arrays& arrays, const Execution& execution, Extra... extra) {
  return [&storage, &arrays, &execution, extra...] {
    using Single = LazyRunner<Runner<double>, Extra...>;
    using Packed = LazyRunner<Runner<Pack>, Extra...>;
    return [&storage, &arrays, &execution, single = std::unique_ptr<Single>(),
            packed = std::unique_ptr<Packed>(), extra...](const Slice& slice) mutable {
      if (!fills_pack(arrays, slice)) {
        if (!single) single = std::make_unique<Single>(model_for(storage, parameters_of(arrays)), extra...);
        return (**single).run(storage, arrays, slice, execution.cancel);
      }
      if (!packed) packed = std::make_unique<Packed>(model_for(storage, parameters_of(arrays)), extra...);
      return (**packed).run(storage, arrays, slice, execution.cancel);
    };
  };
}

}  // namespace revolute
