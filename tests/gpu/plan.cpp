// What a GPU's plan looks like: messages of gradients, collectives beside the backward pass, one launch for the update.
#include "core/runtime/gpu/plan.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/graph/passes.h"
#include "core/ops/all.h"
#include "core/passes/fuse.h"
#include "core/passes/pipeline.h"
#include "core/runtime/gpu/executor.h"
#include "core/runtime/gpu/plans.h"
#include "core/setup/make_setup.h"
#include "core/setup/setup.h"
#include "core/spec/keys.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/gpu/programs.h"
#include "tests/session_run.h"

namespace pmaptrain::testing {
namespace {

using test::for_each_plan, test::launches_of, test::places, test::places_of, test::plan_of;

std::shared_ptr<const Program> training_of(const std::string& config) {
  return setup::make_setup(spec::load(config, {})).training;
}

std::vector<std::size_t> updates_of(const gpu::Plan& plan, const std::string& rule) {
  return places(plan, [&](const gpu::Command& command) {
    const auto* const launch = std::get_if<gpu::Launch>(&command);
    return launch != nullptr && !launch->equation->regions.empty() &&
           launch->equation->regions.front().equations.back().origin->scope == rule;
  });
}

}  // namespace

TEST_CASE("gradients are sent in messages, each as soon as the backward pass has computed it", "[gpu]") {
  const auto program = training_of("configs/cnn.yaml");
  for (const bool deterministic : {false, true}) {
    INFO("deterministic " << deterministic);
    const gpu::Plan plan = plan_of(program, 4, {.deterministic = deterministic, .message_bytes = 164200});
    INFO(to_string(plan));
    const std::vector<std::size_t> collectives = places_of<gpu::Collect>(plan), awaits = places_of<gpu::Await>(plan);
    const std::vector<std::size_t> convolutions = launches_of(plan, "conv_kernel_grad");
    // The dense layer's gradients, which are large, are there before those of the convolutions.
    REQUIRE(collectives.size() >= 2);
    CHECK(collectives.front() < convolutions.front());
    // A GPU has two blocks, whose gradients of the kernel and of the bias it adds first, in one call.
    CHECK(collectives.back() == convolutions.back() + (deterministic ? 2 : 1));
    // Nothing waits for them, or for the reduction of what was gathered, before the norm of the gradients.
    REQUIRE(awaits.size() == 1);
    CHECK(awaits.front() == collectives.back() + (deterministic ? 2 : 1));

    // They fit into one message of the usual size.
    CHECK(places_of<gpu::Collect>(plan_of(program, 4, {.deterministic = deterministic})).size() == 1);
  }
}

TEST_CASE("the parameters of a group of layers are gathered beside the layers of the group before", "[gpu]") {
  const auto plan_with = [](int layers, bool deterministic) {
    std::string list = "model.layers=[flatten";
    for (int i = 0; i < layers; ++i) list += ", {dense: 512}, relu";
    const setup::Setup setup = setup_of_text(
        small_images, {list + ", {dense: 3}]", "parallelism.fsdp={axis: devices, stage: 3}",
                       "optimizer.adamw={weight_decay: 0.1}", "optimizer.weight_decay_exclude=['*.bias']"});
    return plan_of(setup.training, 4, {.deterministic = deterministic});
  };
  for (const bool deterministic : {false, true}) {
    INFO("deterministic " << deterministic);
    const gpu::Plan plan = plan_with(5, deterministic);
    INFO(to_string(plan));
    const std::vector<std::size_t> matmuls = launches_of(plan, "matmul");
    const std::vector<std::size_t> gathers = places(plan, [](const gpu::Command& command) {
      const auto* const collect = std::get_if<gpu::Collect>(&command);
      return collect != nullptr && collect->equation->origin->scope == "gather";
    });
    // The first group has two layers, and each other one has one, the last of them with the small layer. Each has two
    // buckets, of kernels and of biases.
    REQUIRE(gathers.size() == 8);
    const std::vector<std::size_t> awaits = places_of<gpu::Await>(plan);
    for (const std::size_t k : {std::size_t{2}, std::size_t{3}}) {
      const std::size_t first = gathers[2 * k], second = gathers[2 * k + 1];
      CHECK(first > matmuls[k - 1]);  // what the group before reads is computed
      CHECK(second < matmuls[k]);
      // Nothing waits for them before the layers of the group before have begun.
      CHECK(std::none_of(awaits.begin(), awaits.end(), [&](std::size_t at) { return at > first && at < matmuls[k]; }));
    }
    CHECK(gathers[3] < matmuls[0]);
    // Two layers more are two parameters more in shards, but not in what is gathered or summed at a time.
    const std::size_t layer = 4 * 512 * 513, more = plan_with(7, deterministic).transient_bytes - plan.transient_bytes;
    CHECK(more < layer);
  }
}

TEST_CASE("a GPU that is alone sends nothing and copies no gradient", "[gpu]") {
  for (const std::string config : {"configs/cnn.yaml", "configs/nested_axes.yaml", "configs/fashion_mnist.yaml"}) {
    INFO(config);
    const gpu::Plan plan = plan_of(training_of(config), 1, {.deterministic = false});
    CHECK(places_of<gpu::Collect>(plan).empty());
    CHECK(places_of<gpu::Reduce>(plan).empty());
  }
}

TEST_CASE("what devices only add to each other is one product of the rows of all, beside sums that each device reads",
          "[gpu]") {
  const auto program = test::program_of(R"(mesh a=4
params %w:f32[3,5]{}
batch %x:f32[8,3]{a}
%y = matmul %x, %w
%own = reduce_sum[dims=[0]] %y
%gradient = matmul[transpose_a=true] %x, %y
%bias = reduce_sum[dims=[0]] %y
%all, %of_bias = psum[axes={a}] %gradient, %bias
return all = %all
return of_bias = %of_bias
return own = %own
)");
  const gpu::Plan plan = plan_of(program, 1, {.deterministic = false});
  INFO(to_string(plan));
  CHECK(launches_of(plan, "matmul").size() == 2);  // forward, and the gradient of all rows
  const std::vector<std::size_t> sums = launches_of(plan, "reduce_sum");
  REQUIRE(sums.size() == 2);
  const auto& own = std::get<gpu::Launch>(plan.commands[sums[0]]);
  CHECK(own.logical_devices == 4);
  CHECK(own.operand_types.front().shape == Shape{8, 5});
  const auto& bias = std::get<gpu::Launch>(plan.commands[sums[1]]);
  CHECK(bias.logical_devices == 1);
  CHECK(bias.operand_types.front().shape == Shape{32, 5});

  // No product has rows of two blocks, whichever GPU has them.
  CHECK(launches_of(plan_of(program, 1, {.deterministic = true, .blocks = 4}), "matmul").size() == 8);
}

TEST_CASE("a loop adds to its carries in place, and copies only those that swap", "[gpu]") {
  const auto copies_in_body = [](const std::string& yields) {
    const auto program = test::program_of(R"(mesh a=4
batch %x:f32[8,3]{a}
%s = reduce_sum[dims=[0]] %x
%g, %h = loop[iterations=4, consts=0, carries=2] %s, %s, %x (%acc:f32[3]{a}, %most:f32[3]{a}, %rows:f32[2,3]{a}) {
  %r = reduce_sum[dims=[0]] %rows
  %next = add %acc, %r
  %larger = max %most, %r
  yield )" + yields + R"(
}
%all, %largest = psum[axes={a}] %g, %h
return all = %all
return largest = %largest
)");
    const gpu::Plan plan = plan_of(program, 2, {.deterministic = true});
    const gpu::Loop& loop = std::get<gpu::Loop>(plan.commands[places_of<gpu::Loop>(plan).at(0)]);
    return std::count_if(loop.body.begin(), loop.body.end(),
                         [](const gpu::Command& command) { return std::holds_alternative<gpu::Copy>(command); });
  };
  CHECK(copies_in_body("%next, %larger") == 0);
  CHECK(copies_in_body("%larger, %next") == 1);  // %next may lie where %most was, which is read before
  CHECK(copies_in_body("%most, %acc") == 4);
}

namespace {

// A chain of dense layers, each with a kernel and a bias.
std::shared_ptr<const Program> program_of_layers(int layers, std::vector<std::string> set) {
  std::string all = "model.layers=[flatten";
  for (int i = 1; i < layers; ++i) all += ", {dense: " + std::to_string(i % 2 == 0 ? 9 : 20) + "}, relu";
  set.push_back(all + ", {dense: 3}]");
  return setup_of_text(small_images, set).training;
}

}  // namespace

TEST_CASE("the gradient of a convolution is one call for all devices of a GPU, beside norms of each device", "[gpu]") {
  const auto program = setup_of_text(small_images, {"mesh.axes={devices: 4}", "data.batch_size=32",
                                                    "model.layers=[{conv: {features: 4, kernel_size: [3, 3]}}, "
                                                    "batch_norm, relu, {conv: {features: 5, kernel_size: [3, 3]}}, "
                                                    "batch_norm, relu, flatten, {dense: 3}]"})
                           .training;
  CHECK(launches_of(plan_of(program, 1, {.deterministic = false}), "conv_kernel_grad").size() == 2);
  CHECK(launches_of(plan_of(program, 2, {.deterministic = false}), "conv_kernel_grad").size() == 2);
}

TEST_CASE("the update is a launch for each rule, whichever parameters have it", "[gpu]") {
  struct Rules {
    std::vector<std::string> set;
    std::size_t launches;
  };
  const std::string decay = "optimizer.adamw={weight_decay: 0.1}", exclude = "optimizer.weight_decay_exclude='*.bias'";
  const std::string rate = "{parameters: [dense_1.*, dense_3.kernel, dense_6.*], learning_rate_scale: 2}";
  const std::string frozen = "{parameters: [dense_2.*, dense_5.bias], freeze: true}";
  for (const auto& [set, launches] : std::vector<Rules>{
           {{decay}, 1},
           {{decay, exclude}, 2},
           {{decay, "optimizer.groups=[" + rate + "]"}, 2},
           {{decay, exclude, "optimizer.groups=[" + rate + "]"}, 4},
           {{decay, exclude, "optimizer.groups=[" + frozen + "]"}, 2},
           {{decay, exclude, "data.microbatches=2"}, 2},
           {{decay, exclude, "optimizer.clip_by_global_norm=1"}, 2},
           {{decay, exclude, "train.ema={decay: 0.9}"}, 2},
           {{decay, exclude, "precision=mixed_bfloat16"}, 2},
       }) {
    INFO(set.back());
    const std::string rule = set.back().starts_with("train.ema") ? "ema" : "adamw";
    const auto program = program_of_layers(12, set);
    for_each_plan(program, {1, 2, 4}, [&, launches = launches](const gpu::Plan& plan, int, bool) {
      const std::vector<std::size_t> updates = updates_of(plan, rule);
      REQUIRE(updates.size() == launches);
      if (launches > 1) return;
      // It is that of all parameters.
      const auto& update = std::get<gpu::Launch>(plan.commands[updates.front()]);
      CHECK(update.result_types.front() == program->type(program->inputs.front().value));
    });
  }
}

TEST_CASE("an optimizer has the same kernels for any number of layers, its guard and clipping included", "[gpu]") {
  // Those after the backward pass, which ends with the last product, or with the loop over microbatches.
  const auto program_of_set = [](const std::vector<std::string>& set, int layers) {
    return std::make_shared<const Program>(run_passes(*program_of_layers(layers, set), passes_of_gpus()));
  };
  const auto launches = [](const std::shared_ptr<const Program>& program, int gpus, bool deterministic) {
    const gpu::Plan plan = plan_of(program, gpus, {.deterministic = deterministic});
    const std::vector<std::size_t> products = launches_of(plan, "matmul"), loops = places_of<gpu::Loop>(plan);
    const std::size_t begin = loops.empty() ? products.back() : loops.back();
    const std::vector<std::size_t> all = places_of<gpu::Launch>(plan);
    return std::count_if(all.begin(), all.end(), [&](std::size_t at) { return at > begin; });
  };
  const std::string decay = "optimizer.sgd={momentum: 0.9, nesterov: true, weight_decay: 0.1}";
  std::vector<std::vector<std::string>> configs{
      {decay},
      {decay, "optimizer.weight_decay_exclude='*.bias'"},
      {decay, "optimizer.clip_by_global_norm=1"},
      {decay, "precision=mixed_bfloat16"},
      {decay, "data.microbatches=2"},
      {decay, "optimizer.clip=0.1", "optimizer.clip_by_global_norm=1"},
      {"optimizer.adam={}", "optimizer.clip=0.1", "optimizer.clip_by_global_norm=1"},
      {"optimizer.rmsprop={momentum: 0.9}"}};
  for (const spec::Key* const rule : spec::alternatives(*spec::find_key("optimizer"))) {
    configs.push_back({"optimizer." + std::string(rule->name()) + "={}"});
  }
  for (const std::vector<std::string>& set : configs) {
    const auto few = program_of_set(set, 4), many = program_of_set(set, 12);
    for (const int gpus : {1, 2}) {
      for (const bool deterministic : {false, true}) {
        INFO(set.front() << ' ' << set.back() << " on " << gpus << " GPUs, deterministic " << deterministic);
        CHECK(launches(many, gpus, deterministic) == launches(few, gpus, deterministic));
      }
    }
  }
}

TEST_CASE("buckets are in the order of the backward pass, where rules mix parameters too", "[gpu]") {
  const auto program =
      program_of_layers(12, {"optimizer.adamw={weight_decay: 0.1}", "optimizer.weight_decay_exclude='*.bias'"});
  for (const bool deterministic : {false, true}) {
    INFO("deterministic " << deterministic);
    const gpu::Plan plan = plan_of(program, 4, {.deterministic = deterministic, .message_bytes = 2048});
    const std::vector<std::size_t> collectives = places_of<gpu::Collect>(plan);
    const std::vector<std::size_t> products = launches_of(plan, "matmul");
    REQUIRE(collectives.size() >= 4);
    // The kernels of the last layers are on their way before most of the backward pass. Only the first layer's kernel
    // and the biases, which are a bucket of their own, are waited for to the end.
    CHECK(collectives.front() < products[products.size() * 2 / 3]);
    CHECK(collectives[collectives.size() - 3] < products.back());
  }
}

TEST_CASE("what each message has gathered is reduced at once, where a GPU has one block", "[gpu]") {
  const auto program = program_of_layers(12, {});
  for (const std::size_t message_bytes : {std::size_t{1} << 20, std::size_t{4096}}) {
    INFO("messages of " << message_bytes);
    const gpu::Plan plan = plan_of(program, 4, {.deterministic = true, .message_bytes = message_bytes});
    const std::size_t collectives = places_of<gpu::Collect>(plan).size();
    CHECK(collectives == (message_bytes > 4096 ? 1 : 4));
    CHECK(places_of<gpu::Reduce>(plan).size() == collectives);
  }
  // Of two blocks, each value has its parts one after another: a group of arrays for each, and for the sums of the
  // loss, the metric and the count.
  const gpu::Plan two = plan_of(program, 2, {.deterministic = true});
  std::size_t groups = 0;
  gpu::for_each_of<gpu::Reduce>(two.commands,
                                [&](const gpu::Reduce& reduce, double) { groups += reduce.groups.size(); });
  CHECK(groups > 24);
}

TEST_CASE("large reductions are calls of their own, and one call has at most the groups that a kernel takes", "[gpu]") {
  const auto sizes_of_calls = [](int arrays, int elements) {
    std::string text = "mesh a=2\n", results, operands;
    for (int i = 0; i < arrays; ++i) {
      const std::string number = std::to_string(i);
      text += "batch %x" + number + ":f32[" + std::to_string(elements) + "]{a}\n";
      operands += (i > 0 ? ", %x" : "%x") + number;
      results += (i > 0 ? ", %s" : "%s") + number;
    }
    text += results + " = psum[axes={a}] " + operands + "\n";
    for (int i = 0; i < arrays; ++i) text += "return s" + std::to_string(i) + " = %s" + std::to_string(i) + "\n";
    std::vector<std::size_t> sizes;
    const gpu::Plan plan = plan_of(test::program_of(text), 1, {.deterministic = false});
    gpu::for_each_of<gpu::Reduce>(plan.commands,
                                  [&](const gpu::Reduce& reduce, double) { sizes.push_back(reduce.groups.size()); });
    return sizes;
  };
  CHECK(sizes_of_calls(50, 1 << 10) == std::vector<std::size_t>{48, 2});
  CHECK(sizes_of_calls(3, 1 << 17) == std::vector<std::size_t>{1, 1, 1});
}

TEST_CASE("a step of ResNet-18 on eight logical devices of one GPU is at most 300 launches", "[gpu]") {
  const setup::Setup setup = testing::setup_of_config(
      "resnet18.yaml", {"precision=mixed_bfloat16", "data.source.synthetic_images.train=1024"});
  REQUIRE(setup.training->mesh.devices() == 8);
  const auto program = std::make_shared<const Program>(run_passes(*setup.training, passes_of_gpus()));
  const gpu::Plan plan = plan_of(program, 1, {.deterministic = false});
  std::size_t launches = 0;
  gpu::for_each_command(plan.commands, [&](const gpu::Command& command) {
    const auto* const launch = std::get_if<gpu::Launch>(&command);
    if (std::holds_alternative<gpu::Reduce>(command) || std::holds_alternative<gpu::Copy>(command)) ++launches;
    if (launch != nullptr)
      launches += make_gpu_kernel(launch->equation->op, gpu::request_of(plan, *launch)).commands.size();
  });
  CHECK(launches <= 300);
}

TEST_CASE("what GPUs gather begins at multiples of 256 bytes for each of them, whatever its size", "[gpu]") {
  const auto program = test::program_of(R"(mesh a=8
batch %x:f32[7,3]{a}
batch %y:bf16[5]{a}
batch %z:i64[]{a}
%g, %h = psum[axes={a}] %x, %z
%m = pmax[axes={a}] %z
%b = all_gather[axes={a}, dim=0] %y
return g = %g
return h = %h
return m = %m
return b = %b
)");
  for (const std::size_t message_bytes : {std::size_t{0}, gpu::PlanOptions{}.message_bytes}) {
    for (const int gpus : {2, 8}) {
      const gpu::Plan plan = plan_of(program, gpus, {.deterministic = true, .message_bytes = message_bytes});
      const std::vector<std::size_t> collectives = places_of<gpu::Collect>(plan);
      CHECK(collectives.size() == 4);
      for (const std::size_t i : collectives) {
        const auto& collect = std::get<gpu::Collect>(plan.commands[i]);
        INFO(to_string(collect.dtype));
        CHECK(collect.kind == gpu::Collective::all_gather);
        CHECK(collect.bytes % gpu::alignment == 0);
        for (const gpu::Location& place : {collect.from, collect.to}) {
          CHECK((plan.buffer(place.buffer).offset + place.offset) % gpu::alignment == 0);
        }
        // Of each GPU, what it has and less than `alignment` more.
        const std::size_t needed = plan.buffer(collect.from.buffer).bytes();
        CHECK((needed <= collect.bytes && collect.bytes < needed + gpu::alignment));
        CHECK(plan.buffer(collect.to.buffer).bytes() == static_cast<std::size_t>(gpus) * collect.bytes);
      }
    }
  }
}

}  // namespace pmaptrain::testing
