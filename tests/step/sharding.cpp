// Fully sharded data parallelism: what a step keeps, gathers and scatters, and that no value depends on it.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/runtime/cpu/plan.h"
#include "core/setup/programs.h"
#include "core/setup/setup.h"
#include "core/step/step_program.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/slice.h"
#include "tests/step/gathers.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

std::string stage(int number, const std::string& axis = "devices") {
  return "parallelism.fsdp={axis: " + axis + ", stage: " + std::to_string(number) + "}";
}

// How often each collective stands in a program that is not optimized.
int count(const Program& program, std::string_view op) {
  return static_cast<int>(std::count_if(program.equations.begin(), program.equations.end(),
                                        [&](const Equation& equation) { return equation.op.name() == op; }));
}

Program final_program(std::vector<std::string> set) {
  return setup::program_at(setup_of_text(small_images, std::move(set)), step::Stage::final);
}

// The run of a folder, continued with this setup.
Trained continued(const std::filesystem::path& run, const setup::Setup& setup) {
  std::optional<train::ResumePoint> point = train::find_resume_point(run);
  REQUIRE(point);
  const run::RunState& state = point->checkpoint.state;
  train::SessionOptions options;
  options.folder.resume = true;
  options.resume = &*point;
  options.folder.resumed = {state.step, run::best_folder(state), state.metrics_bytes};
  return train_setup_in(run, setup, options);
}

// What is said of a program that is refused.
std::string refused(const std::string& text) {
  try {
    parse_program(text, "step.pmt", all_ops());
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  }
  return "";
}

}  // namespace

TEST_CASE("a stage says what is sharded: state, then gradients, then parameters", "[step]") {
  for (const int number : {1, 2, 3}) {
    INFO("stage " << number);
    const Program program = final_program({stage(number), "train.ema={decay: 0.9}"});
    const std::vector<Variable> variables = variables_of(program);
    for (const Variable& variable : variables) {
      const Input& input = program.inputs[variable.input];
      const bool is_state = variable.group == Group::state && !input.parts.empty();
      const bool is_parameter = variable.group == Group::params;
      CHECK(input.divided().empty() == !(is_state || (is_parameter && number == 3)));
      if (!input.divided().empty()) {
        CHECK(program.type(input.value).varying == program.mesh.all());
        CHECK(variable.type.varying.empty());  // a part is known as a whole
      }
    }
    CHECK(count(program, "psum_scatter") == (number == 1 ? 0 : 1));
    // The update reads its shard of the sum, of the parameters, or of both.
    CHECK(count(program, "all_slice") == (number == 1 ? 2 : number == 2 ? 1 : 0));
    // Parameters are gathered before the step or after it, and so are the sums of squares and the largest magnitudes.
    CHECK(count(program, "all_gather_invariant") == 1 + 2);
  }
}

TEST_CASE("without parallelism a step has no shards", "[step]") {
  const Program program = final_program({});
  for (const Input& input : program.inputs) CHECK(input.divided().empty());
  for (const char* op : {"all_slice", "all_gather_invariant", "psum_scatter"}) CHECK(count(program, op) == 0);
}

TEST_CASE("the text of a step with shards parses back to the same program", "[step]") {
  const setup::Setup setup = setup_of_text(small_images, {stage(3)});
  const std::string text = to_text(*setup.training);
  CHECK(text.find("{devices}] of %") != std::string::npos);
  const Program again = parse_program(text, "step.pmt", all_ops());
  CHECK(to_text(again) == text);
  CHECK(again.inputs.front().layout == setup.training->inputs.front().layout);
}

