// Sequences of different lengths: what is behind their positions has no effect.
#include <cmath>
#include <limits>
#include <set>

#include "core/layers/activations.h"
#include "core/layers/attention.h"
#include "core/layers/batch_norm.h"
#include "core/layers/conv.h"
#include "core/layers/conv_transpose.h"
#include "core/layers/embedding.h"
#include "core/layers/nested.h"
#include "core/layers/norms.h"
#include "core/layers/parallel.h"
#include "core/layers/pooling.h"
#include "core/layers/positions.h"
#include "core/layers/recurrent.h"
#include "core/layers/reshape.h"
#include "core/layers/scale.h"
#include "core/layers/swiglu.h"
#include "core/layers/upsample.h"
#include "core/setup/initialize.h"
#include "tests/catch.h"
#include "tests/model/finite_differences.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

constexpr std::int64_t longest = 7, channels = 4;
const layers::Padding pad_same, pad_causal{layers::PaddingKind::causal, {}}, pad_valid{layers::PaddingKind::valid, {}};

layers::Padding padding_of(std::int64_t before, std::int64_t after) {
  return {layers::PaddingKind::explicit_, {{before, after}}};
}

layers::Conv windows_of(std::int64_t size, const layers::Padding& padding, std::int64_t stride = 1,
                        std::int64_t dilation = 1) {
  layers::Conv made;
  made.features = channels;
  made.kernel_size = {size};
  made.strides = {stride};
  made.kernel_dilation = {dilation};
  made.padding = padding;
  return made;
}

layers::Attention attention(bool looks_back, bool everything = false) {
  layers::Attention made;
  made.heads = 2;
  made.causal = looks_back;
  if (!everything) return made;
  made.kv_heads = 1;
  made.qk_norm = true;
  made.rotary = layers::Rotary{};
  return made;
}

layers::GroupNorm group_norm() {
  layers::GroupNorm made;
  made.num_groups = 2;
  return made;
}

template <class Layer>
Layer recurrent(layers::Returned returned, bool bidirectional) {
  Layer made;
  made.features = 3;
  made.returned = returned;
  made.bidirectional = bidirectional;
  return made;
}

template <class Layer>
Layer backwards(Layer made) {
  made.reverse = true;
  return made;
}

void add_names(const layers::LayerKind& kind, std::set<std::string>& names) {
  names.insert(kind->name());
  for (const layers::Inside& inside : kind->inside()) {
    for (const layers::Layer& one : *inside.layers) add_names(one.kind, names);
  }
}

const layers::GlobalAvgPool by_mean;
const layers::GlobalMaxPool by_maximum;
const layers::Take by_last{{0, true}}, by_first{};

// What is behind a dense layer whose bias makes padding other than zero.
struct Case {
  std::string name;
  std::vector<layers::LayerKind> kinds;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"mean", {by_mean}},
      {"maximum", {by_maximum}},
      {"last", {by_last}},
      {"attention", {attention(false), by_mean}},
      {"causal attention", {attention(true), by_last}},
      {"attention with everything", {attention(false, true), by_maximum}},
      {"conv", {windows_of(3, pad_same), by_mean}},
      {"conv, dilated", {windows_of(3, pad_same, 1, 2), by_mean}},
      {"causal conv with strides", {windows_of(3, pad_causal, 2), by_maximum}},
      {"conv without padding", {windows_of(2, pad_valid), by_mean}},
      {"conv with explicit padding", {windows_of(3, padding_of(1, 2), 2), by_last}},
      {"max_pool", {layers::MaxPool{{2}, {1}, pad_valid}, by_mean}},
      {"max_pool, padded", {layers::MaxPool{{3}, {1}, pad_same}, by_last}},
      {"avg_pool", {layers::AvgPool{{3}, {1}, pad_same, true}, by_mean}},
      {"avg_pool that leaves padding out", {layers::AvgPool{{3}, {2}, padding_of(1, 1), false}, by_mean}},
      {"two windows",
       {windows_of(3, pad_same), layers::MaxPool{{2}, {2}, padding_of(1, 1)}, layers::Tanh{}, windows_of(2, pad_valid),
        by_last}},
      {"group_norm", {group_norm(), by_last}},
      {"norms of positions", {layers::LayerNorm{}, layers::RmsNorm{}, layers::Swiglu{3}, by_mean}},
      {"batch_norm", {layers::BatchNorm{}, by_mean}},
      {"class_token", {layers::ClassToken{}, attention(false), by_first}},
      {"class_token, the last", {layers::ClassToken{}, windows_of(3, pad_same), by_last}},
      {"lstm", {recurrent<layers::Lstm>(layers::Returned::all, false), by_mean}},
      {"lstm, the last", {recurrent<layers::Lstm>(layers::Returned::last, false)}},
      {"lstm, both ways", {recurrent<layers::Lstm>(layers::Returned::all, true), by_maximum}},
      {"gru", {recurrent<layers::Gru>(layers::Returned::all, false), by_last}},
      {"gru, backwards", {backwards(recurrent<layers::Gru>(layers::Returned::all, false)), by_mean}},
      {"lstm, backwards, the last", {backwards(recurrent<layers::Lstm>(layers::Returned::last, false))}},
      {"gru, both ways, the last", {recurrent<layers::Gru>(layers::Returned::last, true)}},
      {"a position", {layers::Take{{2, false}}}},
      {"positions", {layers::PositionEmbedding{longest}, layers::Scale{}, by_mean}},
      {"activations",
       {layers::Relu{}, layers::Sigmoid{}, layers::Gelu{}, layers::Silu{}, layers::Elu{}, layers::LeakyRelu{},
        layers::Softplus{}, layers::Softmax{}, by_mean}},
      {"a list", {layers::Layers{{layer("conv", windows_of(2, pad_causal)), layer("mean", by_mean)}}}},
      {"residual",
       {layers::Residual{{layer("layer", attention(false)), layer("conv", windows_of(3, pad_same))}, {}}, by_mean}},
      {"a gate",
       {layers::Parallel{{{"of", {layer("conv", windows_of(3, pad_causal))}},
                          {"gate", {layer("mean", by_mean), layer("dense", layers::Dense{channels})}}},
                         layers::Join::multiply},
        by_last}},
      {"repeat", {layers::Repeat{2, {layer("layer", attention(true))}, true}, by_mean}},
  };
  return all;
}

