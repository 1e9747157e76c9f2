// What --change makes of a config, what it refuses, and how config.yaml records it.
#include "core/spec/change.h"

#include "core/layers/dropout.h"
#include "core/optimizers/sgd.h"
#include "core/schedules/cosine_decay.h"
#include "core/spec/compare.h"
#include "core/spec/keys.h"
#include "core/spec/load.h"
#include "tests/catch.h"

using namespace pmaptrain;

namespace {

const std::string changed_run = R"(name: run
data: {source: fashion_mnist, batch_size: 128}
model: {layers: [flatten, {dense: 10}, {name: drop, dropout: 0.5}, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {sgd: {momentum: 0.9}, learning_rate: 0.1, clip_by_global_norm: 1.0}
train: {duration: 2 epochs, ema: {decay: 0.99}}
)";
const std::string cosine = "optimizer.learning_rate={cosine_decay: {init_value: 0.1, decay: 9 epochs}}";
const std::string ensemble = "ensemble={axis: devices, vary: {seed: [0, 1], optimizer.learning_rate: [0.1, 0.2]}}";

spec::Loaded loaded_with(std::vector<std::string> set = {}) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  return spec::load_text(changed_run, "run.yaml", "/base", overrides);
}

std::vector<spec::ChangeText> texts(const std::vector<std::string>& arguments) {
  std::vector<spec::ChangeText> all;
  for (const std::string& argument : arguments) all.push_back({argument});
  return all;
}

// After step 40, with 60 steps left.
spec::Loaded changed(const std::vector<std::string>& arguments, std::vector<std::string> set = {}) {
  spec::Loaded loaded = loaded_with(std::move(set));
  spec::apply_changes(loaded, texts(arguments), 40, 60);
  return loaded;
}

// "1: message | help" of the only mistake, with its column.
std::string refused(const std::string& argument, std::vector<std::string> set = {}) {
  try {
    changed({argument}, std::move(set));
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::usage);
    REQUIRE(error.diagnostics().size() == 1);
    const Diagnostic& only = error.diagnostics().front();
    CHECK(only.kind == "usage");
    CHECK(only.place.file == "--change");
    CHECK(only.place.excerpt == argument);
    return std::to_string(only.place.column) + ": " + only.message + " | " + only.help;
  }
  return "accepted";
}

const std::string another_run = " | begin another run (--name), from this one's parameters with model.init.from";

}  // namespace

TEST_CASE("a change gives numbers other values, and the resolved config keeps the first ones", "[spec]") {
  const spec::Loaded loaded = changed({"optimizer.learning_rate=1e-2", "model.layers.drop.dropout.rate=0.25",
                                       "optimizer.sgd.momentum=0.8", "optimizer.clip_by_global_norm=2"});
  CHECK(loaded.spec.optimizer.learning_rate.value == 0.01);
  CHECK(loaded.spec.model.layers[2].kind.as<layers::Dropout>()->rate == 0.25);
  CHECK(loaded.spec.optimizer.rule.as<optimizers::Sgd>()->momentum == 0.8);
  CHECK(loaded.spec.optimizer.clip_by_global_norm == 2.0);
  CHECK(loaded.resolved == loaded_with().resolved);
  REQUIRE(loaded.changes.size() == 4);
  CHECK(loaded.changes[0] == spec::Change{40, "optimizer.learning_rate", "0.01"});
  CHECK(loaded.changes[0].before == "0.1");
  CHECK(loaded.changes[1] == spec::Change{40, "model.layers.2.dropout.rate", "0.25"});
}

TEST_CASE("a new schedule lasts what is left of the run, unless it says how long", "[spec]") {
  const auto value = [](const std::string& rate) {
    return changed({"optimizer.learning_rate=" + rate}).changes.front().value;
  };
  CHECK(value("{cosine_decay: {init_value: 0.1}}") == "{cosine_decay: {init_value: 0.1, decay: 60 steps, alpha: 0.0}}");
  CHECK(value("{cosine_decay: {init_value: 0.1, decay: 2 epochs}}") ==
        "{cosine_decay: {init_value: 0.1, decay: 2 epochs, alpha: 0.0}}");
  CHECK(changed({"optimizer.learning_rate=0.5"}, {cosine}).spec.optimizer.learning_rate.value == 0.5);
}

