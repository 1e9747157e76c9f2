// Runs whose layers devices divide, in combinations with all else that divides or changes a step: they train as a run
// whose layers are whole, and give the same bits in any number of processes.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/runtime/backends.h"
#include "core/setup/make_setup.h"
#include "core/setup/plan.h"
#include "core/spec/load.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/gpu/gpus.h"
#include "tests/session_run.h"
#include "tests/slice.h"
#include "tests/train/divided_layers.h"
#include "tests/train/in_processes.h"

namespace pmaptrain::testing::divided_runs {
namespace {

namespace fs = std::filesystem;
using Options = std::vector<std::string>;

// Four steps of a small transformer with fewer heads of keys than heads, and of a convolutional network. The last batch
// of an epoch has padding rows.
const std::string settings = R"(
optimizer: {sgd: {momentum: 0.9}, learning_rate: 0.05}
train: {duration: 4 steps, log_every: 1 step}
)";
const std::string image_net =
    "data: {source: {synthetic_images: {height: 6, width: 6, classes: 3, train: 21, test: 8}}, batch_size: 8, "
    "remainder: mask}\n"
    "model: {layers: [{conv: {features: 8, kernel_size: [3, 3]}}, relu, {max_pool: {window_shape: [2, 2], strides: [2, "
    "2]}}, {conv: "
    "{features: 6, kernel_size: [2, 2]}}, flatten, {dense: 8}, gelu, {dropout: 0.2}, {name: head, dense: 3}]}\n"
    "loss: softmax_cross_entropy\nmetrics: [accuracy]\n" +
    settings;

std::string transformer(const std::string& file) {
  return texts_with(file,
                    "{name: tokens, embedding: {num_embeddings: 259, features: 8}}, {position_embedding: {length: 8}}, "
                    "{repeat: {times: 2, layers: [{residual: {layers: [layer_norm, {attention: {heads: 4, kv_heads: 2, "
                    "use_bias: false, "
                    "causal: true, dropout: 0.1}}]}}, {residual: {layers: [rms_norm, {swiglu: 8}]}}]}}, layer_norm, "
                    "{attend: {embedding: tokens}}") +
         settings;
}

struct Row {
  bool is_transformer;
  int data, model;
  Options with;    // the run, and the whole one
  Options beside;  // the run alone
  int processes;   // besides one
  int gpus;        // that the emulator has; 0: none
};

std::string sharded(int stage) { return "parallelism.fsdp={axis: data, stage: " + std::to_string(stage) + "}"; }

// Each two values of two columns are in a row together, as far as they go together.
std::vector<Row> covering_table() {
  const std::string clip = "optimizer.clip_by_global_norm=0.05", ema = "train.ema={decay: 0.9}";
  const std::string micro = "data.microbatches=2", bf16 = "precision=mixed_bfloat16";
  const std::string frozen = "optimizer.groups=[{parameters: [\"*.bias\"], freeze: true}]";
  const std::string remat = "model.layers.repeat_0.remat=true";
  const std::string lora = "lora={rank: 2, dropout: 0.2, parameters: [\"*.query\", \"*.value\", \"*.down\"]}";
  const std::string dense_lora = "lora={rank: 2, parameters: [\"dense_*\"], also_train: [\"head.*\"]}";
  return {
      {true, 1, 2, {}, {}, 2, 2},
      {true, 1, 4, {clip, ema}, {}, 4, 4},
      {true, 2, 2, {micro}, {sharded(1)}, 4, 2},
      {true, 2, 2, {remat, clip}, {sharded(3)}, 2, 4},
      {true, 2, 4, {lora}, {sharded(2)}, 8, 2},
      {true, 2, 2, {lora, ema, remat}, {sharded(3)}, 4, 1},
      {true, 4, 2, {frozen, micro, ema}, {}, 8, 4},
      {true, 2, 2, {bf16}, {sharded(2)}, 2, 0},
      {true, 1, 2, {bf16, lora}, {}, 2, 2},
      {false, 1, 2, {clip}, {}, 2, 1},
      {false, 2, 2, {ema}, {sharded(3)}, 4, 4},
      {false, 2, 4, {micro, clip}, {sharded(2)}, 8, 2},
      {false, 4, 2, {dense_lora}, {sharded(1)}, 4, 4},
      {false, 2, 2, {frozen}, {}, 2, 2},
      {false, 1, 4, {bf16, ema}, {}, 4, 0},
      {false, 2, 2, {dense_lora, micro}, {}, 4, 2},
      {true, 3, 2, {"data.batch_size=6"}, {sharded(1)}, 2, 0},  // half of the devices are one group and a half
  };
}

std::string told(const Row& row) {
  std::string text = (row.is_transformer ? "transformer" : "images");
  text += ", data " + std::to_string(row.data) + ", model " + std::to_string(row.model);
  for (const std::string& option : row.with) text += ", " + option;
  for (const std::string& option : row.beside) text += ", " + option;
  return text;
}

bool is_mixed(const Row& row) {
  return std::find(row.with.begin(), row.with.end(), "precision=mixed_bfloat16") != row.with.end();
}

// Options for a run of the row. Its layers are whole if `model` is 1.
Options options_of(const Row& row, int model) {
  // A run on one device has a warning more.
  Options set = on_axes(model == 1 ? std::max(row.data, 2) : row.data, model);
  set.insert(set.end(), row.with.begin(), row.with.end());
  if (model > 1) set.insert(set.end(), row.beside.begin(), row.beside.end());
  return set;
}

// As `pmaptrain run --resume`.
Trained resumed(const fs::path& run, const std::string& text, Options set, train::SessionOptions options = {}) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  spec::Loaded loaded = spec::load_text(text, "test.yaml", ".", overrides);
  std::optional<train::ResumePoint> point = train::find_resume_point(run);
  REQUIRE(point);
  const run::RunState& state = point->checkpoint.state;
  train::check_config_continues(train::read_run_config(run), loaded);
  const setup::Setup setup = setup::make_setup(std::move(loaded), state.schedule_steps);
  train::check_data_continues(state, setup);
  options.resume = &*point;
  options.folder.resume = true;
  options.folder.resumed = {state.step, run::best_folder(state), state.metrics_bytes};
  return train_setup_in(run, setup, options);
}

}  // namespace