Network sequence_network(const std::vector<layers::LayerKind>& kinds) {
  std::vector<layers::Layer> list{layer("before", layers::Dense{channels})};
  for (std::size_t i = 0; i < kinds.size(); ++i) list.push_back(layer("layer_" + std::to_string(i), kinds[i]));
  list.push_back(layer("head", layers::Dense{3}));
  return network(std::move(list));
}

Field sequences(std::int64_t positions) { return {DType::f64, {positions, channels}}; }

Numbers wave_of(std::int64_t count, double from) {
  Numbers x;
  for (std::int64_t i = 0; i < count; ++i) x.push_back(std::sin(from + 1.7 * static_cast<double>(i)));
  return x;
}

Feed parameters_of(const model::Model& model) {
  Feed feed;
  for (const model::Parameter& parameter : model.parameters) {
    feed[parameter.name] = wave_of(numel(parameter.shape), 2.0 + static_cast<double>(feed.size()));
    for (double& value : feed[parameter.name]) value = parameter.is_state ? 1.5 + value : value;
  }
  return feed;
}

// Rows of these lengths, of the positions of one wave for each; `padding` behind them.
Numbers padded_rows(const std::vector<double>& lengths, double padding) {
  Numbers all;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    Numbers row = wave_of(static_cast<std::int64_t>(lengths[i]) * channels, static_cast<double>(i));
    row.resize(longest * channels, padding);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

void check_about(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-10).margin(1e-12));
}

// A step on two devices in two microbatches, with these inputs.
Feed step_with(Network net, const Numbers& inputs, const std::vector<double>& lengths) {
  net.place(Mesh({{"devices", 2}}), Mesh({{"devices", 2}}).all());
  net.lengths = true;
  const model::Model model = model::make_model(net, sequences(longest), labels, DType::f64);
  const Program program = step::train_program(model, net.step, optimizer_of(net, model, {2, 2}), {2, 2}, all_ops());
  Feed feed = parameters_of(model);
  feed["inputs"] = inputs;
  feed["lengths"] = lengths;
  feed["targets"] = {0, 2, 1, 1};
  feed["mask"] = {1, 1, 1, 0};
  feed["rows"] = {4, 5, 6, 7};
  add_numbers(feed, step::step_numbers(model, net.step, optimizer_of(net, model)));
  return results_of(program, feed);
}

}  // namespace

TEST_CASE("a sequence gives with padding what it gives alone", "[layers]") {
  for (const Case& each : cases()) {
    INFO(each.name);
    Network net = sequence_network(each.kinds);
    net.lengths = true;
    const std::vector<double> lengths{longest, 3, 5};
    const model::Model model = model::make_model(net, sequences(longest), labels, DType::f64);
    Feed feed = parameters_of(model);
    feed["lengths"] = lengths;
    const Numbers found = forward(model, padded_rows(lengths, 9), feed).at("y");
    net.lengths = false;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const auto positions = static_cast<std::int64_t>(lengths[i]);
      INFO(positions << " positions");
      const model::Model alone = model::make_model(net, sequences(positions), labels, DType::f64);
      const Numbers expected =
          forward(alone, wave_of(positions * channels, static_cast<double>(i)), parameters_of(alone)).at("y");
      check_about(
          {found.begin() + 3 * static_cast<std::ptrdiff_t>(i), found.begin() + 3 * static_cast<std::ptrdiff_t>(i) + 3},
          expected);
    }
  }
}