TEST_CASE("a number inside a schedule changes by itself", "[spec]") {
  const spec::Loaded loaded = changed({"optimizer.learning_rate.cosine_decay.init_value=0.2"}, {cosine});
  const auto& schedule = *loaded.spec.optimizer.learning_rate.schedule.as<schedules::CosineDecay>();
  CHECK(schedule.init_value == 0.2);
  CHECK(schedule.decay->count == 9);
}

TEST_CASE(
    "of several recorded changes of one key the last counts, and a schedule counts in place of numbers of the one "
    "before",
    "[spec]") {
  const auto made = [](const std::vector<std::string>& arguments) {
    spec::Loaded loaded = loaded_with({cosine});
    std::vector<spec::ChangeText> recorded;
    for (const std::string& argument : arguments) recorded.push_back({argument, "x-changes"});
    spec::apply_changes(loaded, recorded, 40, 60);
    std::string all;
    for (const spec::Change& change : loaded.changes) all += change.key + "=" + change.value + ";";
    return all;
  };
  const std::string rate = "optimizer.learning_rate", init = rate + ".cosine_decay.init_value";
  CHECK(made({rate + "=0.2", "optimizer.sgd.momentum=0.8", rate + "=0.3"}) ==
        "optimizer.sgd.momentum=0.8;optimizer.learning_rate=0.3;");
  CHECK(made({init + "=0.2", rate + "=0.3"}) == rate + "=0.3;");
  CHECK(made({rate + "={cosine_decay: {init_value: 0.5}}", init + "=0.2"}) ==
        rate + "={cosine_decay: {init_value: 0.5, decay: 60 steps, alpha: 0.0}};" + init + "=0.2;");
}

TEST_CASE("a number that is there already changes nothing, and a note says so", "[spec]") {
  const spec::Loaded loaded = changed({"optimizer.learning_rate=0.1"});
  CHECK(loaded.changes.empty());
  REQUIRE(loaded.notes.size() == 1);
  CHECK(loaded.notes.front() == "optimizer.learning_rate is 0.1 already: --change does nothing");
}

TEST_CASE("what a run depends on from its first step on is refused, with the reason", "[spec]") {
  CHECK(refused("seed=3") ==
        "1: 'seed' cannot change within a run: what dropout leaves out, and the order of the examples, are drawn from "
        "it" +
            another_run);
  CHECK(refused("data.seed=3", {"data.seed=1"}) ==
        "1: 'data.seed' cannot change within a run: the order of the examples is drawn from it" + another_run);
  CHECK(refused("train.ema.decay=0.9") ==
        "1: 'train.ema.decay' cannot change within a run: the average is corrected for its start by one decay of all "
        "updates" +
            another_run);
}

TEST_CASE("a value that alters equations is refused, as is a change of one", "[spec]") {
  CHECK(refused("optimizer.sgd.momentum=0") ==
        "24: optimizer.sgd.momentum cannot change from 0.9 to 0.0: without momentum there is no trace, so the step has "
        "other equations" +
            another_run);
  CHECK(refused("optimizer.sgd.weight_decay=0.1") ==
        "28: optimizer.sgd.weight_decay cannot change from 0.0 to 0.1: without weight decay nothing is added, so the "
        "step has other equations" +
            another_run);
  CHECK(refused("optimizer.clip=1.0").starts_with("1: this config has no 'optimizer.clip' to change | "));
}

TEST_CASE("a key that is no such number is refused, with the ones that can change", "[spec]") {
  CHECK(refused("data.batch_size=64") ==
        "1: 'data.batch_size' cannot change within a run | keys of this config that can: optimizer.learning_rate, "
        "model.layers.2.dropout.rate, loss.softmax_cross_entropy.label_smoothing, optimizer.sgd.momentum, "
        "optimizer.sgd.weight_decay, optimizer.clip_by_global_norm");
  CHECK(refused("optimizer.sgd.momentun=0.8") ==
        "1: this config has no 'optimizer.sgd.momentun' to change | did you mean 'optimizer.sgd.momentum'?");
  CHECK(refused("train.duration=3 epochs") ==
        "1: 'train.duration' is no number that --change changes | --resume takes another value of it: write --set "
        "'train.duration=3 epochs'");
  CHECK(
      refused("optimizer.learning_rate.cosine_decay.decay=3 epochs", {cosine}) ==
      "1: 'optimizer.learning_rate.cosine_decay.decay' cannot change within a run by itself | a schedule changes as a "
      "whole and counts from the change, for example\n--change 'optimizer.learning_rate={cosine_decay: {init_value: "
      "0.001}}'");
}

