// `validate --plans`: divisions of a model over devices, compared.
#include "core/report/plans.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/input/open.h"
#include "core/setup/make_setup.h"
#include "core/setup/plan.h"
#include "core/train/resources.h"
#include "tests/catch.h"
#include "tests/slice.h"

using namespace pmaptrain;
using report::DeviceFigures;
using report::Division;
using report::Plans;

namespace {

const std::string llama = "tests/report/plans/llama_70b.yaml";

// Layers as those of the large one, narrow and fewer, in f32.
const std::vector<std::string> narrow{
    "precision=float32", "data.batch_size=64", "data.source.text.length=64",
    "model.layers=[{name: tokens, embedding: {num_embeddings: 1024, features: 256}}, {repeat: {times: 12, layers: "
    "[{residual: {layers: [rms_norm, {attention: {heads: 8, kv_heads: 4, causal: true, use_bias: false}}]}}, "
    "{residual: {layers: [rms_norm, {swiglu: {hidden: 1024}}]}}]}}, rms_norm, {dense: {features: 1024, use_bias: "
    "false}}]"};

spec::Loaded large_config(std::vector<std::string> set) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  return spec::load(llama, overrides);
}

std::vector<std::string> narrow_with(std::vector<std::string> set) {
  set.insert(set.begin(), narrow.begin(), narrow.end());
  return set;
}

Plans plans_of(std::vector<std::string> set, std::int64_t devices, std::int64_t per_host = 8) {
  return report::make_plans(large_config(std::move(set)), {devices, per_host});
}

const report::ComparedDivision& of(const Plans& plans, const Division& division) {
  const auto found = std::find_if(plans.divisions.begin(), plans.divisions.end(),
                                  [&](const auto& each) { return each.division == division; });
  REQUIRE(found != plans.divisions.end());
  return *found;
}

double sum(const std::array<double, 8>& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}

}  // namespace

TEST_CASE("what is estimated of a division is near what is planned of it", "[report]") {
  spec::Spec spec = large_config(narrow).spec;
  const data::Source source = input::open(spec.data, spec.seed, 1);
  report::DivisionPlanner planner(spec, source);
  std::vector<Division> divisions;
  test::Slice slice(test::slices_with_sanitizer(4));
  for (const std::int64_t model : {1, 2, 4}) {
    for (const std::int64_t shards : {1, 2, 4, 16}) {
      if (shards * model > 16) continue;
      for (int stage = shards > 1 ? 1 : 0; stage <= (shards > 1 ? 3 : 0); ++stage) {
        if (slice.takes()) divisions.push_back({{16 / model / shards, shards, model}, stage});
      }
    }
  }
  const std::vector<DeviceFigures> estimated = planner.estimated(divisions);
  const int programs = planner.programs();
  const std::vector<DeviceFigures> planned = planner.planned(divisions);
  // Two for each kind of division, which divisions of other sizes share; those of a slice may share none.
  CHECK(programs <= 2 * std::ssize(divisions));
  CHECK(planner.programs() - programs == std::ssize(divisions));
  for (std::size_t i = 0; i < divisions.size(); ++i) {
    const Division& division = divisions[i];
    const DeviceFigures &near = estimated[i], &exact = planned[i];
    INFO(division.sizes[0] << " x " << division.sizes[1] << " x " << division.sizes[2] << ", stage " << division.stage);
    CHECK(near.flops == Approx(exact.flops).epsilon(0.01));
    CHECK(near.duplicated_flops == Approx(exact.duplicated_flops).epsilon(0.01));
    CHECK(near.parameters == Approx(exact.parameters).epsilon(0.01));
    CHECK(near.state == Approx(exact.state).epsilon(0.01));
    CHECK(near.gathered == Approx(exact.gathered).epsilon(0.01));
    CHECK(sum(near.sent) == Approx(sum(exact.sent)).epsilon(0.02));
    CHECK(near.memory() == Approx(exact.memory()).epsilon(0.25));
  }
}