TEST_CASE("each kind of layer is in a case of padding, or is refused where sequences have lengths", "[layers]") {
  std::set<std::string> names{"dense"};  // before all others
  for (const Case& each : cases()) {
    for (const layers::LayerKind& kind : each.kinds) add_names(kind, names);
  }
  const std::set<std::string> refused{"flatten", "reshape", "transpose", "upsample", "conv_transpose"};
  // The inputs of the first two are no numbers, and attend is a product at each position. What dropout draws is in
  // tests/train.
  const std::set<std::string> others{"embedding", "table_embedding", "attend", "dropout"};
  for (const declare::AnyKind& kind : family(declare::Tag<layers::LayerKind>())) {
    INFO(kind.key.path);
    CHECK(names.contains(kind.key.path) + refused.contains(kind.key.path) + others.contains(kind.key.path) == 1);
  }
}

TEST_CASE("what padding holds changes no bit of a step", "[layers][step]") {
  const std::vector<double> lengths{longest, 3, 0, 5};
  for (const Case& each : cases()) {
    INFO(each.name);
    const Feed zeros = step_with(sequence_network(each.kinds), padded_rows(lengths, 0), lengths);
    CHECK(std::isfinite(zeros.at("loss").front()));
    for (const auto& [name, values] : zeros) {
      INFO(name);
      CHECK(std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); }));
    }
    CHECK(step_with(sequence_network(each.kinds), padded_rows(lengths, std::numeric_limits<double>::quiet_NaN()),
                    lengths) == zeros);
  }
}

TEST_CASE("an example without positions gives zeros to the layer behind, without a gradient", "[layers]") {
  for (const std::vector<layers::LayerKind>& kinds :
       {std::vector<layers::LayerKind>{by_mean}, {by_maximum}, {by_last}, {by_first}, {attention(false), by_mean}}) {
    Network net = sequence_network(kinds);
    net.lengths = true;
    const model::Model model = model::make_model(net, sequences(longest), labels, DType::f64);
    Feed feed = parameters_of(model);
    feed["lengths"] = {0};
    check_about(forward(model, padded_rows({0}, 9), feed).at("y"), feed.at("head.bias"));
    const std::vector<double> empty{0, 0, 0, 0};
    const Feed after = step_with(sequence_network(kinds), padded_rows(empty, 9), empty);
    CHECK(after.at("before.kernel") == parameters_of(model).at("before.kernel"));
    CHECK(after.at("before.bias") == parameters_of(model).at("before.bias"));
  }
}

TEST_CASE("the gradients of sequences of different lengths match finite differences", "[layers]") {
  Network net = sequence_network({layers::GroupNorm{2}, attention(false, true), windows_of(3, pad_causal, 2),
                                  layers::BatchNorm{}, layers::AvgPool{{2}, {1}, pad_same, false}, by_mean});
  net.lengths = true;
  const model::Model model = model::make_model(net, sequences(longest), labels, DType::f64);
  const Program program = step::train_program(model, net.step, optimizer_of(net, model, {3, 1}), {3, 1}, all_ops());
  Feed feed = parameters_of(model);
  const std::vector<double> lengths{longest, 2, 5};
  feed["inputs"] = padded_rows(lengths, 9);
  feed["lengths"] = lengths;
  feed["targets"] = {0, 2, 1};
  feed["mask"] = {1, 1, 1};
  feed["rows"] = {4, 5, 6};
  add_numbers(feed, step::step_numbers(model, net.step, optimizer_of(net, model)));
  const Feed result = results_of(program, feed);
  check_gradients(program, model, feed, result, {1e-5, 1e-7, 3});
}