TEST_CASE("runs whose layers are divided train as those of whole layers, with all else that changes a step",
          "[train]") {
  const TemporaryFolder folder;
  const std::string text = transformer(folder.write("text", some_text()));
  test::Slice slice(test::slices_with_sanitizer(4));
  for (const Row& row : covering_table()) {
    if (!slice.takes()) continue;
    INFO(told(row));
    const std::string& config = row.is_transformer ? text : image_net;
    const Trained whole = train_setup(setup_of_text(config, options_of(row, 1)));
    // Four steps of momentum, whose parameters follow the gradients in proportion: their errors add up.
    const Tolerance tolerance = is_mixed(row) ? Tolerance{0.02, 0.02} : Tolerance{5e-5, 5e-5};
    const Trained divided = train_setup(setup_of_text(config, options_of(row, row.model)));
    check_same_training(divided, whole, tolerance);

    Options blocks = options_of(row, row.model);
    blocks.push_back("mesh.blocks=" + std::to_string(row.processes));
    const setup::Setup setup = setup_of_text(config, blocks);
    const Trained alone = train_setup(setup);
    const TemporaryFolder root;
    const Ends ends =
        train_in_processes(row.processes, root / "run", [&](int, Agreement&, train::SessionOptions&) { return setup; });
    for (const std::string& failure : ends.failures) CHECK(failure.empty());
    CHECK(ends.trained.same_bits(alone));

    if (row.gpus == 0) continue;
    const test::WithGpus gpus(test::make_emulated({.devices = row.gpus, .seed = 3}));
    Options on_gpus = options_of(row, row.model);
    on_gpus.emplace_back("mesh.backend=cuda");
    on_gpus.push_back("mesh.workers=" + std::to_string(row.gpus));
    check_same_training(train_setup(setup_of_text(config, on_gpus)), whole, tolerance);
  }
}

TEST_CASE("a mesh whose only axis divides layers trains as whole layers do, also in microbatches", "[train]") {
  const TemporaryFolder folder;
  const std::string text = transformer(folder.write("text", some_text()));
  for (const std::string& config : {text, image_net}) {
    for (const std::string microbatches : {"1", "2"}) {
      for (const std::string clip : {"optimizer.clip_by_global_norm=0.05", "train.ema={decay: 0.9}"}) {
        INFO((config == text ? "transformer, " : "images, ") << microbatches << " microbatches, " << clip);
        const Options beside{"data.microbatches=" + microbatches, clip};
        Options whole = on_axes(2, 1), divided{"mesh.axes={model: 2}", "parallelism.tensor={axis: model}"};
        whole.insert(whole.end(), beside.begin(), beside.end());
        divided.insert(divided.end(), beside.begin(), beside.end());
        check_same_training(train_setup(setup_of_text(config, divided)), train_setup(setup_of_text(config, whole)),
                            {5e-5, 5e-5});
      }
    }
  }
}

TEST_CASE("ten steps of adam with divided layers are those with whole layers", "[train]") {
  const TemporaryFolder folder;
  const std::string text = transformer(folder.write("text", some_text()));
  // Adam divides a gradient by its size, and so makes an update of the rounding of a gradient that is nearly 0. An
  // epsilon that is larger than such gradients leaves the update as near as they are.
  const Options adam{"optimizer={adam: {eps: 0.001}, learning_rate: 0.01}", "train.duration=10 steps"};
  Options whole = on_axes(2, 1), divided = on_axes(2, 4);
  whole.insert(whole.end(), adam.begin(), adam.end());
  divided.insert(divided.end(), adam.begin(), adam.end());
  check_same_training(train_setup(setup_of_text(text, divided)), train_setup(setup_of_text(text, whole)), {1e-4, 1e-3});
}

