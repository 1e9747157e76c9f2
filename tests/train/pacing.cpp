// How the training loop submits steps.
#include "core/train/pacing.h"

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/setup/start.h"
#include "tests/catch.h"
#include "tests/session_run.h"

namespace pmaptrain::testing {
namespace {

// Runs nothing, likes groups of four steps, and lists what it is asked for.
class Listing final : public Module {
 public:
  explicit Listing(Source source) : Module(std::move(source)) {}

  std::span<std::byte> batch(std::size_t entry, int slot, std::string_view input, std::int64_t) override {
    for (const Input& each : program(entry).inputs) {
      if (each.group != Group::batch || each.name != input) continue;
      const Type& type = program(entry).type(each.value);
      std::vector<std::byte>& memory = batches_[{slot, each.name}];
      memory.resize(static_cast<std::size_t>(program(entry).mesh.group_size(type.varying)) * bytes(type));
      return memory;
    }
    return {};
  }
  Ticket submit(std::size_t, int slot, std::int64_t steps, std::span<const std::int64_t>) override {
    return add(std::to_string(steps) + " on slot " + std::to_string(slot));
  }
  Ticket submit_each(std::size_t, int slot, int count, std::span<const std::int64_t>) override {
    return add("slots " + std::to_string(slot) + " to " + std::to_string(slot + count - 1));
  }
  Ticket submit_traced(std::size_t, int slot, std::span<const std::int64_t>, StepTrace&) override {
    return add("traced on slot " + std::to_string(slot));
  }
  int steps_per_group(std::size_t) const override { return 4; }
  int groups_ahead() const override { return 4; }
  Ticket write_slices(Handle, DeviceOfMember, std::span<const std::byte>, std::optional<std::size_t>) override {
    return {};
  }
  Ticket read_slice(Handle, DeviceOfMember, std::span<std::byte>, std::size_t) override { return {}; }
  bool done(Ticket) override { return true; }
  void wait(Ticket ticket) override { waited = ticket.number; }
  int workers() const override { return 1; }
  std::int64_t barriers_per_step(std::size_t) const override { return 0; }
  std::size_t allocated() const override { return 0; }
  std::vector<InstructionReport> instructions(std::size_t) const override { return {}; }
  std::vector<StageReport> stages(std::size_t) const override { return {}; }
  Profile profile(std::size_t, int, std::int64_t) override { return {}; }

  std::vector<std::string> submitted;
  std::int64_t waited = 0;  // the last ticket that was waited for

 private:
  Ticket add(std::string what) {
    submitted.push_back(std::move(what));
    return {static_cast<std::int64_t>(submitted.size())};
  }
  std::map<std::pair<int, std::string>, std::vector<std::byte>> batches_;
};

// Another dataset, of which an example cannot be read.
class Failing final : public data::Dataset {
 public:
  Failing(std::shared_ptr<const data::Dataset> whole, std::int64_t failing)
      : whole_(std::move(whole)), failing_(failing) {}
  std::int64_t size() const override { return whole_->size(); }
  data::Field input() const override { return whole_->input(); }
  data::Field target() const override { return whole_->target(); }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    if (index == failing_) throw std::runtime_error("example cannot be read");
    whole_->read(index, input, target);
  }

 private:
  const std::shared_ptr<const data::Dataset> whole_;
  const std::int64_t failing_;
};

struct Paced {
  explicit Paced(std::vector<std::string> set, std::int64_t first = 0, std::optional<train::TraceOptions> trace = {},
                 std::int64_t failing = -1)
      : setup(setup_of_text(small_images, std::move(set))),
        module(setup::run_source(setup)),
        tracer(trace, setup.spec(), module, first, 1000),
        loader(std::make_shared<Failing>(setup.loader_dataset(), failing), setup::training_streams(setup), setup.batch,
               setup::batch_slots(module, setup::train_entry, *setup.loader_dataset(), setup.batch),
               {first, 1000, train::batches_in_use(module), nullptr}),
        pacing(module, loader, tracer, !setup.model.drawing_layers().empty(), setup::training_entries(setup)) {
    pacing.take_first_batch();
  }

  setup::Setup setup;
  Listing module;
  train::Tracer tracer;
  input::Loader loader;
  train::Pacing pacing;
};

using Texts = std::vector<std::string>;
const Texts one_batch = {"data.batch_size=all", "data.shuffle=false"};

}  // namespace

TEST_CASE("steps go together up to the next one at which something happens", "[train]") {
  CHECK(train::steps_until(0, 100, {}) == 100);
  CHECK(train::steps_until(7, 100, {0, 50, 10}) == 3);
  CHECK(train::steps_until(10, 100, {0, 50, 10}) == 10);
  CHECK(train::steps_until(97, 100, {50, 10}) == 3);
  CHECK(train::steps_until(98, 99, {50, 10}) == 1);
}

