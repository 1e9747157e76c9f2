// Adapters beside kernels: their parameters, equations and gradients, and what they refuse.
#include "core/model/lora.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/layers/attention.h"
#include "core/layers/conv.h"
#include "core/layers/embedding.h"
#include "core/layers/nested.h"
#include "core/layers/norms.h"
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

model::Lora adapted(std::vector<std::string> patterns, std::vector<std::string> also = {}) {
  model::Lora lora;
  lora.rank = 2;
  lora.alpha = 3.0;
  for (std::string& pattern : patterns) lora.parameters.push_back({std::move(pattern)});
  for (std::string& pattern : also) lora.also_train.push_back({std::move(pattern)});
  return lora;
}

// Tokens, a block of attention and swiglu, and a head of three classes.
Network transformer() {
  Network net = classifier(Mesh({{"devices", 2}}));
  layers::Attention attention;
  attention.heads = 2;
  attention.causal = true;
  net.layers = {
      layer("tokens", layers::Embedding{5, 4}),
      layer("block", layers::Residual{{layer("norm", layers::LayerNorm{}), layer("attention", attention)}, {}}),
      layer("swiglu", layers::Swiglu{3}), layer("mean", layers::GlobalAvgPool{}), layer("head", layers::Dense{3})};
  return net;
}

const model::Parameter& parameter_named(const model::Model& model, const std::string& name) {
  const auto found = std::find_if(model.parameters.begin(), model.parameters.end(),
                                  [&](const model::Parameter& parameter) { return parameter.name == name; });
  INFO(name);
  REQUIRE(found != model.parameters.end());
  return *found;
}

// Drawn values, b too, which begins as zeros.
Feed drawn_values(const model::Model& model) {
  Feed feed;
  for (model::Parameter parameter : model.parameters) {
    if (parameter.lora == layers::LoraRole::adapter) parameter.initializer = {layers::InitializerKind::normal, 0.5};
    feed[parameter.name] = to_numbers(setup::draw(parameter, 5, DType::f64), DType::f64);
  }
  return feed;
}

// A kernel with its adapter in it.
Numbers merged(const model::Model& model, const Feed& feed, const std::string& path) {
  const model::Parameter& kernel = parameter_named(model, path + ".kernel");
  Numbers sum = feed.at(kernel.name);
  const Numbers &a = feed.at(path + ".lora_a"), &b = feed.at(path + ".lora_b");
  const auto rank = static_cast<std::size_t>(model.lora->rank), out = static_cast<std::size_t>(kernel.matrix[1]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(kernel.matrix[0]); ++i) {
    for (std::size_t j = 0; j < out; ++j) {
      for (std::size_t k = 0; k < rank; ++k) sum[i * out + j] += model.lora->scale() * a[i * rank + k] * b[k * out + j];
    }
  }
  return sum;
}

std::string refused(const model::Lora& lora, Network net = transformer()) {
  net.lora = lora;
  return refusal(net, tokens, labels);
}

}  // namespace

TEST_CASE("an adapter has two matrices beside each kernel that a pattern matches", "[model]") {
  Network net = transformer();
  net.lora = adapted({"*.query", "*.out", "swiglu.down"}, {"head.*"});
  const model::Model model = model::make_model(net, tokens, labels);
  CHECK(parameter_named(model, "block.attention.query.lora_a").shape == Shape{4, 2});
  CHECK(parameter_named(model, "block.attention.query.lora_b").shape == Shape{2, 4});
  CHECK(parameter_named(model, "block.attention.out.lora_b").shape == Shape{2, 4});
  CHECK(parameter_named(model, "swiglu.down.lora_a").shape == Shape{3, 2});
  std::set<std::string> trained;
  const step::Optimizer optimizer = optimizer_of(net, model);
  for (const std::size_t i : optimizer.trained()) trained.insert(model.parameters[i].name);
  CHECK(trained == std::set<std::string>{"block.attention.query.lora_a", "block.attention.query.lora_b",
                                         "block.attention.out.lora_a", "block.attention.out.lora_b",
                                         "swiglu.down.lora_a", "swiglu.down.lora_b", "head.kernel", "head.bias"});
}

