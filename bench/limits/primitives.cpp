#include "bench/limits/primitives.h"

#include <algorithm>
#include <bit>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <span>
#include <utility>

#include "bench/limits/recipes.h"
#include "core/base/error.h"

namespace pmaptrain::limits {
namespace {

using dnnl::memory;

// `next` gives the first values; the others repeat them.
template <class T, class Next>
void fill_with(memory& array, const Next& next) {
  T* data = static_cast<T*>(array.get_data_handle());
  const std::size_t size = array.get_desc().get_size() / sizeof(T), drawn = std::min<std::size_t>(size, 4099);
  std::generate_n(data, drawn, next);
  for (std::size_t i = drawn; i < size; ++i) data[i] = data[i - drawn];
}

// Values that no implementation is slow on: products of them grow, at worst to infinity and NaN, and do not shrink to
// denormal numbers.
void fill(memory& array) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  switch (array.get_desc().get_data_type()) {
    case memory::data_type::f32: fill_with<float>(array, [&] { return uniform(random); }); break;
    case memory::data_type::bf16:  // the upper half of an f32
      fill_with<std::uint16_t>(
          array, [&] { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(uniform(random)) >> 16); });
      break;
    default: fill_with<std::uint8_t>(array, [] { return std::uint8_t{0}; });  // written before it is read
  }
}

// The arrays of a device, or those that all share, made as they are first asked for.
class Arrays {
 public:
  const memory& at(const Argument& argument) {
    std::vector<memory>& layouts = arrays_[argument.array];
    const auto found = std::find_if(layouts.begin(), layouts.end(),
                                    [&](const memory& array) { return array.get_desc() == argument.desc; });
    if (found != layouts.end()) return *found;
    layouts.emplace_back(argument.desc, engine());
    fill(layouts.back());
    return layouts.back();
  }

 private:
  std::map<int, std::vector<memory>> arrays_;
};

// A recipe's calls for a worker's devices, with arguments built beforehand.
class Calls {
 public:
  Calls(const Recipe& recipe, Arrays& shared, std::span<Arrays> devices)
      : primitive_(recipe.primitive), stream_(engine()), scratch_(recipe.scratch, engine()) {
    for (Arrays& own : devices) {
      std::vector<dnnl_exec_arg_t>& arguments = arguments_.emplace_back();
      for (const Argument& argument : recipe.arguments) {
        arguments.push_back({argument.index, (argument.shared ? shared : own).at(argument).get()});
      }
      arguments.push_back({DNNL_ARG_SCRATCHPAD, scratch_.get()});
    }
  }

  void run() {
    for (const auto& arguments : arguments_) {
      if (dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments.size()),
                                 arguments.data()) != dnnl_success) {
        failed_ = true;
      }
    }
  }

  bool failed() const { return failed_; }

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  memory scratch_;
  std::vector<std::vector<dnnl_exec_arg_t>> arguments_;  // for each device
  bool failed_ = false;
};

}  // namespace

bool has_bf16_instructions() { return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16; }

NetworkTime measure(Team& team, const Network& network, std::int64_t devices, double seconds) {
  if (network.batch % devices != 0 || devices % team.size() != 0) {
    fail_running(std::to_string(devices) + " devices divide neither the batch nor over the workers");
  }
  const Step step = step_of(network, network.batch / devices);
  const std::vector<Recipe>& recipes = step.recipes;
  Arrays shared;
  std::vector<Arrays> own(static_cast<std::size_t>(devices));
  const std::size_t devices_of_worker = own.size() / static_cast<std::size_t>(team.size());
  std::vector<std::vector<Calls>> calls;  // by recipe, then by worker
  for (const Recipe& recipe : recipes) {
    std::vector<Calls>& workers = calls.emplace_back();
    for (std::size_t first = 0; first < own.size(); first += devices_of_worker) {
      workers.emplace_back(recipe, shared, std::span(own).subspan(first, devices_of_worker));
    }
  }

  std::vector<std::vector<double>> samples(recipes.size());
  repeat(seconds, [&] {
    double total = 0;
    for (std::size_t i = 0; i < recipes.size(); ++i) {
      const double taken = team.run([&](int worker) { calls[i][static_cast<std::size_t>(worker)].run(); });
      samples[i].push_back(taken);
      total += taken;
    }
    return total;
  });

  NetworkTime result;
  result.parameters = step.parameters;
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    for (const Calls& call : calls[i]) {
      if (call.failed()) fail_running("oneDNN failed to run " + recipes[i].name);
    }
    samples[i].erase(samples[i].begin());  // that touched its memory for the first time
    const Seconds taken = statistics(std::move(samples[i]));
    result.primitives.push_back(
        {recipes[i].name, recipes[i].implementation, taken, recipes[i].flops * static_cast<double>(devices)});
    result.seconds.median += taken.median;
    result.seconds.min += taken.min;
  }
  return result;
}

}  // namespace pmaptrain::limits
