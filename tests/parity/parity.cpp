// Training beside JAX and Optax: the cases that make_fixtures.py wrote, cut over devices and microbatches.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/optimizers/sgd.h"
#include "core/spec/keys.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/parity/case.h"
#include "tests/slice.h"

using namespace pmaptrain;

namespace {

namespace fs = std::filesystem;
using parity::Case, parity::RunShape, parity::Names, parity::Run;
using parity::differences, parity::folder, parity::listed_cases, parity::own_layouts, parity::read_case;
using parity::train_case;

// The layouts in a fixed order: six in a row have each mesh once and each number of microbatches twice, eighteen in a
// row each mesh with each number of microbatches.
RunShape layout_at(std::size_t index, bool padded) {
  static const std::vector<std::pair<std::size_t, std::string>> meshes = {
      {1, "{devices: 1}"}, {2, "{devices: 2}"}, {3, "{devices: 3}"},
      {4, "{devices: 4}"}, {8, "{devices: 8}"}, {4, "[{rows: 2}, {columns: 2}]"},
  };
  const auto& [devices, axes] = meshes[index % meshes.size()];
  const std::size_t microbatches = 1 + (index + index / meshes.size()) % 3;
  // Without padding a batch has 24 examples, of which each device's share must divide over the microbatches.
  const bool divides = padded || 24 / devices % microbatches == 0;
  return {devices, axes, divides ? static_cast<int>(microbatches) : 1};
}

struct PlannedRun {
  std::string name;
  std::string optimizer;  // with what changes its update: "sgd nesterov"
  bool padded;
  std::vector<RunShape> layouts;
};

// Each case on three layouts. The cases of one optimizer take the layouts in turn.
std::vector<PlannedRun> planned_cases() {
  std::vector<PlannedRun> cases;
  std::map<std::string, std::size_t> next;  // by optimizer
  for (const std::string& name : listed_cases()) {
    const spec::Spec spec = spec::load((folder / "cases" / name / "config.yaml").string(), {}).spec;
    const auto* sgd = spec.optimizer.rule.as<optimizers::Sgd>();
    const std::string momentum = sgd == nullptr || sgd->momentum == 0 ? "" : sgd->nesterov ? " nesterov" : " momentum";
    PlannedRun planned{name, spec.optimizer.rule->name() + momentum, spec.data.remainder == spec::Remainder::mask, {}};
    planned.layouts = own_layouts(name);
    for (bool own = planned.layouts.empty(); own && planned.layouts.size() < 3;) {
      planned.layouts.push_back(layout_at(next[planned.optimizer]++, planned.padded));
    }
    cases.push_back(std::move(planned));
  }
  return cases;
}

using Words = std::set<std::string>;

// The words of each line of a config but its name: a layer, a loss and an optimizer have a line of their own.
std::vector<Words> words_of_config(const std::string& name) {
  std::vector<Words> lines;
  std::ifstream file(folder / "cases" / name / "config.yaml");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("name:")) continue;
    for (char& c : line) c = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : ' ';
    std::istringstream words(line);
    lines.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  return lines;
}

std::vector<Words> words_of_configs() {
  std::vector<Words> lines;
  for (const std::string& name : listed_cases()) {
    for (Words& line : words_of_config(name)) lines.push_back(std::move(line));
  }
  return lines;
}

// A case on one of its layouts, and what it has of layers, losses, metrics, optimizers and layouts.
struct Chosen {
  std::string name;
  RunShape layout;
  std::set<std::string> parts;
};

std::set<std::string> parts_of(const PlannedRun& planned, const RunShape& layout) {
  std::set<std::string> parts{layout.axes, std::to_string(layout.microbatches) + " microbatches",
                              planned.padded ? "padding" : "no padding", planned.optimizer};
  for (const Words& line : words_of_config(planned.name)) {
    for (const std::string choice : {"model.layers", "loss", "metrics", "optimizer"}) {
      // A loss and a metric may have one name.
      if ((choice == "loss" || choice == "metrics") != (line.contains("loss") || line.contains("metrics"))) continue;
      if ((choice == "loss" || choice == "metrics") && !line.contains(choice)) continue;
      for (const spec::Key* const kind : spec::alternatives(*spec::find_key(choice))) {
        if (line.contains(std::string(kind->name()))) parts.emplace(kind->path);
      }
    }
  }
  return parts;
}