TEST_CASE("sharding changes no bit of a run, on every backend", "[step]") {
  const std::string backend = any_backend();
  const std::vector<std::vector<std::string>> configs{
      {},
      {"optimizer.sgd={momentum: 0.9}"},  // the guard judges the update
      {"optimizer.clip=0.1", "optimizer.clip_by_global_norm=0.05", "optimizer.adamw={weight_decay: 0.1}",
       "optimizer.weight_decay_exclude=['*.bias']"},
      {"train.ema={decay: 0.9}", "data.microbatches=2"},
      {"precision=mixed_bfloat16", "train.ema={decay: 0.9, debias: false}",
       "optimizer.groups=[{parameters: conv_0.*, freeze: true}]"},
      {"data.batch_size=15", "data.remainder=mask", "mesh.blocks=2"},
  };
  for (const std::vector<std::string>& config : configs) {
    INFO((config.empty() ? "adam" : config.front()));
    std::vector<std::string> set = config;
    set.insert(set.end(), {backend, "train.duration=5 steps", "train.log_every=1 step", "train.eval_every=2 steps"});
    const Trained plain = train_setup(setup_of_text(small_images, set));
    CHECK(plain.ended.exit_status == 0);
    for (const int number : {1, 2, 3}) {
      INFO("stage " << number);
      std::vector<std::string> sharded = set;
      sharded.push_back(stage(number));
      CHECK(train_setup(setup_of_text(small_images, sharded)).same_bits(plain));
    }
  }
}

// Three groups of layers, which gather by themselves: a layer of 512 x 512 is one.
const std::string three_groups =
    "model.layers=[flatten, {dense: 512}, relu, {repeat: {times: 2, layers: [{dense: 512}, relu]}}, {residual: "
    "{layers: "
    "[{dense: 512}]}}, {dense: 3}]";

TEST_CASE("a group of layers gathers its parameters before it, and again for its backward pass", "[step]") {
  const Program program = final_program({stage(3), three_groups});
  CHECK(count(program, "psum_scatter") == 3);
  // The last group is not gathered again: the backward pass begins there. Norms gather twice for each bucket.
  CHECK(count(program, "all_gather_invariant") == (3 + 2) + 2 * 3);
  // All but the first gather wait for the input of their group, or for the cotangent of its output.
  CHECK(count(program, "optimization_barrier") == 2 + 2);
  std::vector<std::string> first;
  for (const Variable& variable : variables_of(program)) {
    if (variable.group == Group::params && variable.input == 0) first.push_back(variable.name.data());
  }
  // A bucket is in the order of the backward pass. What is left of a group's size joins the group before.
  CHECK(first == std::vector<std::string>{"dense_1.bias", "dense_1.kernel", "residual_0.dense_0.bias",
                                          "residual_0.dense_0.kernel"});
  // Along some of the axes of the data, what a gather waits for varies over more axes than what is gathered.
  const std::string two_axes = "mesh.axes=[{replicas: 2}, {shards: 2}]", both = "data.axes=[replicas, shards]";
  const Program some = final_program({stage(3, "shards"), three_groups, two_axes, both});
  for (const char* const op : {"all_gather_invariant", "optimization_barrier"}) {
    CHECK(count(some, op) == count(program, op));
  }
  for (const Equation& equation : some.equations) {
    if (equation.op.name() != "all_gather_invariant") continue;
    CHECK(some.type(equation.operands.front()).varying == equation.op.axes());
  }
}

TEST_CASE("a frozen parameter is whole on every device, and no gradient of it is scattered", "[step]") {
  const auto elements_of = [](const Program& program, std::string_view op) {
    std::int64_t elements = 0;
    for (const Equation& equation : program.equations) {
      if (equation.op.name() == op) elements += numel(program.type(equation.operands.front()).shape);
    }
    return elements;
  };
  const std::string layers = "model.layers=[flatten, {dense: 50}, relu, {dense: 3}]";
  const Program all = final_program({stage(3), layers});
  const Program some = final_program({stage(3), layers, "optimizer.groups=[{parameters: dense_0.*, freeze: true}]"});
  CHECK(elements_of(all, "psum_scatter") == 2304);
  CHECK(elements_of(some, "psum_scatter") == 256);
  for (const Input& input : some.inputs) {
    if (input.name.starts_with("dense_0")) CHECK(some.type(input.value).varying.empty());
  }
  CHECK(std::count_if(some.inputs.begin(), some.inputs.end(),
                      [](const Input& input) { return input.name.starts_with("dense_0"); }) == 2);
}