TEST_CASE("values of --change are checked like the keys, at their places in the argument", "[spec]") {
  CHECK(refused("optimizer.learning_rate=-1").starts_with("25: learning_rate "));
  CHECK(refused("optimizer.learning_rate=null").starts_with("25: --change takes the new value of "));
  CHECK(refused("optimizer.learning_rate={cosine_decay: {init_value: -1}}").starts_with("53: init_value "));
  CHECK(refused("optimizer.learning_rate") ==
        "1: there is no '=' in this argument | write --change key=value, such as --change "
        "optimizer.learning_rate=0.001");
  CHECK(refused("optimizer.learning_rate=") == "24: there is no value after '=' | write the new value");
  CHECK(refused("+optimizer.learning_rate=1").starts_with("1: '+optimizer.learning_rate' is not how --change writes"));
}

TEST_CASE("all mistakes in changes are told at once", "[spec]") {
  try {
    changed({"seed=1", "optimizer.learning_rate=0.2", "optimizer.sgd.momentum=2"});
    FAIL("they were accepted");
  } catch (const Error& error) {
    REQUIRE(error.diagnostics().size() == 2);
    CHECK(error.diagnostics()[0].place.excerpt == "seed=1");
    CHECK(error.diagnostics()[1].place.excerpt == "optimizer.sgd.momentum=2");
  }
}

TEST_CASE("a change is of all members, and a key that they have values of their own for is refused", "[spec]") {
  const std::vector<std::string> set = {"mesh.axes={devices: 2}", ensemble};
  const spec::Loaded loaded = changed({"optimizer.sgd.momentum=0.8"}, set);
  for (std::int64_t member = 0; member < 2; ++member) {
    const optimizers::Options& optimizer = spec::member_spec(loaded.spec, member).optimizer;
    CHECK(optimizer.rule.as<optimizers::Sgd>()->momentum == 0.8);
    CHECK(optimizer.learning_rate.value == (member == 0 ? 0.1 : 0.2));
  }
  CHECK(refused("optimizer.learning_rate=0.3", set) ==
        "1: 'optimizer.learning_rate' cannot change within a run: each member has optimizer.learning_rate of its own "
        "(ensemble.vary) | a change applies to all members: change another key, or begin another run (--name)");
  // Nor is it among the keys that are told.
  const std::string told = refused("data.batch_size=64", set);
  CHECK(told.find("keys of this config that can: ") != std::string::npos);
  CHECK(told.find("optimizer.learning_rate") == std::string::npos);
}

TEST_CASE("a recorded change that is no change any more says where it is recorded", "[spec]") {
  spec::Loaded loaded = loaded_with({});
  try {
    spec::apply_changes(loaded, {spec::text_of({2, "optimizer.none", "1"})}, 40, 60);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.diagnostics().front().notes ==
          std::vector<std::string>{
              "it is an entry of x-changes in the run's config.yaml; removed there, it is not made"});
  }
}

TEST_CASE("config.yaml records changes, and reads back without them", "[spec]") {
  const spec::Loaded loaded =
      changed({"optimizer.learning_rate={cosine_decay: {init_value: 0.1}}", "optimizer.sgd.momentum=0.8"});
  const std::string section = spec::print_changes(loaded.changes);
  CHECK(section ==
        "\n# Made by run --resume --change; another run of this config does not repeat them.\n"
        "x-changes:\n"
        "  - {step: 40, key: optimizer.learning_rate, value: {cosine_decay: {init_value: 0.1, decay: 60 steps, alpha: "
        "0.0}}}\n"
        "  - {step: 40, key: optimizer.sgd.momentum, value: 0.8}\n");
  const std::string text = loaded.resolved + section;
  const spec::Loaded again = spec::load_text(text, "config.yaml", "/base", {});
  CHECK(again.recorded == loaded.changes);
  CHECK(again.changes.empty());
  CHECK(again.resolved == loaded.resolved);
  CHECK(spec::changed_keys(text, "config.yaml", again).empty());
  CHECK(spec::print_changes({}).empty());
  // A section of a user's own is none of ours.
  for (const char* const own : {"x-changes: none\n", "x-changes: [1, 2]\n",
                                "x-changes: [{step: a, key: b, value: c}]\n", "x-changes: [{step: 1, key: b}]\n"}) {
    INFO(own);
    CHECK(spec::load_text(loaded.resolved + own, "config.yaml", "/base", {}).recorded.empty());
  }
}