TEST_CASE("a of an adapter is uniform within 1 / sqrt(inputs), and b begins as zeros", "[model]") {
  Network net = network({layer("head", layers::Dense{64})});
  net.lora = adapted({"head"});
  net.lora->rank = 32;
  const model::Model model = model::make_model(net, {DType::f32, {100}}, labels, DType::f64);
  const Numbers a = to_numbers(setup::draw(parameter_named(model, "head.lora_a"), 1, DType::f64), DType::f64);
  const auto [least, most] = std::minmax_element(a.begin(), a.end());
  CHECK(*least >= -0.1);
  CHECK(*most <= 0.1);
  CHECK(*most - *least > 0.19);
  const Numbers b = to_numbers(setup::draw(parameter_named(model, "head.lora_b"), 1, DType::f64), DType::f64);
  CHECK(std::all_of(b.begin(), b.end(), [](double value) { return value == 0; }));
}

TEST_CASE("an adapted model is the model whose kernels have alpha / rank times a @ b added", "[model]") {
  Network net = transformer();
  const model::Model plain = model::make_model(net, tokens, labels, DType::f64);
  net.lora = adapted({"*.query", "*.key", "*.value", "*.out", "swiglu.*", "head"});
  const model::Model model = model::make_model(net, tokens, labels, DType::f64);
  const Feed feed = drawn_values(model);
  Feed whole;
  for (const model::Parameter& parameter : plain.parameters) {
    const bool is_adapted = !parameter.matrix.empty();
    const std::string path = parameter.name.substr(0, parameter.name.rfind('.'));
    whole[parameter.name] = is_adapted ? merged(model, feed, path) : feed.at(parameter.name);
  }
  const Numbers inputs{0, 1, 2, 4, 4, 1, 3, 0, 3};
  const Numbers y = forward(model, inputs, feed).at("y"), expected = forward(plain, inputs, whole).at("y");
  REQUIRE(y.size() == expected.size());
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(expected[i]).epsilon(1e-10));
  Feed zero = feed;
  for (auto& [name, values] : zero) {
    if (name.ends_with(".lora_b")) values.assign(values.size(), 0.0);
  }
  Feed base;
  for (const model::Parameter& parameter : plain.parameters) base[parameter.name] = feed.at(parameter.name);
  CHECK(forward(model, inputs, zero).at("y") == forward(plain, inputs, base).at("y"));
}

TEST_CASE("the gradients of adapters match finite differences of the loss, and the base has none", "[model]") {
  Network net = transformer();
  net.lora = adapted({"*.query", "*.value", "*.out", "swiglu.*"}, {"head.*"});
  net.lora->dropout = GENERATE(0.0, 0.5);
  const model::Model model = model::make_model(net, tokens, labels, DType::f64);
  const Program program = step::train_program(model, net.step, optimizer_of(net, model, {2, 2}), {2, 2}, all_ops());
  Feed feed = drawn_values(model);
  feed["targets"] = {0, 2, 1, 1};
  feed["mask"] = {1, 1, 1, 0};
  feed["rows"] = {4, 5, 6, 7};
  feed["inputs"] = {0, 1, 2, 4, 4, 1, 3, 0, 3, 0, 0, 0};
  add_numbers(feed, step::step_numbers(model, net.step, optimizer_of(net, model)));
  double key = 1;
  for (const std::string& layer : model.drawing_layers()) feed["dropout/" + layer] = {key++, 7};
  const Feed result = results_of(program, feed);
  for (const model::Parameter& parameter : model.parameters) {
    INFO(parameter.name);
    CHECK(result.contains(parameter.name) == (parameter.lora != layers::LoraRole::base));
  }
  check_gradients(program, model, feed, result);
}

TEST_CASE("dropout before an adapter acts in training alone, and each adapter draws by itself", "[model]") {
  Network net = transformer();
  net.lora = adapted({"*.query", "head"});
  net.lora->dropout = 0.5;
  const model::Model model = model::make_model(net, tokens, labels, DType::f64);
  CHECK(model.drawing_layers() == std::vector<std::string>{"block.attention.query.lora", "head.lora"});
  Feed feed = drawn_values(model);
  for (const std::string& layer : model.drawing_layers()) feed[layer] = {3, 4};
  feed["row"] = {0, 1};
  const Numbers inputs{0, 1, 2, 4, 4, 1};
  CHECK(forward(model, inputs, feed, true).at("y") != forward(model, inputs, feed).at("y"));
  net.lora->dropout = 0.0;
  const model::Model without = model::make_model(net, tokens, labels, DType::f64);
  CHECK(without.drawing_layers().empty());
  CHECK(forward(without, inputs, drawn_values(without)).at("y") == forward(model, inputs, feed).at("y"));
}

