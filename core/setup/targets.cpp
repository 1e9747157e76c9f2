// Checks of the targets of a split, which requires reading them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/data/statistics.h"
#include "core/losses/objective.h"
#include "core/losses/poisson.h"
#include "core/setup/data_checks.h"

namespace pmaptrain::setup {
namespace {

[[noreturn]] void refuse(const Place& source, std::string message, std::string help,
                         std::vector<std::string> notes = {}) {
  throw Error(ExitStatus::data, Diagnostic{"data", source, std::move(message), std::move(help), std::move(notes)});
}

template <class T>
T at(const std::vector<std::byte>& bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

std::string of_file(const data::Dataset& split) {
  const std::string origin = split.target().origin;
  return origin.empty() ? "" : " in " + origin;
}

// "the target of example 3 in 'y.npy'"; of a table "the target in 't.csv', line 5". Examples count from 0, lines
// from 1.
std::string target_of(const data::Dataset& split, std::int64_t example) {
  const std::string line = split.line_of(example);
  return line.empty() ? "the target of example " + std::to_string(split.index_in_source(example)) + of_file(split)
                      : "the target in " + line;
}

// What would make these labels fit.
std::string labels_help(const model::Model& model, std::int64_t first, std::int64_t last) {
  const std::string enough = "end the layers with dense: " + std::to_string(last + 1);
  const bool takes_ignored = model.outputs() == losses::Outputs::softmax_logits && !model.ignored_label();
  if (first < 0 && takes_ignored) {
    return "labels start at 0; if " + std::to_string(first) +
           " marks what has no label, write loss: {softmax_cross_entropy: {ignore_label: " + std::to_string(first) +
           "}}";
  }
  const std::string listed = model.is_binary() ? "; or, of a table, list the two in order: classes: [" +
                                                     std::to_string(first) + ", " + std::to_string(last) + "]"
                                               : "";
  if (first < 0) return "labels start at 0" + listed;
  if (first == 1 && last == model.classes()) {
    return "labels begin at 1: subtract 1 from them" + (model.is_binary() ? listed : ", or " + enough);
  }
  return model.is_binary() ? "use softmax_cross_entropy for more than two classes" : enough;
}

// Where the number of classes comes from.
std::vector<std::string> notes_of_layer(const model::Model& model) {
  const auto layers = model.nodes();
  const auto last =
      std::find_if(layers.rbegin(), layers.rend(), [](const model::Node* layer) { return !layer->parameters.empty(); });
  if (last == layers.rend() || !(*last)->place.known() || (*last)->place.line == 0) return {};
  const Place& place = (*last)->place;
  return {"the outputs are those of layer '" + (*last)->name + "', " + place.file + ":" + std::to_string(place.line) +
          ":" + std::to_string(place.column)};
}

// The smallest and the largest label of a split, without those that are ignored; none if all are.
std::optional<std::pair<std::int64_t, std::int64_t>> counting_labels(const data::Dataset& split, std::int64_t ignored) {
  std::map<std::int32_t, std::int64_t> counts = data::count_labels(split);
  // Windows into a sequence begin at its first element there; those at the last offset have its end.
  if (split.offsets() > 1) {
    std::vector<std::int32_t> labels(static_cast<std::size_t>(numel(split.target().shape)));
    for (std::int64_t example = 0; example < split.size(); ++example) {
      split.read_at(split.offsets() - 1, example, nullptr, reinterpret_cast<std::byte*>(labels.data()));
      for (const std::int32_t label : labels) ++counts[label];
    }
  }
  counts.erase(static_cast<std::int32_t>(ignored));
  if (counts.empty()) return std::nullopt;
  return std::pair<std::int64_t, std::int64_t>{counts.begin()->first, counts.rbegin()->first};
}

void check_labels(const model::Model& model, const data::Dataset& split, const Place& source,
                  const std::vector<std::string>& empty_folders) {
  auto labels = split.label_range();
  const std::int64_t classes = model.classes();
  if (!labels || classes == 0) return;
  const auto fits = [&] { return labels->first >= 0 && labels->second < classes; };
  const std::optional<std::int64_t> ignored = model.ignored_label();
  if (ignored && (!fits() || labels->first == labels->second)) {
    labels = counting_labels(split, *ignored);
    if (!labels) {
      refuse(source,
             "all labels" + of_file(split) + " are " + std::to_string(*ignored) + ", which ignore_label leaves out",
             "a split takes at least one label that counts");
    }
  }
  if (fits()) return;
  if (!empty_folders.empty() && labels->second - std::ssize(empty_folders) < classes) {
    refuse(source,
           "'" + join(empty_folders, "', '") + "' " + (empty_folders.size() == 1 ? "has" : "have") +
               " no images, but each folder is a class: there are " + std::to_string(labels->second + 1) +
               " folders, and the model has " + std::to_string(classes) + " classes",
           empty_folders.size() == 1 ? "remove the empty folder, or add images of its class"
                                     : "remove the empty folders, or add images of their classes",
           notes_of_layer(model));
  }
  refuse(source,
         "the labels" + of_file(split) + " range from " + std::to_string(labels->first) + " to " +
             std::to_string(labels->second) +
             (model.is_binary() ? ", but sigmoid_cross_entropy takes 0 and 1"
                                : ", but the model has " + std::to_string(classes) + " outputs: classes 0 to " +
                                      std::to_string(classes - 1)),
         labels_help(model, labels->first, std::max(labels->second, split.target().tokens - 1)), notes_of_layer(model));
}

// Calls `use` with each number of the targets of each example.
template <class Use>
void for_each_number(const data::Dataset& split, Use&& use) {
  const bool integers = split.target().dtype == DType::i32;
  std::vector<float> target(static_cast<std::size_t>(numel(split.target().shape)));
  for (std::int64_t example = 0; example < split.size(); ++example) {
    split.read(example, nullptr, reinterpret_cast<std::byte*>(target.data()));
    for (const float& value : target)
      use(example, integers ? static_cast<float>(std::bit_cast<std::int32_t>(value)) : value);
  }
}

// log(1 + target) is for targets of at least 0.
void check_logarithms(const model::Model& model, const data::Dataset& split, const Place& source) {
  if (model.log_targets.empty()) return;
  const data::Field field = split.target();
  std::vector<std::byte> bytes(field.bytes());
  for (std::int64_t example = 0; example < split.size(); ++example) {
    split.read(example, nullptr, bytes.data());
    for (std::size_t i = 0; i < bytes.size() / size_of(field.dtype); ++i) {
      const double value = field.dtype == DType::f64 ? at<double>(bytes, i) : static_cast<double>(at<float>(bytes, i));
      if (!model.log_targets[i % model.log_targets.size()] || value >= 0) continue;
      refuse(source,
             target_of(split, example) + " has " + exact(value) +
                 ", but normalize_targets: log takes targets of at least 0",
             "normalize_targets: auto accepts any numbers");
    }
  }
}

// Outside of [0, 1] the loss has no lower bound.
void check_probabilities(const model::Model& model, const data::Dataset& split, const Place& source) {
  for_each_number(split, [&](std::int64_t example, float value) {
    if (value >= 0.0F && value <= 1.0F) return;
    refuse(source,
           target_of(split, example) + " has " + exact(value) + ", but " + model.loss->name() +
               " takes numbers from 0 to 1",
           "mean_squared_error accepts any numbers");
  });
}

void check_counts(const data::Dataset& split, const Place& source) {
  for_each_number(split, [&](std::int64_t example, float value) {
    if (value >= 0.0F) return;
    refuse(source,
           target_of(split, example) + " is " + exact(value) + ", but poisson takes counts, numbers of at least 0",
           "mean_squared_error accepts any numbers");
  });
}

// Class probabilities are not negative and have a sum of 1.
void check_distributions(const data::Dataset& split, const Place& source) {
  std::vector<float> target(static_cast<std::size_t>(numel(split.target().shape)));
  for (std::int64_t example = 0; example < split.size(); ++example) {
    split.read(example, nullptr, reinterpret_cast<std::byte*>(target.data()));
    double sum = 0;
    std::string wrong;
    for (const float value : target) {
      if (!(value >= 0.0F)) wrong = exact(value);
      sum += static_cast<double>(value);
    }
    if (wrong.empty() && std::abs(sum - 1.0) > 1e-3) wrong = "a sum of " + exact(sum);
    if (wrong.empty()) continue;
    refuse(source,
           target_of(split, example) + " has " + wrong +
               ", but softmax_cross_entropy takes class probabilities: at least 0, with a sum of 1",
           split.target().stored.empty()
               ? "store labels as integers or one-hot; for multi-label targets use sigmoid_cross_entropy"
               : "integers with several numbers an example are one-hot rows; " +
                     std::string(losses::labels_of_pixels_help));
  }
}

}  // namespace

std::string unused_classes(const model::Model& model, const data::Source& source, bool is_limited) {
  const data::Dataset& train = *source.train;
  const auto range = train.label_range();
  const std::int64_t classes = model.classes();
  if (!range || classes == 0 || !train.target().shape.empty()) return "";
  std::map<std::int32_t, std::int64_t> counts = data::count_labels(train);
  for (const auto& held_out : {source.validation, source.test}) {
    if (held_out) counts.merge(data::count_labels(*held_out));
  }
  const std::int64_t ignored = model.ignored_label().value_or(-1);
  counts.erase(static_cast<std::int32_t>(ignored));
  // Gaps between names are told where the names are read, and a limit leaves out classes by intention.
  const bool has_gaps = source.encoding.classes.empty() && !is_limited;
  const std::int64_t end = has_gaps && !counts.empty() ? counts.rbegin()->first : range->first;
  std::vector<std::int64_t> missing;
  for (std::int64_t label = 0; label < std::min(end, classes); ++label) {
    if (label != ignored && !counts.contains(static_cast<std::int32_t>(label))) missing.push_back(label);
  }
  if (missing.empty()) return "";
  if (missing.size() == 1 && range->first == 1) {
    return "the labels" + of_file(train) + " begin at 1, so class 0 never occurs" +
           (model.is_binary() ? "" : "; if they are counted from 1, subtract 1 and leave out one output");
  }
  constexpr std::size_t most_named = 8;
  const std::size_t named = std::min(missing.size(), most_named);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < named; ++i) names.push_back(std::to_string(missing[i]));
  return "no label" + of_file(train) + " is " + join(names, ", ") + (named < missing.size() ? ", ..." : "") +
         ", so nothing trains " + std::to_string(missing.size()) + " of the " + std::to_string(classes) +
         " outputs; add examples of " + (missing.size() == 1 ? "this class" : "these classes") +
         ", or number those that occur from 0 without gaps";
}

void check_targets(const model::Model& model, const data::Dataset& split, const Place& source,
                   const std::vector<std::string>& empty_folders) {
  check_labels(model, split, source, empty_folders);
  const bool probabilities = model.outputs() == losses::Outputs::sigmoid_logits && !model.is_binary();
  if (probabilities) check_probabilities(model, split, source);
  if (model.loss.as<losses::Poisson>() != nullptr) check_counts(split, source);
  if (model.has_distributions()) check_distributions(split, source);
  if (!model.log_targets.empty()) check_logarithms(model, split, source);
}

}  // namespace pmaptrain::setup
