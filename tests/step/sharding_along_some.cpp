// Shards along some of the axes of the data: what a step gathers and scatters, and that no value depends on it.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/text.h"
#include "core/runtime/cpu/plan.h"
#include "core/setup/programs.h"
#include "core/setup/setup.h"
#include "core/step/step_program.h"
#include "tests/catch.h"
#include "tests/golden.h"
#include "tests/session_run.h"
#include "tests/slice.h"
#include "tests/step/gathers.h"
#include "tests/train/in_processes.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

std::string stage_along(const std::string& axis, int stage) {
  return "parallelism.fsdp={axis: " + axis + ", stage: " + std::to_string(stage) + "}";
}

// Four devices on two hosts, or twelve on three, with `blocks` blocks.
std::vector<std::string> mesh_of(int devices, int blocks) {
  return {devices == 4 ? "mesh.axes=[{hosts: 2}, {shards: 2}]" : "mesh.axes=[{hosts: 3}, {shards: 4}]",
          "data.axes=[hosts, shards]", "data.batch_size=24", "train.duration=3 steps",
          "mesh.blocks=" + std::to_string(blocks)};
}

std::vector<std::string> joined_set(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A layer whose gradients are so many that processes add ranges of their sum.
const std::string wide = "model.layers=[flatten, {dense: 400}, relu, {dense: 250}, relu, {dense: 3}]";

// What a step may do to gradients, parameters and statistics.
const std::vector<std::vector<std::string>> kinds_of_steps{
    {"optimizer.sgd={momentum: 0.9}", "optimizer.clip_by_global_norm=0.05", "optimizer.clip=0.1"},
    {"train.ema={decay: 0.9}", "data.microbatches=2"},
    {"model.layers=[flatten, {dense: 300}, {batch_norm: {}}, relu, {dense: 220}, {dense: 3}]", "data.batch_size=21",
     "data.remainder=mask"},
    {"model.layers=[flatten, {dense: 300}, {batch_norm: {axes: [shards]}}, relu, {dense: 220}, {dense: 3}]"},
    {"precision=mixed_bfloat16", "optimizer.groups=[{parameters: '*_0.bias', freeze: true}]"},
};

}  // namespace

TEST_CASE("shards along some axes of the data are parts of the sum along all of them", "[step]") {
  const auto collectives = [](int stage) {
    const Program program = setup::program_at(
        setup_of_text(small_images, joined_set(mesh_of(4, 4), {stage_along("shards", stage)})), step::Stage::final);
    std::string text;
    for (const Equation& equation : program.equations) {
      const AxisSet axes = equation.op.axes();
      if (axes.empty() || equation.op.name() == "pvary") continue;
      if (equation.origin->scope != "synchronise" && equation.origin->scope != "shard") continue;
      text += std::string(equation.op.name()) + program.mesh.to_string(axes) + " of " +
              std::to_string(equation.operands.size()) + "\n";
    }
    return text;
  };
  CHECK(collectives(1) ==
        "all_slice{shards} of 1\n"    // of the parameters
        "psum{hosts, shards} of 4\n"  // the bucket, the loss, the metric and the count
        "all_slice{shards} of 1\n");  // of the gradients
  const std::string scattered = "psum{hosts, shards} of 1\nall_slice{shards} of 1\npsum{hosts, shards} of 3\n";
  CHECK(collectives(2) == "all_slice{shards} of 1\n" + scattered);
  CHECK(collectives(3) == scattered);
}

TEST_CASE("the golden text shows where shards along some axes are gathered, and which part of a sum a device takes",
          "[step]") {
  const setup::Setup setup =
      setup_of_config("linear_regression.yaml",
                      {"mesh.axes=[{hosts: 2}, {shards: 2}]", "data.axes=[hosts, shards]", stage_along("shards", 3)});
  test::check_golden("sharding_along_some.txt", to_text(setup::program_at(setup, step::Stage::synchronised)));
}

TEST_CASE("shards along some axes of the data change no bit, with any number of blocks and on every backend",
          "[step]") {
  const std::string backend = any_backend();
  test::Slice slice(test::slices_with_sanitizer(4));
  for (const auto& [devices, blocks] : std::vector<std::pair<int, int>>{{4, 1}, {4, 2}, {4, 4}, {12, 6}, {12, 12}}) {
    const std::vector<std::string> set = joined_set(mesh_of(devices, blocks), {backend});
    const Trained plain = train_setup(setup_of_text(small_images, set));
    CHECK(plain.ended.exit_status == 0);
    for (const char* const axis : {"hosts", "shards"}) {
      for (const int stage : {2, 3}) {
        if (!slice.takes()) continue;
        INFO(devices << " devices, " << blocks << " blocks, stage " << stage << " along " << axis);
        CHECK(train_setup(setup_of_text(small_images, joined_set(set, {stage_along(axis, stage)}))).same_bits(plain));
      }
    }
  }
}

TEST_CASE("every kind of step has the same bits with shards along some axes of the data", "[step]") {
  const std::string backend = any_backend();
  test::Slice slice(test::slices_with_sanitizer(4));
  for (const std::vector<std::string>& kind : kinds_of_steps) {
    for (const int devices : {4, 12}) {
      const std::vector<std::string> set =
          joined_set(joined_set(mesh_of(devices, devices), {backend, "train.verify_replicas=1 step"}), kind);
      const Trained plain = train_setup(setup_of_text(small_images, set));
      CHECK(plain.ended.exit_status == 0);
      for (const int stage : {2, 3}) {
        if (!slice.takes()) continue;
        INFO(devices << " devices, stage " << stage << ", " << kind.front());
        CHECK(
            train_setup(setup_of_text(small_images, joined_set(set, {stage_along("shards", stage)}))).same_bits(plain));
      }
    }
  }
}