TEST_CASE("with base_precision bfloat16 kernels and tables of the base are stored as such", "[model]") {
  Network net = transformer();
  net.lora = adapted({"*.query"}, {"head.*"});
  net.lora->base_precision = model::BasePrecision::bfloat16;
  const model::Model model = model::make_model(net, tokens, labels);
  for (const char* const name : {"tokens.embedding", "block.attention.query.kernel", "swiglu.up.kernel"}) {
    CHECK(parameter_named(model, name).stored_as == DType::bf16);
  }
  for (const char* const name :
       {"block.norm.scale", "block.attention.query.bias", "head.kernel", "block.attention.query.lora_a"}) {
    CHECK_FALSE(parameter_named(model, name).stored_as);
  }
}

TEST_CASE("adapters refuse patterns and ranks that do not fit, and say what would", "[model]") {
  const std::string kernels =
      "kernels that can be adapted are block.attention.query, block.attention.key, block.attention.value, "
      "block.attention.out, swiglu.gate, swiglu.up, swiglu.down, head";
  CHECK(refused(adapted({"*.q"})) == "no kernel of this model matches '*.q' | " + kernels);
  CHECK(refused(adapted({"block.attention.qery"})) ==
        "no kernel of this model matches 'block.attention.qery' | did you mean 'block.attention.query'?");
  CHECK(refused(adapted({"tokens"})) == "what 'tokens' matches has no product with a kernel to adapt | " + kernels);
  CHECK(refused(adapted({"block.norm*"})) ==
        "what 'block.norm*' matches has no product with a kernel to adapt | " + kernels);
  CHECK(refused(adapted({"*.query.kernel"})) ==
        "lora.parameters names kernels without '.kernel', and has '*.query.kernel' | write '*.query'");
  CHECK(refused(adapted({"head"}, {"hed.*"})) ==
        "no parameter of this model matches 'hed.*' | the parameters are tokens.embedding, block.norm.scale, "
        "block.norm.bias, block.attention.query.kernel, block.attention.query.bias, block.attention.key.kernel, "
        "block.attention.key.bias, block.attention.value.kernel and 8 more");
  CHECK(refused(adapted({"head"}, {"head.*"})) ==
        "'head.kernel' is adapted by lora.parameters and trained as a whole by 'head.*' | let one of the two patterns "
        "leave it out: an adapter is for a kernel that stays as it is");
  model::Lora wide = adapted({"swiglu.*"});
  wide.rank = 4;
  CHECK(refused(wide) ==
        "lora.rank is 4, and 'swiglu.gate.kernel' is a matrix [4,3] | a rank of at most 3, the smaller "
        "of its sizes");
  Network net = network({layer("mean", layers::GlobalAvgPool{})});
  net.lora = adapted({"*"});
  CHECK(refusal(net, {DType::f32, {6, 8}}, labels) ==
        "what '*' matches has no product with a kernel to adapt | dense, attention and swiglu have kernels that can be "
        "adapted, and this model has none of these layers");
}

TEST_CASE("groups of the optimizer may not freeze adapters, or have parameters of the base alone", "[model]") {
  Network net = transformer();
  net.lora = adapted({"*.query"});
  const model::Model model = model::make_model(net, tokens, labels);
  const auto refused_group = [&](const std::string& pattern, bool freeze) {
    net.optimizer.groups = {{{{pattern}}, {}, {}, freeze}};
    try {
      optimizer_of(net, model);
    } catch (const Error& error) {
      return error.diagnostics().front().message + " | " + error.diagnostics().front().help;
    }
    return std::string("accepted");
  };
  CHECK(refused_group("*.lora_b", true) ==
        "this group freezes the adapter 'block.attention.query.lora_b' | adapters are what lora trains: let the "
        "patterns leave them out, or lora.parameters its kernel");
  CHECK(refused_group("head.*", false) ==
        "this group has parameters of the base alone, such as 'head.kernel', which lora leaves as they are | "
        "lora.also_train names those that are trained beside adapters; or remove this group");
  CHECK(refused_group("*.lora_b", false) == "accepted");
}
