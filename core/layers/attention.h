// Self-attention with the numbers of Flax's MultiHeadAttention. B are the examples, T the positions of the queries, S
// those of keys and values, H the heads, K those of keys and values, D the features of a head.
#pragma once

#include <cmath>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/equations/arithmetic.h"
#include "core/equations/division.h"
#include "core/layers/cached_attention.h"
#include "core/layers/dropout.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"
#include "core/layers/product.h"
#include "core/layers/rows.h"

namespace pmaptrain::layers {

// How Llama 3.1 and later turn slow pairs more slowly, for texts longer than those of the first training ("The Llama 3
// Herd of Models", 2024).
struct Llama3Scaling {
  double factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0;
  std::int64_t original_length = 8192;

  // The angle of a position, of a pair that had `angle`.
  double scaled(double angle) const {
    const double turns = static_cast<double>(original_length) * angle / (2 * std::numbers::pi);
    if (turns <= low_freq_factor) return angle / factor;
    if (turns >= high_freq_factor) return angle;
    const double kept = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
    return kept * angle + (1 - kept) * angle / factor;
  }

  static Declaration<Llama3Scaling> keys() {
    return declare::map<Llama3Scaling>(
        field(&Llama3Scaling::factor, {.path = "factor",
                                       .need = Need::required,
                                       .low = 1,
                                       .high = declare::unbounded,
                                       .meaning = "Pairs that turn at most low_freq_factor times in original_length "
                                                  "positions turn so many times more slowly.",
                                       .example = "factor: 8.0"}),
        field(&Llama3Scaling::low_freq_factor,
              {.path = "low_freq_factor",
               .low = 0,
               .high = declare::unbounded,
               .meaning = "Pairs that turn so often or less are slowed down by the whole factor.",
               .example = "low_freq_factor: 1.0"}),
        field(&Llama3Scaling::high_freq_factor,
              {.path = "high_freq_factor",
               .low = 0,
               .high = declare::unbounded,
               .meaning = "Pairs that turn so often or more stay as they are; those between by parts.",
               .example = "high_freq_factor: 4.0"}),
        field(&Llama3Scaling::original_length, {.path = "original_length",
                                                .low = 1,
                                                .high = declare::unbounded,
                                                .meaning = "The number of positions of the first training.",
                                                .example = "original_length: 8192"}));
  }
};

struct RotaryScaling {
  std::optional<Llama3Scaling> llama3 = {};  // there is no other

  static Declaration<RotaryScaling> keys() {
    return declare::map<RotaryScaling>(
        field(&RotaryScaling::llama3, {.path = "llama3",
                                       .need = Need::required,
                                       .meaning = "As Llama 3.1 and later models, rope_type: llama3 of transformers.",
                                       .example = "llama3: {factor: 8.0}"}));
  }
};

// What turns pairs of features by their position.
struct Rotary {
  double base = 10000.0;
  std::optional<RotaryScaling> scaling = {};

  static Declaration<Rotary> keys() {
    return declare::map<Rotary>(field(&Rotary::base, {.path = "base",
                                                      .low = 1,
                                                      .high = declare::unbounded,
                                                      .meaning = "Pair i of D / 2 turns by position / base^(2 i / D).",
                                                      .example = "base: 500000.0"}),
                                field(&Rotary::scaling, {.path = "scaling",
                                                         .words = {"none"},
                                                         .meaning = "Slows down the pairs that turn slowly.",
                                                         .example = "scaling: {llama3: {factor: 8.0}}",
                                                         .fallback_text = "none"}));
  }
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

