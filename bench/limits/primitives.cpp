#include "bench/limits/primitives.h"

#include <algorithm>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>

#include "core/base/error.h"

namespace pmaptrain::limits {
namespace {

using dnnl::memory;
using dnnl::prop_kind;
using Dims = memory::dims;

const dnnl::engine& engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

constexpr auto f32 = memory::data_type::f32, bf16 = memory::data_type::bf16;
memory::desc any(const Dims& dims, memory::data_type dtype) { return {dims, dtype, memory::format_tag::any}; }

struct Argument {
  int index;  // DNNL_ARG_...
  memory::desc desc;
  bool shared;  // the same array for all devices: weights
};

struct Recipe {
  std::string name;
  std::string implementation;
  dnnl::primitive primitive;
  std::vector<Argument> arguments;
  double flops = 0;  // of one device
};

// Values that no implementation is slow on, or that index outside of a window: pooling's workspace holds positions.
void fill(memory& array) {
  std::mt19937 random(7);
  const std::size_t size = array.get_desc().get_size();
  void* data = array.get_data_handle();
  switch (array.get_desc().get_data_type()) {
    case memory::data_type::f32: {
      std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
      std::generate_n(static_cast<float*>(data), size / sizeof(float), [&] { return uniform(random); });
      break;
    }
    case memory::data_type::bf16:  // 1
      std::generate_n(static_cast<std::uint16_t*>(data), size / 2, [] { return std::uint16_t{0x3F80}; });
      break;
    case memory::data_type::s32:
      std::generate_n(static_cast<std::int32_t*>(data), size / 4,
                      [&] { return static_cast<std::int32_t>(random() % 4); });
      break;
    default:
      std::generate_n(static_cast<std::uint8_t*>(data), size, [&] { return static_cast<std::uint8_t>(random() % 4); });
  }
}

dnnl::primitive_attr attributes(bool relu) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  if (relu) {
    dnnl::post_ops ops;
    ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    attributes.set_post_ops(ops);
  }
  return attributes;
}

// The recipes of a step on one device, forward then backward, made by walking the layers.
class Walk {
 public:
  Walk(const Network& network, std::int64_t batch)
      : n_(batch), h_(network.height), w_(network.width), c_(network.channels), dtype_(network.bf16 ? bf16 : f32) {
    for (const Layer& layer : network.layers) {
      const bool first = forward_.empty();
      switch (layer.kind) {
        case Layer::Kind::conv: conv(layer, first); break;
        case Layer::Kind::max_pool: max_pool(first); break;
        case Layer::Kind::dense: dense(layer, first); break;
      }
    }
  }

  std::vector<Recipe> recipes() && {
    std::move(backward_.rbegin(), backward_.rend(), std::back_inserter(forward_));
    return std::move(forward_);
  }

 private:
  template <class Desc>
  void add(std::vector<Recipe>& to, std::string name, const Desc& desc, std::vector<Argument> arguments, double flops) {
    arguments.push_back({DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), true});
    to.push_back({std::move(name), desc.impl_info_str(), dnnl::primitive(desc.get()), std::move(arguments), flops});
  }

  // Forward with bias, and the gradients of the kernel (with the bias's) and of the data. What differs between a
  // convolution and a dense layer is how descriptions are made.
  template <class Forward, class BackwardWeights, class BackwardData>
  void weighted(const std::string& name, bool first, double flops, const Forward& forward,
                const BackwardWeights& weights, const BackwardData& data) {
    add(forward_, name + " forward", forward,
        {{DNNL_ARG_SRC, forward.src_desc(), false},
         {DNNL_ARG_WEIGHTS, forward.weights_desc(), true},
         {DNNL_ARG_BIAS, forward.bias_desc(), true},
         {DNNL_ARG_DST, forward.dst_desc(), false}},
        flops);
    if (!first) {
      add(backward_, name + " data gradient", data,
          {{DNNL_ARG_DIFF_SRC, data.diff_src_desc(), false},
           {DNNL_ARG_WEIGHTS, data.weights_desc(), true},
           {DNNL_ARG_DIFF_DST, data.diff_dst_desc(), false}},
          flops);
    }
    add(backward_, name + " kernel gradient", weights,
        {{DNNL_ARG_SRC, weights.src_desc(), false},
         {DNNL_ARG_DIFF_WEIGHTS, weights.diff_weights_desc(), false},
         {DNNL_ARG_DIFF_BIAS, weights.diff_bias_desc(), false},
         {DNNL_ARG_DIFF_DST, weights.diff_dst_desc(), false}},
        flops);
  }