TEST_CASE("what is made of gathered parameters alone is made again, and not kept for the backward pass", "[step]") {
  const std::string dense = "{dense: 512}, relu, ", attention = "{attention: {heads: 4}}, ";
  const auto with_layers = [&](const std::string& layer, int layers) {
    std::string list = "model.layers=[{reshape: {shape: [9, 4]}}, {dense: 512}, ";
    for (int i = 0; i < layers; ++i) list += layer;
    return list + "global_avg_pool, {dense: 3}]";
  };
  const auto gathers_again = [](const Program& program) {
    return std::count_if(program.equations.begin(), program.equations.end(), [](const Equation& equation) {
      return equation.op.name() == "all_gather_invariant" && equation.origin->scope == "gather.again";
    });
  };
  for (const std::string& layer : {dense, attention}) {
    for (const std::string precision : {"float32", "mixed_bfloat16"}) {
      INFO(layer << precision);
      const auto setup_with = [&](int layers) {
        return setup_of_text(small_images, {stage(3), with_layers(layer, layers), "precision=" + precision,
                                            "mesh.blocks=4", "data.batch_size=4"});
      };
      // The first group has the layer before, and the last one is not gathered again.
      const setup::Setup four = setup_with(4), eight = setup_with(8);
      CHECK(gathers_again(*four.training) == 3);
      CHECK(gathers_again(*eight.training) == 7);
      const auto shared_bytes = [](const setup::Setup& setup) {
        return cpu::make_plan(setup.training, {.blocks = 4, .placement = {1, 4}, .work = setup.training_work})
            .transient.shared;
      };
      // If they were kept, four layers more would need their parameters, besides what waits to be sent.
      const auto more = static_cast<std::size_t>(eight.model.parameter_count() - four.model.parameter_count());
      CHECK(shared_bytes(eight) - shared_bytes(four) < 4 * more);
    }
  }
}

TEST_CASE("more layers need no more memory for gathered parameters and for sums of gradients", "[step]") {
  for (const std::string& layer : {std::string("{dense: 512}, relu, "), std::string("{attention: {heads: 4}}, ")}) {
    for (const char* const batch : {"data.batch_size=4", "data.batch_size=32"}) {  // sums of pieces, and in parts
      INFO(layer << batch);
      const auto planned = [&](int layers) {
        std::string list = "model.layers=[{reshape: {shape: [9, 4]}}, {dense: 512}, ";
        for (int i = 0; i < layers; ++i) list += layer;
        const setup::Setup setup =
            setup_of_text(small_images, {stage(3), list + "global_avg_pool, {dense: 3}]", "mesh.blocks=4", batch});
        const cpu::PoolSizes needs =
            cpu::make_plan(setup.training, {.blocks = 4, .placement = {1, 4}, .work = setup.training_work}).transient;
        const auto bytes = 4 * static_cast<std::size_t>(setup.model.parameter_count());
        return std::pair(needs.shared + needs.accumulators, bytes);
      };
      // The gathers and the sums of seven layers are under way at once, so shorter models need less.
      const auto [twelve, of_twelve] = planned(12);
      const auto [twenty, of_twenty] = planned(20);
      CHECK(twenty < twelve + (of_twenty - of_twelve) / 20);
    }
  }
}

TEST_CASE("a process receives the parameters of a group of layers, and sends sums, while it computes", "[step]") {
  const setup::Setup setup = setup_of_text(small_images, {stage(3), three_groups, "mesh.blocks=4"});
  const cpu::Plan plan =
      cpu::make_plan(setup.training, {.blocks = 4, .placement = {1, 4}, .work = setup.training_work});
  INFO(to_text(plan));
  const auto [gathers, beside] = gathers_of(plan);
  CHECK(gathers == 3 + 2);
  CHECK(beside == gathers);
  // The whole parameters of two groups, and the gradients of groups whose sums are on their way.
  const std::size_t group = 4 * 512 * 513;
  CHECK(plan.transient.shared < 7 * group);
}

TEST_CASE("other numbers of microbatches plan the program of a config that has them", "[step]") {
  for (const int number : {2, 3}) {
    INFO("stage " << number);
    const setup::Setup one = setup_of_text(small_images, {stage(number), three_groups});
    const setup::Setup two = setup_of_text(small_images, {stage(number), three_groups, "data.microbatches=2"});
    CHECK(to_text(*setup::with_batches(one, one.batch.global, 2).training) == to_text(*two.training));
    CHECK(to_text(*setup::with_batches(two, two.batch.global, 1).training) == to_text(*one.training));
  }
}