  static Declaration<Attention> declaration() {
    return declare::kind<Attention>(
        {.path = "attention",
         .meaning = "Multi-head self-attention over the positions of a sequence (T, C): softmax(Q K^T / sqrt(D)) V for "
                    "each head, and a product over all heads. Parameters: query.kernel (C, heads, D), key.kernel and "
                    "value.kernel (C, kv_heads, D), out.kernel (heads, D, C), and a bias of each.",
         .example = "- attention: {heads: 4, causal: true}"},
        field(&Attention::heads, {.path = "heads",
                                  .need = Need::required,
                                  .low = 1,
                                  .high = 65536,
                                  .meaning = "The number of heads.",
                                  .example = "heads: 4"}),
        field(&Attention::kv_heads,
              {.path = "kv_heads",
               .low = 1,
               .high = 65536,
               .meaning = "The number of heads of keys and values, which divides heads: groups of heads / "
                          "kv_heads neighbours share one.",
               .example = "kv_heads: 2",
               .fallback_text = "heads"}),
        field(&Attention::head_dim, {.path = "head_dim",
                                     .low = 1,
                                     .high = 65536,
                                     .meaning = "D, the number of features of a head.",
                                     .example = "head_dim: 32",
                                     .fallback_text = "the features of its input / heads"}),
        field(&Attention::causal, {.path = "causal",
                                   .meaning = "Whether a position sees only itself and those before it.",
                                   .example = "causal: true"}),
        field(&Attention::dropout,
              dropout_rate("dropout", Need::optional,
                           "In training, the probability that a weight of the attention is set to zero.",
                           "dropout: 0.1")),
        field(&Attention::use_bias, {.path = "use_bias",
                                     .meaning = "Whether queries, keys, values and the output have a bias.",
                                     .example = "use_bias: false"}),
        field(&Attention::rotary,
              {.path = "rotary",
               .words = {"none"},
               .meaning = "Rotary position embedding: turns pairs of a query's and a key's features by their "
                          "position. The pairs are features i and i + D / 2 of a head (halves, as in "
                          "GPT-NeoX).",
               .example = "rotary: {base: 10000.0}",
               .fallback_text = "none"}),
        field(&Attention::qk_norm,
              {.path = "qk_norm",
               .meaning = "Whether queries and keys are normalised over D by a layer norm without bias, before "
                          "rotary. Parameters: query_ln.scale and key_ln.scale (D).",
               .example = "qk_norm: true"}),
        field(&Attention::kernel_init, layers::kernel_init()), field(&Attention::bias_init, layers::bias_init()));
  }
  bool looks_ahead() const { return !causal; }
  static constexpr bool takes_lengths = true;
  std::optional<Node> plan(const LayerInput& in) const;
};

namespace of_attention {

inline constexpr double norm_epsilon = 1e-6;  // of qk_norm

struct Heads {
  std::int64_t features = 0;                     // C
  std::int64_t queries = 0, keys = 0, size = 0;  // H, K, D

  std::int64_t group() const { return queries / keys; }  // of queries that share keys and values
};

inline Heads heads_of(const Attention& attention, const Shape& input) {
  const std::int64_t features = input.back();
  return {features, attention.heads, attention.kv_heads.value_or(attention.heads),
          attention.head_dim.value_or(features / attention.heads)};
}

// The places of parameters in Node::parameters; a bias follows its kernel.
struct Places {
  std::size_t query, key, value, out, query_ln, key_ln;

