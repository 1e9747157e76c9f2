// Schedules of the learning rate: against Optax's rates.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/setup/make_setup.h"
#include "core/setup/values.h"
#include "core/spec/keys.h"
#include "core/step/schedule.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/model/fixture.h"
#include "tests/session_run.h"
#include "tests/train/steps.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// 12 steps to an epoch of 48 examples in batches of 4, 60 steps in all.
const std::string sixty_steps =
    R"(data: {source: {synthetic_linear: {features: 2, examples_per_device: 48}}, batch_size: 4}
model: {layers: [{dense: 1}]}
loss: mean_squared_error
train: {duration: 5 epochs, log_every: 1 step}
optimizer:
  sgd: {}
  learning_rate: 0.1
)";

setup::Setup with_rate(const std::string& rate, std::optional<std::int64_t> schedule_steps = {}) {
  spec::Overrides overrides;
  overrides.set = {"optimizer.learning_rate=" + rate, "train.on_nonfinite=skip"};
  return setup::make_setup(spec::load_text(sixty_steps, "c.yaml", "/base", overrides), schedule_steps);
}

}  // namespace

TEST_CASE("every schedule gives Optax's rate at each update, and beyond the end of the run", "[schedules]") {
  const auto cases = nlohmann::json::parse(read_text("tests/parity/schedules.json"));
  std::set<std::string> kinds;
  for (const auto& one : cases) {
    const auto rate = one["learning_rate"].get<std::string>();
    INFO(rate);
    const setup::Setup setup = with_rate(rate);
    REQUIRE(setup.optimizer().schedule);
    kinds.insert(setup.optimizer().schedule->name);
    const auto rates = one["rates"].get<std::vector<double>>();
    REQUIRE(rates.size() > 60);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      INFO(i);
      CHECK(step::learning_rate_at(setup.optimizer(), static_cast<std::int64_t>(i) + 1) ==
            Approx(rates[i]).epsilon(1e-5).margin(1e-12));
    }
  }
  std::set<std::string> all;
  for (const spec::Key* kind : spec::alternatives(*spec::find_key("optimizer.learning_rate"))) {
    all.emplace(kind->name());
  }
  CHECK(kinds == all);
}

TEST_CASE("the step that runs uses the schedule's rate of the updates done, on every backend", "[schedules]") {
  const std::string schedule = "{warmup_cosine_decay: {init_value: 0.01, peak_value: 0.1, warmup: 4, decay: 10}}";
  for (const char* backend : {"cpu", "reference"}) {
    setup::Setup setup = with_rate(schedule);
    setup.loaded.spec.mesh.backend = backend == std::string("cpu") ? spec::Backend::cpu : spec::Backend::reference;
    train::SessionOptions options;
    options.max_steps = 13;
    const Trained trained = train_setup(setup, options);
    const auto logged = trained.of<run::Logged>();
    REQUIRE(logged.size() == 13);
    for (const run::Logged& line : logged) {
      INFO(backend << " step " << line.step);
      CHECK(line.learning_rate ==
            Approx(step::learning_rate_at(setup.optimizer(), line.step)).epsilon(1e-6).margin(1e-12));
    }
    CHECK(logged.front().learning_rate == Approx(0.01));
    CHECK(logged[4].learning_rate == Approx(0.1));
    CHECK(logged.back().learning_rate == 0.0);
  }
}

TEST_CASE("a step that is skipped does not advance the schedule", "[schedules]") {
  const setup::Setup setup = with_rate("{linear: {init_value: 0.1, end_value: 0.0, transition: 10}}");
  const std::unique_ptr<Module> module = load_step(setup);
  const auto rate = [&] {
    take_steps(*module);
    return setup::to_doubles(*module, module->output(setup::train_entry, setup.roles.used_learning_rate)).front();
  };
  const auto set_bias = [&](double value) {
    const std::vector<std::byte> bytes = to_bytes({value}, DType::f32);
    module->wait(module->write(module->input("dense_0.bias"), every_device, bytes));
  };
  CHECK(rate() == Approx(0.1));
  CHECK(rate() == Approx(0.09));
  set_bias(HUGE_VAL);
  CHECK(rate() == Approx(0.08));
  CHECK(rate() == Approx(0.08));
  set_bias(0.0);
  CHECK(rate() == Approx(0.08));
  CHECK(rate() == Approx(0.07));
}