TEST_CASE("batch_norm has the statistics of all positions of a batch, each once", "[layers][step]") {
  Network net =
      network({layer("norm", layers::BatchNorm{{}, 0.5}), layer("mean", by_mean), layer("head", layers::Dense{3})});
  net.place(Mesh({{"devices", 2}}), Mesh({{"devices", 2}}).all());
  net.lengths = true;
  const model::Model model = model::make_model(net, {DType::f64, {2, 1}}, labels, DType::f64);
  const Program program = step::train_program(model, net.step, optimizer_of(net, model, {2, 1}), {2, 1}, all_ops());
  Feed feed = parameters_of(model);
  feed["norm.mean"] = {0}, feed["norm.var"] = {1};
  feed["inputs"] = {1, 9, 2, 6, 4, 8, 5, 5};
  feed["lengths"] = {1, 2, 2, 2};  // the last row is no example
  feed["targets"] = {0, 2, 1, 1};
  feed["mask"] = {1, 1, 1, 0};
  feed["rows"] = {4, 5, 6, 7};
  add_numbers(feed, step::step_numbers(model, net.step, optimizer_of(net, model)));
  const Feed after = results_of(program, feed);
  // 1, 2, 6 on the first device and 4, 8 on the second: the mean of 3 and 6, and of 14 / 3 and 4, by positions.
  check_about(after.at("norm.mean"), {0.5 * (3 * 3 + 2 * 6) / 5.0});
  check_about(after.at("norm.var"), {0.5 + 0.5 * (14 + 8) / 5.0});
}

TEST_CASE("labels of positions count where sequences have positions", "[layers][step]") {
  const auto loss_of = [](const Numbers& targets, const std::vector<double>& lengths, std::int64_t positions) {
    Network net = network({layer("tokens", layers::Embedding{5, 4}), layer("head", layers::Dense{3})});
    net.metrics = {metrics::Metric{metric::Accuracy{}}};
    net.lengths = true;
    const model::Model model = model::make_model(net, {DType::i32, {positions}}, {DType::i32, {positions}}, DType::f64);
    CHECK(model.ignored_label() == label_of_padding);
    const auto rows = static_cast<std::int64_t>(lengths.size());
    const Program program =
        step::train_program(model, net.step, optimizer_of(net, model, {rows, 1}), {rows, 1}, all_ops());
    Feed feed = parameters_of(model);
    feed["inputs"] = Numbers(targets.size(), 2);
    feed["targets"] = targets;
    feed["lengths"] = lengths;
    feed["mask"] = Numbers(lengths.size(), 1);
    feed["rows"] = Numbers(lengths.size(), 0);
    add_numbers(feed, step::step_numbers(model, net.step, optimizer_of(net, model)));
    const Feed found = results_of(program, feed);
    return std::pair(found.at("loss").front(), found.at("accuracy").front());
  };
  const auto padded = loss_of({0, 1, 2, 2, -1, -1}, {3, 1}, 3), alone = loss_of({0, 1, 2, 2}, {1, 1, 1, 1}, 1);
  CHECK(padded.first == Approx(alone.first).epsilon(1e-12));
  CHECK(padded.second == Approx(alone.second).epsilon(1e-12));
}

TEST_CASE("layers that cannot leave padding out say what comes before them", "[layers]") {
  const auto refused = [](std::vector<layers::Layer> list, const Field& input = {DType::f32, {6, 4}}) {
    Network net = network(std::move(list));
    net.lengths = true;
    return refusal(net, input, labels);
  };
  const std::string mixes =
      "layer does not tell positions of a sequence from the padding behind them, and the data have lengths | put a "
      "layer before it that leaves no positions: global_avg_pool, global_max_pool or take";
  CHECK(refused({layer("layer", layers::Flatten{})}) == mixes);
  CHECK(refused({layer("layer", layers::Reshape{{4, 6}})}) == mixes);
  CHECK(refused({layer("layer", layers::Transpose{{1, 0}})}) == mixes);
  CHECK(refused({layer("layer", layers::Upsample{})}) == mixes);
  CHECK(refused({layer("layer", layers::ConvTranspose{4, {2}, {2}})}) == mixes);
  CHECK(refused({layer("mean", by_mean), layer("layer", layers::Reshape{{2, 2}}), layer("f", layers::Flatten{})}) ==
        "accepted");
  CHECK(refused({layer("layer", windows_of(3, pad_same, 2))}) ==
        "layer has padding SAME with strides 2, which pads a sequence by its length, and the data have lengths | "
        "padding: VALID, or a number of positions [[before, after]]; conv has CAUSAL, too");
  CHECK(refused({layer("layer", layers::Dense{3})}, {DType::f32, {6}}) ==
        "layer takes features at each position, [T, C]; its input is f32[6] with lengths | store such sequences as an "
        "array (N, T, 1)");
  CHECK(refused({layer("layer", layers::Dense{3})}) ==
        "outputs have positions with lengths, f32[6,3], and targets are not one label or numbers for each: i32[] | "
        "global_avg_pool, "
        "global_max_pool or take leaves one value an example");
  const layers::Parallel branches{{{"one", {layer("conv", windows_of(3, padding_of(2, 0)))}},
                                   {"other", {layer("conv", windows_of(3, padding_of(1, 1)))}}},
                                  layers::Join::add};
  CHECK(refused({layer("layer", branches), layer("mean", by_mean)}) == "accepted");
}
