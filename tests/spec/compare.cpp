// The keys in which a config differs from the resolved one of a run.
#include "core/spec/compare.h"

#include "core/spec/load.h"
#include "tests/catch.h"

using namespace pmaptrain;

namespace {

const std::string cnn_config = R"(name: run
mesh: {axes: [{a: 2}, {b: 4}]}
data: {source: fashion_mnist, batch_size: 128}
model:
  layers: [flatten, {dense: 10}]
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 2 epochs}
)";

spec::Loaded cnn_with(std::vector<std::string> set) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  return spec::load_text(cnn_config, "cnn.yaml", "/base", overrides);
}

std::string changes(std::vector<std::string> set) {
  std::string text;
  for (const spec::ChangedKey& key :
       spec::changed_keys(cnn_with({}).resolved, "runs/cnn/config.yaml", cnn_with(std::move(set)))) {
    text += (text.empty() ? "" : "; ") + key.path + ": " + key.before + " -> " + key.after;
  }
  return text;
}

}  // namespace

TEST_CASE("configs are compared key by key, with their defaults", "[spec]") {
  CHECK(changes({}).empty());
  CHECK(changes({"train.log_every=100", "seed=0"}).empty());  // what it was by default
  CHECK(changes({"data.batch_size=64", "train.duration=3 epochs"}) ==
        "data.batch_size: 128 -> 64; train.duration: 2 epochs -> 3 epochs");
  CHECK(changes({"mesh.axes.b=2"}) == "mesh.axes: a=2 b=4 -> a=2 b=2");
  CHECK(changes({"model.layers.1.dense.features=3"}) == "model.layers.1.dense.features: 10 -> 3");
  CHECK(changes({"ensemble={axis: b, vary: {seed: [1, 2, 3, 4]}}", "data.axes=[a]"}).find("ensemble:  -> {axis: b") !=
        std::string::npos);
  CHECK(changes({"data.validation=0.1"}).starts_with("data.validation:  -> "));
  const std::string replaced = changes({"optimizer.sgd.momentum=0.9"});
  CHECK(replaced.find("optimizer.sgd:  -> {momentum: 0.9") != std::string::npos);
  CHECK(replaced.find("optimizer.adam: {b1: 0.9, b2: 0.999, eps: 1.0e-08} -> ") != std::string::npos);
}

TEST_CASE("a changed value of a member is named by its index", "[spec]") {
  const auto keys =
      spec::changed_keys(cnn_with({"ensemble={axis: a, vary: {optimizer.adam.b1: [0.1, 0.2]}}"}).resolved, "old.yaml",
                         cnn_with({"ensemble={axis: a, vary: {optimizer.adam.b1: [0.1, 0.3]}}"}));
  REQUIRE(keys.size() == 1);
  CHECK(keys[0].path == "ensemble.vary.optimizer.adam.b1.1");
  CHECK(keys[0].before == "0.2");
  CHECK(keys[0].after == "0.3");
}

TEST_CASE("a changed key has the place of its new value, in a file or in an option", "[spec]") {
  const auto keys = spec::changed_keys(cnn_with({"data.batch_size=64"}).resolved, "old.yaml", cnn_with({}));
  REQUIRE(keys.size() == 1);
  CHECK(keys[0].kind == "config");
  CHECK(keys[0].place.file == "cnn.yaml");
  CHECK(keys[0].place.line == 3);
  const auto options = spec::changed_keys(cnn_with({}).resolved, "old.yaml", cnn_with({"data.batch_size=64"}));
  REQUIRE(options.size() == 1);
  CHECK(options[0].kind == "usage");
  CHECK(options[0].place.file == "--set");
  CHECK(options[0].place.column == 17);
}

TEST_CASE("a mesh or an ensemble that is none in the file of a run is compared as it is written", "[spec]") {
  const std::string resolved = cnn_with({}).resolved, axes = "axes: [{a: 2}, {b: 4}]";
  const std::size_t at = resolved.find(axes);
  REQUIRE(at != std::string::npos);
  for (const std::string written : {"{}", "[1, 2]", "[{}, {a: 2}]", "[[a, 2]]", "[{a: {}}, {b: 4}]",
                                    "[{a: [2]}, {b: 4}]", "[{a: 2, b: 4}]", "a=2 b=4", "[]"}) {
    std::string edited = resolved;
    edited.replace(at, axes.size(), "axes: " + written);
    CAPTURE(edited);
    const auto keys = spec::changed_keys(edited, "old.yaml", cnn_with({}));
    REQUIRE(keys.size() == 1);
    CHECK(keys[0].path == "mesh.axes");
    CHECK(keys[0].after.find("b") != std::string::npos);
  }
  std::string blank = resolved;
  blank.replace(at, axes.size(), "axes: [{a: }, {b: 4}]");
  CHECK(spec::changed_keys(blank, "old.yaml", cnn_with({})).size() == 1);
  for (const char* written : {"ensemble: 5\n", "ensemble: [1]\n", "ensemble: {axis: [a]}\n"}) {
    const auto keys = spec::changed_keys(resolved + written, "old.yaml", cnn_with({}));
    REQUIRE(keys.size() == 1);
    CHECK(keys[0].path == "ensemble");
    CHECK(keys[0].place.file == "cnn.yaml");
  }
}