// Runs that together have every part which any has: again and again the one with the most parts that are missing.
std::vector<Chosen> covering_runs() {
  std::vector<Chosen> runs, chosen;
  for (const PlannedRun& planned : planned_cases()) {
    for (const RunShape& layout : planned.layouts) {
      runs.push_back({planned.name, layout, parts_of(planned, layout)});
    }
  }
  std::set<std::string> covered;
  const auto missing = [&](const Chosen& run) {
    return std::count_if(run.parts.begin(), run.parts.end(), [&](const auto& part) { return !covered.contains(part); });
  };
  while (true) {
    const auto most = std::max_element(runs.begin(), runs.end(),
                                       [&](const Chosen& a, const Chosen& b) { return missing(a) < missing(b); });
    if (missing(*most) == 0) return chosen;
    covered.insert(most->parts.begin(), most->parts.end());
    chosen.push_back(*most);
  }
}

// What is random is ours alone; mixed_precision.cpp has cases of its own; no step has the metrics of evaluations.
const std::set<std::string> not_compared = {
    "model.layers.dropout",      "model.layers.dropout.rate",         "model.layers.attention.dropout",
    "model.layers.precision",    "model.layers.repeat.remat",         "model.layers.tensor",
    "metrics.roc_auc",           "metrics.roc_auc.average",           "metrics.confusion_matrix",
    "metrics.average_precision", "metrics.average_precision.average", "metrics.median_absolute_error"};

void check(const std::string& name, const RunShape& layout) {
  INFO(name << " on " << layout.axes << " with " << layout.microbatches << " microbatches");
  const Run run = train_case(name, layout);
  CHECK(run.first_step.size() == layout.devices);
  // A query or a key of a head may come close to 0. qk_norm divides by its length, and so multiplies the roundings of a
  // step: up to step 10 the norm of the gradient is within 2e-6 of JAX's, at step 19 up to 1.3e-4 from it.
  const auto nearness = name == "attention_qk_norm" ? parity::Nearness{2e-4, 1e-5} : parity::Nearness{};
  CHECK(differences(read_case(name), run, nearness) == Names{});
}

}  // namespace

TEST_CASE("every listed case of parity is there, and every one that is there is listed", "[parity]") {
  const std::vector<std::string> listed = listed_cases();
  CHECK(listed.size() >= 101);
  std::set<std::string> present;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "cases")) {
    present.insert(entry.path().filename().string());
  }
  CHECK(present == std::set<std::string>(listed.begin(), listed.end()));
  for (const std::string& name : listed) {
    INFO(name);
    const Case expected = read_case(name);
    CHECK(expected.measures.contains("loss"));
    CHECK(expected.measures.contains("grad_norm"));
    const std::int64_t steps = name.starts_with("resnet") ? parity::fewest_steps : parity::usual_steps;
    for (const auto& [measure, values] : expected.measures) CHECK(values.size() == static_cast<std::size_t>(steps));
    CHECK(!expected.first_step.empty());
  }
}

TEST_CASE("every layer, loss, metric and optimizer, and every option of them, is in a case of parity", "[parity]") {
  const std::vector<Words> lines = words_of_configs();
  const auto compared = [&lines](const std::vector<std::string>& words) {
    return std::any_of(lines.begin(), lines.end(), [&words](const Words& line) {
      return std::all_of(words.begin(), words.end(), [&line](const std::string& word) { return line.contains(word); });
    });
  };
  Names missing;
  const auto look_for = [&](std::string_view path, const std::vector<std::string>& words) {
    if (!compared(words) && !not_compared.contains(std::string(path))) missing.emplace_back(path);
  };
  for (const char* const choice : {"model.layers", "loss", "optimizer"}) {
    for (const spec::Key* const kind : spec::alternatives(*spec::find_key(choice))) {
      look_for(kind->path, {std::string(kind->name())});
      for (const spec::Key* const option : spec::children(*kind)) {
        if (option->need == spec::Need::alternative) continue;  // of a nested list of layers
        if (option->name().ends_with("_init")) continue;        // the cases give all initial values
        look_for(option->path, {std::string(kind->name()), std::string(option->name())});
      }
    }
  }
  for (const spec::Key* const metric : spec::alternatives(*spec::find_key("metrics"))) {
    look_for(metric->path, {"metrics", std::string(metric->name())});
    for (const spec::Key* const option : spec::children(*metric)) {
      look_for(option->path, {"metrics", std::string(metric->name()), std::string(option->name())});
    }
  }
  INFO("give each a case in tests/parity/make_fixtures.py and run that, as CONTRIBUTING.md says");
  CHECK(missing == Names{});
}

