// Layers of sequences: tokens, positions, attention, swiglu. What they compute, and what they refuse.
#include <cmath>

#include "core/data/texts/text_source.h"
#include "core/layers/attention.h"
#include "core/layers/embedding.h"
#include "core/layers/nested.h"
#include "core/layers/pooling.h"
#include "core/layers/reshape.h"
#include "core/layers/swiglu.h"
#include "core/setup/initialize.h"
#include "tests/catch.h"
#include "tests/model/finite_differences.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const Field tokens{DType::i32, {3}};

layers::Attention heads(std::int64_t count, bool causal = false) {
  layers::Attention attention;
  attention.heads = count;
  attention.causal = causal;
  return attention;
}

std::string refused(std::vector<layers::Layer> layers, const Field& input = tokens) {
  return refusal(network(std::move(layers)), input, labels);
}

layers::Layer table(std::int64_t rows = 5, std::int64_t features = 4) {
  return layer("tokens", layers::Embedding{rows, features});
}

// A model in f64 with drawn parameters, which are added to `feed`.
model::Model drawn(std::vector<layers::Layer> layers, const Field& input, Feed& feed) {
  model::Model model = model::make_model(network(std::move(layers)), input, labels, DType::f64);
  for (const model::Parameter& parameter : model.parameters) {
    feed[parameter.name] = to_numbers(setup::draw(parameter, 3, DType::f64), DType::f64);
  }
  return model;
}

void check_within(const Numbers& found, const Numbers& expected, double tolerance = 1e-12) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) <= tolerance);
}

// softmax(Q Kᵀ / √D) V by loops, of one example: x [T, C] through the matrices [C, D] of each head, without biases.
Numbers attention_by_loops(const Numbers& x, std::size_t positions, std::size_t features, std::size_t count,
                           std::size_t groups, bool causal, const Feed& feed) {
  const std::size_t size = features / count, shared = count / groups;
  const auto project = [&](const char* part, std::size_t of, std::size_t head, std::size_t t) {
    const Numbers& kernel = feed.at(std::string("layer.") + part + ".kernel");
    Numbers row(size);
    for (std::size_t d = 0; d < size; ++d) {
      for (std::size_t c = 0; c < features; ++c) row[d] += x[t * features + c] * kernel[(c * of + head) * size + d];
    }
    return row;
  };
  Numbers out(positions * features);
  for (std::size_t head = 0; head < count; ++head) {
    for (std::size_t t = 0; t < positions; ++t) {
      const Numbers query = project("query", count, head, t);
      Numbers weights;
      double sum = 0;
      for (std::size_t s = 0; s < positions && (!causal || s <= t); ++s) {
        const Numbers key = project("key", shared, head / groups, s);
        double score = 0;
        for (std::size_t d = 0; d < size; ++d) score += query[d] * key[d];
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
        sum += weights.back();
      }
      Numbers mixed(size);
      for (std::size_t s = 0; s < weights.size(); ++s) {
        const Numbers value = project("value", shared, head / groups, s);
        for (std::size_t d = 0; d < size; ++d) mixed[d] += weights[s] / sum * value[d];
      }
      const Numbers& kernel = feed.at("layer.out.kernel");
      for (std::size_t c = 0; c < features; ++c) {
        for (std::size_t d = 0; d < size; ++d) {
          out[t * features + c] += mixed[d] * kernel[(head * size + d) * features + c];
        }
      }
    }
  }
  return out;
}

Numbers waves(std::size_t count) {
  Numbers x;
  for (std::size_t i = 0; i < count; ++i) x.push_back(std::sin(1.0 + 1.7 * static_cast<double>(i)));
  return x;
}

}  // namespace

