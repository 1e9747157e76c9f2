// Durations, workers, memory and costs: what is known before the first step.
#include "core/setup/setup.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "core/base/error.h"
#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/runtime/cpu/module.h"
#include "core/setup/make_setup.h"
#include "core/setup/plan.h"
#include "core/setup/programs.h"
#include "core/train/resources.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

BatchPlan batches_of(std::int64_t global, std::int64_t steps_per_epoch) {
  BatchPlan batch;
  batch.global = global;
  batch.steps_per_epoch = steps_per_epoch;
  return batch;
}

template <class F>
std::string refusal(F&& action, ExitStatus expected = ExitStatus::usage) {
  return test::refusal(action, expected);
}

std::string refused_duration(std::int64_t count, spec::Unit unit) {
  return refusal([&] { step::to_steps({count, unit, {}}, batches_of(16, 3), "train.duration"); });
}

constexpr std::size_t mebi = 1024 * 1024;

}  // namespace

TEST_CASE("labels of the test split that the model has no output for are refused before the first step", "[setup]") {
  const TemporaryFolder directory;
  const auto write = [&](const char* name, std::vector<unsigned char> header, const std::string& content) {
    return directory.write(name, std::string(header.begin(), header.end()) + content);
  };
  const std::string images = write("images", {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2}, "abcd");
  const std::string train = write("train", {0, 0, 8, 1, 0, 0, 0, 2}, std::string("\0\2", 2));
  const std::string test = write("test", {0, 0, 8, 1, 0, 0, 0, 2}, std::string("\0\5", 2));
  const auto setup = [&](const std::string& labels) {
    return setup_of_text(
        "mesh: {axes: {a: 1}}\n"
        "data: {source: {idx: {train: [" +
        images + ", " + train + "], test: [" + images + ", " + labels +
        "]}}, batch_size: 2}\n"
        "model: {layers: [flatten, {dense: 3}]}\n"
        "loss: softmax_cross_entropy\n"
        "optimizer: {sgd: {}, learning_rate: 0.1}\n"
        "train: {duration: 1 step}\n");
  };
  CHECK(setup(train).evaluations.size() == 1);
  CHECK(refusal([&] { setup(test); }, ExitStatus::data) ==
        "the labels in '" + test +
            "' range from 0 to 5, but the model has 3 outputs: classes 0 to 2 | end the layers with dense: 6");
}

TEST_CASE("steps, epochs and examples are counted in steps", "[setup]") {
  const auto steps = [](std::int64_t count, spec::Unit unit) {
    return step::to_steps({count, unit, {}}, batches_of(16, 3), "train.duration");
  };
  CHECK(steps(7, spec::Unit::steps) == 7);
  CHECK(steps(7, spec::Unit::epochs) == 21);
  CHECK(steps(160, spec::Unit::examples) == 10);
  CHECK(steps(0, spec::Unit::examples) == 0);  // of a key that may be 0
}

TEST_CASE("durations that are no whole number of steps are refused with those that are", "[setup]") {
  CHECK(refused_duration(40, spec::Unit::examples) ==
        "train.duration: 40 examples are not whole batches of 16 | 32 or 48 examples would be");
  CHECK(refused_duration(5, spec::Unit::examples) ==
        "train.duration: 5 examples are not whole batches of 16 | 16 examples would be");
  CHECK(refused_duration(std::int64_t{1} << 60, spec::Unit::epochs) ==
        "train.duration comes to more than 1,000,000,000,000 steps | a step counter would not hold them");
}

TEST_CASE("a learning rate that scaling makes 0 or infinite is refused where the base is", "[setup]") {
  const auto refused = [](const std::string& rate, const std::string& base) {
    return refusal([&] {
      setup_of_text(small_images, {"optimizer.learning_rate=" + rate, "optimizer.base_batch_size=" + base});
    });
  };
  CHECK(refused("1.0e-40", "1000000000000") ==
        "base_batch_size 1000000000000 makes the learning rate 1.0e-40 × 16 / 1000000000000 = 1.6e-51, which is 0 in "
        "f32 | the batch size that the learning rate was chosen for");
  CHECK(refused("3.0e+38", "1").find("= 4.8e+39, which is infinite in f32") != std::string::npos);
  CHECK(refused("0.0", "1000000000000") == "accepted");
  try {
    setup_of_text(small_images, {"optimizer.learning_rate=3.0e+38", "optimizer.base_batch_size=1"});
  } catch (const Error& error) {
    CHECK(error.diagnostics().front().place.file == "--set");
  }
}