TEST_CASE("layers are divided over GPUs as over devices of a CPU", "[train][device]") {
  const TemporaryFolder folder;
  const std::string text = transformer(folder.write("text", some_text()));
  const Trained expected = train_setup(setup_of_text(text, on_axes(1, 2)));
  const test::WithGpus gpus(2);
  Options cuda = on_axes(1, 2);
  cuda.insert(cuda.end(), {"mesh.backend=cuda", "mesh.workers=2"});
  check_same_training(train_setup(setup_of_text(text, cuda)), expected, {1e-4, 1e-4});
}

TEST_CASE("divided layers that are computed again keep little more of each copy than whole ones", "[train]") {
  const TemporaryFolder folder;
  const std::string text = transformer(folder.write("text", some_text()));
  // What a copy keeps: of more copies than two, so that the most memory is not that of a gradient.
  const auto kept_by_copy = [&](int model) {
    const auto activations = [&](int times) {
      Options set = on_axes(1, model);
      set.insert(set.end(), {"model.layers.repeat_0.repeat.remat=true", "mesh.workers=1",
                             "model.layers.repeat_0.repeat.times=" + std::to_string(times)});
      const setup::Setup setup = setup_of_text(text, set);
      return static_cast<double>(setup::plan_run(setup, false, KernelChoice::best).planned->needs().activations);
    };
    return (activations(12) - activations(4)) / 8;
  };
  // Of [8, 8, 8] f32, each copy keeps its input. In one process both devices' values are in memory.
  CHECK(kept_by_copy(2) <= 1.5 * kept_by_copy(1) + 1024);
}

TEST_CASE("bits of divided layers depend on the mesh and its blocks, not on processes or GPUs", "[train]") {
  const TemporaryFolder folder;
  const std::string text = transformer(folder.write("text", some_text()));
  Options set = on_axes(2, 2);
  set.insert(set.end(), {"mesh.blocks=4", "mesh.deterministic=true"});
  const setup::Setup setup = setup_of_text(text, set);
  const Trained alone = train_setup(setup);
  for (const int processes : {2, 4}) {
    const TemporaryFolder root;
    const Ends ends =
        train_in_processes(processes, root / "run", [&](int, Agreement&, train::SessionOptions&) { return setup; });
    for (const std::string& failure : ends.failures) CHECK(failure.empty());
    CHECK(ends.trained.same_bits(alone));
  }
  std::vector<Trained> on_gpus;
  for (const int count : {1, 2, 4}) {
    const test::WithGpus gpus(test::make_emulated({.devices = count, .seed = 3}));
    Options cuda = set;
    cuda.insert(cuda.end(), {"mesh.backend=cuda", "mesh.workers=" + std::to_string(count)});
    on_gpus.push_back(train_setup(setup_of_text(text, cuda)));
    CHECK(on_gpus.back().same_bits(on_gpus.front()));
  }
}

TEST_CASE("members of an ensemble divide their layers each", "[train]") {
  const TemporaryFolder folder;
  const std::string text = transformer(folder.write("text", some_text()));
  const Options members{"ensemble={axis: members, vary: {optimizer.learning_rate: [0.05, 0.02], seed: [1, 2]}}"};
  Options whole = members, divided = members;
  whole.emplace_back("mesh.axes=[{members: 2}, {data: 2}]");
  divided.insert(divided.end(),
                 {"mesh.axes=[{members: 2}, {data: 2}, {model: 2}]", "parallelism.tensor={axis: model}"});
  check_same_training(train_setup(setup_of_text(text, divided)), train_setup(setup_of_text(text, whole)), {5e-5, 5e-5});
}

TEST_CASE("a run is resumed with its layers divided otherwise, or whole", "[train]") {
  const TemporaryFolder folder;
  const std::string text = transformer(folder.write("text", some_text()));
  const Trained whole = train_setup(setup_of_text(text, on_axes(2, 1)));
  const std::vector<std::pair<int, int>> divisions{{1, 2}, {2, 1}, {2, 4}, {4, 2}};
  for (const auto& [before, after] : divisions) {
    INFO("from " << before << " to " << after);
    const TemporaryFolder root;
    train_setup_in(root / "run", setup_of_text(text, on_axes(2, before)), until(2));
    const Trained then = resumed(root / "run", text, on_axes(2, after));
    CHECK(then.ended.steps == whole.ended.steps);
    for (const auto& [name, tensor] : whole.parameters) {
      INFO(name);
      const std::vector<double> found = to_doubles(then.parameters.at(name)), expected = to_doubles(tensor);
      REQUIRE(found.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        CHECK(found[i] == Approx(expected[i]).epsilon(1e-4).margin(1e-5));
    }
  }
}

TEST_CASE("a resumed run says that its layers are divided otherwise", "[train]") {
  const TemporaryFolder root;
  train_setup_in(root / "run", setup_of_text(image_net, on_axes(2, 2)), until(2));
  spec::Overrides overrides;
  overrides.set = on_axes(2, 4);
  const spec::Loaded loaded = spec::load_text(image_net, "test.yaml", ".", overrides);
  const std::vector<std::string> notes = train::check_config_continues(train::read_run_config(root / "run"), loaded);
  CHECK(notes == std::vector<std::string>{
                     "mesh.axes.model changes from 2 to 4: sums run in another order, so the bits may differ from here "
                     "on"});
}

}  // namespace pmaptrain::testing::divided_runs