TEST_CASE("embedding gives the row of each token, and attend multiplies by the same table", "[layers]") {
  Feed feed;
  const model::Model model =
      drawn({table(3, 2), layer("attend_0", layers::Attend{"tokens"}), layer("f", layers::Flatten{})},
            {DType::i32, {2}}, feed);
  REQUIRE(model.parameters.size() == 1);
  CHECK(model.takes_tokens());
  CHECK(model.parameters[0].name == "tokens.embedding");
  CHECK(model.parameters[0].shape == Shape{3, 2});
  CHECK(model.layers[0].output == Shape{2, 2});
  CHECK(model.layers[1].output == Shape{2, 3});
  feed["tokens.embedding"] = {1, 2, 3, 4, 5, 6};
  CHECK(forward(model, {2, 0}, feed).at("y") == Numbers{17, 39, 61, 5, 11, 17});
  const model::Model of_bytes = drawn({table(3, 2), layer("f", layers::Flatten{})}, {DType::u8, {2}}, feed);
  feed["tokens.embedding"] = {1, 2, 3, 4, 5, 6};
  CHECK(forward(of_bytes, {1, 2}, feed).at("y") == Numbers{3, 4, 5, 6});
}

TEST_CASE("embeddings begin normal: of deviation 1 / sqrt(features), and 0.02 for positions", "[layers]") {
  const model::Model model = model::make_model(
      network({table(300, 64), layer("positions", layers::PositionEmbedding{500}), layer("f", layers::Flatten{})}),
      tokens, labels, DType::f64);
  const auto deviation = [&](std::size_t index) {
    double squares = 0;
    const Numbers values = to_numbers(setup::draw(model.parameters[index], 1, DType::f64), DType::f64);
    for (const double value : values) squares += value * value;
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  CHECK(deviation(0) == Approx(0.125).epsilon(0.02));
  CHECK(deviation(1) == Approx(0.02).epsilon(0.02));
}

TEST_CASE("position_embedding adds the first rows of its table", "[layers]") {
  Feed feed;
  const model::Model model =
      drawn({layer("layer", layers::PositionEmbedding{3}), layer("f", layers::Flatten{})}, {DType::f64, {2, 2}}, feed);
  feed["layer.embedding"] = {10, 20, 30, 40, 50, 60};
  CHECK(forward(model, {1, 2, 3, 4, 5, 6, 7, 8}, feed).at("y") == Numbers{11, 22, 33, 44, 15, 26, 37, 48});
}

TEST_CASE("attention is the softmax of scaled products of each head, causal or not, with groups of heads", "[layers]") {
  for (const bool causal : {false, true}) {
    for (const std::int64_t groups : {1, 2, 4}) {
      layers::Attention attention = heads(4, causal);
      attention.kv_heads = 4 / groups;
      attention.use_bias = false;
      Feed feed;
      const model::Model model =
          drawn({layer("layer", attention), layer("f", layers::Flatten{})}, {DType::f64, {5, 8}}, feed);
      const Numbers x = waves(80);
      Numbers expected =
          attention_by_loops({x.begin(), x.begin() + 40}, 5, 8, 4, static_cast<std::size_t>(groups), causal, feed);
      const Numbers second =
          attention_by_loops({x.begin() + 40, x.end()}, 5, 8, 4, static_cast<std::size_t>(groups), causal, feed);
      expected.insert(expected.end(), second.begin(), second.end());
      check_within(forward(model, x, feed).at("y"), expected);
    }
  }
}

TEST_CASE("a causal position does not depend on those after it", "[layers]") {
  Feed feed;
  layers::Attention attention = heads(2, true);
  attention.rotary = layers::Rotary{100.0};
  attention.qk_norm = true;
  const model::Model model =
      drawn({layer("layer", attention), layer("f", layers::Flatten{})}, {DType::f64, {4, 8}}, feed);
  Numbers x = waves(32);
  const Numbers before = forward(model, x, feed).at("y");
  x[3 * 8 + 1] += 5;
  const Numbers after = forward(model, x, feed).at("y");
  CHECK(Numbers(before.begin(), before.begin() + 24) == Numbers(after.begin(), after.begin() + 24));
  CHECK(before[24] != after[24]);
}

TEST_CASE("scaled rotary slows down the pairs that turn slowly, as Llama 3.1 has it", "[layers]") {
  // Of 8 pairs, pair i turns by 16^(-i/4) at each position: 128/(2 pi) * 16^(-i/4) times in 128 positions.
  layers::Rotary rotary{256.0};
  const std::vector<double> plain = layers::of_attention::frequencies(rotary, 16);
  rotary.scaling = layers::RotaryScaling{layers::Llama3Scaling{8.0, 1.0, 4.0, 128}};
  const std::vector<double> scaled = layers::of_attention::frequencies(rotary, 16);
  // 20.4, 10.2 and 5.1 turns stay; 0.64, 0.32 and 0.16 are divided by 8.
  for (const std::size_t i : {0U, 1U, 2U}) CHECK(scaled[i] == plain[i]);
  for (const std::size_t i : {5U, 6U, 7U}) CHECK(scaled[i] == plain[i] / 8);
  // Between them: 2.546 turns keep (2.546 - 1) / 3 of themselves.
  CHECK(std::abs(scaled[3] - 0.125 * (0.51549 + 0.48451 / 8)) < 1e-6);
  CHECK(std::abs(scaled[4] - 0.0625 * (0.09108 + 0.90892 / 8)) < 1e-6);
}

TEST_CASE("rotary scores depend on the distance of two positions alone", "[layers]") {
  Feed feed;
  layers::Attention attention = heads(1);
  attention.rotary = layers::Rotary{10.0};
  attention.use_bias = false;
  const model::Model model =
      drawn({layer("layer", attention), layer("f", layers::Flatten{})}, {DType::f64, {2, 4}}, feed);
  const model::Model longer =
      drawn({layer("layer", attention), layer("f", layers::Flatten{})}, {DType::f64, {1, 4}}, feed);
  const Numbers x = waves(4);
  // Of one position the weight is 1, whatever its angle.
  Numbers twice = x;
  twice.insert(twice.end(), x.begin(), x.end());
  const Numbers one = forward(longer, x, feed).at("y"), two = forward(model, twice, feed).at("y");
  check_within({two.begin(), two.begin() + 4}, one);
}

TEST_CASE("swiglu multiplies by a gate", "[layers]") {
  Feed feed;
  const model::Model model =
      drawn({layer("layer", layers::Swiglu{2}), layer("f", layers::Flatten{})}, {DType::f64, {2, 1}}, feed);
  CHECK(model.parameters[0].name == "layer.gate.kernel");
  CHECK(model.parameters[2].shape == Shape{2, 1});
  feed["layer.gate.kernel"] = {1, 2}, feed["layer.up.kernel"] = {3, 4}, feed["layer.down.kernel"] = {5, 6};
  const auto of = [](double x) {
    const auto silu = [](double v) { return v / (1 + std::exp(-v)); };
    return 5 * silu(x) * 3 * x + 6 * silu(2 * x) * 4 * x;
  };
  check_within(forward(model, {0.5, -1}, feed).at("y"), {of(0.5), of(-1)});
}

TEST_CASE("attention's dropout leaves out weights in training, and divides the others", "[layers]") {
  Feed feed;
  layers::Attention attention = heads(1);
  attention.dropout = 0.5;
  const model::Model model =
      drawn({layer("layer", attention), layer("f", layers::Flatten{})}, {DType::f64, {1, 2}}, feed);
  const Numbers whole = forward(model, {1, 2}, feed).at("y");  // the only weight is 1
  Numbers x;
  for (int row = 0; row < 64; ++row) {
    feed["row"].push_back(row);
    x.insert(x.end(), {1, 2});
  }
  feed["layer"] = {7, 8};
  const Numbers y = forward(model, x, feed, true).at("y");
  int kept = 0;
  for (std::size_t row = 0; row < 64; ++row) {
    const double factor = y[2 * row] == 0.0 ? 0.0 : 2.0;
    check_within({y[2 * row], y[2 * row + 1]}, {factor * whole[0], factor * whole[1]});
    kept += factor > 0 ? 1 : 0;
  }
  CHECK(kept > 16);
  CHECK(kept < 48);
}

TEST_CASE("PyTorch has the heads of attention in one dimension", "[layers]") {
  Feed feed;
  layers::Attention attention = heads(2);
  attention.head_dim = 3;
  const model::Model model =
      drawn({layer("layer", attention), layer("f", layers::Flatten{})}, {DType::f64, {2, 4}}, feed);
  std::string text;
  for (const model::Parameter& parameter : model.parameters) {
    const model::StoredParameter torch = model::stored(parameter, model::ParameterLayout::torch);
    text += torch.name + " " + to_string(torch.shape) + (torch.is_reordered() ? " reordered\n" : "\n");
  }
  CHECK(text ==
        "layer.query.weight [6,4] reordered\nlayer.query.bias [6]\nlayer.key.weight [6,4] reordered\n"
        "layer.key.bias [6]\nlayer.value.weight [6,4] reordered\nlayer.value.bias [6]\n"
        "layer.out.weight [4,6] reordered\nlayer.out.bias [4]\n");
}

TEST_CASE("the gradients of a model of sequences match finite differences of its loss", "[layers]") {
  Network net = classifier(Mesh({{"devices", 2}}));
  layers::Attention attention = heads(2, true);
  attention.kv_heads = 1;
  attention.rotary = layers::Rotary{};
  attention.qk_norm = true;
  attention.dropout = 0.25;
  net.layers = {table(5, 4),
                layer("positions", layers::PositionEmbedding{4}),
                layer("layer", layers::Residual{{layer("attention_0", attention)}, {}}),
                layer("swiglu_0", layers::Swiglu{3}),
                layer("attend_0", layers::Attend{"tokens"}),
                layer("mean", layers::GlobalAvgPool{})};
  const model::Model model = model::make_model(net, tokens, labels, DType::f64);
  const Program program = step::train_program(model, net.step, optimizer_of(net, model, {2, 2}), {2, 2}, all_ops());
  Feed feed{{"targets", {0, 2, 1, 1}}, {"mask", {1, 1, 1, 0}}, {"rows", {4, 5, 6, 7}}};
  add_numbers(feed, step::step_numbers(model, net.step, optimizer_of(net, model)));
  feed["dropout/layer.attention_0"] = {11, 12};
  feed["inputs"] = {0, 1, 2, 4, 4, 1, 3, 0, 3, 0, 0, 0};
  for (const model::Parameter& parameter : model.parameters) {
    feed[parameter.name] = to_numbers(setup::draw(parameter, 5, DType::f64), DType::f64);
  }
  const Feed result = results_of(program, feed);
  check_gradients(program, model, feed, result);
}

TEST_CASE("layers of sequences refuse what does not fit, and say what would", "[layers]") {
  const Field sequence{DType::f32, {6, 8}};
  CHECK(refused({layer("layer", heads(3))}, sequence) ==
        "layer has 3 heads, which do not divide the 8 features of its input f32[6,8] | heads may be one of 1, 2, 4, 8; "
        "with head_dim it may be any number");
  layers::Attention attention = heads(4);
  attention.kv_heads = 3;
  CHECK(refused({layer("layer", attention)}, sequence) ==
        "layer has kv_heads 3, which does not divide its 4 heads | kv_heads may be one of 1, 2, 4");
  attention = heads(8);
  attention.rotary = layers::Rotary{};
  CHECK(refused({layer("layer", attention)}, sequence) ==
        "layer has rotary, which turns pairs of features, and heads of 1 features | write another head_dim or another "
        "number of heads, so that a head has an even number of features");
  attention = heads(2);
  attention.rotary = layers::Rotary{500.0, layers::RotaryScaling{layers::Llama3Scaling{8.0, 4.0, 4.0}}};
  CHECK(refused({layer("layer", attention)}, sequence) ==
        "layer has rotary.scaling with low_freq_factor 4.0 and high_freq_factor 4.0 | high_freq_factor is larger: 1.0 "
        "and "
        "4.0 in Llama 3.1");
  CHECK(refused({layer("layer", heads(1))}, {DType::f32, {4}}) ==
        "layer takes sequences [T, C]; its input is f32[4] | put it after embedding, or after reshape: [T, C]");
  CHECK(refused({layer("layer", heads(1))}, {DType::f32, {4, 4, 2}}) ==
        "layer takes sequences [T, C]; its input is f32[4,4,2] | add reshape: [T, C] before it");
  CHECK(refused({table()}, sequence) ==
        "tokens takes tokens, which are integers; its input is f32[6,8] | make it the first layer, of data that are "
        "tokens: data.source.text, or an array of integers (data.source.npz)");
  CHECK(refused({table(), layer("again", layers::Embedding{5, 4})}) ==
        "again takes tokens, which are integers; its input is f32[3,4] | make it the first layer, of data that are "
        "tokens: data.source.text, or an array of integers (data.source.npz)");
  CHECK(refused({table(), layer("layer", layers::PositionEmbedding{2})}) ==
        "layer has length 2, but its input f32[3,4] has 3 positions | write length: 3, or use shorter sequences");
  CHECK(refused({layer("layer", layers::PositionEmbedding{2})}, {DType::f32, {4}}) ==
        "layer takes sequences [T, C]; its input is f32[4] | put it after embedding");
  CHECK(refused({table(), layer("layer", layers::Attend{"token"})}) ==
        "layer takes the table of 'token', which is no embedding layer of this model | did you mean 'tokens'?");
  CHECK(refused({layer("layer", layers::Attend{"tokens"})}, sequence) ==
        "layer takes the table of 'tokens', which is no embedding layer of this model | begin with {name: tokens, "
        "embedding: {num_embeddings: 256, features: 128}}, and write attend: {embedding: tokens}");
  CHECK(refused({table(), layer("dense_0", layers::Dense{6}), layer("layer", layers::Attend{"tokens"})}) ==
        "layer takes features [..., 4], as 'tokens' gives; its input is f32[3,6] | add dense: 4 before it");
  CHECK(refused({layer("layer", layers::Swiglu{4})}, {DType::f32, {}}) ==
        "layer takes features [..., C]; its input is f32[] | add flatten before it, which gives the shape [1]");
}

TEST_CASE("only embedding reads tokens, on every path of a residual layer", "[layers]") {
  CHECK(refused({layer("both", layers::Residual{{table()}, {layer("wide", layers::Dense{16})}})}) ==
        "both.shortcut.wide computes with numbers, and its input are tokens | put it behind embedding, which gives "
        "numbers");
}

TEST_CASE("tokens of a text begin with embedding, unless normalize makes numbers of them", "[layers]") {
  Network net = network({layer("dense_0", layers::Dense{3})});
  net.text_tokens = 256;
  CHECK(refusal(net, tokens, labels) ==
        "dense_0 takes numbers; the inputs are tokens, i32[3] | begin with embedding: {num_embeddings: 256, features: "
        "128}; with data.normalize tokens are numbers");
  net.normalize = FieldStatistics{{100}, {50}};
  CHECK(refusal(net, tokens, labels) == "accepted");
  net.layers.insert(net.layers.begin(), table());
  net.layers.push_back(layer("mean", layers::GlobalAvgPool{}));
  CHECK(refusal(net, tokens, labels) ==
        "normalize makes numbers of the inputs, but embedding takes integers | remove it");
}