TEST_CASE("every option of layers, losses, metrics and optimizers is left to its default in a case of parity",
          "[parity]") {
  const std::vector<Words> lines = words_of_configs();
  Names always_given;
  for (const char* const choice : {"model.layers", "loss", "metrics", "optimizer"}) {
    for (const spec::Key* const kind : spec::alternatives(*spec::find_key(choice))) {
      for (const spec::Key* const option : spec::children(*kind)) {
        if (option->need != spec::Need::optional || not_compared.contains(std::string(option->path))) continue;
        const bool left_out = std::any_of(lines.begin(), lines.end(), [&](const Words& line) {
          return line.contains(std::string(kind->name())) && !line.contains(std::string(option->name()));
        });
        if (!left_out) always_given.emplace_back(option->path);
      }
    }
  }
  // Lists of metrics have these with the option and without it.
  CHECK(always_given == Names{"metrics.mean_iou.average", "metrics.dice.average"});
}

TEST_CASE("every two of a mesh, microbatches, padding and an optimizer meet in a case of parity", "[parity]") {
  std::vector<std::set<std::string>> values(4);
  std::set<std::string> met;
  for (const PlannedRun& planned : planned_cases()) {
    for (const RunShape& layout : planned.layouts) {
      const std::vector<std::string> run = {layout.axes, std::to_string(layout.microbatches) + " microbatches",
                                            planned.padded ? "padding" : "no padding", planned.optimizer};
      for (std::size_t a = 0; a < run.size(); ++a) {
        values[a].insert(run[a]);
        for (std::size_t b = 0; b < a; ++b) met.insert(run[b] + " with " + run[a]);
      }
    }
  }
  CHECK(values[0].size() == 6);
  CHECK(values[1].size() == 3);
  std::set<std::string> optimizers{"sgd momentum", "sgd nesterov"};
  for (const spec::Key* const kind : spec::alternatives(*spec::find_key("optimizer"))) optimizers.emplace(kind->name());
  CHECK(values[3] == optimizers);
  Names missing;
  for (std::size_t a = 0; a < values.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      for (const std::string& one : values[b]) {
        for (const std::string& other : values[a]) {
          if (!met.contains(one + " with " + other)) missing.push_back(one + " with " + other);
        }
      }
    }
  }
  CHECK(missing == Names{});
}

TEST_CASE("losses, metrics, gradient norms and parameters are JAX's, on any mesh and with microbatches", "[parity]") {
  test::Turns turns;
  for (const PlannedRun& planned : planned_cases()) {
    for (const std::size_t layout : turns.next(planned.layouts.size())) check(planned.name, planned.layouts[layout]);
  }
}

TEST_CASE("a few cases of parity have every layer, loss, metric, optimizer, mesh and number of microbatches",
          "[parity][covering]") {
  const std::vector<Chosen> chosen = covering_runs();
  CHECK(chosen.size() < 50);
  std::set<std::string> covered;
  for (const Chosen& run : chosen) covered.insert(run.parts.begin(), run.parts.end());
  for (const char* const choice : {"model.layers", "loss", "metrics", "optimizer"}) {
    for (const spec::Key* const kind : spec::alternatives(*spec::find_key(choice))) {
      if (not_compared.contains(std::string(kind->path))) continue;
      INFO(kind->path);
      CHECK(covered.contains(std::string(kind->path)));
    }
  }
  for (const char* const part : {"{devices: 1}", "{devices: 2}", "{devices: 3}", "{devices: 4}", "{devices: 8}",
                                 "[{rows: 2}, {columns: 2}]", "1 microbatches", "2 microbatches", "3 microbatches",
                                 "padding", "no padding", "sgd momentum", "sgd nesterov"}) {
    INFO(part);
    CHECK(covered.contains(part));
  }
  for (const Chosen& run : chosen) check(run.name, run.layout);
}

