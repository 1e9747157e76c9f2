#include "core/evaluate/threshold.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/data/file.h"
#include "core/model/prediction.h"
#include "core/run/files/file_writer.h"
#include "core/run/find_checkpoint.h"

namespace pmaptrain::evaluate {
namespace {

constexpr std::size_t steps = 100;  // of thresholds: 0.01, 0.02, ...

// The weights of a label's examples by whether they are predicted at each threshold.
struct Counts {
  std::array<double, steps> hits{}, predicted{};
  double actual = 0;
  std::array<std::int64_t, 2> examples{};  // without the label, and with it

  void add(double probability, double weight, bool is_true) {
    actual += is_true ? weight : 0;
    ++examples[is_true ? 1 : 0];
    for (std::size_t i = 1; i < steps && probability > static_cast<double>(i) / steps; ++i) {
      predicted[i] += weight;
      hits[i] += is_true ? weight : 0;
    }
  }
  double f1(std::size_t i) const {
    const double divisor = (predicted[i] + actual) / 2;
    return divisor > 0 ? hits[i] / divisor : 0;
  }
};

// The target of an example as 0 and 1 for each label; of two classes, whether it is class 1.
bool is_true(std::span<const std::int32_t> target, std::size_t label, bool integers, bool of_two) {
  if (integers) return target[label] != 0;
  const auto number = [&](std::size_t i) { return std::bit_cast<float>(target[i]); };
  return of_two ? number(1) > number(0) : number(label) > 0.5F;
}

// Names the class or the label with the fewest examples.
void find_rarest(const std::vector<Counts>& counts, const std::vector<std::string>& names, bool of_classes,
                 TunedThreshold& tuned) {
  tuned.examples_of_rarest = std::numeric_limits<std::int64_t>::max();
  const auto take = [&](std::int64_t examples, std::size_t index) {
    if (examples >= tuned.examples_of_rarest) return;
    tuned.examples_of_rarest = examples;
    tuned.rarest = index < names.size() ? names[index] : std::to_string(index);
  };
  for (std::size_t label = 0; label < counts.size(); ++label) {
    if (of_classes) take(counts[label].examples[0], 0);
    take(counts[label].examples[1], of_classes ? 1 : label);
  }
}

}  // namespace

void check_takes_threshold(const model::Model& model, const std::string& option) {
  if (model::is_of_two_classes(model)) return;
  if (!model::is_classifier(model)) {
    fail_usage(option + " is for probabilities; the loss of the run, " + model.loss->name() + ", is one of numbers",
               "it goes with sigmoid_cross_entropy, or softmax_cross_entropy of two classes");
  }
  if (model::class_threshold(model)) return;
  fail_usage(option + " is for two classes, or several labels at once; the loss of the run, " + model.loss->name() +
                 ", has " + with_commas(model.classes()) +
                 (model.has_sequences() ? " classes for each position" : " classes") +
                 ", and the most likely is predicted",
             "to tell one class from all others, train on a target of 0 and 1 with dense: 1 as the last layer and "
             "loss: sigmoid_cross_entropy");
}

TunedThreshold tune_threshold(const CheckpointEvaluation& evaluation) {
  const model::Model model = evaluation.model();
  check_takes_threshold(model, "--tune-threshold");
  const bool of_two = model::is_of_two_classes(model);
  if (!of_two && !model.is_binary() && !model.is_multi_label()) {
    fail_usage("--tune-threshold is for labels of examples; those of this run are of their positions",
               "predict --threshold X takes any threshold");
  }
  const data::Dataset& dataset = evaluation.dataset();
  const auto outputs = static_cast<std::size_t>(numel(model.output));
  const std::size_t labels = of_two ? 1 : outputs;
  const bool integers = dataset.target().dtype == DType::i32;
  std::vector<Counts> counts(labels);
  std::vector<std::int32_t> row(outputs);
  evaluation.predict([&](const CheckpointEvaluation::Predicted& predicted) {
    for (std::int64_t i = 0; i < predicted.examples; ++i) {
      const std::int64_t example = predicted.first + i;
      dataset.read(example, nullptr, reinterpret_cast<std::byte*>(row.data()));
      if (integers && model.ignored_label() == row.front()) continue;
      const auto weight = static_cast<double>(dataset.weight(example));
      const auto of_example = predicted.probabilities.subspan(static_cast<std::size_t>(i) * outputs, outputs);
      for (std::size_t l = 0; l < labels; ++l) {
        counts[l].add(static_cast<double>(of_example[of_two ? 1 : l]), weight, is_true(row, l, integers, of_two));
      }
    }
  });
  TunedThreshold best;
  if (!model.is_multi_label()) {
    const std::vector<std::string>& classes = evaluation.classes();
    best.of_class = classes.size() == 2 ? classes.back() : "1";
  }
  find_rarest(counts, evaluation.classes(), !model.is_multi_label(), best);
  best.f1 = -1;
  for (std::size_t i = 1; i < steps; ++i) {
    double sum = 0;
    for (const Counts& of_label : counts) sum += of_label.f1(i);
    const double f1 = sum / static_cast<double>(labels), threshold = static_cast<double>(i) / steps;
    const bool is_nearer = std::abs(threshold - 0.5) < std::abs(best.threshold - 0.5);
    if (f1 > best.f1 || (f1 == best.f1 && is_nearer)) {
      best.f1 = f1;
      best.threshold = threshold;
    }
  }
  return best;
}

namespace {

std::optional<StoredThreshold> read_if_there(const std::filesystem::path& run) {
  try {
    return stored_threshold(run);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::string options_of(const ParametersUsed& used) {
  const std::optional<std::int64_t> step = run::checkpoint_step(used.checkpoint);
  std::string options = "--checkpoint " + (step ? std::to_string(*step) : used.checkpoint);
  if (used.weights == spec::Weights::raw) options += " --weights raw";
  if (used.member) options += " --member " + std::to_string(*used.member);
  return options;
}

std::optional<StoredThreshold> store_threshold(const std::filesystem::path& run, const TunedThreshold& tuned,
                                               const std::string& split, const ParametersUsed& of) {
  std::optional<StoredThreshold> replaced = read_if_there(run);
  nlohmann::ordered_json document;
  document["threshold"] = tuned.threshold;
  document["metric"] = "f1";
  document["value"] = tuned.f1;
  document["split"] = split;
  document["checkpoint"] = of.checkpoint;
  document["weights"] = nullptr;  // the run averages none
  if (of.weights) document["weights"] = *of.weights == spec::Weights::raw ? "raw" : "ema";
  if (of.member) document["member"] = *of.member;
  const std::string text = json_text(document, 2) + "\n";
  run::Replacement file((run / "threshold.json").string());
  file.write(std::as_bytes(std::span(text)));
  file.close();
  file.take_place();
  return replaced;
}

StoredThreshold stored_threshold(const std::filesystem::path& run) {
  const std::filesystem::path path = run / "threshold.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    fail_usage("--threshold run: the run has no threshold of its own",
               "pmaptrain eval " + shell_quoted(run.string()) + " --tune-threshold f1 chooses one on validation");
  }
  const std::vector<std::byte> bytes = data::read_file(path.string());
  const auto document = try_parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  StoredThreshold stored;
  try {
    stored.threshold = document.at("threshold").get<double>();
    stored.of.checkpoint = document.at("checkpoint").get<std::string>();
    const auto weights = document.find("weights");
    if (weights != document.end() && weights->is_string())
      stored.of.weights = *weights == "raw" ? spec::Weights::raw : spec::Weights::ema;
    if (document.contains("member")) stored.of.member = document.at("member").get<std::int64_t>();
  } catch (const nlohmann::json::exception&) {
    stored.threshold = 0;
  }
  if (!(stored.threshold > 0 && stored.threshold < 1)) {
    fail_data("'" + path.string() + "' is damaged",
              "pmaptrain eval " + shell_quoted(run.string()) + " --tune-threshold f1 writes it anew");
  }
  if (!document.contains("weights")) {
    fail_usage("--threshold run: '" + path.string() +
                   "' is of an older version, which did not store with which weights its threshold was chosen",
               "pmaptrain eval " + shell_quoted(run.string()) + " --tune-threshold f1 chooses it anew; --threshold " +
                   exact(stored.threshold) + " takes this one all the same");
  }
  return stored;
}

void check_threshold_fits(const StoredThreshold& stored, const ParametersUsed& now, const std::filesystem::path& run) {
  const std::string before = options_of(stored.of), after = options_of(now);
  if (before == after) return;
  fail_usage("--threshold run: the threshold of the run, " + exact(stored.threshold) + ", was chosen with " + before +
                 ", and these predictions are made with " + after,
             "pmaptrain eval " + shell_quoted(run.string()) + " --tune-threshold f1 " + after +
                 " chooses one for them; --threshold " + exact(stored.threshold) + " takes this one all the same");
}

}  // namespace pmaptrain::evaluate
