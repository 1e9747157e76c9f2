#include "bench/limits/recipes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "core/base/error.h"

namespace pmaptrain::limits {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using Dims = memory::dims;

constexpr auto f32 = memory::data_type::f32, bf16 = memory::data_type::bf16;

dnnl::primitive_attr attributes(bool relu = false) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  if (relu) {
    dnnl::post_ops ops;
    ops.append_eltwise(algorithm::eltwise_relu, 0.0f, 0.0f);
    attributes.set_post_ops(ops);
  }
  return attributes;
}

// Height or width of a convolution with padding SAME; an odd element of it comes after the image.
struct Side {
  std::int64_t out, low, high;
  std::int64_t taps = 0;  // multiplications along the side, without those of padding

  Side(std::int64_t in, std::int64_t kernel, std::int64_t stride) : out((in + stride - 1) / stride) {
    const std::int64_t padding = std::max<std::int64_t>(0, (out - 1) * stride + kernel - in);
    low = padding / 2;
    high = padding - low;
    for (std::int64_t position = 0; position < out; ++position) {
      const std::int64_t start = position * stride - low;
      taps += std::min(start + kernel, in) - std::max<std::int64_t>(start, 0);
    }
  }
};

// Makes the recipes by walking the layers.
class Walk {
 public:
  Walk(const Network& network, std::int64_t batch)
      : n_(batch), positions_(network.positions), dtype_(network.bf16 ? bf16 : f32) {
    at_ = {network.height, network.width, network.channels, new_array(), new_array(), {}};
    walk(network.layers, new_array());
  }

  Step step() && {
    std::move(backward_.rbegin(), backward_.rend(), std::back_inserter(forward_));
    return {std::move(forward_), parameters_};
  }

 private:
  // A value between layers.
  struct Place {
    std::int64_t h, w, c;
    int array, gradient;
    memory::desc desc;  // in the layout of the primitive that wrote it
  };