TEST_CASE("epochs of one step end where something else happens, all others do in any case", "[train]") {
  const auto next = [](Texts set) {
    set.emplace_back("train.duration=500 steps");
    return train::steps_to_next_event(setup_of_text(small_images, set).timetable, 100, 500);
  };
  const auto with = [](Texts set) {
    set.insert(set.end(), one_batch.begin(), one_batch.end());
    return set;
  };
  CHECK(next({"train.log_every=50 steps"}) == 2);  // an epoch has three steps
  CHECK(next(with({"train.log_every=50 steps", "train.eval_every=never"})) == 50);
  CHECK(next(with({"train.log_every=50 steps", "train.eval_every=40 steps"})) == 20);
  CHECK(next(with({"train.log_every=50 steps", "train.eval_every=never", "train.checkpoint.every=30 steps"})) == 20);
  CHECK(next(with({"train.log_every=50 steps", "train.eval_every=never", "train.loss_spike={factor: 3}"})) == 1);
  CHECK(next(with({"train.log_every=never", "train.eval_every=never"})) == 400);
}

TEST_CASE("a group of steps has batches in slots one after another, which no step reads any more", "[train]") {
  Paced paced({});
  CHECK(train::batches_in_use(paced.module) == 8);
  CHECK(paced.module.slots(setup::train_entry) == 12);
  std::int64_t step = 0;
  const auto submit = [&](std::int64_t most) {
    const std::int64_t taken = paced.pacing.submit(step, most, {});
    step += taken;
    return taken;
  };
  CHECK(submit(1) == 1);
  CHECK(submit(100) == 3);  // the first group's rest
  CHECK(submit(100) == 4);
  CHECK(submit(2) == 2);
  CHECK(paced.module.waited == 2);  // the batch of the tenth step may be written over that of the second
  CHECK(submit(100) == 2);
  CHECK(submit(100) == 4);
  CHECK(paced.module.waited == 3);  // those of the steps 13 to 16 over those of 5 to 8
  CHECK(submit(1) == 1);
  CHECK(paced.module.waited == 4);
  CHECK(paced.module.submitted == Texts{"1 on slot 0", "slots 1 to 3", "slots 4 to 7", "slots 8 to 9", "slots 10 to 11",
                                        "slots 0 to 3", "1 on slot 4"});
  CHECK(paced.pacing.wait_and_count_failed() == 0);
  CHECK(paced.module.waited == 7);
}

TEST_CASE("a run that is resumed within a group goes on with its rest", "[train]") {
  Paced paced({}, 6);
  CHECK(paced.pacing.submit(6, 100, {}) == 2);
  CHECK(paced.pacing.submit(8, 100, {}) == 4);
  CHECK(paced.module.submitted == Texts{"slots 6 to 7", "slots 8 to 11"});
}

TEST_CASE("steps on a batch that never changes go together; where dropout draws, none does", "[train]") {
  Paced stays(one_batch);
  CHECK(stays.pacing.submit(0, 3, {}) == 3);
  for (std::int64_t step = 3; step < 19; step += 4) CHECK(stays.pacing.submit(step, 100, {}) == 4);
  CHECK(stays.module.waited == 1);  // four groups ahead
  CHECK(stays.module.submitted == Texts{"3 on slot 0", "4 on slot 0", "4 on slot 0", "4 on slot 0", "4 on slot 0"});

  Texts set = one_batch;
  set.emplace_back("model.layers=[flatten, {dropout: 0.4}, {dense: 3}]");
  Paced draws(set);
  for (std::int64_t step = 0; step < 3; ++step) {
    CHECK(draws.pacing.submit(step, 100, {}) == 1);
    CHECK(draws.module.waited == step);  // or the next positions would be written over those that the step reads
  }
}

TEST_CASE("traced steps are submitted one by one, and those before them go together", "[train]") {
  Paced paced({}, 0, train::TraceOptions{"trace.json", train::StepRange{7, 8}});
  for (std::int64_t step = 0; step < 12;) step += paced.pacing.submit(step, 100, {});
  CHECK(paced.module.submitted ==
        Texts{"slots 0 to 3", "slots 4 to 5", "traced on slot 6", "traced on slot 7", "slots 8 to 11"});
}

TEST_CASE("of a group whose data cannot be read, the steps before are run", "[train]") {
  Paced paced({"data.shuffle=false"}, 0, {}, 40);  // in the third batch of 16
  CHECK(paced.pacing.submit(0, 100, {}) == 2);
  CHECK_THROWS_WITH(paced.pacing.submit(2, 100, {}), "example cannot be read");
  CHECK(paced.module.submitted == Texts{"slots 0 to 1"});
}

}  // namespace pmaptrain::testing