  void conv(const Layer& layer, bool first) {
    const Dims x = {n_, c_, h_, w_}, kernel = {layer.features, c_, 3, 3}, y = {n_, layer.features, h_, w_};
    const Dims ones = {1, 1};
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(engine(), prop_kind::forward_training, algorithm, any(x),
                                                            any(kernel), sums({layer.features}), any(y), ones, ones,
                                                            ones, attributes(layer.relu));
    const dnnl::convolution_backward_weights::primitive_desc weights(engine(), algorithm, any(x), sums(kernel),
                                                                     sums({layer.features}), any(y), ones, ones, ones,
                                                                     forward, attributes(false));
    const dnnl::convolution_backward_data::primitive_desc data(engine(), algorithm, any(x), any(kernel), any(y), ones,
                                                               ones, ones, forward, attributes(false));
    const double flops = 2.0 * static_cast<double>(n_ * taps(h_) * taps(w_) * c_ * layer.features);
    weighted("conv_" + std::to_string(convs_++), first, flops, forward, weights, data);
    c_ = layer.features;
    latest_ = forward.dst_desc();
  }

  void dense(const Layer& layer, bool first) {
    const std::int64_t in = c_ * h_ * w_;
    const Dims x = {n_, in}, kernel = {layer.features, in}, y = {n_, layer.features};
    const dnnl::inner_product_forward::primitive_desc forward(engine(), prop_kind::forward_training, any(x),
                                                              any(kernel), sums({layer.features}), any(y),
                                                              attributes(layer.relu));
    const dnnl::inner_product_backward_weights::primitive_desc weights(
        engine(), any(x), sums(kernel), sums({layer.features}), any(y), forward, attributes(false));
    const dnnl::inner_product_backward_data::primitive_desc data(engine(), any(x), any(kernel), any(y), forward,
                                                                 attributes(false));
    const double flops = 2.0 * static_cast<double>(n_ * in * layer.features);
    weighted("dense_" + std::to_string(denses_++), first, flops, forward, weights, data);
    h_ = w_ = 1;
    c_ = layer.features;
    latest_ = forward.dst_desc();
  }

  void max_pool(bool first) {
    if (first) fail_running("the measured network begins with pooling");
    const Dims y = {n_, c_, h_ / 2, w_ / 2}, window = {2, 2}, none = {0, 0};
    const auto algorithm = dnnl::algorithm::pooling_max;
    // In the layout that the layer before it chose.
    const dnnl::pooling_forward::primitive_desc forward(engine(), prop_kind::forward_training, algorithm, latest_,
                                                        any(y), window, window, none, none, none, attributes(false));
    const dnnl::pooling_backward::primitive_desc backward(engine(), algorithm, latest_, forward.dst_desc(), window,
                                                          window, none, none, none, forward, attributes(false));
    const std::string name = "max_pool_" + std::to_string(pools_++);
    add(forward_, name + " forward", forward,
        {{DNNL_ARG_SRC, forward.src_desc(), false},
         {DNNL_ARG_DST, forward.dst_desc(), false},
         {DNNL_ARG_WORKSPACE, forward.workspace_desc(), false}},
        0);
    add(backward_, name + " gradient", backward,
        {{DNNL_ARG_DIFF_DST, backward.diff_dst_desc(), false},
         {DNNL_ARG_DIFF_SRC, backward.diff_src_desc(), false},
         {DNNL_ARG_WORKSPACE, forward.workspace_desc(), false}},
        0);
    h_ /= 2;
    w_ /= 2;
  }

