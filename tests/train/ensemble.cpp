// The members of an ensemble beside runs of their own.
#include <memory>

#include "core/data/loader.h"
#include "core/graph/text.h"
#include "core/train/start.h"
#include "core/train/values.h"
#include "tests/catch.h"
#include "tests/train/session_run.h"

namespace pmaptrain::testing {
namespace {

// All inputs but the batch, and all outputs, of one member.
using Left = std::map<std::string, std::vector<std::byte>>;

// What five steps leave behind, by member.
std::vector<Left> after_five_steps(const train::Setup& setup, BackendKind kind, int workers) {
  const std::unique_ptr<Module> module = make_backend(kind, {.workers = workers})->load(train::run_source(setup));
  train::set_initial_values(*module, setup);
  data::Loader loader(setup.source.train, train::training_samplers(setup), setup.batch,
                      train::batch_slots(*module, train::train_entry, *setup.source.train, setup.batch));
  for (int step = 0; step < 5; ++step) {
    module->wait(module->submit(train::train_entry, loader.next().slot));
  }
  std::vector<Left> left;
  const Program& program = *setup.training;
  for (std::int64_t m = 0; m < module->source().members; ++m) {
    Left& own = left.emplace_back();
    const auto keep = [&](const std::string& name, Handle value) {
      own[name] = train::bytes_of(*module, value, {program.mesh.devices() - 1, m});
    };
    for (const Input& input : program.inputs) {
      if (input.group != Group::batch) keep(input.name, module->input(input.name));
    }
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      keep("output " + program.outputs[i].name, module->output(train::train_entry, i));
    }
  }
  return left;
}

train::Setup alone(const train::Setup& ensemble, std::int64_t member) {
  spec::Loaded loaded = ensemble.loaded;
  loaded.spec = spec::Spec(ensemble.member_spec(member));
  return train::make_setup(std::move(loaded));
}

void check_members(const train::Setup& ensemble) {
  const std::int64_t members = spec::members(ensemble.spec());
  std::vector<train::Setup> solo;
  for (std::int64_t m = 0; m < members; ++m) {
    solo.push_back(alone(ensemble, m));
    CHECK(to_text(*solo.back().training) == to_text(*ensemble.training));
  }
  for (const auto& [kind, workers] : std::vector<std::pair<BackendKind, int>>{
           {BackendKind::cpu, 1}, {BackendKind::cpu, 2}, {BackendKind::cpu, 3}, {BackendKind::reference, 1}}) {
    INFO(to_string(kind) << " with " << workers);
    const std::vector<Left> found = after_five_steps(ensemble, kind, workers);
    REQUIRE(std::ssize(found) == members);
    CHECK(found[0] != found[1]);
    for (std::size_t m = 0; m < found.size(); ++m) {
      INFO("member " << m);
      CHECK(found[m] == after_five_steps(solo[m], kind, workers).front());
    }
  }
}

const std::string networks = R"(
mesh: {axes: [{members: 3}, {shards: 2}]}
data: {source: {synthetic_images: {height: 6, width: 6, channels: 1, classes: 3, train: 32, test: 0}}, batch_size: 8, microbatches: 2}
model: {layers: [flatten, {dense: 7}, {dropout: 0.4}, gelu, {dense: 3}]}
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer: {sgd: {momentum: 0.9}, learning_rate: 0.1}
train: {duration: 20 steps}
ensemble:
  axis: members
  vary: {seed: [3, 1, 2], optimizer.learning_rate: [0.1, 0.02, 0.3]}
)";