TEST_CASE("in one process the workers share what is gathered", "[step]") {
  for (const int number : {1, 2, 3}) {
    INFO("stage " << number);
    const setup::Setup setup = setup_of_text(small_images, {stage(number), three_groups});
    CHECK(cpu::make_plan(setup.training, {.work = setup.training_work}).transient.worker < 8192);
  }
}

TEST_CASE("buckets of groups of layers have the bits of plain data parallelism", "[step]") {
  const std::string backend = any_backend();
  const std::string sequences =
      "model.layers=[{reshape: {shape: [-1, 4]}}, {dense: 512}, {repeat: {times: 2, remat: true, layers: [{residual: "
      "{layers: [layer_norm, {dense: 512}, gelu, {dropout: 0.1}]}}]}}, global_avg_pool, {dense: 3}]";
  const std::string norms =
      "model.layers=[flatten, {dense: 512}, {batch_norm: {axes: [devices]}}, relu, {dense: 600}, {batch_norm: {}}, "
      "relu, "
      "{dense: 600}, relu, {dense: 3}]";
  const std::vector<std::vector<std::string>> configs{
      {three_groups, "data.microbatches=2", "train.ema={decay: 0.9}"},  // gathers before the loop
      {three_groups, "precision=mixed_bfloat16", "train.ema={decay: 0.9}"},
      {sequences, "precision=mixed_bfloat16", "optimizer.clip_by_global_norm=0.05"},
      {norms, "data.batch_size=15", "data.remainder=mask", "mesh.blocks=2", "optimizer.sgd={momentum: 0.9}"},
      {three_groups,
       "optimizer.groups=[{parameters: repeat_0.0.*, freeze: true}, {parameters: '*.bias', "
       "learning_rate_scale: 2}]"},
  };
  test::Slice slice(5);
  for (const std::vector<std::string>& config : configs) {
    for (const int number : {2, 3}) {
      if (!slice.takes()) continue;
      INFO(backend << ", stage " << number << ", " << config.front() << ", " << config.back());
      std::vector<std::string> set = config;
      set.insert(set.end(), {backend, "train.duration=2 steps", "train.log_every=1 step", "train.eval_every=2 steps"});
      const Trained plain = train_setup(setup_of_text(small_images, set));
      CHECK(plain.ended.exit_status == 0);
      set.push_back(stage(number));
      CHECK(train_setup(setup_of_text(small_images, set)).same_bits(plain));
    }
  }
}

TEST_CASE("a table that two groups of layers read is gathered for each, and its gradients are added", "[step]") {
  const std::string text = R"(
mesh: {axes: {devices: 4}}
data:
  source: {npz: {file: tests/parity/data/tokens.npz, train: [x, y]}}
  batch_size: 16
model:
  layers:
    - embedding: {num_embeddings: 600, features: 512}
    - attention: {heads: 4, causal: true}
    - attend: {embedding: embedding_0}
    - global_avg_pool
    - dense: 3
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 2 steps, log_every: 1 step}
)";
  const std::string backend = any_backend();
  const setup::Setup setup = setup_of_text(text, {backend, stage(3)});
  // Both buckets before the last group, that of the table again in the backward pass; twice each for norms.
  CHECK(count(setup::program_at(setup, step::Stage::final), "all_gather_invariant") == (1 + 2) + 1 + 2 * 2);
  test::Slice slice(test::slices_with_sanitizer(2));
  if (slice.takes(backend == "mesh.backend=cpu")) {
    CHECK(train_setup(setup).same_bits(train_setup(setup_of_text(text, {backend}))));
  }
}

