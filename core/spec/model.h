// The section `model` of a config: layers and initial values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/spec/durations.h"
#include "core/spec/initializers.h"

namespace pmaptrain::spec {

// An initializer without a value is the layer's own: docs/models.md.
using KernelInit = std::optional<KernelInitializer>;
using VectorInit = std::optional<VectorInitializer>;

struct Dense {
  std::int64_t features = 1;
  bool use_bias = true;
  KernelInit kernel_init = {};
  VectorInit bias_init = {};
};
enum class PaddingKind { same, valid, explicit_ };
struct Padding {
  PaddingKind kind = PaddingKind::same;
  std::vector<std::pair<std::int64_t, std::int64_t>>
      amounts;  // explicit_: padding before and after, of height and of width
};
struct Conv {
  std::int64_t features = 1;
  std::vector<std::int64_t> kernel_size;       // height, width
  std::vector<std::int64_t> strides = {1, 1};  // height, width
  Padding padding;
  bool use_bias = true;
  std::vector<std::int64_t> kernel_dilation = {1, 1};  // height, width
  std::int64_t feature_group_count = 1;
  KernelInit kernel_init = {};
  VectorInit bias_init = {};
};
struct MaxPool {
  std::vector<std::int64_t> window_shape, strides;
  Padding padding{PaddingKind::valid, {}};
};
struct AvgPool {
  std::vector<std::int64_t> window_shape, strides;
  Padding padding{PaddingKind::valid, {}};
  bool count_include_pad = true;
};
struct GlobalAvgPool {};
struct Reshape {
  std::vector<std::int64_t> shape;  // of one example; one size may be -1
};
struct Flatten {};
struct Dropout {
  double rate = 0.5;
};
struct Relu {};
struct Tanh {};
enum class GeluFunction { tanh, exact };
struct Gelu {
  GeluFunction approximate = GeluFunction::tanh;
};
struct Sigmoid {};
struct Silu {};
struct Softmax {};  // along the last dimension
struct LeakyRelu {
  double negative_slope = 0.01;
};
struct Elu {
  double alpha = 1.0;
};
struct Softplus {};
struct LayerNorm {
  double epsilon = 1e-6;
  bool use_scale = true, use_bias = true;
  VectorInit scale_init = {}, bias_init = {};
};
struct RmsNorm {
  double epsilon = 1e-6;
  bool use_scale = true, use_bias = false;
  VectorInit scale_init = {}, bias_init = {};
};
struct GroupNorm {
  std::int64_t num_groups = 32;
  double epsilon = 1e-6;
  bool use_scale = true, use_bias = true;
  VectorInit scale_init = {}, bias_init = {};
};
struct AxisNames {
  std::vector<std::string> names;  // of mesh axes
};
struct BatchNorm {
  AxisNames axes;  // over which statistics are, besides the rows of a device
  double momentum = 0.99, epsilon = 1e-5;
  bool use_scale = true, use_bias = true;
  VectorInit scale_init = {}, bias_init = {};
};
struct Transpose {
  std::vector<std::int64_t> permutation;  // of the dimensions of one example
};
struct Embedding {
  std::int64_t num_embeddings = 1, features = 1;
  KernelInit embedding_init = {};
};
struct Attend {
  std::string embedding;  // the path of the layer whose table it takes
};
struct PositionEmbedding {
  std::int64_t length = 1;
  KernelInit embedding_init = {};
};
struct Rotary {
  double base = 10000.0;
};
struct Attention {
  std::int64_t heads = 1;
  std::optional<std::int64_t> kv_heads = {}, head_dim = {};  // default: heads, and features / heads
  bool causal = false;
  double dropout = 0.0;
  bool use_bias = true;
  std::optional<Rotary> rotary = {};
  bool qk_norm = false;
  KernelInit kernel_init = {};
  VectorInit bias_init = {};
};
struct Swiglu {
  std::int64_t hidden = 1;
  KernelInit kernel_init = {};
};
struct Layer;
struct Layers {
  std::vector<Layer> layers;
};
struct Residual {
  std::vector<Layer> layers, shortcut;  // an empty shortcut is the identity
};
struct Repeat {
  std::int64_t times = 1;
  std::vector<Layer> layers;
  bool remat = false;  // of each time
};
using LayerKind =
    std::variant<Dense, Conv, MaxPool, AvgPool, GlobalAvgPool, Reshape, Layers, Residual, Repeat, Flatten, Transpose,
                 Dropout, LayerNorm, RmsNorm, GroupNorm, BatchNorm, Embedding, Attend, PositionEmbedding, Attention,
                 Swiglu, Relu, Tanh, Gelu, Sigmoid, Silu, Softmax, LeakyRelu, Elu, Softplus>;
// The key of the layer: "conv".
std::string to_string(const LayerKind& kind);

// What is computed in which element type: all in f32; or the operands of products, activations and their cotangents in
// bf16 (Micikevicius et al., "Mixed Precision Training", 2018).
enum class PrecisionPolicy { float32, mixed_bfloat16 };
std::string to_string(PrecisionPolicy precision);

struct Layer {
  std::string name;  // unique in its list; default: the kind and its index among that kind (conv_0)
  LayerKind kind;
  Place place;
  std::optional<PrecisionPolicy> precision = {};  // default: that of the list around it
  std::optional<bool> remat = {};                 // whether the backward pass computes its activations again
};

// A tensor of `model.init.values`: a rectangular nested list, flattened row-major.
struct Tensor {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  Place place;
};

enum class Weights { ema, raw };

// Whose names and order of elements the parameters in a file have.
enum class ParameterLayout { flax, torch };

// Another name for tensors of a file. Each * of `from` stands for any characters, which take the place of the * of the
// same number in `to`.
struct Rename {
  Pattern from;
  std::string to;
};

// What initial values are read from.
struct InitialFrom {
  std::string path;                                   // absolute: a safetensors file, or a run folder
  std::string checkpoint = "last";                    // of a run folder: last, best or a step
  Weights weights = Weights::ema;                     // of a run folder whose checkpoint has both
  std::optional<std::int64_t> member = std::nullopt;  // of an ensemble; none: each member of this one takes its own
  std::vector<Pattern> include = {{"*"}}, exclude = {};
  ParameterLayout layout = ParameterLayout::flax;                // of a file
  std::vector<Rename> rename = {};                               // the first that matches a tensor applies
  std::optional<std::vector<Pattern>> transpose = std::nullopt;  // none: what `layout` stores transposed
};

struct ModelSpec {
  std::vector<Layer> layers;
  std::map<std::string, Tensor> initial_values;  // by parameter path: dense_0.kernel
  std::optional<InitialFrom> initial_from;
  Place init_place;
};

}  // namespace pmaptrain::spec