  // Gradients between layers take turns in two arrays: each is read only by the layer before. That of the last result
  // is given.
  void walk(const std::vector<Layer>& layers, int last_gradient) {
    const std::array<int, 2> turns = {new_array(), new_array()};
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const int gradient = i + 1 == layers.size() ? last_gradient : turns[i % 2];
      result_gradient_ = gradient;
      append(layers[i]);
      at_.gradient = gradient;
    }
  }

  void append(const Layer& layer) {
    switch (layer.kind) {
      case Layer::Kind::conv: conv(layer); break;
      case Layer::Kind::batch_norm: batch_norm(layer); break;
      case Layer::Kind::max_pool: max_pool(); break;
      case Layer::Kind::global_avg_pool: global_avg_pool(); break;
      case Layer::Kind::dense: dense(layer); break;
      case Layer::Kind::residual: residual(layer); break;
      case Layer::Kind::product: product(layer); break;
      case Layer::Kind::attention: attention(layer); break;
    }
  }

  template <class Desc>
  static void add(std::vector<Recipe>& to, std::string name, const Desc& desc, std::vector<Argument> arguments,
                  double flops = 0) {
    to.push_back({std::move(name), desc.impl_info_str(), dnnl::primitive(desc.get()), desc.scratchpad_desc(),
                  std::move(arguments), flops});
  }

  // Forward, and the gradients of the kernel (with the bias's) and of the data. What differs between a convolution and
  // a dense layer is how descriptions are made.
  template <class Forward, class BackwardWeights, class BackwardData>
  void weighted(const std::string& name, bool bias, double flops, const Forward& forward,
                const BackwardWeights& weights, const BackwardData& data) {
    const bool is_first = forward_.empty();
    const int kernel = new_array(), kernel_gradient = new_array(), result = new_array();
    std::vector<Argument> of_forward = {{DNNL_ARG_SRC, forward.src_desc(), at_.array},
                                        {DNNL_ARG_WEIGHTS, forward.weights_desc(), kernel, true},
                                        {DNNL_ARG_DST, forward.dst_desc(), result}};
    std::vector<Argument> of_weights = {{DNNL_ARG_SRC, weights.src_desc(), at_.array},
                                        {DNNL_ARG_DIFF_WEIGHTS, weights.diff_weights_desc(), kernel_gradient},
                                        {DNNL_ARG_DIFF_DST, weights.diff_dst_desc(), result_gradient_}};
    if (bias) {
      of_forward.push_back({DNNL_ARG_BIAS, forward.bias_desc(), new_array(), true});
      of_weights.push_back({DNNL_ARG_DIFF_BIAS, weights.diff_bias_desc(), new_array()});
    }
    add(forward_, name + " forward", forward, std::move(of_forward), flops);
    if (!is_first) {
      add(backward_, name + " data gradient", data,
          {{DNNL_ARG_DIFF_SRC, data.diff_src_desc(), at_.gradient},
           {DNNL_ARG_WEIGHTS, data.weights_desc(), kernel, true},
           {DNNL_ARG_DIFF_DST, data.diff_dst_desc(), result_gradient_}},
          flops);
    }
    add(backward_, name + " kernel gradient", weights, std::move(of_weights), flops);
    at_.array = result;
    at_.desc = forward.dst_desc();
  }

  struct Sides {
    std::int64_t rows, inner, columns;
    std::int64_t batch = 1;
  };
  struct Factor {
    int array;
    bool shared = false;
  };

  // A matrix and the transposed one have the same number, but not the same layout, so they are two arrays.
  void multiply(std::vector<Recipe>& to, std::string name, const Sides& sides, int left, Factor right, int result,
                std::optional<memory::data_type> result_dtype = {}) {
    const auto matrices = [&](std::int64_t rows, std::int64_t columns, memory::data_type dtype) {
      const Dims dims = sides.batch == 1 ? Dims{rows, columns} : Dims{sides.batch, rows, columns};
      return memory::desc(dims, dtype, memory::format_tag::any);
    };
    const dnnl::matmul::primitive_desc product(
        engine(), matrices(sides.rows, sides.inner, dtype_), matrices(sides.inner, sides.columns, dtype_),
        matrices(sides.rows, sides.columns, result_dtype.value_or(dtype_)), attributes());
    const std::int64_t multiplications = sides.batch * sides.rows * sides.inner * sides.columns;
    add(to, std::move(name), product,
        {{DNNL_ARG_SRC, product.src_desc(), left},
         {DNNL_ARG_WEIGHTS, product.weights_desc(), right.array, right.shared},
         {DNNL_ARG_DST, product.dst_desc(), result}},
        2.0 * static_cast<double>(multiplications));
  }

  void conv(const Layer& layer) {
    const Side h(at_.h, layer.kernel, layer.stride), w(at_.w, layer.kernel, layer.stride);
    const Dims strides = {layer.stride, layer.stride}, low = {h.low, w.low}, high = {h.high, w.high};
    const memory::desc x = any({n_, at_.c, at_.h, at_.w}), y = any({n_, layer.features, h.out, w.out});
    const Dims kernel = {layer.features, at_.c, layer.kernel, layer.kernel};
    const memory::desc bias = layer.bias ? sums({layer.features}) : memory::desc();
    const auto direct = algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(engine(), prop_kind::forward_training, direct, x,
                                                            any(kernel), bias, y, strides, low, high,
                                                            attributes(layer.relu));
    const dnnl::convolution_backward_weights::primitive_desc weights(engine(), direct, x, sums(kernel), bias, y,
                                                                     strides, low, high, forward, attributes());
    const dnnl::convolution_backward_data::primitive_desc data(engine(), direct, x, any(kernel), y, strides, low, high,
                                                               forward, attributes());
    const double flops = 2.0 * static_cast<double>(n_ * h.taps * w.taps * at_.c * layer.features);
    weighted("conv_" + std::to_string(convs_++), layer.bias, flops, forward, weights, data);
    parameters_ += layer.features * (at_.c * layer.kernel * layer.kernel + layer.bias);
    at_.h = h.out;
    at_.w = w.out;
    at_.c = layer.features;
  }

  void dense(const Layer& layer) {
    const std::int64_t in = at_.c * at_.h * at_.w;
    const Dims x = {n_, in}, kernel = {layer.features, in}, y = {n_, layer.features};
    const dnnl::inner_product_forward::primitive_desc forward(engine(), prop_kind::forward_training, any(x),
                                                              any(kernel), sums({layer.features}), any(y),
                                                              attributes(layer.relu));
    const dnnl::inner_product_backward_weights::primitive_desc weights(
        engine(), any(x), sums(kernel), sums({layer.features}), any(y), forward, attributes());
    const dnnl::inner_product_backward_data::primitive_desc data(engine(), any(x), any(kernel), any(y), forward,
                                                                 attributes());
    const double flops = 2.0 * static_cast<double>(n_ * in * layer.features);
    weighted("dense_" + std::to_string(denses_++), true, flops, forward, weights, data);
    parameters_ += layer.features * (in + 1);
    at_.h = at_.w = 1;
    at_.c = layer.features;
  }

  // A dense layer without its bias, by matrix products, and with the gradient of its input even where it is the first:
  // an embedding is before it.
  void product(const Layer& layer) {
    const std::int64_t rows = n_ * positions_, in = at_.c, out = layer.features;
    const std::string name = "product_" + std::to_string(denses_++);
    const Factor kernel{new_array(), true};
    const int result = new_array();
    multiply(forward_, name + " forward", {rows, in, out}, at_.array, kernel, result);
    multiply(backward_, name + " data gradient", {rows, out, in}, result_gradient_, kernel, at_.gradient);
    multiply(backward_, name + " kernel gradient", {in, rows, out}, at_.array, {result_gradient_}, new_array(), f32);
    at_.array = result;
    at_.c = out;
  }

  // Of 64 queries at a time, with the keys that one of them sees. The backward pass computes the scores again.
  void attention(const Layer& layer) {
    constexpr std::int64_t most_queries = 64;
    const std::int64_t features = at_.c / 3, size = features / layer.heads, batch = n_ * layer.heads;
    const std::string name = "attention_" + std::to_string(attentions_++);
    const int result = new_array(), scores = new_array(), score_gradients = new_array();
    for (std::int64_t first = 0; first < positions_; first += most_queries) {
      const std::int64_t queries = std::min(most_queries, positions_ - first), keys = first + queries;
      const std::string of = name + " of " + std::to_string(keys) + " keys: ";
      const Sides of_scores{queries, size, keys, batch}, of_queries{queries, keys, size, batch},
          of_keys{keys, queries, size, batch};
      multiply(forward_, of + "scores", of_scores, at_.array, {at_.array}, scores);
      multiply(forward_, of + "values", of_queries, scores, {at_.array}, result);
      multiply(backward_, of + "gradient of keys", of_keys, score_gradients, {at_.array}, at_.gradient);
      multiply(backward_, of + "gradient of queries", of_queries, score_gradients, {at_.array}, at_.gradient);
      multiply(backward_, of + "gradient of values", of_keys, scores, {result_gradient_}, at_.gradient);
      multiply(backward_, of + "gradient of scores", of_scores, result_gradient_, {at_.array}, score_gradients);
      multiply(backward_, of + "scores again", of_scores, at_.array, {at_.array}, scores);
    }
    at_.array = result;
    at_.c = features;
  }

  void batch_norm(const Layer& layer) {
    expect_predecessor();
    auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    if (layer.relu) flags = flags | dnnl::normalization_flags::fuse_norm_relu;
    constexpr float epsilon = 1e-5f;
    const dnnl::batch_normalization_forward::primitive_desc forward(engine(), prop_kind::forward_training, at_.desc,
                                                                    at_.desc, epsilon, flags, attributes());
    const dnnl::batch_normalization_backward::primitive_desc backward(engine(), prop_kind::backward, at_.desc, at_.desc,
                                                                      at_.desc, epsilon, flags, forward, attributes());
    const int mean = new_array(), variance = new_array(), scale = new_array(), result = new_array();
    std::vector<Argument> of_forward = {
        {DNNL_ARG_SRC, at_.desc, at_.array},
        {DNNL_ARG_SCALE, forward.weights_desc(), scale, true},
        {DNNL_ARG_SHIFT, forward.weights_desc(), new_array(), true},
        {DNNL_ARG_MEAN, forward.mean_desc(), mean},
        {DNNL_ARG_VARIANCE, forward.variance_desc(), variance},
        {DNNL_ARG_DST, forward.dst_desc(), result},
    };
    std::vector<Argument> of_backward = {
        {DNNL_ARG_SRC, at_.desc, at_.array},
        {DNNL_ARG_SCALE, backward.weights_desc(), scale, true},
        {DNNL_ARG_MEAN, backward.mean_desc(), mean},
        {DNNL_ARG_VARIANCE, backward.variance_desc(), variance},
        {DNNL_ARG_DIFF_DST, backward.diff_dst_desc(), result_gradient_},
        {DNNL_ARG_DIFF_SRC, backward.diff_src_desc(), at_.gradient},
        {DNNL_ARG_DIFF_SCALE, backward.diff_weights_desc(), new_array()},
        {DNNL_ARG_DIFF_SHIFT, backward.diff_weights_desc(), new_array()},
    };
    if (layer.relu) {
      const Argument signs = {DNNL_ARG_WORKSPACE, forward.workspace_desc(), new_array()};
      of_forward.push_back(signs);
      of_backward.push_back(signs);
    }
    const std::string name = "batch_norm_" + std::to_string(norms_++);
    add(forward_, name + " forward", forward, std::move(of_forward));
    add(backward_, name + " gradient", backward, std::move(of_backward));
    parameters_ += 2 * at_.c;
    at_.array = result;
  }

  // The library's CPU implementation fuses neither the sum into a batch norm, nor that of the gradients into a
  // convolution. The sums, and the gradient of relu, are written over their first operand.
  void residual(const Layer& layer) {
    expect_predecessor();
    const std::string name = "residual_" + std::to_string(blocks_++);
    const Place start = at_;
    const int result_gradient = result_gradient_;
    const int shortcut_gradient = layer.shortcut.empty() ? result_gradient : new_array();
    const dnnl::binary::primitive_desc gradients(engine(), algorithm::binary_add, start.desc, start.desc, start.desc,
                                                 attributes());
    add(backward_, name + " sum of gradients", gradients,
        {{DNNL_ARG_SRC_0, start.desc, start.gradient},
         {DNNL_ARG_SRC_1, start.desc, shortcut_gradient},
         {DNNL_ARG_DST, start.desc, start.gradient}});
    walk(layer.layers, result_gradient);
    const Place result = at_;
    at_ = start;
    at_.gradient = shortcut_gradient;
    walk(layer.shortcut, result_gradient);
    if (at_.h != result.h || at_.w != result.w || at_.c != result.c) {
      fail_running("the shortcut of the measured network's " + name + " has another shape than its layers");
    }
    const dnnl::binary::primitive_desc sum(engine(), algorithm::binary_add, result.desc, result.desc, result.desc,
                                           attributes(true));
    add(forward_, name + " sum with relu", sum,
        {{DNNL_ARG_SRC_0, result.desc, result.array},
         {DNNL_ARG_SRC_1, result.desc, at_.array},
         {DNNL_ARG_DST, result.desc, result.array}});
    const auto relu = algorithm::eltwise_relu_use_dst_for_bwd;
    const dnnl::eltwise_forward::primitive_desc hint(engine(), prop_kind::forward_training, relu, result.desc,
                                                     result.desc, 0.0f, 0.0f, attributes());
    const dnnl::eltwise_backward::primitive_desc gradient(engine(), relu, result.desc, result.desc, result.desc, 0.0f,
                                                          0.0f, hint, attributes());
    add(backward_, name + " relu gradient", gradient,
        {{DNNL_ARG_DST, result.desc, result.array},
         {DNNL_ARG_DIFF_DST, result.desc, result_gradient},
         {DNNL_ARG_DIFF_SRC, result.desc, result_gradient}});
    at_ = result;
  }

  void max_pool() {
    pool("max_pool_" + std::to_string(pools_++), algorithm::pooling_max, {2, 2});
    at_.h /= 2;
    at_.w /= 2;
  }

  void global_avg_pool() {
    pool("global_avg_pool", algorithm::pooling_avg_exclude_padding, {at_.h, at_.w});
    at_.h = at_.w = 1;
  }

  // Over windows that lie beside each other, in the layout that the layer before it chose.
  void pool(const std::string& name, algorithm kind, const Dims& window) {
    expect_predecessor();
    const Dims none = {0, 0};
    const memory::desc y = any({n_, at_.c, at_.h / window[0], at_.w / window[1]});
    const dnnl::pooling_forward::primitive_desc forward(engine(), prop_kind::forward_training, kind, at_.desc, y,
                                                        window, window, none, none, none, attributes());
    const dnnl::pooling_backward::primitive_desc backward(engine(), kind, at_.desc, forward.dst_desc(), window, window,
                                                          none, none, none, forward, attributes());
    const int result = new_array();
    std::vector<Argument> of_forward = {{DNNL_ARG_SRC, forward.src_desc(), at_.array},
                                        {DNNL_ARG_DST, forward.dst_desc(), result}};
    std::vector<Argument> of_backward = {{DNNL_ARG_DIFF_DST, backward.diff_dst_desc(), result_gradient_},
                                         {DNNL_ARG_DIFF_SRC, backward.diff_src_desc(), at_.gradient}};
    if (kind == algorithm::pooling_max) {
      const Argument positions = {DNNL_ARG_WORKSPACE, forward.workspace_desc(), new_array()};
      of_forward.push_back(positions);
      of_backward.push_back(positions);
    }
    add(forward_, name + " forward", forward, std::move(of_forward));
    add(backward_, name + " gradient", backward, std::move(of_backward));
    at_.array = result;
    at_.desc = forward.dst_desc();
  }

  void expect_predecessor() const {
    if (forward_.empty()) fail_running("the measured network begins with neither a convolution nor a dense layer");
  }

  int new_array() { return arrays_++; }
  memory::desc any(const Dims& dims) const { return {dims, dtype_, memory::format_tag::any}; }
  // Of a bias and the gradients of parameters.
  static memory::desc sums(const Dims& dims) { return {dims, f32, memory::format_tag::any}; }

  int arrays_ = 0;
  std::int64_t n_, positions_;
  memory::data_type dtype_;
  Place at_;
  int result_gradient_ = 0;  // the array of the gradient of the current layer's result
  int convs_ = 0, norms_ = 0, denses_ = 0, pools_ = 0, blocks_ = 0, attentions_ = 0;
  std::int64_t parameters_ = 0;
  std::vector<Recipe> forward_, backward_;
};

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

Step step_of(const Network& network, std::int64_t batch) { return Walk(network, batch).step(); }

}  // namespace pmaptrain::limits
