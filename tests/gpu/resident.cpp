// Data sets that stay on the GPUs: the bits of a run are those of copied batches, and what is copied is little.
#include "core/setup/resident.h"

#include <memory>
#include <string>
#include <vector>

#include "core/graph/text.h"
#include "core/report/plan_report.h"
#include "core/setup/start.h"
#include "core/setup/values.h"
#include "tests/catch.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/gpu/gpus.h"
#include "tests/session_run.h"

namespace pmaptrain::testing {
namespace {

using test::ample_memory, test::open_gpus;

// With emulated GPUs in place, the data stays on them; a config for the CPU that is sent to them has copied batches.
setup::Setup resident(std::vector<std::string> set, const std::string& text = small_images) {
  set.emplace_back("mesh.backend=cuda");
  return setup_of_text(text, std::move(set));
}
setup::Setup copied(std::vector<std::string> set, const std::string& text = small_images) {
  set.emplace_back("mesh.backend=cpu");
  setup::Setup setup = setup_of_text(text, std::move(set));
  setup.loaded.spec.mesh.backend = spec::Backend::cuda;
  return setup;
}

// The note on where the data is.
std::string placement(const setup::Setup& setup) {
  for (const std::string& note : setup.loaded.facts_and_notes()) {
    if (note.starts_with("data: ")) return note;
  }
  return "none";
}

void check_same_bits(const std::vector<std::string>& set, const std::vector<int>& counts,
                     const std::string& text = small_images, const train::SessionOptions& options = {}) {
  for (const int count : counts) {
    INFO("GPUs " << count << ", " << (set.empty() ? "" : set.front()));
    const test::WithGpus gpus(open_gpus(count, ample_memory));
    const setup::Setup stays = resident(set, text), passes = copied(set, text);
    CHECK_FALSE(stays.resident_splits.empty());
    CHECK(passes.resident_splits.empty());
    CHECK(train_setup(stays, options).same_bits(train_setup(passes, options)));
  }
}

const std::string regression = R"(name: regression
mesh: {axes: {devices: 4}}
data:
  source:
    values:
      inputs: [[1], [2], [3], [4], [5], [6], [7], [8], [9], [10], [11]]
      targets: [[2], [4], [6], [8], [9], [13], [14], [15], [18], [20], [22]]
  batch_size: 8
  remainder: mask
model: {layers: [{dense: 1}]}
loss: mean_squared_error
optimizer: {sgd: {}, learning_rate: 0.001}
train: {duration: 5 steps, log_every: 1 step}
)";

}  // namespace

TEST_CASE("a run has the same bits whether its data stays on the GPUs or its batches are copied", "[gpu]") {
  const std::string mlp = "model.layers=[flatten, {dense: 8}, {dropout: 0.4}, gelu, {dense: 3}]";
  check_same_bits({}, {1, 2, 4});
  test::Slice slice(test::slices_with_sanitizer(2));
  const auto check = [&](const std::vector<std::string>& set, const std::vector<int>& counts) {
    if (slice.takes()) check_same_bits(set, counts);
  };
  check({"data.batch_size=10", "data.remainder=mask", "data.microbatches=3", "train.duration=12 steps"}, {2, 4});
  check({mlp, "data.microbatches=2", "data.validation=0.25", "train.eval_every=1 step"}, {1, 2});
  check({"data.batch_size=all", "data.shuffle=false", "mesh.axes.devices=1"}, {1});
  check({"mesh.axes=[{a: 2}, {b: 3}]", "data.batch_size=12", "train.verify_replicas=1 step"}, {1, 2});
  check_same_bits({}, {1, 2, 4}, regression);
}

TEST_CASE("weights of examples count though the examples stay on the GPUs", "[gpu]") {
  const TemporaryFolder folder;
  std::string rows = "x,y,w\n";
  for (int i = 0; i < 11; ++i) {
    rows += std::to_string(i % 5) + "," + std::to_string(2 * i % 7) + "," + std::to_string(i % 4) + "\n";
  }
  const std::string file = folder.write("rows.csv", rows);
  const std::string source = "data.source={csv: {train: " + file + ", validation: " + file + ", inputs: x, target: y";
  const std::vector<std::string> weighted = {source + ", weight: w}}"};
  check_same_bits(weighted, {1, 4}, regression);
  const test::WithGpus gpus(open_gpus(1, ample_memory));
  const Trained with = train_setup(resident(weighted, regression));
  CHECK_FALSE((with.parameters == train_setup(resident({source + "}}"}, regression)).parameters));
}

TEST_CASE("members of an ensemble gather from one copy of the data, with orders of their own too", "[gpu]") {
  for (const std::string vary : {"seed: [1, 2, 3]", "data.seed: [1, 2, 3]"}) {
    const std::vector<std::string> set = {"mesh.axes=[{members: 3}, {devices: 2}]",
                                          "ensemble={axis: members, vary: {" + vary + "}}"};
    check_same_bits(set, {1, 2}, regression);
    const test::WithGpus gpus(open_gpus(2, ample_memory));
    const setup::Setup setup = resident(set, regression);
    CHECK(setup::run_source(setup).entries.front().batch_by_member == vary.starts_with("data"));
    const MemoryNeeds needs = setup::backend_of(setup.spec().mesh)->plan(setup::run_source(setup))->needs();
    CHECK(needs.data == 2 * 11 * 2 * sizeof(float));
    check_same_training(train_setup(setup), train_setup(setup_of_text(regression, set)));  // on the CPU
  }
}