  // Multiplications with a 3-wide kernel along a side of `size`: at either end one falls on the padding.
  static std::int64_t taps(std::int64_t size) { return 3 * size - 2; }

  memory::desc any(const Dims& dims) const { return limits::any(dims, dtype_); }
  // Of a bias and the gradients of parameters.
  static memory::desc sums(const Dims& dims) { return limits::any(dims, f32); }

  std::int64_t n_, h_, w_, c_;
  memory::data_type dtype_;
  int convs_ = 0, denses_ = 0, pools_ = 0;
  memory::desc latest_;
  std::vector<Recipe> forward_, backward_;
};

// A recipe's calls for a worker's devices, with arguments built beforehand.
class Calls {
 public:
  // `weights` has one array for each shared argument.
  Calls(const Recipe& recipe, std::int64_t devices, const std::vector<memory>& weights)
      : primitive_(recipe.primitive), stream_(engine()) {
    scratch_ = memory(recipe.arguments.back().desc, engine());
    for (std::int64_t device = 0; device < devices; ++device) {
      std::vector<dnnl_exec_arg_t> arguments;
      std::size_t next = 0;
      for (const Argument& argument : recipe.arguments) {
        memory array;
        if (argument.index == DNNL_ARG_SCRATCHPAD) {
          array = scratch_;
        } else if (argument.shared) {
          array = weights[next++];
        } else {
          array = memory(argument.desc, engine());
          fill(array);
          arrays_.push_back(array);
        }
        arguments.push_back({argument.index, array.get()});
      }
      arguments_.push_back(std::move(arguments));
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
  std::vector<memory> arrays_;
  std::vector<std::vector<dnnl_exec_arg_t>> arguments_;
  bool failed_ = false;
};

std::vector<memory> shared_arrays(const Recipe& recipe) {
  std::vector<memory> arrays;
  for (const Argument& argument : recipe.arguments) {
    if (!argument.shared || argument.index == DNNL_ARG_SCRATCHPAD) continue;
    arrays.emplace_back(argument.desc, engine());
    fill(arrays.back());
  }
  return arrays;
}

}  // namespace

Network cnn() {
  using enum Layer::Kind;
  return {"cnn", 32, 32, 3, 128, {{conv, 32, true}, {max_pool}, {conv, 64, true}, {max_pool}, {dense, 10}}};
}

Network fashion_mnist() {
  Network network = cnn();
  network.name = "fashion_mnist";
  network.height = network.width = 28;
  network.channels = 1;
  return network;
}

Network mlp() {
  using enum Layer::Kind;
  return {"mlp", 1, 1, 784, 256, {{dense, 512, true}, {dense, 512, true}, {dense, 10}}};
}

Network wide_mlp() {
  using enum Layer::Kind;
  return {"wide_mlp", 1, 1, 784, 256, {{dense, 4096, true}, {dense, 4096, true}, {dense, 10}}};
}

Network in_bf16(Network network) {
  network.name += "_bf16";
  network.bf16 = true;
  return network;
}

bool has_bf16_instructions() { return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16; }

NetworkTime measure(Team& team, const Network& network, std::int64_t devices, double seconds) {
  if (network.batch % devices != 0 || devices % team.size() != 0) {
    fail_running(std::to_string(devices) + " devices divide neither the batch nor over the workers");
  }
  const std::vector<Recipe> recipes = Walk(network, network.batch / devices).recipes();
  std::vector<std::vector<Calls>> calls;  // by recipe, then by worker
  std::vector<std::vector<memory>> weights;
  for (const Recipe& recipe : recipes) {
    weights.push_back(shared_arrays(recipe));
    std::vector<Calls>& workers = calls.emplace_back();
    for (int worker = 0; worker < team.size(); ++worker) {
      workers.emplace_back(recipe, devices / team.size(), weights.back());
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