TEST_CASE("one-hot targets that are none are refused with their row", "[setup]") {
  const auto refused = [](const std::string& rows) {
    return refusal(
        [&] {
          setup_of_text("data: {source: {values: {inputs: [[1], [2]], targets: " + rows +
                        "}}, batch_size: 2}\nmodel: {layers: [dense: 2]}\nloss: softmax_cross_entropy\n"
                        "metrics: [accuracy]\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 1 epoch}\n");
        },
        ExitStatus::data);
  };
  CHECK(refused("[[0, 1], [1, 0]]") == "accepted");
  CHECK(refused("[[0.3, 0.7], [0.9995, 0]]") == "accepted");
  CHECK(refused("[[0, 1], [1, 1]]") ==
        "the target of example 1 in values.targets has a sum of 2.0, but softmax_cross_entropy takes class "
        "probabilities: at least 0, with a sum of 1 | store labels as integers or one-hot; for multi-label targets use "
        "sigmoid_cross_entropy");
  CHECK(refused("[[-0.5, 1.5], [0, 1]]").starts_with("the target of example 0 in values.targets has -0.5, but"));
}

TEST_CASE("a timetable is in steps, and there is no evaluation without a test split", "[setup]") {
  const setup::Setup images = setup_of_text(
      small_images, {"train.duration=2 epochs", "train.log_every=32 examples", "train.verify_replicas=5 steps"});
  CHECK(images.timetable.steps == 6);
  CHECK(images.timetable.steps_per_epoch == 3);
  CHECK(images.timetable.log_every == 2);
  CHECK(images.timetable.eval_every == 3);
  CHECK(images.timetable.verify_every == 5);
  REQUIRE(images.evaluations.size() == 1);
  const setup::Setup linear = setup_of_config("linear_regression.yaml", {"train.eval_every=1 epoch"});
  CHECK(linear.timetable.eval_every == 0);
  CHECK(linear.evaluations.empty());
}

TEST_CASE("roles name the inputs and outputs of the step that runs", "[setup]") {
  for (const char* const guard : {"halt", "skip"}) {
    const setup::Setup setup = setup_of_text(
        small_images, {std::string("train.on_nonfinite=") + guard,
                       "model.layers=[flatten, {name: epoch, dense: 4}, {name: d, dropout: 0.5}, {dense: 3}]",
                       "optimizer.sgd={momentum: 0.9}"});
    const step::StepRoles& roles = setup.roles;
    const std::vector<Variable> variables = variables_of(*setup.training);
    const auto input = [&](std::size_t index) { return std::string(variables.at(index).name); };
    const auto output = [&](std::size_t index) { return setup.training->outputs.at(index).name; };
    REQUIRE(roles.parameters.size() == setup.model.parameters.size());
    for (std::size_t i = 0; i < roles.parameters.size(); ++i) {
      CHECK(input(roles.parameters[i]) == setup.model.parameters[i].name);
    }
    CHECK(input(roles.step) == "step");
    CHECK(roles.finite.has_value() == (guard == std::string("halt")));
    CHECK(input(roles.finite ? *roles.finite : *roles.skipped) == (roles.finite ? "finite" : "skipped"));
    const std::vector<metrics::MeasurePart> parts = model::measure_parts(setup.model);
    REQUIRE(roles.epoch_sums.size() == parts.size());
    REQUIRE(roles.means.size() == parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      CHECK(input(roles.epoch_sums[i]) == "epoch/" + parts[i].name);
      CHECK(output(roles.means[i]) == parts[i].name);
    }
    CHECK(input(roles.epoch_examples) == "epoch/examples");
    const std::vector<equations::Number>& numbers = setup.members.front().numbers;
    REQUIRE(roles.numbers.size() == numbers.size());
    std::set<std::string> names;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      CHECK(input(roles.numbers[i]) == numbers[i].name);
      names.insert(numbers[i].name);
    }
    CHECK(names == std::set<std::string>{"dropout/d/rate", "dropout/d/scale", "learning_rate", "momentum"});
    REQUIRE(roles.dropout_keys.size() == 1);
    CHECK(input(roles.dropout_keys[0]) == "dropout/d");
    CHECK(output(roles.count) == "count");
    CHECK(output(roles.grad_norm) == "grad_norm");
    CHECK(output(roles.used_learning_rate) == "learning_rate");
  }
}

