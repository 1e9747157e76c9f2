// The gradients of layers that devices divide are those of the whole layers.
#include "tests/train/divided_layers.h"

#include <algorithm>
#include <cmath>

#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/slice.h"

namespace pmaptrain::testing {
namespace {

// A block of attention of 4 heads, with these keys besides.
std::string attention_with(const std::string& keys) {
  return "{embedding: {num_embeddings: 256, features: 8}}, {position_embedding: {length: 8}}, layer_norm, "
         "{attention: {heads: 4, causal: true" +
         keys + "}}, layer_norm, {dense: 256}";
}

std::vector<DividedNetwork> divided_networks(const std::string& text) {
  const std::string tied = "{name: tokens, embedding: {num_embeddings: 259, features: 8}}, layer_norm";
  return {
      {"two dense layers", images_with("flatten, {dense: 8}, gelu, {dense: 5}, tanh, {dense: 3}")},
      {"dropout of divided features", images_with("flatten, {dense: 8}, relu, {dropout: 0.4}, {dense: 3}")},
      {"two pairs without biases", images_with("flatten, {dense: {features: 8, use_bias: false}}, tanh, {dense: "
                                               "{features: 6, use_bias: false}}, {dense: 4}, {dense: 3}")},
      {"dense layers of positions", images_with("{reshape: [12, 9]}, {dense: 8}, silu, {dense: 5}, global_avg_pool, "
                                                "{dense: 3}")},
      {"convolutions with pooling between them",
       images_with("{conv: {features: 8, kernel_size: [3, 3]}}, relu, {max_pool: {window_shape: [2, 2], strides: [2, "
                   "2]}}, {dropout: "
                   "0.3}, {conv: {features: 5, kernel_size: [2, 2]}}, relu, global_avg_pool, {dense: 3}")},
      {"a convolution and a dense layer", images_with("{conv: {features: 8, kernel_size: [3, 3], strides: [2, 2]}}, "
                                                      "elu, global_max_pool, {dense: 3}")},
      {"convolutions over positions",
       images_with("{reshape: [12, 9]}, {conv: {features: 4, kernel_size: [3], strides: [1]}}, tanh, {conv: {features: "
                   "5, kernel_size: [3], strides: [2], use_bias: false}}, global_avg_pool, {dense: 3}")},
      {"convolutions of volumes",
       images_with("{reshape: [2, 3, 6, 3]}, {conv: {features: 4, kernel_size: [2, 2, 2], strides: [1, 1, 1]}}, relu, "
                   "{avg_pool: {window_shape: [2, 1, 2], strides: [1, 1, 1]}}, {conv: {features: 5, kernel_size: [1, "
                   "2, 2], strides: [1, 1, "
                   "1]}}, flatten, {dense: 3}")},
      {"branches", images_with("flatten, {dense: 6}, {parallel: {join: concat, branches: {deep: [{dense: 8}, relu, "
                               "{dense: 4}], wide: [{swiglu: 4}], skip: []}}}, {dense: 3}")},
      {"residual layers, computed again",
       images_with(
           "flatten, {dense: {features: 6}, tensor: none}, {repeat: {times: 2, remat: true, layers: [{residual: "
           "{layers: [layer_norm, {dense: 8}, gelu, {dropout: 0.2}, {dense: 6}]}}]}}, {dense: 3}")},
      {"swiglu", images_with("flatten, {dense: 6}, {swiglu: 8}, {dense: 3}")},
      {"attention", texts_with(text, attention_with(""))},
      {"attention with one head of keys", texts_with(text, attention_with(", kv_heads: 1, use_bias: false"))},
      {"attention with two heads of keys, rotary",
       texts_with(text, attention_with(", kv_heads: 2, rotary: {base: 100.0}"))},
      {"attention with norms and dropout", texts_with(text, attention_with(", qk_norm: true, dropout: 0.3"))},
      {"attention that sees all, with wide heads",
       images_with("{reshape: [12, 9]}, {attention: {heads: 4, head_dim: 3, kv_heads: 2, qk_norm: true}}, "
                   "global_avg_pool, {dense: 3}")},
      {"a tied output, of classes that do not divide", texts_with(text, tied + ", {attend: {embedding: tokens}}")},
      {"a tied output that others read", texts_with(text, tied + ", {attend: {embedding: tokens}}, tanh")},
      {"a head of classes, weighted and smoothed",
       texts_with(text, "{embedding: {num_embeddings: 256, features: 8}, tensor: none}, {dense: {features: 258}}",
                  "{softmax_cross_entropy: {label_smoothing: 0.1, ignore_label: 40}}")},
      {"a head of classes, by the k largest",
       images_with("flatten, {dense: {features: 257}}", "[accuracy, top_k_accuracy: 3, perplexity]")},
      {"adapters by columns and by rows",
       texts_with(text, attention_with(", kv_heads: 2") + ", {swiglu: 8}, {dense: 256}") +
           "lora: {rank: 2, dropout: 0.2, parameters: [\"*\"], also_train: [\"*.scale\"]}\n",
       2e-2},  // an adapter reads what another product has rounded
  };
}

// Gradients are the momentum after one step. One that is small beside others is a difference of larger numbers, so it
// is compared with a fifth of the largest.
void check_gradients(const run::Tensors& found, const run::Tensors& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  const auto largest_of = [](const std::vector<double>& values) {
    double most = 0;
    for (const double value : values) most = std::max(most, std::abs(value));
    return most;
  };
  double largest = 0;
  for (const auto& [name, tensor] : expected) {
    if (name.starts_with("sgd.trace/")) largest = std::max(largest, largest_of(to_doubles(tensor)));
  }
  REQUIRE(largest > 0);
  for (const auto& [name, tensor] : expected) {
    if (!name.starts_with("sgd.trace/")) continue;
    INFO(name);
    const std::vector<double> gradient = to_doubles(found.at(name)), other = to_doubles(tensor);
    REQUIRE(gradient.size() == other.size());
    const double allowed = tolerance * std::max(largest_of(other), 0.2 * largest);
    double most = 0;
    for (std::size_t i = 0; i < other.size(); ++i) most = std::max(most, std::abs(gradient[i] - other[i]));
    CHECK(most <= allowed);
  }
}

}  // namespace

TEST_CASE("gradients of layers that devices divide are those of whole layers", "[train]") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", some_text());
  test::Slice slice(test::slices_with_sanitizer(4));
  for (const DividedNetwork& network : divided_networks(text)) {
    if (!slice.takes()) continue;
    const std::string config = network.text + divided_sgd;
    const Trained whole = train_setup(setup_of_text(config, on_axes(1, 1)));
    for (const int devices : {2, 4}) {
      INFO(network.name << ", " << devices << " devices");
      const setup::Setup setup = setup_of_text(config, on_axes(1, devices));
      const Trained divided = train_setup(setup);
      check_gradients(divided.state, whole.state, 1e-5);
      check_near(divided.of<run::Logged>().back().measures, whole.of<run::Logged>().back().measures);
      CHECK(divided.of<run::Logged>().back().grad_norm ==
            Approx(whole.of<run::Logged>().back().grad_norm).epsilon(1e-5));
    }
  }
}

TEST_CASE("gradients of layers that devices divide are those of whole layers in mixed precision", "[train]") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", some_text());
  test::Slice slice(test::slices_with_sanitizer(4));
  for (const DividedNetwork& network : divided_networks(text)) {
    if (!slice.takes()) continue;
    INFO(network.name);
    const std::string config = network.text + divided_sgd;
    const std::string mixed = "precision=mixed_bfloat16";
    std::vector<std::string> set = on_axes(1, 2);
    set.push_back(mixed);
    const std::vector<std::string> alone{"mesh.axes=[{data: 1}]", mixed};
    check_gradients(train_setup(setup_of_text(config, set)).state, train_setup(setup_of_text(config, alone)).state,
                    network.mixed);
  }
}

}  // namespace pmaptrain::testing
