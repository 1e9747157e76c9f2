// Predictions beside Flax and PyTorch, which were given the parameters of a run: make_prediction_fixtures.py.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/data/arrays/array.h"
#include "core/evaluate/predictor.h"
#include "core/model/layout.h"
#include "core/run/files/safetensors.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const std::string fixtures = "tests/parity/predictions/";

std::vector<float> floats_of(const std::string& file) {
  const data::Array array = data::read_npy(fixtures + file);
  std::vector<float> values(static_cast<std::size_t>(numel(array.shape)));
  data::read_floats(array, 0, values);
  return values;
}

// The logits that a run predicts which begins with `init` and takes a step too small to change a parameter.
std::vector<float> logits_from(const std::string& init, const std::string& devices) {
  const std::string config = test::read_text(fixtures + "config.yaml");
  const setup::Setup setup =
      setup_of_text(config, {"mesh.axes.devices=" + devices, "data.remainder=mask", init,
                             "optimizer={sgd: {}, learning_rate: 1.0e-30}", "train.duration=1 step"});
  const TemporaryFolder folder;
  train_setup_in(folder / "run", setup);
  evaluate::PredictionRequest request;
  request.input.path = fixtures + "inputs.npy";
  request.kind = model::PredictionKind::logits;
  evaluate::Predictor predictor(setup.loaded, folder / "run", request);
  std::vector<float> logits;
  predictor.run([&](std::int64_t, std::span<const std::byte> rows) {
    const auto* const values = reinterpret_cast<const float*>(rows.data());
    logits.insert(logits.end(), values, values + rows.size() / sizeof(float));
  });
  return logits;
}

void check_near(const std::vector<float>& logits, const std::string& file) {
  const std::vector<float> expected = floats_of(file);
  REQUIRE(expected.size() == 48);
  REQUIRE(logits.size() == 48);
  float largest = 0, apart = 0;
  for (std::size_t i = 0; i < 48; ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    apart = std::max(apart, std::abs(expected[i] - logits[i]));
  }
  CAPTURE(file);
  CHECK(largest > 1);
  CHECK(apart <= 1e-6F * largest);
}

}  // namespace

TEST_CASE("Flax and PyTorch predict the same from a run's parameters", "[parity]") {
  const std::string devices = GENERATE(std::string("1"), std::string("2"), std::string("5"));
  CAPTURE(devices);
  const std::vector<float> logits = logits_from("model.init.from=" + fixtures + "params.safetensors", devices);
  check_near(logits, "flax.npy");
  check_near(logits, "torch.npy");
}

TEST_CASE("the parameters that PyTorch predicted with are those of the run, in PyTorch's layout", "[parity]") {
  const run::Tensors ours = run::read_safetensors(fixtures + "params.safetensors");
  const run::Tensors torch = run::read_safetensors(fixtures + "torch.safetensors");
  const setup::Setup setup = setup_of_text(test::read_text(fixtures + "config.yaml"));
  CHECK(torch.size() == setup.model.parameters.size());
  for (const model::Parameter& parameter : setup.model.parameters) {
    const model::StoredParameter order = model::stored(parameter, model::ParameterLayout::torch);
    CHECK(torch.at(order.name) ==
          run::Tensor{DType::f32, order.shape, model::to_stored(order, ours.at(parameter.name).bytes, sizeof(float))});
  }
}

TEST_CASE("a model of PyTorch, under names of its own, predicts the same here", "[parity]") {
  check_near(logits_from("model.init.from={path: " + fixtures + "torch.safetensors, layout: torch}", "1"), "torch.npy");
  // As in the documentation.
  const std::string init = test::read_text(fixtures + "init.yaml");
  const std::size_t begin = init.find("rename: ");
  const std::string rename = init.substr(begin, init.find('\n', begin) - begin);
  check_near(
      logits_from("model.init.from={path: " + fixtures + "sequential.safetensors, layout: torch, " + rename + "}", "2"),
      "torch.npy");
}

TEST_CASE("the documentation has the configs whose predictions were compared with Flax's and PyTorch's", "[parity]") {
  for (const char* file : {"config.yaml", "init.yaml"}) {
    CHECK(test::contains(test::read_text("docs/export.md"), "```yaml\n" + test::read_text(fixtures + file) + "```\n"));
  }
}