TEST_CASE("durations of schedules are steps, epochs or examples; base_batch_size scales the rates", "[schedules]") {
  const auto peak = [](const std::string& warmup) {
    const setup::Setup setup =
        with_rate("{warmup_cosine_decay: {peak_value: 0.5, warmup: " + warmup + ", decay: 3 epochs}}");
    return setup.optimizer().schedule->segments.at(1).start;
  };
  CHECK(peak("7") == 7);
  CHECK(peak("1 epoch") == 12);
  CHECK(peak("40 examples") == 10);
  spec::Overrides overrides;
  overrides.set = {"optimizer.learning_rate={cosine_decay: {init_value: 0.5}}", "optimizer.base_batch_size=2"};
  const setup::Setup scaled = setup::make_setup(spec::load_text(sixty_steps, "c.yaml", "/base", overrides));
  CHECK(step::learning_rate_at(scaled.optimizer(), 1) == 1.0);
  CHECK(scaled.optimizer().learning_rate == 1.0);  // the largest
}

TEST_CASE("a schedule keeps the length that it began with", "[schedules]") {
  const std::string cosine = "{cosine_decay: {init_value: 0.5}}";
  CHECK(step::learning_rate_at(with_rate(cosine).optimizer(), 31) == Approx(0.25));
  const setup::Setup resumed = with_rate(cosine, 30);
  CHECK(resumed.timetable.schedule_steps == 30);
  CHECK(step::learning_rate_at(resumed.optimizer(), 16) == Approx(0.25));
  CHECK(step::learning_rate_at(resumed.optimizer(), 40) == 0.0);
  // What follows a boundary of join has what is left.
  const setup::Setup joined = with_rate("{join: {schedules: [0.1, {linear: {init_value: 1.0}}], boundaries: [20]}}");
  CHECK(step::learning_rate_at(joined.optimizer(), 41) == Approx(0.5));
}

TEST_CASE("a schedule ends where its rate no longer changes", "[schedules]") {
  const auto end = [](const std::string& rate) { return schedules::end_of(*with_rate(rate).optimizer().schedule); };
  CHECK(end("{cosine_decay: {init_value: 0.5}}") == 60);
  CHECK(end("{linear: {init_value: 0.5, transition: 7 epochs}}") == 84);
  CHECK(end("{warmup_cosine_decay: {peak_value: 0.5, warmup: 4, decay: 10}}") == 10);
  CHECK(end("{cosine_onecycle: {peak_value: 0.5, transition: 20}}") == 20);
  CHECK(end("{piecewise_constant: {init_value: 0.5, boundaries_and_scales: [[9, 0.1], [2 epochs, 0.1]]}}") == 24);
  CHECK(end("{join: {schedules: [0.1, {polynomial: {init_value: 0.5, transition: 30}}], boundaries: [50]}}") == 80);
  CHECK(end("{join: {schedules: [{linear: {init_value: 0.5}}, 0.1], boundaries: [5]}}") == 5);
  CHECK_FALSE(end("{exponential_decay: {init_value: 0.5, transition: 5, decay_rate: 0.9}}"));
}

TEST_CASE("the largest rate of a schedule bounds the guard's estimate", "[schedules]") {
  const auto looks = [](const std::string& rate) {
    spec::Overrides overrides;
    overrides.set = {"optimizer={adam: {}, learning_rate: " + rate + "}"};
    return step::may_overflow(
        setup::make_setup(spec::load_text(sixty_steps, "c.yaml", "/base", overrides)).optimizer());
  };
  CHECK_FALSE(looks("{cosine_decay: {init_value: 0.5}}"));
  CHECK(looks("{linear: {init_value: 0.5, end_value: 1.0e+36}}"));
  CHECK(looks("{cosine_decay: {init_value: 1.0e+20, alpha: 1.0e+15}}"));
  CHECK(looks("{piecewise_constant: {init_value: 0.5, boundaries_and_scales: [[9, 1.0e+36]]}}"));
  CHECK(looks("{join: {schedules: [0.1, 1.0e+36], boundaries: [5]}}"));
  CHECK_FALSE(looks("{exponential_decay: {init_value: 0.5, transition: 5, decay_rate: 0.5}}"));
  CHECK(looks("{exponential_decay: {init_value: 0.5, transition: 5, decay_rate: 1.1}}"));  // without bound
}
// Schedules of the learning rate: against Optax's rates.
#include "core/step/schedule.h"
