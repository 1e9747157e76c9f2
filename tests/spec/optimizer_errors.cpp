// What a config may say of the optimizer and what not, beyond the texts in errors/.
#include <string>

#include "core/schedules/cosine_decay.h"
#include "core/schedules/join.h"
#include "core/schedules/piecewise_constant.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/spec/errors_of.h"

using namespace pmaptrain;

namespace {

spec::Loaded loaded(const std::string& optimizer, std::vector<std::string> set = {}) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  return spec::load_text(base_with("optimizer: " + optimizer), "c.yaml", "/base", overrides);
}

}  // namespace

TEST_CASE("a misspelt schedule is refused with the nearest spelling", "[spec]") {
  CHECK(errors_of(base_with("optimizer: {adam: {}, learning_rate: [0.1]}")).find("not a list") != std::string::npos);
}

TEST_CASE("a rate over a schedule replaces it and says so, and the other way round", "[spec]") {
  using Notes = std::vector<std::string>;
  const std::string cosine = "{sgd: {}, learning_rate: {cosine_decay: {init_value: 0.1}}}";
  const spec::Loaded constant = loaded(cosine, {"optimizer.learning_rate=0.5"});
  CHECK(constant.spec.optimizer.learning_rate.value == 0.5);
  CHECK_FALSE(constant.spec.optimizer.learning_rate.schedule);
  CHECK(constant.notes == Notes{"optimizer.learning_rate: a number replaces the schedule cosine_decay; "
                                "optimizer.learning_rate.cosine_decay.init_value keeps the schedule"});
  const spec::Loaded changed = loaded(cosine, {"optimizer.learning_rate.cosine_decay.init_value=0.5"});
  CHECK(changed.notes.empty());
  CHECK(changed.spec.optimizer.learning_rate.schedule.as<schedules::CosineDecay>()->init_value == 0.5);
  const spec::Loaded other = loaded(cosine, {"optimizer.learning_rate.linear.init_value=0.5"});
  CHECK(other.notes == Notes{"optimizer.learning_rate.linear replaces optimizer.learning_rate.cosine_decay"});
  const spec::Loaded scheduled =
      loaded("{sgd: {}, learning_rate: 0.1}", {"optimizer.learning_rate.cosine_decay.init_value=0.5"});
  CHECK(scheduled.notes == Notes{"optimizer.learning_rate: a schedule replaces the number 0.1"});
  CHECK(scheduled.spec.optimizer.learning_rate.schedule->name() == "cosine_decay");
}

TEST_CASE("the resolved config spells out the length of a schedule that ends with the run", "[spec]") {
  const auto check = [](const std::string& schedule, const std::string& resolved) {
    const spec::Loaded first = loaded("{sgd: {}, learning_rate: {" + schedule + "}}", {"train.duration=2 epochs"});
    INFO(first.resolved);
    CHECK(first.resolved.find(resolved) != std::string::npos);
    CHECK(spec::load_text(first.resolved, "c.yaml", "/base", {}).resolved == first.resolved);
  };
  check("linear: {init_value: 0.1}", "linear: {init_value: 0.1, end_value: 0.0, transition: 2 epochs}");
  check("polynomial: {init_value: 0.1, power: 2.0}",
        "polynomial: {init_value: 0.1, end_value: 0.0, power: 2.0, transition: 2 epochs}");
  check("cosine_decay: {init_value: 0.1}", "cosine_decay: {init_value: 0.1, decay: 2 epochs, alpha: 0.0}");
  check("warmup_cosine_decay: {peak_value: 0.1, warmup: 1}",
        "warmup_cosine_decay: {init_value: 0.0, peak_value: 0.1, warmup: 1 step, decay: 2 epochs, end_value: 0.0}");
  check("cosine_onecycle: {peak_value: 0.1}",
        "cosine_onecycle: {peak_value: 0.1, transition: 2 epochs, pct_start: 0.3}");
  check("cosine_decay: {init_value: 0.1, decay: 7 steps}",
        "cosine_decay: {init_value: 0.1, decay: 7 steps, alpha: 0.0}");
  // What is left of the run after a boundary has no text.
  check("join: {schedules: [0.1, {linear: {init_value: 0.1}}], boundaries: [9]}",
        "join: {schedules: [0.1, {linear: {init_value: 0.1, end_value: 0.0}}], boundaries: [9 steps]}");
}

TEST_CASE("a resolved optimizer reads back as the same", "[spec]") {
  const std::string all =
      "{lion: {}, weight_decay_exclude: \"*.bias\", clip: 2, clip_by_global_norm: 1, reduce_on_plateau: {}, "
      "learning_rate: "
      "{join: {schedules: [0.1, {piecewise_constant: {init_value: 1, boundaries_and_scales: [[1 epoch, 0.5]]}}], "
      "boundaries: [10]}}, groups: [{parameters: a, freeze: true}, {parameters: [b, \"c*\"], weight_decay: 0}]}";
  const spec::Loaded first = loaded(all);
  const spec::Loaded second = spec::load_text(first.resolved, "c.yaml", "/base", {});
  CHECK(second.resolved == first.resolved);
  const optimizers::Options& optimizer = second.spec.optimizer;
  CHECK(optimizer.clip == 2.0);
  CHECK(optimizer.clip_by_global_norm == 1.0);
  CHECK(optimizer.weight_decay_exclude.at(0).text == "*.bias");
  CHECK(optimizer.reduce_on_plateau->patience == 10);
  REQUIRE(optimizer.groups.size() == 2);
  CHECK(optimizer.groups[0].freeze);
  CHECK(optimizer.groups[1].parameters.at(1).text == "c*");
  CHECK(optimizer.groups[1].weight_decay == 0.0);
  const auto& join = *optimizer.learning_rate.schedule.as<schedules::Join>();
  REQUIRE(join.schedules.size() == 2);
  CHECK(join.schedules[0].value == 0.1);
  CHECK(join.boundaries.at(0).count == 10);
  const auto& pieces = *join.schedules[1].schedule.as<schedules::PiecewiseConstant>();
  CHECK(pieces.boundaries_and_scales.at(0).boundary.unit == spec::Unit::epochs);
  CHECK(pieces.boundaries_and_scales.at(0).scale == 0.5);
}