TEST_CASE("planned figures of a division are those of a run that is divided so", "[report]") {
  const Plans plans = plans_of(narrow_with({"train.eval_every=never"}), 8);
  const report::ComparedDivision& best = plans.divisions.front();
  REQUIRE(best.is_planned);
  // The printed keys, in the place of those of the config.
  const std::string yaml = report::plan_yaml({{2, 2, 2}, 3});
  CHECK(yaml ==
        "mesh:\n  axes: [{data: 2}, {shards: 2}, {model: 2}]\nparallelism:\n  fsdp: {axis: shards, stage: 3}\n"
        "  tensor: {axis: model}\n");
  CHECK(report::plan_yaml({{8, 1, 1}, 0}) == "mesh:\n  axes: [{data: 8}]\n");
  CHECK(report::plan_yaml({{1, 1, 1}, 0}) == "mesh:\n  axes: [{data: 1}]\n");

  spec::Spec spec = large_config(narrow).spec;
  const data::Source source = input::open(spec.data, spec.seed, 1);
  const std::vector<Division> division{{{2, 2, 2}, 3}};
  const DeviceFigures planned = report::DivisionPlanner(spec, source).planned(division).front();
  const setup::Setup setup = setup::make_setup(large_config(narrow_with(
      {"mesh.axes=[{data: 2}, {shards: 2}, {model: 2}]", "mesh.workers=8", "train.eval_every=never",
       "parallelism={fsdp: {axis: shards, stage: 3}, tensor: {axis: model}}", "optimizer.learning_rate=0.001"})));
  const setup::PlannedSource run = setup::plan_run(setup);
  const setup::MemoryEstimate memory = train::estimate_memory(setup, run.planned->needs());
  CHECK(planned.parameters == static_cast<double>(memory.parameters));
  CHECK(planned.state == static_cast<double>(memory.optimizer));
  CHECK(planned.memory() == Approx(static_cast<double>(memory.total())).epsilon(0.05));
  double sent = 0;
  for (const auto& [axes, bytes] : run.planned->sent_along(setup::train_entry)) sent += bytes;
  CHECK(sum(planned.sent) == Approx(sent).epsilon(0.001));
  CHECK(static_cast<std::size_t>(sent) == run.planned->report(setup::train_entry).sent_bytes);
}

TEST_CASE("plans count what is sent within a host and between hosts", "[report]") {
  const Plans plans = plans_of(narrow, 8, 2);
  // Neighbours along the innermost axis are on one host.
  const report::ComparedDivision& by_model = of(plans, {{4, 1, 2}, 0});
  CHECK(by_model.sent[1] == 0);
  CHECK(by_model.within_host == Approx(by_model.sent[2]).epsilon(0.01));
  CHECK(by_model.between_hosts == Approx(by_model.sent[0]).epsilon(0.01));
  // In a ring over four hosts with two devices each, every other step leads to another host.
  const report::ComparedDivision& by_data = of(plans, {{8, 1, 1}, 0});
  CHECK(by_data.within_host == Approx(by_data.sent[0] / 2));
  CHECK(by_data.between_hosts == Approx(by_data.sent[0] / 2));
  const Plans on_one_host = plans_of(narrow, 8, 8);
  CHECK(of(on_one_host, {{8, 1, 1}, 0}).between_hosts == 0);
}

TEST_CASE("plans leave out what does not divide, and say why", "[report]") {
  const Plans plans = plans_of(narrow_with({"data.batch_size=16"}), 32);
  // Of 16 examples, 32 devices would have half an example each; 8 heads do not divide over 16.
  REQUIRE(plans.left_out.size() == 2);
  CHECK(plans.left_out[0].because == "16 examples do not divide over 32 devices: 16 = 32 × 0 + 16");
  CHECK(plans.left_out[1].because ==
        "repeat_0.0.residual_0.attention_0 has 8 heads, which the 16 devices along 'model' do not divide");
  const std::string text = report::plans_text(plans);
  CHECK(text.find("left out: 16 because 16 examples do not divide over 32 devices: 16 = 32 × 0 + 16; 5 because "
                  "repeat_0.0") != std::string::npos);
  for (const auto& each : plans.divisions) {
    CHECK(each.division.devices() == 32);
    CHECK(each.division.batch_devices() <= 16);
  }
}