TEST_CASE("sharding does not change into how many pieces the rows are cut", "[step]") {
  // Widths at which the work of gathering and scattering would make one piece more.
  for (const int width : {42, 50, 56, 68, 74}) {
    const std::string dense = "{dense: " + std::to_string(width) + "}, relu, ";
    const std::vector<std::string> set{"data.batch_size=160", "model.layers=[" + dense + dense + "{dense: 1}]",
                                       "optimizer={adam: {}, learning_rate: 0.01}", "train.duration=3 steps"};
    const Trained plain = train_setup(setup_of_config("linear_regression.yaml", set));
    for (const int number : {1, 3}) {
      INFO("width " << width << ", stage " << number);
      std::vector<std::string> sharded = set;
      sharded.push_back(stage(number, "batch"));
      CHECK(train_setup(setup_of_config("linear_regression.yaml", sharded)).same_bits(plain));
    }
  }
}

TEST_CASE("each member of an ensemble has its shards, with the bits of plain data parallelism", "[step]") {
  const std::vector<std::string> set{"mesh.axes=[{members: 2}, {r: 2}, {s: 2}]",
                                     "ensemble={axis: members, vary: {seed: [0, 1]}}",
                                     "model.layers=[{dense: 100}, relu, {dense: 33}, relu, {dense: 1}]",
                                     "optimizer={adam: {}, learning_rate: 0.01}", "train.duration=3 steps"};
  const Trained plain = train_setup(setup_of_config("linear_regression.yaml", set));
  for (const char* const axis : {"r", "[r, s]"}) {
    for (const int number : {1, 2, 3}) {
      INFO(axis << ", stage " << number);
      std::vector<std::string> sharded = set;
      sharded.push_back(stage(number, axis));
      CHECK(train_setup(setup_of_config("linear_regression.yaml", sharded)).same_bits(plain));
    }
  }
}

TEST_CASE("shards along one axis of two, along the other, or along both change no bit", "[step]") {
  const std::vector<std::string> set{"mesh.axes=[{replicas: 2}, {shards: 2}]", "data.axes=[replicas, shards]",
                                     "train.duration=4 steps", "train.log_every=1 step", "mesh.blocks=4"};
  const Trained plain = train_setup(setup_of_text(small_images, set));
  for (const char* const axis : {"replicas", "shards", "[replicas, shards]"}) {
    for (const int number : {1, 2, 3}) {
      INFO(axis << ", stage " << number);
      std::vector<std::string> sharded = set;
      sharded.push_back(stage(number, axis));
      CHECK(train_setup(setup_of_text(small_images, sharded)).same_bits(plain));
    }
  }
}

TEST_CASE("a run continues with another stage, or without one, to the same bits", "[step]") {
  const std::vector<std::string> set{"train.duration=6 steps", "train.log_every=1 step", "train.ema={decay: 0.9}"};
  const auto with = [&](const std::string& sharding) {
    std::vector<std::string> all = set;
    if (!sharding.empty()) all.push_back(sharding);
    return setup_of_text(small_images, all);
  };
  const Trained whole = train_setup(with(""));
  for (const auto& [before, after] : std::vector<std::pair<std::string, std::string>>{
           {"", stage(3)}, {stage(3), ""}, {stage(1), stage(3)}, {stage(3), stage(2)}}) {
    INFO("'" << before << "', then '" << after << "'");
    const TemporaryFolder root;
    train_setup_in(root / "run", with(before), until(3));
    CHECK(continued(root / "run", with(after)).parameters == whole.parameters);
  }
}

TEST_CASE("a forgotten gather or scatter is a type error", "[step]") {
  const std::string inputs = "mesh shards=2\nparams %bucket:f32[64]{shards} as [128{shards}] of %w:[5,3], %c:[30]\n";
  // A shard is no bucket of the parameters.
  CHECK(refused(inputs + "%v, %d = unpack[shapes=[[5,3],[30]]] %bucket\n")
            .find("unpack: f32[64] is no bucket of these 2 arrays") != std::string::npos);
  // A sum that every device has is no update of a shard.
  CHECK(refused(inputs + "batch %g:f32[128]{shards}\n%s = psum[axes={shards}] %g\nupdate %bucket = %s\n")
            .find("'bucket' is f32[64]{shards}") != std::string::npos);
  // A shard is not the same on every device.
  CHECK(refused(inputs + "params %b:f32[64]{}\n%v = add %b, %bucket\nupdate %b = %v\n")
            .find("parameter 'b' would become different on the devices along {shards}") != std::string::npos);
}