TEST_CASE("a plan beyond the memory there is is refused with what would fit", "[setup]") {
  const setup::Setup setup = setup_of_text(small_images);  // batches of 16 on 4 devices
  const auto refused = [&](const setup::MemoryEstimate& estimate) {
    return refusal([&] { setup::check_memory(estimate, setup.batch); }, ExitStatus::resource);
  };
  setup::MemoryEstimate estimate{{10 * mebi, 20 * mebi, 10 * mebi, 900 * mebi, 60 * mebi}, 1000 * mebi};
  CHECK(refused(estimate) == "accepted");
  estimate.available = 520 * mebi;  // 40 MiB do not depend on the batch, and 480 of the other 960 are there
  CHECK(refused(estimate) ==
        "the plan needs 1000.0 MiB of memory, and 520.0 MiB is available; the largest item is activations with 900.0 "
        "MiB | data.batch_size: 8 would fit, or more data.microbatches");
  estimate.available = 100 * mebi;
  CHECK(refused(estimate).ends_with("| more data.microbatches hold fewer activations at a time"));
  estimate = {{10 * mebi, 900 * mebi, 10 * mebi, 20 * mebi, 60 * mebi}, 500 * mebi};
  CHECK(refused(estimate).ends_with("the largest item is optimizer state with 900.0 MiB | a smaller model would fit"));
}

TEST_CASE("the rows of a report of memory have every purpose once", "[setup]") {
  setup::MemoryEstimate estimate;
  std::size_t bytes = 1;
  for (const auto purpose : purposes) estimate.*purpose = bytes *= 2;
  const auto sum_of_rows = [&] {
    std::set<std::string> keys;
    std::size_t sum = 0;
    for (const setup::MemoryRow& row : setup::rows_of(estimate)) {
      CHECK(keys.insert(row.key).second);
      sum += row.bytes;
    }
    return sum;
  };
  estimate.gpus = 1;
  CHECK(sum_of_rows() == estimate.total());
  estimate.gpus = 0;  // libraries of GPUs have no part in the memory of a process
  CHECK(sum_of_rows() == estimate.total() - estimate.workspace);
  estimate.data = 0;
  estimate.workspace = 0;
  CHECK(sum_of_rows() == estimate.total());
}

namespace {

MemoryNeeds needs(const setup::Setup& setup, bool private_copies = false) {
  return CpuBackend({.workers = 1}).plan(setup::run_source(setup, private_copies))->needs();
}

}  // namespace

TEST_CASE("an ensemble beyond the memory there is is refused with the number of members that fit", "[setup]") {
  const setup::Setup setup = setup_of_text(
      small_images,
      {"mesh.axes=[{trials: 7}, {batch: 4}]", "ensemble={axis: trials, vary: {seed: [1, 2, 3, 4, 5, 6, 7]}}"});
  const CpuBackend backend({.workers = 1});
  Source source = setup::run_source(setup);
  const auto estimated = [&](std::int64_t members) {
    Source some = source;
    some.members = members;
    return train::estimate_memory(setup, backend.plan(some)->needs(), members);
  };
  setup::MemoryEstimate estimate = estimated(7);
  const auto refused = [&](std::size_t available) {
    estimate.available = available;
    return refusal([&] { train::check_memory(estimate, setup, backend, source); }, ExitStatus::resource);
  };
  CHECK(refused(estimate.total()) == "accepted");
  CHECK(
      refused(estimated(3).total())
          .ends_with("| 3 members would fit: mesh.axes.trials: 3, with as many values in each list of ensemble.vary"));
  CHECK(refused(estimated(6).total() - 1).find("| 5 members would fit") != std::string::npos);
  CHECK(refused(estimated(1).total() - 1).find("member would fit") == std::string::npos);
}

TEST_CASE("of members that processes divide, as many are told as fit into each process", "[setup]") {
  const setup::Setup setup = setup_of_text(
      small_images,
      {"mesh.axes=[{trials: 8}, {batch: 4}]", "ensemble={axis: trials, vary: {seed: [1, 2, 3, 4, 5, 6, 7, 8]}}"});
  const CpuBackend backend({.workers = 1});
  const Source source = setup::run_source(setup);
  const Processes two = {{0, 2}};
  const auto estimated = [&](std::int64_t members) {
    Source some = source;
    some.members = members;
    return train::estimate_memory(setup, backend.plan(some, two)->needs(), members);
  };
  setup::MemoryEstimate estimate = estimated(8);
  const auto refused = [&](std::size_t available) {
    estimate.available = available;
    return refusal([&] { train::check_memory(estimate, setup, backend, source, two); }, ExitStatus::resource);
  };
  CHECK(refused(estimated(6).total()).find("| 6 members would fit") != std::string::npos);
  CHECK(refused(estimated(6).total() - 1).find("| 4 members would fit") != std::string::npos);
}