  explicit Places(bool use_bias) {
    const std::size_t each = use_bias ? 2 : 1;
    query = 0, key = each, value = 2 * each, out = 3 * each, query_ln = 4 * each, key_ln = query_ln + 1;
  }
};

// What turns features i and i + D / 2 of position t, of which the angle is t / base^(2 i / D) where nothing scales it.
inline std::vector<double> frequencies(const Rotary& rotary, std::int64_t size) {
  std::vector<double> each;
  for (std::int64_t i = 0; i < size / 2; ++i) {
    const double angle = std::pow(rotary.base, -2.0 * static_cast<double>(i) / static_cast<double>(size));
    const bool is_scaled = rotary.scaling && rotary.scaling->llama3;
    each.push_back(is_scaled ? rotary.scaling->llama3->scaled(angle) : angle);
  }
  return each;
}

// ---- equations ------------------------------------------------------------------------------------------------------

// The cosine and the sine of each angle, [T, D / 2], repeated in the shape [B, T, H, D / 2]. With `only`, i32[1], T is
// 1 and the position this one.
struct Turn {
  Value cosine, sine;
};

inline Turn turn(Builder& b, const Rotary& rotary, const Type& type, std::optional<Value> only) {
  const std::int64_t positions = type.shape[1], half = type.shape[3] / 2;
  const Value position = only ? b.emit(ops::Broadcast{{1, half}, {0}}, {cast(b, *only, type.dtype)})
                              : b.emit(ops::Iota{type.dtype, {positions, half}, 0}, {});
  const Value frequency = vector_constant(b, type.dtype, frequencies(rotary, type.shape[3]));
  const Value angle = mul(b, position, b.emit(ops::Broadcast{{positions, half}, {1}}, {frequency}));
  // By heads first, which is small: the second broadcast keeps its operand's dimensions together, so chains repeat it.
  const ops::Broadcast by_head{{positions, type.shape[2], half}, {0, 2}};
  const ops::Broadcast by_example{{type.shape[0], positions, type.shape[2], half}, {1, 2, 3}};
  const auto repeated = [&](Value x) { return b.emit(by_example, {b.emit(by_head, {x})}); };
  const Value cosine = repeated(b.emit(ops::Cos{}, {angle}));
  return {cosine, repeated(b.emit(ops::Sin{}, {angle}))};
}

// x [B, T, H, D] in the type of parameters.
inline Value rotated(Builder& b, const Rotary& rotary, Value x, std::optional<Value> only) {
  const Type type = b.type(x);
  const Shape& shape = type.shape;
  const std::int64_t half = shape[3] / 2;
  const Turn by = turn(b, rotary, type, only);
  const Value first = b.emit(ops::Slice{{0, 0, 0, 0}, {shape[0], shape[1], shape[2], half}}, {x});
  const Value second = b.emit(ops::Slice{{0, 0, 0, half}, shape}, {x});
  const Value first_along = mul(b, first, by.cosine), first_across = mul(b, second, by.sine);
  const Value second_along = mul(b, second, by.cosine), second_across = mul(b, first, by.sine);
  const Value turned = sub(b, first_along, first_across);
  return b.emit(ops::Concatenate{3}, {turned, add(b, second_along, second_across)});
}

// More features of a head than it has, by which keys behind the positions of an example get no weight: a query has 1 in
// each, and such a key so small a number that the exponential of its score is 0. A multiple of 8 keeps rows aligned.
inline constexpr std::int64_t features_of_padding = 8;
inline constexpr double score_of_padding = -1e30;

// Replaces the operands q, k and v of the op.
inline void leave_out_padding(Builder& b, Value lengths, DType storage, std::vector<Value>& operands) {
  const auto widened = [&](Value x, Value more) { return b.emit(ops::Concatenate{3}, {x, more}); };
  const auto filled = [&](Value x, double value) {
    Shape shape = b.type(x).shape;
    shape.back() = features_of_padding;
    return b.emit(ops::Broadcast{std::move(shape), {}}, {scalar_like(b, x, value)});
  };
  const Type of_query = b.type(operands[0]);
  // Scores are divided by the root of the number of features.
  const auto size = static_cast<double>(of_query.shape.back());
  const double factor = std::sqrt((size + static_cast<double>(features_of_padding)) / size);
  const Value query = cast(b, mul(b, cast(b, operands[0], storage), factor), of_query.dtype);
  operands[0] = widened(query, filled(query, 1));
  // Of each key: zero, or the small number.
  Shape first = b.type(operands[1]).shape;
  first.back() = 1;
  const Value zero = mul(b, b.emit(ops::Slice{{0, 0, 0, 0}, first}, {operands[1]}), 0.0);
  std::vector<Value> keys(1 + features_of_padding, inside_or(b, lengths, zero, score_of_padding));
  keys.front() = operands[1];
  operands[1] = b.emit(ops::Concatenate{3}, keys);
  operands[2] = widened(operands[2], filled(operands[2], 0));
}

// The result for the features that a head has. Of an example without positions, all keys are padding.
inline Value without_padding(Builder& b, Value lengths, Value out, std::int64_t size) {
  Shape shape = b.type(out).shape;
  shape.back() = size;
  out = b.emit(ops::Slice{{0, 0, 0, 0}, shape}, {out});
  const Value any = b.emit(ops::Gt{}, {lengths, scalar_like(b, lengths, 0.0)});
  return select(b, broadcast_along(b, any, shape, 0), out, scalar_like(b, out, 0.0));
}

// Of heads [..., K, ...], dimension `dim`, the one of this device's queries, where there are fewer heads than devices
// along `axes`.
inline Value own_head(Builder& b, Value heads, std::int64_t dim, AxisSet axes) {
  Shape shape = b.type(heads).shape;
  const std::int64_t count = shape[static_cast<std::size_t>(dim)], devices = b.mesh().group_size(axes);
  std::vector<double> of_device;
  for (std::int64_t i = 0; i < devices; ++i) of_device.push_back(static_cast<double>(i * count / devices));
  const Value own = b.emit(ops::AllSlice{axes, 0}, {vector_constant(b, DType::i32, of_device)});
  std::vector<std::int64_t> first(shape.size());
  std::iota(first.begin(), first.end(), 0);
  first.erase(first.begin() + dim);
  first.insert(first.begin(), dim);
  shape[static_cast<std::size_t>(dim)] = 1;
  const Value table = dim == 0 ? heads : b.emit(ops::Transpose{std::move(first)}, {heads});
  return b.emit(ops::Reshape{std::move(shape)}, {b.emit(ops::Gather{}, {table, own})});
}

// The parameters of the layer as its equations read them: of kernels of keys and values that devices share, the head of
// this device.
inline std::vector<Value> own_parameters(const Places& places, const LayerCall& call, const Heads& heads,
                                         bool use_bias) {
  std::vector<Value> own(call.parameters.begin(), call.parameters.end());
  for (const std::size_t kernel : {places.key, places.value}) {
    const Parameter& of = call.node.parameters[kernel];
    if (of.read_along.empty()) continue;
    own[kernel] = own_head(call.b, own[kernel], 1, of.read_along);
    if (use_bias) own[kernel + 1] = own_head(call.b, own[kernel + 1], 0, of.read_along);
    for (const Adapter& adapter : call.node.adapters) {
      if (adapter.kernel != kernel) continue;
      const std::int64_t rank = call.b.type(own[adapter.b]).shape.front();
      const Value each = call.b.emit(ops::Reshape{{rank, heads.keys, heads.size}}, {own[adapter.b]});
      own[adapter.b] = call.b.emit(ops::Reshape{{rank, heads.size}}, {own_head(call.b, each, 1, of.read_along)});
    }
  }
  return own;
}

inline Value attend(const Attention& attention, const LayerCall& of_layer, Value x, DType storage) {
  Builder& b = of_layer.b;
  const Type type = b.type(x);
  const Places places(attention.use_bias);
  Heads heads = heads_of(attention, of_layer.node.input);
  const std::vector<Value> parameters = own_parameters(places, of_layer, heads, attention.use_bias);
  LayerCall call = of_layer;
  call.parameters = parameters;
  heads.queries = b.type(parameters[places.query]).shape[1];
  heads.keys = b.type(parameters[places.key]).shape[1];
  const AxisSet divided = call.node.division_axes;
  const std::optional<Value> only = call.forward.position();
  const auto bias = [&](std::size_t kernel) {
    return attention.use_bias ? std::optional(call.parameters[kernel + 1]) : std::nullopt;
  };
  const auto heads_of_rows = [&](std::size_t kernel, std::int64_t count) {
    const Value rows = product(call, x, kernel, bias(kernel));
    return b.emit(ops::Reshape{{type.shape[0], type.shape[1], count, heads.size}}, {rows});
  };
  const auto prepared = [&](Value rows, std::size_t scale) {
    if (!attention.qk_norm && !attention.rotary) return rows;
    rows = cast(b, rows, storage);
    if (attention.qk_norm) {
      rows = layer_normalised(b, rows, norm_epsilon);
      rows = mul(b, rows, broadcast_along(b, call.parameters[scale], b.type(rows).shape, 3));
    }
    if (attention.rotary) rows = rotated(b, *attention.rotary, rows, only);
    return cast(b, rows, type.dtype);
  };
  const Value q = prepared(heads_of_rows(places.query, heads.queries), places.query_ln);
  const Value k = prepared(heads_of_rows(places.key, heads.keys), places.key_ln);
  const Value v = heads_of_rows(places.value, heads.keys);
  if (Cache* const cache = call.forward.cache; cache != nullptr) {
    cache->after.push_back(only ? with_token(b, cache->before[cache->after.size()], k, v, *only)
                                : KeysAndValues{by_heads(b, k), by_heads(b, v)});
  }
  Value out = q;
  bool offset = false;  // of dropout, where heads are divided
  if (only) {
    out = cached_attention(b, q, call.forward.cache->after.back(), *only, storage);
  } else {
    std::vector<Value> operands{q, k, v};
    if (call.training && call.node.draws) {
      const DType scale = type.dtype == DType::f64 ? DType::f64 : DType::f32;
      for (const Value operand : dropout_operands(call, scale)) operands.push_back(operand);
      offset = !divided.empty();
      if (offset) {
        operands.push_back(offset_along(b, divided, heads.queries * type.shape[1] * type.shape[1]));
      }
    }
    const std::optional<Value> lengths = call.lengths();
    if (lengths) leave_out_padding(b, *lengths, storage, operands);
    out = b.emit_all(ops::Attention{attention.causal, offset}, operands).front();
    if (lengths) out = without_padding(b, *lengths, out, heads.size);
  }
  const std::int64_t columns = heads.queries * heads.size;
  out = b.emit(ops::Reshape{{type.shape[0], type.shape[1], columns}}, {out});
  return product(call, out, places.out, bias(places.out));
}

// ---- parameters -----------------------------------------------------------------------------------------------------

// PyTorch's are those of linear layers, which have the heads in one dimension.
inline void add_parameters(const Attention& attention, const LayerInput& in, const Heads& heads, Node& layer) {
  const std::int64_t features = heads.features, size = heads.size;
  const auto add = [&](const std::string& field, Shape kernel, Shape matrix, std::vector<std::int64_t> axes,
                       std::int64_t merged, Shape bias) {
    const bool of_heads = bias.size() == 2;
    layer.parameters.push_back(
        LayerInput::divisible(in.product_kernel(std::move(kernel), std::move(matrix), attention.kernel_init,
                                                std::move(axes), field + ".kernel"),
                              of_heads ? Cut{.columns = 1} : Cut{.rows = 0}));
    layer.parameters.back().torch.merged = merged;
    if (!attention.use_bias) return;
    layer.parameters.push_back(LayerInput::divisible(
        in.parameter(field + ".bias", std::move(bias), attention.bias_init()), of_heads ? Cut{.columns = 0} : Cut{}));
    if (of_heads) layer.parameters.back().torch.merged = 0;
  };
  add("query", {features, heads.queries, size}, {features, heads.queries * size}, {1, 2, 0}, 1, {heads.queries, size});
  add("key", {features, heads.keys, size}, {features, heads.keys * size}, {1, 2, 0}, 1, {heads.keys, size});
  add("value", {features, heads.keys, size}, {features, heads.keys * size}, {1, 2, 0}, 1, {heads.keys, size});
  add("out", {heads.queries, size, features}, {heads.queries * size, features}, {2, 0, 1}, 0, {features});
  in.expect_used(attention.use_bias, attention.bias_init, "bias");
  layer.divisible = {.inside = true, .units = heads.queries, .unit = "heads", .shared_units = heads.keys};
  if (!attention.qk_norm) return;
  for (const char* const field : {"query_ln.scale", "key_ln.scale"}) {
    layer.parameters.push_back(LayerInput::divisible(in.parameter(field, {size}, ones), {.by_parts = true}));
    layer.parameters.back().torch.field = "weight";
  }
}

}  // namespace of_attention

inline std::optional<Node> Attention::plan(const LayerInput& in) const {
  if (in.shape.size() != 2) {
    return in.refuse(
        "takes sequences [T, C]; its input is " + in.shown(),
        in.shape.size() < 2 ? "put it after embedding, or after reshape: [T, C]" : "add reshape: [T, C] before it");
  }
  const std::int64_t features = in.shape.back();
  if (!head_dim && features % heads != 0) {
    return in.refuse("has " + std::to_string(heads) + " heads, which do not divide the " + std::to_string(features) +
                         " features of its input " + in.shown(),
                     "heads may be one of " + divisors_of(features) + "; with head_dim it may be any number");
  }
  const of_attention::Heads of = of_attention::heads_of(*this, in.shape);
  if (of.queries % of.keys != 0) {
    return in.refuse("has kv_heads " + std::to_string(of.keys) + ", which does not divide its " +
                         std::to_string(heads) + (heads == 1 ? " head" : " heads"),
                     "kv_heads may be one of " + divisors_of(heads));
  }
  if (rotary && of.size % 2 != 0) {
    return in.refuse("has rotary, which turns pairs of features, and heads of " + std::to_string(of.size) + " features",
                     "write another head_dim or another number of heads, so that a head has an even number of "
                     "features");
  }
  if (rotary && rotary->scaling && rotary->scaling->llama3) {
    const Llama3Scaling& scaling = *rotary->scaling->llama3;
    if (scaling.low_freq_factor >= scaling.high_freq_factor) {
      return in.refuse("has rotary.scaling with low_freq_factor " + exact(scaling.low_freq_factor) +
                           " and high_freq_factor " + exact(scaling.high_freq_factor),
                       "high_freq_factor is larger: 1.0 and 4.0 in Llama 3.1");
    }
  }
  Node layer = in.start();
  layer.image = {};
  of_attention::add_parameters(*this, in, of, layer);
  add_dropout(layer, dropout, in.precision.storage);
  layer.apply = [attention = *this, storage = in.precision.storage](const LayerCall& call, Value x) {
    return of_attention::attend(attention, call, x, storage);
  };
  return layer;
}

}  // namespace pmaptrain::layers