TEST_CASE("a division that does not fit comes after those that do, and without a limit all may", "[report]") {
  const Plans large = plans_of(narrow_with({"mesh.gpu_memory=null"}), 4);
  CHECK_FALSE(large.memory);
  CHECK(large.fitting() == std::ssize(large.divisions));
  CHECK(report::plans_text(large).find("4 devices of any memory, 8 on a host; 64 examples a step\n") !=
        std::string::npos);
  CHECK(report::plans_text(large).find("; with mesh.gpu_memory, which fit\n") != std::string::npos);
  double least = large.divisions.front().figures.memory(), most = least;
  for (const auto& each : large.divisions) {
    least = std::min(least, each.figures.memory());
    most = std::max(most, each.figures.memory());
  }
  const auto mib = static_cast<std::int64_t>((least + most) / 2 / 1048576);
  const Plans plans = plans_of(narrow_with({"mesh.gpu_memory=" + std::to_string(mib) + "MiB"}), 4);
  CHECK(plans.fitting() > 0);
  CHECK(plans.fitting() < std::ssize(plans.divisions));
  CHECK(plans.fits(plans.divisions.front()));
  CHECK_FALSE(plans.fits(plans.divisions.back()));
  const Plans none = plans_of(narrow_with({"mesh.gpu_memory=1MiB"}), 4);
  CHECK(none.fitting() == 0);
  const std::string text = report::plans_text(none);
  CHECK(text.find("none fits, and 1 needs least: more devices, more data.microbatches, remat or a smaller "
                  "data.batch_size take less\n") != std::string::npos);
  CHECK(text.find("as a config") == std::string::npos);
  CHECK(text.find("planned, too large\n") != std::string::npos);
}

#if !defined(__SANITIZE_ADDRESS__)  // with it minutes, for what the narrow model covers
TEST_CASE("the shape of a model of 70 billion parameters is planned from few programs", "[report]") {
  const Plans plans = plans_of({}, 64);
  CHECK(plans.divisions.size() == 70);
  std::int64_t planned = 0;
  for (const auto& each : plans.divisions) planned += each.is_planned ? 1 : 0;
  CHECK(planned == 3);  // 80 layers each
  // Two for each number of devices along `model`, for plain data parallelism and each stage, with a `data` axis or not.
  CHECK(plans.programs <= 3 + 2 * 7 * 7);
  // 68,977,434,624 parameters in f32.
  const report::ComparedDivision& whole = of(plans, {{64, 1, 1}, 0});
  CHECK(whole.figures.parameters == Approx(4.0 * 68977434624).epsilon(0.001));
  CHECK(whole.figures.state == Approx(8.0 * 68977434624).epsilon(0.001));
  const report::ComparedDivision& shard = of(plans, {{1, 64, 1}, 3});
  CHECK(shard.figures.parameters == Approx(whole.figures.parameters / 64).epsilon(0.001));
  // Forward and backward, and forward again (remat), six and two operations by parameter and token, without the
  // embedding.
  const double tokens = 8 * 4096, products = 2.0 * (68977434624 - 32000.0 * 8192);
  CHECK(whole.figures.flops > 3 * products * tokens);
  CHECK(whole.figures.flops < 5 * products * tokens);
  CHECK(of(plans, {{8, 1, 8}, 0}).figures.duplicated_flops > 0);
  CHECK(whole.figures.duplicated_flops == 0);
}
#endif

TEST_CASE("plans are those of one model, without an ensemble", "[report]") {
  CHECK_THROWS_WITH(
      plans_of(
          narrow_with({"mesh.axes=[{members: 2}, {devices: 4}]", "ensemble={axis: members, vary: {seed: [0, 1]}}"}), 8),
      Catch::Contains("--plans divides the devices of one model, and this config has an ensemble"));
}