TEST_CASE("members that will be equal are told", "[setup]") {
  const auto warnings = [](std::vector<std::string> set) {
    set.emplace_back("mesh.axes=[{trials: 3}, {batch: 8}]");
    return setup_of_config("linear_regression.yaml", set).warnings;
  };
  const std::string values = "model={layers: [{dense: 1}], init: {values: {dense_0: {kernel: [[1],[2],[3],[4],[5]]}}}}";
  const std::string seeds = "ensemble={axis: trials, vary: {seed: [0, 1, 2]}}";
  CHECK(warnings({seeds}).empty());
  CHECK(warnings({values, seeds}) ==
        std::vector<std::string>{"members 0, 1, 2 will have equal parameters: nothing is drawn by the seeds in which "
                                 "they differ, neither initial values nor dropout nor the order of the data"});
  CHECK(warnings({values, "ensemble={axis: trials, vary: {seed: [0, 1, 2], optimizer.learning_rate: [0.1, 0.2, 0.3]}}"})
            .empty());
  CHECK(warnings({"ensemble={axis: trials, vary: {optimizer.learning_rate: [0.1, 0.2, 0.1]}}"}) ==
        std::vector<std::string>{"members 0, 2 will have equal parameters: their values in ensemble.vary are equal"});
}

TEST_CASE("whether members will be equal is not guessed for a resumed run", "[setup]") {
  // Its model.init.from is not read again: the parameters come from the checkpoint.
  spec::Overrides overrides;
  overrides.set = {"mesh.axes=[{trials: 2}, {batch: 8}]",
                   "ensemble={axis: trials, vary: {optimizer.learning_rate: [0.1, 0.1]}}"};
  const spec::Loaded loaded = spec::load("configs/linear_regression.yaml", overrides);
  CHECK(setup::make_setup(loaded).warnings.size() == 1);
  CHECK(setup::make_setup(loaded, 10).warnings.empty());
}

TEST_CASE("the memory of a run is at least that of its values", "[setup]") {
  const setup::Setup setup = setup_of_config("linear_regression.yaml");
  const setup::MemoryEstimate one = train::estimate_memory(setup, needs(setup));
  CHECK(one.parameters == 128 * sizeof(float));  // a bucket of [5,1] and [1]
  CHECK(one.batches >= 800 * (5 + 1 + 1) * sizeof(float));
  CHECK(one.total() >= one.parameters + one.optimizer + one.batches);
  CHECK(one.available > 0);
  const setup::MemoryEstimate copies = train::estimate_memory(setup, needs(setup, true));
  CHECK(copies.parameters == 8 * 128 * sizeof(float));
  // Evaluation has batches and values of its own.
  setup::Setup images = setup_of_text(small_images);
  const std::size_t with = train::estimate_memory(images, needs(images)).total();
  images.evaluations.clear();
  CHECK(with > train::estimate_memory(images, needs(images)).total());
}

TEST_CASE("microbatches bound the memory of evaluation as they do that of training", "[setup]") {
  const setup::Setup whole = setup_of_text(small_images);
  const setup::Setup cut = setup_of_text(small_images, {"data.microbatches=4"});
  CHECK(whole.evaluations.front().batch.rows() == 16);
  CHECK(cut.evaluations.front().batch.rows() == 4);
  CHECK(cut.evaluations.front().batch.examples_per_epoch == 21);
  const auto activations = [](const setup::Setup& setup) {
    return CpuBackend({.workers = 1}).plan({{{"evaluate", setup.evaluations.front().program}}})->needs().activations;
  };
  CHECK(activations(cut) < activations(whole));
}

TEST_CASE("a dense layer costs what multiplying by hand does, on every device", "[setup]") {
  const Program program = parse_program(R"(mesh rows=2 columns=3
params %w:f32[5,7]{}
batch %x:f32[4,5]{rows, columns}
%y = matmul %x, %w
%rows = psum[axes={rows}] %y
%both = psum[axes={rows, columns}] %y
return rows = %rows
return both = %both
)",
                                        "dense.pmt", all_ops());
  const setup::StepCost cost = setup::cost_of(program);
  const double products = 2 * 4 * 5 * 7, sums = 2 * 4 * 7;  // on one device: the matmul, and both psums
  CHECK(cost.flops == 6 * (products + sums));
  REQUIRE(cost.wire_bytes.size() == 2);
  // What is summed over both axes travels once, and counts for the outermost.
  CHECK(cost.wire_bytes[0] == std::pair<std::string, double>("rows", 2 * 4 * 7 * 4));
  CHECK(cost.wire_bytes[1] == std::pair<std::string, double>("columns", 0));
}