TEST_CASE("every member of an ensemble has the bits of a run of its own, whatever varies", "[train]") {
  check_members(setup_of_text(networks));
  check_members(setup_of_text(
      networks,
      {"optimizer.sgd={momentum: 0.9, nesterov: true, weight_decay: 0.1}", "train.ema={decay: 0.9}",
       "loss.softmax_cross_entropy.label_smoothing=0.1",
       "optimizer.groups=[{parameters: \"*.bias\", learning_rate_scale: 2.0, weight_decay: 0.3}]",
       "ensemble.vary={optimizer.sgd.momentum: [0.9, 0.5, 0.1], optimizer.sgd.weight_decay: [0.1, 0.2, 0.3], "
       "model.layers.dropout_0.dropout.rate: [0.1, 0.5, 0.8], optimizer.groups.0.learning_rate_scale: [1, 2, 3], "
       "optimizer.groups.0.weight_decay: [0.3, 0.2, 0.1], loss.softmax_cross_entropy.label_smoothing: [0.1, 0.2, 0.3], "
       "train.ema.decay: [0.9, 0.8, 0.7]}"}));
  const std::vector<std::string> scheduled = {
      "optimizer.adamw={}", "optimizer.clip=1.0", "optimizer.clip_by_global_norm=1.0",
      "optimizer.learning_rate={join: {schedules: [{exponential_decay: {init_value: 0.1, transition: 2, decay_rate: "
      "0.5}}, {polynomial: {init_value: 0.2, end_value: 0.1, power: 2.0}}], boundaries: [2]}}",
      "ensemble.vary={optimizer.adamw.b1: [0, 0.5, 0.9], optimizer.adamw.b2: [0.9, 0.99, 0.999], optimizer.adamw.eps: "
      "[1.0e-8, 1.0e-3, 1], optimizer.adamw.weight_decay: [0.1, 0.01, 1], optimizer.clip: [0.001, 0.01, 1], "
      "optimizer.clip_by_global_norm: [0.01, 0.1, 1], "
      "optimizer.learning_rate.join.schedules.0.exponential_decay.decay_rate: [0.5, 0.1, 1], "
      "optimizer.learning_rate.join.schedules.1.polynomial.power: [2, 3, 0.5], "
      "optimizer.learning_rate.join.schedules.1.polynomial.end_value: [0, 0.1, 0.2]}"};
  check_members(setup_of_text(networks, scheduled));
}

// Two outputs of inputs in an order that data.seed decides.
const std::string regression = R"(
mesh: {axes: {members: 3}}
data:
  source: {values: {inputs: [[0], [1], [2], [3], [4], [5], [6]], targets: [[0], [2], [1], [3], [5], [4], [6]]}}
  batch_size: 3
model: {layers: [dense: 4, tanh, dense: 1]}
loss: {huber: {delta: 0.5}}
optimizer: {rmsprop: {momentum: 0.5, bias_correction: true}, learning_rate: 0.01}
train: {duration: 20 steps}
ensemble:
  axis: members
  vary: {data.seed: [5, 6, 7]}
)";

TEST_CASE("members with a data.seed each have batches of their own", "[train]") {
  const train::Setup setup = setup_of_text(regression);
  CHECK(train::run_source(setup).entries.front().batch_by_member);
  check_members(setup);
  check_members(setup_of_text(regression,
                              {"ensemble.vary={data.seed: [5, 5, 7], seed: [1, 2, 3], loss.huber.delta: [0.1, 1, 10], "
                               "optimizer.rmsprop.decay: [0, 0.5, 0.9], optimizer.rmsprop.eps: [1, 0.1, 0.01], "
                               "optimizer.rmsprop.momentum: [0.1, 0.5, 0.9]}"}));
}

TEST_CASE("members that have the order of the data in common share one batch", "[train]") {
  CHECK_FALSE(train::run_source(setup_of_text(networks)).entries.front().batch_by_member);
  // Without shuffling, the seed decides nothing.
  const train::Setup in_order = setup_of_text(regression, {"data.shuffle=false", "ensemble.vary.seed=[1, 2, 3]"});
  CHECK_FALSE(train::run_source(in_order).entries.front().batch_by_member);
  check_members(in_order);
}

// A rate so large that parameters could overflow needs a check of every update, which one member brings to all.
TEST_CASE("members of whom one may overflow keep the bits of their own runs", "[train]") {
  const train::Setup ensemble =
      setup_of_text(regression, {"ensemble.vary={optimizer.learning_rate: [0.01, 1.0e+38, 0.02]}"});
  CHECK(ensemble.optimizer().overflows);
  CHECK_FALSE(alone(ensemble, 0).optimizer().overflows);
  for (const BackendKind kind : backend_kinds) {
    const std::vector<Left> found = after_five_steps(ensemble, kind, 2);
    for (const std::size_t m : {0u, 1u, 2u}) {
      INFO(to_string(kind) << ", member " << m);
      CHECK(found[m] == after_five_steps(alone(ensemble, static_cast<std::int64_t>(m)), kind, 2).front());
    }
  }
}

}  // namespace
}  // namespace pmaptrain::testing
