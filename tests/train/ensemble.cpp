// The members of an ensemble beside runs of their own.
#include <map>
#include <memory>

#include "core/graph/text.h"
#include "core/input/batches/loader.h"
#include "core/setup/make_setup.h"
#include "core/setup/start.h"
#include "core/setup/values.h"
#include "core/spec/keys.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/session_run.h"
#include "tests/slice.h"

namespace pmaptrain::testing {
namespace {

// All parameters, state and outputs of one member.
using Left = std::map<std::string, std::vector<std::byte>>;

// What five steps leave behind, by member.
std::vector<Left> after_five_steps(const setup::Setup& setup, BackendKind kind, int workers) {
  const std::unique_ptr<Module> module = make_backend(kind, {.workers = workers})->load(setup::run_source(setup));
  setup::set_initial_values(*module, setup);
  input::Loader loader(setup.source.train, setup::training_streams(setup), setup.batch,
                       setup::batch_slots(*module, setup::train_entry, *setup.source.train, setup.batch));
  for (int step = 0; step < 5; ++step) {
    module->wait(module->submit(setup::train_entry, loader.next().slot));
  }
  std::vector<Left> left;
  const Program& program = *setup.training;
  for (std::int64_t m = 0; m < module->source().members; ++m) {
    Left& own = left.emplace_back();
    const auto keep = [&](const std::string& name, Handle value) {
      own[name] = setup::bytes_of(*module, value, {program.mesh.devices() - 1, m});
    };
    for (const Input& input : program.inputs) {
      if (input.group == Group::params || input.group == Group::state) keep(input.name, module->input(input.name));
    }
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      keep("output " + program.outputs[i].name, module->output(setup::train_entry, i));
    }
  }
  return left;
}

setup::Setup alone(const setup::Setup& ensemble, std::int64_t member) {
  spec::Loaded loaded = ensemble.loaded;
  loaded.spec = spec::Spec(ensemble.member_spec(member));
  return setup::make_setup(std::move(loaded));
}

struct Ran {
  BackendKind kind;
  int workers;
};
const std::vector<Ran> every_way = {
    {BackendKind::cpu, 1}, {BackendKind::cpu, 2}, {BackendKind::cpu, 3}, {BackendKind::reference, 1}};

// Whether the members have one program, bits of their own, and those of runs of their own.
void check_members(const setup::Setup& ensemble, const std::vector<Ran>& ways = every_way) {
  const std::int64_t members = spec::members(ensemble.spec());
  std::vector<setup::Setup> solo;
  for (std::int64_t m = 0; m < members; ++m) {
    solo.push_back(alone(ensemble, m));
    CHECK(to_text(*solo.back().training) == to_text(*ensemble.training));
  }
  for (const auto& [kind, workers] : ways) {
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

// A schedule with what it requires, and with options that are structural where they are left to their defaults.
std::string schedule_with_options(const std::string& kind) {
  std::string options;
  for (const spec::Key* const option : spec::children(*spec::find_key("optimizer.learning_rate." + kind))) {
    if (option->need != spec::Need::required && !option->structural) continue;
    const std::string name(option->name());
    if (!options.empty()) options += ", ";
    // Within the five steps that are compared.
    options += option->type == spec::Type::duration ? name + ": 2"
               : option->type == spec::Type::scales ? name + ": [[2 steps, 0.1]]"
                                                    : std::string(option->example);
  }
  if (kind == "trapezoid") options += ", transition: 4";  // its decay is at the end
  return "{" + kind + ": {" + options + "}}";
}

// What a config has to have so that `key` can vary; the path of the key in this config is written to `path`.
std::vector<std::string> config_with(const spec::Key& key, std::string& path) {
  path = key.path;
  const auto below = [&](const std::string& section) { return path.starts_with(section + "."); };
  const std::string name(key.name());
  if (path == "optimizer.learning_rate") return {};
  if (path == "optimizer.clip") return {"optimizer.clip=1.0"};
  if (path == "optimizer.clip_by_global_norm") return {"optimizer.clip_by_global_norm=1.0"};
  if (below("optimizer.groups")) {
    path = "optimizer.groups.0." + name;
    return {"optimizer.groups=[{parameters: \"*\", " + name + ": 0.5}]"};
  }
  if (below("optimizer.learning_rate")) {
    const std::string kind = path.substr(24, path.rfind('.') - 24);
    if (key.type == spec::Type::scales) path += ".0.1";
    return {"optimizer.learning_rate=" + schedule_with_options(kind)};
  }
  if (below("optimizer")) return {"optimizer." + path.substr(10, path.rfind('.') - 10) + "={}"};
  if (path == "model.layers.dropout.rate") {
    path = "model.layers.2.dropout.rate";
    return {};
  }
  if (path == "model.layers.attention.dropout") {
    path = "model.layers.2.attention.dropout";
    return {
        "model.layers=[{reshape: [6, 6]}, {dense: 4}, {attention: {heads: 2, dropout: 0.5}}, global_avg_pool, {dense: "
        "3}]"};
  }
  if (path == "model.layers.table_embedding.dropout") {
    path = "model.layers.0.table_embedding.dropout";
    return {
        "data.source={csv: {train: tests/parity/data/table.csv, target: y, inputs: [area, city], categorical: "
        "[city]}}",
        "model.layers=[{table_embedding: {dropout: 0.5}}, {dense: 3}]"};
  }
  if (path == "loss.softmax_cross_entropy.label_smoothing") return {};
  if (path == "loss.focal.gamma") return {"loss=focal", "metrics=[accuracy]"};
  if (path == "loss.huber.delta") {
    return {
        "loss=huber", "metrics=[]", "model.layers=[flatten, {dense: 1}]",
        "data.source={values: {inputs: [[0], [1], [2], [3], [4], [5], [6], [7]], targets: [0, 2, 1, 3, 5, 4, 7, 6]}}"};
  }
  if (path == "train.ema.decay") return {"train.ema={}"};
  if (path == "lora.dropout") return {"lora={dropout: 0.5, rank: 2, parameters: \"*\"}"};
  FAIL("say here what a config has to have so that " << key.path << " can vary");
  return {};
}

TEST_CASE("every key that may vary keeps the program and changes what is trained", "[train]") {
  int count = 0;
  test::Slice slice(test::slices_with_sanitizer(3));
  for (const spec::Key& key : spec::keys()) {
    if (!key.varies || key.type == spec::Type::seed) continue;
    if (key.path == "optimizer.reduce_on_plateau.factor") continue;  // no step has it: members.cpp
    ++count;
    if (!slice.takes()) continue;
    INFO(key.path);
    std::string path;
    std::vector<std::string> set = config_with(key, path);
    set.push_back("ensemble.vary={" + path + ": [0.001, 0.2, 0.3]}");
    check_members(setup_of_text(networks, set), {{BackendKind::cpu, 2}});
  }
  CHECK(count > 30);
}

// Seven examples in an order that data.seed decides.
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
  const setup::Setup setup = setup_of_text(regression);
  CHECK(setup::run_source(setup).entries.front().batch_by_member);
  check_members(setup);
  check_members(setup_of_text(regression,
                              {"ensemble.vary={data.seed: [5, 5, 7], seed: [1, 2, 3], loss.huber.delta: [0.1, 1, 10], "
                               "optimizer.rmsprop.decay: [0, 0.5, 0.9], optimizer.rmsprop.eps: [1, 0.1, 0.01], "
                               "optimizer.rmsprop.momentum: [0.1, 0.5, 0.9]}"}));
}

TEST_CASE("members with a data.seed each have augmented images of their own", "[train]") {
  const TemporaryFolder folder;
  std::string pixels, labels;
  for (int i = 0; i < 32 * 36; ++i) pixels += static_cast<char>(i * 37 % 251);
  for (int i = 0; i < 32; ++i) labels += static_cast<char>(i % 3);
  const std::string files =
      folder.write("images", idx(8, {32, 6, 6}, pixels)) + ", " + folder.write("labels", idx(8, {32}, labels));
  const std::vector<std::string> set = {"data.source={idx: {train: [" + files + "]}}",
                                        "data.augment=[random_crop: 2, random_flip]",
                                        "ensemble.vary={data.seed: [5, 6, 7]}"};
  const setup::Setup setup = setup_of_text(networks, set);
  CHECK(setup::run_source(setup).entries.front().batch_by_member);
  check_members(setup);
  // The images differ by the seed even in file order.
  std::vector<std::string> in_order = set;
  in_order.emplace_back("data.shuffle=false");
  check_members(setup_of_text(networks, in_order));
}

TEST_CASE("members that have the order of the data in common share one batch", "[train]") {
  CHECK_FALSE(setup::run_source(setup_of_text(networks)).entries.front().batch_by_member);
  // Without shuffling, the seed decides nothing.
  const setup::Setup in_order = setup_of_text(regression, {"data.shuffle=false", "ensemble.vary.seed=[1, 2, 3]"});
  CHECK_FALSE(setup::run_source(in_order).entries.front().batch_by_member);
  check_members(in_order);
}

TEST_CASE("nested_axes.yaml: the data over both axes, or two members with rates of their own, step as by hand",
          "[train]") {
  const std::string members = "ensemble={axis: model_replicas, vary: {optimizer.learning_rate: [0.01, 0.005]}}";
  for (const bool ensemble : {false, true}) {
    const setup::Setup setup =
        setup_of_config("nested_axes.yaml", ensemble ? std::vector{members} : std::vector<std::string>{});
    CHECK(setup.batch.rows_per_device == (ensemble ? 4 : 2));
    const std::unique_ptr<Module> module = make_backend(BackendKind::cpu)->load(setup::step_source(setup));
    setup::set_initial_values(*module, setup);
    setup::fill_first_batch(*module, setup);
    module->wait(module->submit(setup::train_entry, 0));
    for (std::int64_t m = 0; m < spec::members(setup.spec()); ++m) {
      const double rate = m == 0 ? 0.01 : 0.005;
      const auto learned = [&](const char* name) {
        return setup::to_doubles(*module, module->input(name), {0, m}).front();
      };
      CHECK(learned("dense_0.kernel") == Approx(1.0 + rate * 162.5));
      CHECK(learned("dense_0.bias") == Approx(rate * 16.0));
    }
  }
}

// A rate so large that parameters could overflow needs a check of every update, which one member brings to all.
TEST_CASE("members of whom one may overflow keep the bits of their own runs", "[train]") {
  const setup::Setup ensemble =
      setup_of_text(regression, {"ensemble.vary={optimizer.learning_rate: [0.01, 1.0e+38, 0.02]}"});
  CHECK(ensemble.optimizer().may_overflow);
  CHECK_FALSE(alone(ensemble, 0).optimizer().may_overflow);
  for (const BackendKind kind : host_backends) {
    const std::vector<Left> found = after_five_steps(ensemble, kind, 2);
    for (const std::size_t m : {0u, 1u, 2u}) {
      INFO(to_string(kind) << ", member " << m);
      CHECK(found[m] == after_five_steps(alone(ensemble, static_cast<std::int64_t>(m)), kind, 2).front());
    }
  }
}

}  // namespace
}  // namespace pmaptrain::testing
