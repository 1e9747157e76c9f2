// Numbers that are not finite: in the data, and in a step, which is replayed to find where they come from.
#include <bit>
#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/data/arrays/array.h"
#include "core/input/open.h"
#include "core/setup/programs.h"
#include "core/setup/start.h"
#include "core/train/replay.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

std::string big(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// An IDX file of f32[examples,width].
std::string idx_of(const std::vector<float>& values, std::uint32_t width) {
  std::string text = std::string("\0\0\x0d\2", 4) + big(static_cast<std::uint32_t>(values.size()) / width) + big(width);
  for (const float value : values) text += big(std::bit_cast<std::uint32_t>(value));
  return text;
}

// 64 examples of one feature; the targets are twice the inputs.
class Line {
 public:
  std::vector<float> inputs = std::vector<float>(64), targets = std::vector<float>(64);

  Line() {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = static_cast<float>(i % 8);
      targets[i] = 2 * inputs[i];
    }
  }

  setup::Setup setup(std::vector<std::string> set = {}) const {
    return setup_of_text(
        "mesh: {axes: {devices: 4}}\n"
        "data: {source: {idx: {train: [" +
            folder.write("x", idx_of(inputs, 1)) + ", " + folder.write("y", idx_of(targets, 1)) +
            "]}}, batch_size: 16, shuffle: false}\n"
            "model:\n"
            "  layers:\n"
            "    - dense: 3\n"
            "    - relu\n"
            "    - dense: 1\n"
            "loss: mean_squared_error\n"
            "optimizer: {sgd: {}, learning_rate: 0.001}\n"
            "train: {duration: 2 epochs, log_every: 1 step}\n",
        std::move(set));
  }

  TemporaryFolder folder;
};

std::string reason_of(const setup::Setup& setup) {
  const Trained trained = train_setup(setup);
  CHECK(trained.ended.exit_status == 5);
  std::string text = trained.of<run::Warned>().back().text;
  const std::size_t begin = text.find("halt); ");
  REQUIRE(begin != std::string::npos);
  return text.substr(begin + 7);
}

}  // namespace

TEST_CASE("numbers that are not finite are found wherever they are", "[train]") {
  std::vector<float> values(37, -3.4e38F);
  CHECK_FALSE(data::find_nonfinite(values));
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const float bad : {std::nanf(""), -std::nanf(""), INFINITY, -INFINITY}) {
      std::vector<float> changed = values;
      changed[i] = bad;
      CHECK(data::find_nonfinite(changed) == i);
      changed.back() = bad;
      CHECK(data::find_nonfinite(changed) == i);
    }
  }
}

TEST_CASE("an input that is not finite is refused when the data is opened, by its index in the file", "[train]") {
  Line line;
  line.inputs[41] = std::nanf("");
  const std::string help = " | remove the example, or replace the value";
  const auto refusal = [&](std::vector<std::string> set) {
    return test::refusal([&] { line.setup(std::move(set)); }, ExitStatus::data);
  };
  CHECK(refusal({}) == "example 41 of '" + (line.folder / "x") + "' has NaN at [41,0]" + help);
  line.inputs[38] = -INFINITY;  // the first of two
  CHECK(refusal({"data.validation={share: 0.5, seed: 1}", "data.batch_size=4"}) ==
        "example 38 of '" + (line.folder / "x") + "' has -infinity at [38,0]" + help);
}

TEST_CASE("a target that is not finite is refused when the data is opened", "[train]") {
  Line line;
  line.targets[63] = -INFINITY;
  CHECK(test::refusal([&] { line.setup(); }, ExitStatus::data) ==
        "example 63 of '" + (line.folder / "y") +
            "' has -infinity at [63,0] | remove the example, or replace the value");
}

TEST_CASE("a step that is not finite names device, example and the line of the first equation", "[train]") {
  Line line;
  line.inputs[38] = 3e38F;  // finite, but no product of it is: the third batch, second device
  const std::string reason = reason_of(
      line.setup({any_backend(), "data.microbatches=2", "model.init={values: {dense_0.kernel: [[1, 2, 4]]}}"}));
  CHECK(reason.starts_with("replayed on device 1, the first result that is not finite is that of `"));
  CHECK(reason.find("matmul") != std::string::npos);
  CHECK(reason.ends_with("(dense_0, test.yaml:5:7), for example 38"));
}

TEST_CASE("the example of a table that makes a step not finite is named by its line, too", "[train]") {
  const TemporaryFolder folder;
  std::string table = "x,y\n\n";
  for (int i = 0; i < 64; ++i) table += (i == 38 ? "3e38" : std::to_string(i % 8)) + ",1\n";
  const std::string file = folder.write("t.csv", table);
  const std::string reason = reason_of(setup_of_text(
      "mesh: {axes: {devices: 4}}\ndata: {source: {csv: {train: " + file +
          ", target: y}}, batch_size: 16, shuffle: false}\n"
          "model: {layers: [dense: 3], init: {values: {dense_0.kernel: [[1, 2, 4]]}}}\nloss: softmax_cross_entropy\n"
          "optimizer: {sgd: {}, learning_rate: 0.001}\ntrain: {duration: 2 epochs, log_every: 1 step}\n",
      {any_backend()}));
  INFO(reason);
  CHECK(reason.ends_with(", for example 38 ('" + file + "', line 41)"));
}

TEST_CASE("an update that overflows is found by replaying the whole step", "[train]") {
  const Line line;
  const std::string reason = reason_of(line.setup({any_backend(), "optimizer.learning_rate=3e38"}));
  INFO(reason);
  CHECK(reason.find("for the whole batch") != std::string::npos);
  CHECK(reason.find(" mul ") != std::string::npos);
  CHECK(reason.find(", element 0 of dense_1.bias)") != std::string::npos);
}

TEST_CASE("a replay says what it left out, and where all is finite", "[train]") {
  const Line line;
  const setup::Setup setup = line.setup();
  const std::unique_ptr<Module> module = setup::backend_of(setup.spec().mesh)->load(setup::run_source(setup));
  setup::set_initial_values(*module, setup);
  CHECK(train::replay(setup, *module, 1).text ==
        "replayed with the reference kernels, every result is finite: the kernels that trained give another");
  CHECK(train::replay(setup, *module, 1, 0, {.flops = 1}).text ==
        "a microbatch is too large to replay it with the reference kernels");
  CHECK(train::replay(setup, *module, 1, 0, {.bytes = 1}).text ==
        "a microbatch is too large to replay it with the reference kernels");
  CHECK(train::replay(setup, *module, 1, 0, {.seconds = -1}).text ==
        "the first 0 of 4 microbatches of it were replayed, with finite results");
  const double microbatch = setup::cost_of(setup::program_at(setup, step::Stage::grad)).flops / 4;
  CHECK(train::replay(setup, *module, 1, 0, {.flops = 2 * microbatch}).text ==
        "the gradients of every microbatch are finite when they are replayed; the sum over devices and the update are "
        "too large to replay");
}