TEST_CASE("the comparison with JAX detects small errors", "[parity]") {
  const RunShape layout{2, "{devices: 2}", 1};
  const auto found = [&](const std::string& name, const std::string& mistake) {
    return differences(read_case(name), train_case(name, layout, {mistake}));
  };
  const std::string kernel = "dense_0.kernel after the first step on device ";
  const Names rate = found("linear_sgd", "optimizer.learning_rate=0.1001");
  CHECK(std::count(rate.begin(), rate.end(), kernel + "0") == 1);
  CHECK(std::count(rate.begin(), rate.end(), kernel + "1") == 1);
  CHECK(!found("adam_dense", "optimizer.adam.b2=0.951").empty());
  CHECK(!found("adam_dense", "optimizer.adam.eps=2e-5").empty());
  CHECK(!found("adamw_conv", "optimizer.adamw.weight_decay=0.11").empty());
  CHECK(!found("momentum_conv", "optimizer.sgd.momentum=0.901").empty());
  CHECK(!found("nesterov_dense", "optimizer.sgd.nesterov=false").empty());
  CHECK(!found("linear_short_last_batch", "data.remainder=drop").empty());
  CHECK(!found("mlp_gelu_classes", "data.shuffle=true").empty());
  CHECK(!found("conv_strides", "model.layers.0.conv.padding=[[0, 2], [0, 2]]").empty());
  CHECK(!found("conv_dilation_groups", "model.layers.0.conv.kernel_dilation=[2, 1]").empty());
  CHECK(!found("avg_pool_explicit_counts", "model.layers.2.avg_pool.count_include_pad=false").empty());
  CHECK(!found("bytes_normalized", "data.normalize.std=[0.2501]").empty());
  CHECK(!found("sgd_weight_decay", "optimizer.sgd.weight_decay=0.101").empty());
  CHECK(!found("sgd_decay_excluded", "optimizer.weight_decay_exclude=[\"*_0.bias\"]").empty());
  CHECK(!found("lion_decay_excluded", "optimizer.weight_decay_exclude=[]").empty());
  CHECK(!found("clip", "optimizer.clip=0.1002").empty());
  CHECK(!found("clip_by_global_norm", "optimizer.clip_by_global_norm=0.501").empty());
  CHECK(!found("clip_seldom", "optimizer.clip_by_global_norm=null").empty());
  CHECK(!found("groups_adamw", "optimizer.groups.0.learning_rate_scale=3.01").empty());
  CHECK(!found("groups_momentum", "optimizer.groups.1.weight_decay=0.21").empty());
  CHECK(!found("groups_momentum", "optimizer.groups.0.freeze=false").empty());
  CHECK(!found("warmup_cosine_decay", "optimizer.learning_rate.warmup_cosine_decay.warmup=5").empty());
  CHECK(!found("resnet18_over_devices", "model.layers.5.residual.layers.1.batch_norm.axes=[]").empty());
  const Names average = found("ema_masked", "train.ema.decay=0.901");
  CHECK(std::count(average.begin(), average.end(), "the average of dense_0.kernel") == 1);
  CHECK(!found("ema_not_debiased", "train.ema.debias=true").empty());
}

TEST_CASE("a default that is not Optax's or JAX's differs from theirs", "[parity]") {
  const auto differs = [](const std::string& name, const std::string& other) {
    return !differences(read_case(name), train_case(name, {1, "{devices: 1}", 1}, {other})).empty();
  };
  CHECK(differs("mlp_leaky_relu_huber", "model.layers.1={leaky_relu: {negative_slope: 0.011}}"));
  CHECK(differs("mlp_elu_absolute", "model.layers.1={elu: {alpha: 1.01}}"));
  CHECK(differs("mlp_leaky_relu_huber", "loss={huber: {delta: 1.01}}"));
  for (const std::string rule : {"adam", "adamw"}) {
    CHECK(differs(rule + "_defaults", "optimizer." + rule + ".b1=0.901"));
    CHECK(differs(rule + "_defaults", "optimizer." + rule + ".b2=0.9991"));
    CHECK(differs(rule + "_defaults", "optimizer." + rule + ".eps=1.1e-8"));
  }
  CHECK(differs("adamw_defaults", "optimizer.adamw.weight_decay=2e-4"));
  CHECK(differs("rmsprop_defaults", "optimizer.rmsprop.decay=0.901"));
  CHECK(differs("rmsprop_defaults", "optimizer.rmsprop.eps=1e-6"));
  CHECK(differs("adagrad_defaults", "optimizer.adagrad.initial_accumulator_value=0.101"));
  CHECK(differs("adagrad_defaults", "optimizer.adagrad.eps=1e-4"));
  CHECK(differs("nadam_defaults", "optimizer.nadam.b1=0.901"));
  CHECK(differs("nadam_defaults", "optimizer.nadam.b2=0.998"));
  CHECK(differs("nadam_defaults", "optimizer.nadam.eps=1.1e-8"));
  CHECK(differs("lion_defaults", "optimizer.lion.b1=0.8"));
  CHECK(differs("lion_defaults", "optimizer.lion.b2=0.9"));
  CHECK(differs("lion_defaults", "optimizer.lion.weight_decay=2e-3"));
  CHECK(differs("adadelta_defaults", "optimizer.adadelta.rho=0.901"));
  CHECK(differs("adadelta_defaults", "optimizer.adadelta.eps=1.1e-6"));
  CHECK(differs("adadelta_defaults", "optimizer.adadelta.weight_decay=1e-3"));
}
