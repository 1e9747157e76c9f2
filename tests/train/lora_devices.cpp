// Runs with adapters on several devices and processes: the bits of one process without shards.
#include <filesystem>
#include <string>

#include "core/setup/base.h"
#include "core/setup/plan.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/train/in_processes.h"

namespace pmaptrain::testing::lora_devices {
namespace {

// On 4 devices. Two of the layers are groups of their own, which stage 3 gathers one after another.
const std::string wide = R"(mesh: {axes: {devices: 4}}
data: {source: {synthetic_images: {height: 4, width: 4, classes: 3, train: 48, test: 16}}, batch_size: 16}
model: {layers: [flatten, {dense: 512}, tanh, {dense: 512}, tanh, {dense: 512}, tanh, {name: head, dense: 3}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 4 steps, log_every: 1 step, eval_every: 2 steps}
lora: {rank: 4, dropout: 0.25, parameters: ["dense_*"], also_train: ["head.*"]}
)";

std::string fsdp(int stage) { return "parallelism={fsdp: {axis: devices, stage: " + std::to_string(stage) + "}}"; }

}  // namespace

TEST_CASE("shards of adapters and of their base change no bit", "[train]") {
  const std::string precision = GENERATE("float32", "bfloat16");
  const std::string base = "lora.base_precision=" + precision;
  const Trained whole = train_setup(setup_of_text(wide, {base}));
  for (const int stage : {1, 2, 3}) {
    INFO(precision << ", stage " << stage);
    CHECK(train_setup(setup_of_text(wide, {base, fsdp(stage)})).same_bits(whole));
  }
}

TEST_CASE("devices have shards of a base in stage 3", "[train]") {
  const setup::Setup setup = setup_of_text(wide, {fsdp(3)});
  std::int64_t elements = 0;
  for (const Input& input : setup.training->inputs) {
    if (input.group != Group::base) continue;
    CHECK(input.layout.axes() == setup.mesh().all());
    elements += numel(setup.training->type(input.value));
  }
  std::int64_t whole = 0;
  for (const model::Parameter& parameter : setup.model.parameters) {
    if (parameter.lora == layers::LoraRole::base) whole += numel(parameter.shape);
  }
  CHECK(elements < whole / 4 + 1024);
}

TEST_CASE("members of an ensemble have one base in memory", "[train]") {
  const auto parameters_of = [](std::vector<std::string> set) {
    return setup::plan_run(setup_of_text(wide, std::move(set)), false, KernelChoice::best).planned->needs().parameters;
  };
  const std::size_t one = parameters_of({});
  const std::size_t four =
      parameters_of({"mesh.axes=[{members: 4}, {devices: 4}]",
                     "ensemble={axis: members, vary: {optimizer.learning_rate: [0.1, 0.2, 0.3, 0.4]}}"});
  const setup::Setup setup = setup_of_text(wide);
  std::size_t trained = 0;
  for (const std::size_t i : setup.optimizer().trained()) {
    trained += static_cast<std::size_t>(numel(setup.model.parameters[i].shape)) * sizeof(float);
  }
  CHECK(four < one + 4 * trained + 64 * 1024);
}

TEST_CASE("members with adapters train on each backend as on the CPU", "[train]") {
  const std::string backend = any_backend();
  // Adam would make an update of the last bits of gradients that are nearly zero.
  const std::vector<std::string> members{
      "optimizer={sgd: {momentum: 0.9}, learning_rate: 0.01}", "mesh.axes=[{members: 2}, {devices: 4}]",
      "ensemble={axis: members, vary: {optimizer.learning_rate: [0.01, 0.02], lora.dropout: [0.1, 0.2]}}"};
  std::vector<std::string> there = members;
  there.push_back(backend);
  check_same_training(train_setup(setup_of_text(wide, there)), train_setup(setup_of_text(wide, members)));
}

TEST_CASE("processes train adapters as one process does", "[train]") {
  const int stage = GENERATE(0, 3);
  std::vector<std::string> set{"mesh.blocks=2"};
  if (stage > 0) set.push_back(fsdp(stage));
  const setup::Setup setup = setup_of_text(wide, set);
  const Trained alone = train_setup(setup);
  const TemporaryFolder root;
  const Ends ends = train_in_processes(2, root / "run", [&](int, Agreement&, train::SessionOptions&) { return setup; });
  for (const std::string& failure : ends.failures) CHECK(failure.empty());
  CHECK(ends.trained.same_bits(alone));
}

TEST_CASE("microbatches and layers that are computed again train adapters alike", "[train]") {
  const Trained whole = train_setup(setup_of_text(wide));
  const Trained halves = train_setup(setup_of_text(wide, {"data.microbatches=2"}));
  check_near(halves.of<run::Logged>().back().measures, whole.of<run::Logged>().back().measures);
  std::string text = wide;
  const std::string layers = "{dense: 512}, tanh, {dense: 512}, tanh, {dense: 512}, tanh";
  text.replace(text.find(layers), layers.size(),
               "{dense: 512, remat: true}, tanh, {dense: 512, remat: true}, tanh, {dense: 512, remat: true}, tanh");
  CHECK(train_setup(setup_of_text(text)).parameters == whole.parameters);
}

TEST_CASE("adapters train in mixed precision beside a base that is used as it is", "[train]") {
  const setup::Setup setup = setup_of_text(wide, {"precision=mixed_bfloat16", "lora.base_precision=bfloat16"});
  const Trained mixed = train_setup(setup), whole = train_setup(setup_of_text(wide));
  check_near(mixed.of<run::Logged>().back().measures, whole.of<run::Logged>().back().measures, {0.05, 0.05});
}

}  // namespace pmaptrain::testing::lora_devices
