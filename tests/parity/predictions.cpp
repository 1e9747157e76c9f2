// Predictions beside Flax and PyTorch, which were given the parameters of a run: make_prediction_fixtures.py.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/data/arrays/array.h"
#include "core/evaluate/predictor.h"
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

}  // namespace

TEST_CASE("Flax and PyTorch predict the same from a run's parameters", "[parity]") {
  const std::string config = test::read_text(fixtures + "config.yaml");
  // A step too small to change a parameter makes a run of the given ones.
  const std::string devices = "mesh.axes.devices=" + GENERATE(std::string("1"), std::string("2"), std::string("5"));
  const train::Setup setup =
      setup_of_text(config, {devices, "data.remainder=mask", "model.init.from=" + fixtures + "params.safetensors",
                             "optimizer={sgd: {}, learning_rate: 1.0e-30}", "train.duration=1 step"});
  const TemporaryFolder folder;
  train_setup_in(folder / "run", setup);
  train::PredictionRequest request;
  request.input.path = fixtures + "inputs.npy";
  request.kind = model::PredictionKind::logits;
  train::Predictor predictor(setup.loaded, folder / "run", request);
  std::vector<float> logits;
  predictor.run([&](std::int64_t, std::span<const std::byte> rows) {
    const auto* const values = reinterpret_cast<const float*>(rows.data());
    logits.insert(logits.end(), values, values + rows.size() / sizeof(float));
  });
  for (const char* file : {"flax.npy", "torch.npy"}) {
    const std::vector<float> expected = floats_of(file);
    REQUIRE(expected.size() == 48);
    REQUIRE(logits.size() == 48);
    float largest = 0, apart = 0;
    for (std::size_t i = 0; i < 48; ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      apart = std::max(apart, std::abs(expected[i] - logits[i]));
    }
    CAPTURE(file, devices);
    CHECK(largest > 1);
    CHECK(apart <= 1e-6F * largest);
  }
}

TEST_CASE("the documentation has the config whose predictions were compared with Flax's and PyTorch's", "[parity]") {
  CHECK(test::contains(test::read_text("docs/runs.md"),
                       "```yaml\n" + test::read_text(fixtures + "config.yaml") + "```\n"));
}