TEST_CASE("what --change would change is told as its argument", "[spec]") {
  const auto words = [](std::vector<std::string> run, std::vector<std::string> now) {
    const spec::Loaded loaded = loaded_with(std::move(now));
    std::string all;
    for (const spec::ChangedKey& key : spec::changed_keys(loaded_with(std::move(run)).resolved, "c.yaml", loaded)) {
      all += "[" + spec::change_for(key, loaded) + "]";
    }
    return all;
  };
  CHECK(words({}, {"optimizer.learning_rate=0.2"}) == "[optimizer.learning_rate=0.2]");
  const std::string whole = "[optimizer.learning_rate={cosine_decay: {init_value: 0.1, decay: 9 epochs, alpha: 0.0}}]";
  CHECK(words({}, {cosine}) == whole);
  CHECK(words({cosine}, {"optimizer.learning_rate={linear: {init_value: 0.1, end_value: 0.0, transition: 5}}"}) ==
        "[optimizer.learning_rate={linear: {init_value: 0.1, end_value: 0.0, transition: 5 steps}}]"
        "[optimizer.learning_rate={linear: {init_value: 0.1, end_value: 0.0, transition: 5 steps}}]");
  CHECK(words({cosine}, {cosine, "optimizer.learning_rate.cosine_decay.alpha=0.5"}) ==
        "[optimizer.learning_rate.cosine_decay.alpha=0.5]");
  CHECK(words({}, {"seed=1", "data.batch_size=64", "optimizer.sgd.momentum=0.0", "optimizer.clip=1.0"}) == "[][][][]");
}

TEST_CASE("help of a duration says what a bare number counts", "[spec]") {
  const std::string steps = "\n  a bare number counts steps; '10 epochs' counts epochs\n";
  for (const char* const key : {"train.duration", "train.eval_every", "train.checkpoint.every",
                                "optimizer.learning_rate.warmup_cosine_decay.warmup",
                                "optimizer.learning_rate.piecewise_constant.boundaries_and_scales",
                                "optimizer.learning_rate.join.boundaries"}) {
    CAPTURE(key);
    CHECK(spec::help(key).find(steps) != std::string::npos);
  }
  CHECK(spec::help("data.limit.train").find("\n  a bare number counts examples; '2 batches' counts batches\n") !=
        std::string::npos);
  for (const char* const key : {"train.max_time", "mesh.timeout", "data.batch_size"}) {
    CAPTURE(key);
    CHECK(spec::help(key).find("bare number") == std::string::npos);
  }
}

TEST_CASE("help says which numbers may change within a run", "[spec]") {
  const std::string words = "\n  may change within a run: run RUN --resume --change\n";
  CHECK(spec::help("optimizer.adam.b1").find(words) != std::string::npos);
  for (const char* const key : {"seed", "data.seed", "train.ema.decay", "data.batch_size"}) {
    INFO(key);
    CHECK(spec::help(key).find(words) == std::string::npos);
  }
}

TEST_CASE("two options that change one value are refused, each named", "[spec]") {
  const auto mistakes = [](const std::vector<std::string>& arguments) -> std::string {
    try {
      changed(arguments, {cosine});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const std::string first : {"optimizer.learning_rate=0.2", "optimizer.learning_rate=0.1"}) {
    CHECK(mistakes({first, "optimizer.learning_rate=0.3"})
              .find("--change:1:1: error: this changes what --change " + first + " changes, too\n") !=
          std::string::npos);
  }
  CHECK(mistakes({"model.layers.2.dropout.rate=0.1", "model.layers.drop.dropout.rate=0.2"})
            .find("this changes what --change model.layers.2.dropout.rate=0.1 changes, too") != std::string::npos);
  CHECK(mistakes({"optimizer.clip_by_global_norm=2", "optimizer.learning_rate=0.3"}).empty());
}