TEST_CASE("several processes have the bits of one with shards along some axes of the data", "[step][placements]") {
  test::Slice slice(6);
  std::vector<std::vector<std::string>> kinds = kinds_of_steps;
  for (std::vector<std::string>& kind : kinds) kind.insert(kind.begin(), wide);  // a later option wins
  for (const std::vector<std::string>& kind : kinds) {
    for (const int devices : {4, 12}) {
      const std::vector<std::string> set = joined_set(mesh_of(devices, devices == 4 ? 4 : 6), kind);
      const Trained plain = train_setup(setup_of_text(small_images, set));
      CHECK(plain.ended.exit_status == 0);
      for (const char* const axis : {"hosts", "shards"}) {
        for (const int stage : {2, 3}) {
          for (const int processes : {2, 3, 4}) {
            if (!slice.takes()) continue;
            INFO(processes << " processes, " << devices << " devices, stage " << stage << " along " << axis << ", "
                           << kind.back());
            const TemporaryFolder root;
            const std::string workers = "mesh.workers=" + std::to_string(1 + stage % 2);
            const std::vector<std::string> sharded = joined_set(set, {stage_along(axis, stage), workers});
            const Ends ends = train_in_processes(processes, root / "run", [&](int, Agreement&, train::SessionOptions&) {
              return setup_of_text(small_images, sharded);
            });
            for (const std::string& failure : ends.failures) CHECK(failure == "");
            CHECK(ends.trained.same_bits(plain));
          }
        }
      }
    }
  }
}

TEST_CASE("along some axes of the data a process gathers and sums two groups of layers at a time", "[step]") {
  const auto planned = [&](const std::string& axis, int layers) {
    std::string list = "model.layers=[flatten, {dense: 512}, ";
    for (int i = 0; i < layers; ++i) list += "{dense: 512}, relu, ";
    const setup::Setup setup = setup_of_text(
        small_images, joined_set(mesh_of(4, 4), {list + "{dense: 3}]", stage_along(axis, 3), "data.batch_size=4"}));
    const cpu::Plan plan =
        cpu::make_plan(setup.training, {.blocks = 4, .placement = {1, 4}, .work = setup.training_work});
    const auto [gathers, beside] = gathers_of(plan);
    CHECK(gathers == 2 * layers - 1);  // the last group is not gathered again
    CHECK(beside == gathers);
    const auto bytes = 4 * static_cast<std::size_t>(setup.model.parameter_count());
    return std::pair(plan.transient.shared + plan.transient.accumulators, bytes);
  };
  for (const char* const axis : {"hosts", "shards", "[hosts, shards]"}) {
    INFO(axis);
    const auto [twelve, of_twelve] = planned(axis, 12);
    const auto [twenty, of_twenty] = planned(axis, 20);
    CAPTURE(twelve, twenty, of_twelve, of_twenty);
    CHECK(twenty < twelve + (of_twenty - of_twelve) / 20);
  }
}

TEST_CASE("groups of layers sum and gather their buckets along some axes of the data, with the same bits",
          "[step][placements]") {
  const std::string groups =
      "model.layers=[{reshape: {shape: [9, 4]}}, {dense: 512}, {repeat: {times: 2, remat: true, layers: [{residual: "
      "{layers: [layer_norm, {dense: 512}, gelu, {dropout: 0.1}]}}]}}, global_avg_pool, {dense: 3}]";
  test::Slice slice(7);
  for (const std::string precision : {"float32", "mixed_bfloat16"}) {
    const std::vector<std::string> set =
        joined_set(mesh_of(4, 4), {groups, "precision=" + precision, "optimizer.clip_by_global_norm=0.05",
                                   "data.batch_size=8", "train.eval_every=2 steps"});
    const Trained plain = train_setup(setup_of_text(small_images, set));
    CHECK(plain.ended.exit_status == 0);
    for (const auto& [axis, stage] : {std::pair("hosts", 2), {"hosts", 3}, {"shards", 2}, {"shards", 3}}) {
      const std::vector<std::string> sharded = joined_set(set, {stage_along(axis, stage)});
      for (const int processes : {1, 2, 4}) {
        if (!slice.takes(stage == 2 && processes == 4 && precision == "float32")) continue;
        INFO(processes << " processes, stage " << stage << " along " << axis << ", " << precision);
        const TemporaryFolder root;
        const Ends ends = train_in_processes(processes, root / "run", [&](int, Agreement&, train::SessionOptions&) {
          return setup_of_text(small_images, sharded);
        });
        for (const std::string& failure : ends.failures) CHECK(failure == "");
        CHECK(ends.trained.same_bits(plain));
      }
      if (!slice.takes()) continue;
      INFO("reference, stage " << stage << " along " << axis << ", " << precision);
      const Trained reference = train_setup(setup_of_text(small_images, joined_set(set, {"mesh.backend=reference"})));
      CHECK(train_setup(setup_of_text(small_images, joined_set(sharded, {"mesh.backend=reference"})))
                .same_bits(reference));
    }
  }
}
