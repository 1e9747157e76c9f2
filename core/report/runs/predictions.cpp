#include "core/report/runs/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <variant>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/texts/text_source.h"
#include "core/evaluate/evaluator.h"
#include "core/input/open.h"
#include "core/model/prediction.h"
#include "core/run/records/lines.h"

namespace pmaptrain::report {
namespace {

// The target of one example, as numbers.
std::vector<double> numbers_of(const data::Field& field, const std::vector<std::byte>& bytes) {
  std::vector<double> numbers;
  const auto count = static_cast<std::size_t>(numel(field.shape));
  for (std::size_t i = 0; i < count; ++i) {
    if (field.dtype == DType::i32) {
      std::int32_t value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      numbers.push_back(value);
    } else if (field.dtype == DType::f64) {
      double value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      numbers.push_back(value);
    } else {
      float value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      numbers.push_back(static_cast<double>(value));
    }
  }
  return numbers;
}

template <class T>
std::size_t largest(const T& values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

// The most bytes of an example that a report shows as a row of numbers; of examples, and of outputs of a regression
// that are drawn.
constexpr std::size_t most_bytes = 4096, most_points = 500, most_outputs = 4;

// The most tokens of a window of text that are shown.
constexpr std::size_t most_tokens = 160;

// The first characters of a text, in one line.
std::string beginning_of(const std::string& text) {
  constexpr std::size_t most = 300;
  std::string line;
  for (std::size_t at = 0; at < text.size(); at += utf8_at(text, at).bytes) {
    if (at >= most) return line + " …";
    const char c = text[at];
    line += c == '\n' || c == '\t' || c == '\r' ? " " : text.substr(at, utf8_at(text, at).bytes);
  }
  return line;
}

// Keeps the examples with the largest errors.
class Worst {
 public:
  explicit Worst(std::size_t most) : most_(most) {}
  void add(WorstExample example) {
    if (std::isnan(example.error)) example.error = std::numeric_limits<double>::infinity();
    const auto is_worse = [](const WorstExample& a, const WorstExample& b) { return a.error > b.error; };
    if (all_.size() == most_ && (most_ == 0 || example.error <= all_.back().error)) return;
    all_.insert(std::upper_bound(all_.begin(), all_.end(), example, is_worse), std::move(example));
    if (all_.size() > most_) all_.pop_back();
  }
  std::vector<WorstExample> take() { return std::move(all_); }

 private:
  std::size_t most_;
  std::vector<WorstExample> all_;
};

class Collector {
 public:
  // `reader` is that of a language model's tokens; null for other models.
  Collector(const evaluate::CheckpointEvaluation& evaluation, SplitPredictions& found, std::size_t most_worst,
            const TokenReader* reader)
      : dataset_(evaluation.dataset()),
        model_(evaluation.model()),
        found_(found),
        reader_(reader),
        threshold_(model::class_threshold(model_)),
        target_field_(dataset_.target()),
        target_(target_field_.bytes()),
        worst_(most_worst) {
    const std::size_t classes = found.classes.size();
    found_.confusion.assign(classes, std::vector<double>(classes));
  }

  void add(const evaluate::CheckpointEvaluation::Predicted& rows) {
    const auto size = static_cast<std::size_t>(numel(model_.output));
    for (std::int64_t i = 0; i < rows.examples; ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * size;
      add_example(rows.first + i, rows.outputs.subspan(at, size), rows.probabilities.subspan(at, size));
    }
  }

  void add(const evaluate::CheckpointEvaluation::PositionLosses& rows) {
    const std::size_t positions = rows.losses.size() / static_cast<std::size_t>(rows.examples);
    for (std::int64_t i = 0; i < rows.examples; ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * positions;
      add_window(rows.first + i, rows.losses.subspan(at, positions), rows.likeliest.subspan(at, positions));
    }
  }

  void finish() {
    found_.worst = worst_.take();
    if (all_tokens_ > 0) found_.loss = all_losses_ / static_cast<double>(all_tokens_);
    if (all_bytes_ > 0) found_.loss_by_byte = all_losses_ / static_cast<double>(all_bytes_);
    for (WorstExample& example : found_.worst) {
      if (reader_ != nullptr) {
        show_text(example);
        continue;
      }
      example.place = place_of(example.index);
      example.text = beginning_of(dataset_.text_of(example.index));
      if (!is_image(found_.input) && found_.input.bytes() > most_bytes) continue;
      example.inputs.resize(found_.input.bytes());
      dataset_.read(example.index, example.inputs.data(), target_.data());
    }
  }

 private:
  std::string place_of(std::int64_t index) const {
    if (std::string file = dataset_.file_of(index); !file.empty()) return file;
    if (const std::string line = dataset_.line_of(index); !line.empty()) {
      // "'data/t.csv', line 7": the folder is that of all lines.
      const std::size_t end = line.rfind('\''), folder = line.rfind('/', end);
      const std::size_t begin = folder == std::string::npos ? 1 : folder + 1;
      return line.substr(begin, end - begin) + line.substr(end + 1);
    }
    const std::int64_t row = dataset_.index_in_source(index);
    return row == index ? "" : fmt::format("row {}", row);
  }

  void add_example(std::int64_t index, std::span<const float> outputs, std::span<const float> probabilities) {
    dataset_.read(index, nullptr, target_.data());
    const std::vector<double> target = numbers_of(target_field_, target_);
    const double weight = dataset_.is_weighted() ? static_cast<double>(dataset_.weight(index)) : 1;
    ++found_.examples;
    const std::optional<std::int64_t> ignored = model_.ignored_label();
    if (weight > 0 && !found_.map.empty()) return add_map(index, target, outputs, probabilities, weight);
    if (weight == 0 || (ignored && target.front() == static_cast<double>(*ignored))) return;
    WorstExample example;
    example.index = index;
    if (found_.classes.empty()) {
      double squares = 0;
      std::vector<double> values(outputs.begin(), outputs.end());
      for (std::size_t i = 0; i < values.size(); ++i) squares += (values[i] - target[i]) * (values[i] - target[i]);
      example.error = squares / static_cast<double>(values.size());
      add_pairs(index, target, values);
      example.numbers = target;
      example.outputs = std::move(values);
      return worst_.add(std::move(example));
    }
    const std::size_t truth = target.size() == 1 ? static_cast<std::size_t>(target.front()) : largest(target);
    const std::size_t predicted =
        threshold_ ? (static_cast<double>(outputs.front()) > *threshold_ ? 1 : 0) : largest(outputs);
    const auto chance = [&](std::size_t of_class) {
      const auto p = static_cast<double>(probabilities[threshold_ ? 0 : of_class]);
      return threshold_ && of_class == 0 ? 1 - p : p;
    };
    found_.confusion.at(truth).at(predicted) += weight;
    example.probability = chance(truth);
    example.of_predicted = chance(predicted);
    example.error = -std::log(example.probability);
    example.truth = found_.classes[truth];
    example.predicted = found_.classes[predicted];
    worst_.add(std::move(example));
  }

  void add_map(std::int64_t index, std::span<const double> target, std::span<const float> outputs,
               std::span<const float> probabilities, double weight) {
    const std::size_t classes = found_.classes.size();
    const std::optional<std::int64_t> ignored = model_.ignored_label();
    WorstExample example;
    example.index = index;
    double loss = 0, right = 0, count = 0;
    for (std::size_t i = 0; i < target.size(); ++i) {
      const std::size_t predicted = largest(outputs.subspan(i * classes, classes));
      example.true_map.push_back(static_cast<std::int32_t>(target[i]));
      example.predicted_map.push_back(static_cast<std::int32_t>(predicted));
      if (ignored && target[i] == static_cast<double>(*ignored)) continue;
      const auto truth = static_cast<std::size_t>(target[i]);
      found_.confusion.at(truth).at(predicted) += weight;
      loss -= std::log(static_cast<double>(probabilities[i * classes + truth]));
      right += truth == predicted ? 1 : 0;
      ++count;
    }
    if (count == 0) return;
    example.error = loss / count;
    example.right = right / count;
    worst_.add(std::move(example));
  }

  void add_window(std::int64_t index, std::span<const double> losses, std::span<const std::int32_t> likeliest) {
    dataset_.read(index, nullptr, target_.data());
    ++found_.examples;
    WorstExample example;
    PredictedTokens& window = example.window;
    window.losses.assign(losses.begin(), losses.end());
    window.likeliest.assign(likeliest.begin(), likeliest.end());
    const std::optional<std::int64_t> ignored = model_.ignored_label();
    for (const double target : numbers_of(target_field_, target_)) {
      if (ignored && target == static_cast<double>(*ignored)) {
        window.losses[window.targets.size()] = std::numeric_limits<double>::quiet_NaN();
      }
      window.targets.push_back(static_cast<std::int32_t>(target));
    }
    if (window.count() == 0) return;
    all_losses_ += window.sum();
    all_tokens_ += window.count();
    all_bytes_ += reader_->bytes(window).value_or(0);
    example.index = index;
    example.error = window.sum() / static_cast<double>(window.count());
    worst_.add(std::move(example));
  }

  void show_text(WorstExample& example) const {
    std::vector<std::byte> inputs(found_.input.bytes()), targets(target_field_.bytes());
    dataset_.read(example.index, inputs.data(), targets.data());
    const std::vector<double> before = numbers_of(found_.input, inputs);
    const std::optional<std::int64_t> bytes = reader_->bytes(example.window);
    if (bytes && *bytes > 0) example.error_by_byte = example.window.sum() / static_cast<double>(*bytes);
    example.tokens = reader_->show(static_cast<std::int32_t>(before.front()), example.window, most_tokens);
  }

  // Every n-th example is drawn.
  void add_pairs(std::int64_t index, std::span<const double> target, std::span<const double> values) {
    const std::int64_t stride = (dataset_.size() + std::int64_t{most_points} - 1) / std::int64_t{most_points};
    if (index % stride != 0) return;
    found_.outputs.resize(std::max(found_.outputs.size(), std::min(values.size(), most_outputs)));
    for (std::size_t i = 0; i < std::min(values.size(), most_outputs); ++i) {
      found_.outputs[i].truth.push_back(target[i]);
      found_.outputs[i].predicted.push_back(values[i]);
    }
  }

  const data::Dataset& dataset_;
  const model::Model model_;
  SplitPredictions& found_;
  const TokenReader* reader_;
  const std::optional<double> threshold_;
  const data::Field target_field_;
  std::vector<std::byte> target_;
  Worst worst_;
  double all_losses_ = 0;  // of a language model
  std::int64_t all_tokens_ = 0, all_bytes_ = 0;
};

// How many classes an example can have one of; 0 if its targets are no classes.
std::size_t classes_of(const model::Model& model) {
  if (!model::is_classifier(model) || model.is_multi_label()) return 0;
  if (model.has_sequences() && model.target.shape.size() != 2) return 0;
  if (model.is_binary()) return 2;
  return model.has_labels() || model.has_distributions() ? static_cast<std::size_t>(model.output.back()) : 0;
}

}  // namespace

std::optional<SplitPredictions> predict_split(const RunRecord& run, const std::string& checkpoint,
                                              std::size_t most_worst) {
  const spec::DataSpec& data = run.config.spec.data;
  SplitPredictions found;
  for (const data::Split split : {data::Split::validation, data::Split::test}) {
    if (found.split.empty() && input::has_split(data, split)) found.split = data::name_of(split);
  }
  if (found.split.empty()) return std::nullopt;
  const evaluate::CheckpointEvaluation evaluation(run.config, run.folder, checkpoint, found.split, spec::Weights::ema,
                                                  std::nullopt);
  const model::Model model = evaluation.model();
  const std::size_t classes = classes_of(model);
  const bool is_of_numbers = !model::is_classifier(model) && !model.has_padded_numbers() &&
                             numel(model.output) == numel(evaluation.dataset().target().shape);
  const auto* const text = data.source.as<data::TextFiles>();
  const bool is_language = text != nullptr && model.has_sequences() && model.target.shape.size() == 1;
  if (classes == 0 && !is_of_numbers && !is_language) return std::nullopt;
  found.checkpoint = evaluation.checkpoint_name_of_all();
  found.input = evaluation.dataset().input();
  found.classes = evaluation.classes();
  found.classes.resize(classes);
  for (std::size_t c = evaluation.classes().size(); c < classes; ++c) found.classes[c] = std::to_string(c);
  found.columns = evaluation.encoding().columns;
  std::optional<TokenReader> reader;
  if (is_language) {
    found.vocabulary = model.output.back();
    found.tokens_are_bytes = evaluation.tokenizer() == nullptr && text->tokens == data::Tokens::bytes;
    reader.emplace(evaluation.tokenizer(), text->tokens);
  } else if (model.has_sequences()) {
    found.map = model.target.shape;
  }
  found.notes = evaluation.notes();
  if (!evaluation.left_out().empty()) {
    found.notes.push_back(run::names_of(evaluation.left_out()) + " left out: there is no best checkpoint of them");
  }
  Collector collector(evaluation, found, most_worst, reader ? &*reader : nullptr);
  const auto add = [&](const auto& rows) { collector.add(rows); };
  if (reader) {
    evaluation.position_losses(add);
  } else {
    evaluation.predict(add);
  }
  collector.finish();
  const std::vector<std::string> names = data.source->target_names();
  for (std::size_t i = 0; i < std::min(found.outputs.size(), names.size()); ++i) found.outputs[i].name = names[i];
  return found;
}

bool is_image(const data::Field& input) {
  if (input.shape.size() != 3 || input.shape[0] < 2 || input.shape[1] < 2) return false;
  const std::int64_t channels = input.shape[2];
  return (channels == 1 || channels == 3 || channels == 4) && (input.dtype == DType::u8 || input.dtype == DType::f32);
}

}  // namespace pmaptrain::report