TEST_CASE("a group of one device sends nothing, and a larger one each operand once", "[setup]") {
  const auto sent = [](const std::string& mesh) {
    const Program program = parse_program("mesh " + mesh +
                                              "\nbatch %x:f32[10]{a, b}\n%s = psum[axes={a, b}] %x\n"
                                              "%t = pmax[axes={b}] %x\nreturn s = %s\nreturn t = %t\n",
                                          "sum.pmt", all_ops());
    const setup::StepCost cost = setup::cost_of(program);
    return std::pair(cost.wire_bytes[0].second, cost.wire_bytes[1].second);
  };
  CHECK(sent("a=1 b=1") == std::pair(0.0, 0.0));
  CHECK(sent("a=2 b=1") == std::pair(40.0, 0.0));
  CHECK(sent("a=1 b=8") == std::pair(0.0, 80.0));
  CHECK(sent("a=2 b=3") == std::pair(40.0, 40.0));
}

TEST_CASE("a step sends its gradients, sums and count once, however many microbatches it has", "[setup]") {
  const auto cost = [](const char* microbatches) {
    const setup::Setup setup = setup_of_text(small_images, {std::string("data.microbatches=") + microbatches});
    return std::pair(setup::cost_of(*setup.training), bytes(setup.training->type(setup.training->inputs[0].value)));
  };
  const auto [one, bucket] = cost("1");
  REQUIRE(one.wire_bytes.size() == 1);
  CHECK(one.wire_bytes[0].first == "devices");
  CHECK(one.wire_bytes[0].second == static_cast<double>(bucket + 3 * 4));  // and loss, accuracy, count
  const auto [four, same] = cost("4");
  CHECK(four.wire_bytes[0].second == one.wire_bytes[0].second);
  CHECK(four.flops >= one.flops);
  CHECK(four.flops < 1.5 * one.flops);
}

TEST_CASE("what trains badly in silence is a warning", "[setup]") {
  const auto warned = [](const std::string& text, const std::string& words) {
    const setup::Setup setup = setup_of_text(text);
    CAPTURE(setup.warnings);
    return std::any_of(setup.warnings.begin(), setup.warnings.end(),
                       [&](const std::string& warning) { return test::contains(warning, words); });
  };
  const auto config = [](const std::string& data, const std::string& layers, const std::string& duration,
                         const std::string& devices = "2", const std::string& loss = "softmax_cross_entropy") {
    return "mesh: {axes: {devices: " + devices + "}}\ndata: {source: {synthetic_images: " + data +
           "}\nmodel: {layers: [" + layers + "]}\nloss: " + loss +
           "\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: " + duration + "}\n";
  };
  const std::string small = "{height: 6, width: 6, channels: 3, train: 64, test: 0}}, batch_size: 16",
                    conv = "conv: {features: 2, kernel_size: [3, 3]}, flatten, dense: 10";
  const std::string logits = "applies one itself", first = "channels come first", bare = "a number alone counts steps",
                    large = "more than half of", single = "fewer than 2 logical devices";
  for (const std::string& words : {logits, first, bare, large, single}) {
    CHECK_FALSE(warned(config(small, conv, "1 epoch"), words));
  }
  CHECK(warned(config(small, "flatten, dense: 10, softmax", "1 epoch"), logits));
  CHECK_FALSE(warned(config(small, "flatten, softmax, dense: 10", "1 epoch"), logits));
  CHECK_FALSE(warned(config(small, "flatten, dense: 10, sigmoid", "1 epoch"), logits));  // another function
  CHECK(warned(config(small, "flatten, dense: 10, relu", "1 epoch"), "logits are all cut to 0"));
  const std::string nchw = "{height: 3, width: 8, channels: 8, train: 64, test: 0}}, batch_size: 16";
  CHECK(warned(config(nchw, conv, "1 epoch"), first));
  CHECK_FALSE(warned(config(nchw, "flatten, dense: 10", "1 epoch"), first));
  CHECK(
      warned(config(small, conv, "3"), "is 3 steps, less than an epoch of 4: a number alone counts steps; '3 epochs'"));
  CHECK_FALSE(warned(config(small, conv, "3 steps"), bare));
  CHECK_FALSE(warned(config(small, conv, "4"), bare));
  const std::string half = "{height: 6, width: 6, channels: 3, train: 64, test: 0}}, batch_size: ";
  CHECK(warned(config(half + "34", conv, "1 epoch"), large));
  CHECK_FALSE(warned(config(half + "32", conv, "1 epoch"), large));
  CHECK_FALSE(warned(config(half + "all", conv, "1 epoch"), large));
  CHECK_FALSE(warned(config(small, conv, "1 epoch", "1"), single));
}