TEST_CASE("members of an ensemble read one copy of the base of adapters", "[gpu]") {
  const std::string text = R"(mesh: {axes: [{members: 3}, {devices: 2}]}
data: {source: {synthetic_images: {height: 4, width: 4, classes: 3, train: 48, test: 16}}, batch_size: 16}
model: {layers: [flatten, {dense: 16}, tanh, {dense: 32}, tanh, {name: head, dense: 3}]}
lora: {rank: 2, dropout: 0.25, parameters: ["dense_*"], also_train: ["head.*"]}
loss: softmax_cross_entropy
optimizer: {sgd: {}, learning_rate: 0.01}
train: {duration: 4 steps, log_every: 1 step}
ensemble: {axis: members, vary: {optimizer.learning_rate: [0.01, 0.02, 0.03]}}
)";
  const auto parameters_of = [](const setup::Setup& setup) {
    return setup::backend_of(setup.spec().mesh)->plan(setup::run_source(setup))->needs().parameters;
  };
  for (const int count : {1, 2}) {
    for (const std::string rounded : {"float32", "bfloat16"}) {
      INFO("GPUs " << count << ", " << rounded);
      const std::vector<std::string> set{"lora.base_precision=" + rounded};
      const test::WithGpus gpus(open_gpus(count, ample_memory));
      const setup::Setup setup = resident(set, text);
      check_same_training(train_setup(setup), train_setup(setup_of_text(text, set)));  // on the CPU
      std::vector<std::string> alone = set;
      alone.insert(alone.end(), {"ensemble=null", "mesh.axes={devices: 2}"});
      std::size_t trained = 0;
      for (const std::size_t i : setup.optimizer().trained()) {
        trained += static_cast<std::size_t>(numel(setup.model.parameters[i].shape)) * sizeof(float);
      }
      const auto more = parameters_of(setup) - parameters_of(resident(alone, text));
      CHECK(more < static_cast<std::size_t>(count) * 2 * (trained + 1024));
    }
  }
}

TEST_CASE("of data that stays on the GPUs, a step copies 16 bytes a row alone, and what lies between", "[gpu]") {
  const auto copied_in_a_step = [](const setup::Setup& setup, const test::WithGpus& gpus) {
    const std::unique_ptr<Module> module = setup::backend_of(setup.spec().mesh)->load(setup::step_source(setup));
    setup::set_initial_values(*module, setup);
    setup::fill_first_batch(*module, setup);
    const auto& copied = test::calls_of(gpus.platform()).bytes_from_host;
    const std::size_t before = copied;
    module->wait(module->submit(setup::train_entry, 0));
    return copied - before;
  };
  const test::WithGpus gpus(open_gpus(1, ample_memory));
  // Of 16 rows: inputs begin at multiples of 256 bytes.
  CHECK(copied_in_a_step(resident({}), gpus) == 256 + 256 + 16 * sizeof(float));
  CHECK(copied_in_a_step(copied({}), gpus) == 768 + 256 + 256 + 16 * sizeof(std::int64_t));
}

TEST_CASE("data stays on the GPUs where it fits, and why not is said", "[gpu]") {
  const std::string augmented = "data.augment=[random_flip]";
  {
    const test::WithGpus gpus(open_gpus(1, ample_memory));
    CHECK(placement(resident({})) == "data: 1.9 KiB of train and 840 B of test stay on each GPU");
    CHECK(placement(resident({augmented})) ==
          "data: 840 B of test stays on each GPU; batches of train are copied: augmentation is computed on the host");
    CHECK(placement(copied({})) == "none");
  }
  const test::WithGpus small(open_gpus(1, 1 << 15));
  const std::string said = placement(resident({}));
  INFO(said);
  CHECK(said.starts_with("data: batches of train are copied: of the 1.9 KiB no more than "));
}

TEST_CASE("validate counts the data that stays on GPUs, and explain shows what gathers it", "[gpu]") {
  const test::WithGpus gpus(open_gpus(2, ample_memory));
  const setup::Setup setup = resident({});
  const report::ValidateReport report = report::make_validate_report(setup);
  CHECK(report.memory.data == (48 + 21) * 40);
  const std::string text = report::validate_text(setup, report);
  INFO(text);
  CHECK(text.find("note: data: 1.9 KiB of train and 840 B of test stay on each GPU\n") != std::string::npos);
  CHECK(text.find("data that stays") != std::string::npos);
  const std::string program = to_text(*setup.training);
  INFO(program);
  CHECK(program.find("data %data/train/inputs:u8[48,6,6,1]{}") != std::string::npos);
  CHECK(program.find(":u8[4,6,6,1]{devices} = gather ") != std::string::npos);
}

TEST_CASE("a value that stops a run is found though the data stays on the GPUs", "[gpu]") {
  const test::WithGpus gpus(open_gpus(2, ample_memory));
  const std::vector<std::string> set = {"optimizer.learning_rate=1.0e+38", "train.duration=9 steps"};
  const Trained found = train_setup(resident(set)), expected = train_setup(copied(set));
  CHECK(found.ended.exit_status == 5);
  CHECK(found.ended.reason == expected.ended.reason);
  CHECK((found.parameters == expected.parameters));
}

}  // namespace pmaptrain::testing
