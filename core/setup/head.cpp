#include "core/setup/head.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "core/base/text.h"
#include "core/losses/poisson.h"
#include "core/run/records/lines.h"
#include "core/setup/advice.h"
#include "core/setup/values.h"

namespace pmaptrain::setup {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The values that a function gives, bounds included: those that it only comes near count too.
struct Values {
  double low = -infinity, high = infinity;
  std::string_view text;
};

std::optional<Values> values_of(const std::string& kind) {
  static const std::map<std::string, Values> known{{"relu", {0, infinity, "numbers of at least 0"}},
                                                   {"softplus", {0, infinity, "numbers above 0"}},
                                                   {"sigmoid", {0, 1, "numbers from 0 to 1"}},
                                                   {"softmax", {0, 1, "numbers from 0 to 1 with a sum of 1"}},
                                                   {"tanh", {-1, 1, "numbers from -1 to 1"}}};
  const auto found = known.find(kind);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

std::string last_layer(const model::Node& last) {
  return "the last layer, " + last.name + in_parentheses(last.place) + ", is a " + last.kind;
}

// Targets that the outputs of the last layer cannot be, in the units of the loss.
void unreachable_targets(const Setup& setup, std::vector<std::string>& out) {
  const model::Model& model = setup.model;
  const model::Node& last = *model.nodes().back();
  const std::optional<Values> values = values_of(last.kind);
  const bool of_numbers = takes_numbers(model.loss) && model.loss.as<losses::Poisson>() == nullptr;
  const data::Dataset& train = *setup.source.train;
  const data::Field read = train.target();  // in float64 where float32 would round it
  if (!values || !of_numbers || (read.dtype != DType::f32 && read.dtype != DType::f64)) return;
  const auto& statistics = model.target_statistics;
  std::vector<std::byte> row(read.bytes());
  std::int64_t outside = 0, count = 0;
  double least = infinity, most = -infinity;
  for (std::int64_t i = 0; i < train.size(); ++i) {
    train.read(i, nullptr, row.data());
    const std::vector<double> targets = to_doubles(row, read.dtype);
    for (std::size_t j = 0; j < targets.size(); ++j) {
      double target = targets[j];
      if (statistics) {
        const std::size_t at = j % statistics->mean.size();
        if (!model.log_targets.empty() && model.log_targets[at]) target = std::log1p(target);
        target = (target - statistics->mean[at]) / statistics->std[at];
      }
      least = std::min(least, target);
      most = std::max(most, target);
      if (target < values->low || target > values->high) ++outside;
      ++count;
    }
  }
  if (outside == 0) return;
  const std::string units = statistics ? "normalised targets" : "targets";
  const std::string what =
      last_layer(last) + " and gives " + std::string(values->text) + "; " +
      (outside == count ? "none of the " + with_commas(count) + " " + units + " is among these"
                        : with_commas(outside) + " of " + with_commas(count) + " " + units + " are not") +
      ", which range from " + run::compact(least) + " to " + run::compact(most);
  if (outside == count) {
    throw Error(ExitStatus::usage, Diagnostic{"config", last.place, what, "remove the layer", {}});
  }
  out.push_back(what + ": remove the layer");
}

// Outputs that no class of the training split has.
void more_outputs_than_classes(const Setup& setup, std::vector<std::string>& out) {
  const model::Model& model = setup.model;
  if (!model.has_labels() || model.has_sequences() || model.is_binary() || model.classes() == 0) return;
  const std::int64_t outputs = model.classes();
  const std::int64_t classes = setup.source.encoding.class_count();
  if (classes >= outputs || classes < 1) return;
  const auto layers = model.nodes();
  const auto last =
      std::find_if(layers.rbegin(), layers.rend(), [](const model::Node* layer) { return !layer->parameters.empty(); });
  if (last == layers.rend()) return;
  out.push_back("the outputs, those of layer " + (*last)->name + in_parentheses((*last)->place) + ", are " +
                with_commas(outputs) + ", and the training examples have " + with_commas(classes) +
                (classes == 1 ? " class" : " classes") + ": end the layers with dense: " + std::to_string(classes));
}

// In each list of layers, a dense layer whose input is the output of another: both together are one linear function.
void dense_after_dense(const std::vector<model::Node>& layers, std::vector<std::string>& out) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].children.empty()) dense_after_dense(layers[i].children, out);
    if (i == 0 || layers[i].kind != "dense" || layers[i - 1].kind != "dense") continue;
    out.push_back("layer " + layers[i].name + in_parentheses(layers[i].place) + " is a dense layer directly behind " +
                  layers[i - 1].name +
                  ": without an activation between them both compute one linear function; put "
                  "one, such as relu, between them, or leave one out");
  }
}

void dropout_behind_outputs(const model::Model& model, std::vector<std::string>& out) {
  const model::Node& last = *model.nodes().back();
  if (last.kind != "dropout") return;
  out.push_back(last_layer(last) +
                ", which sets outputs of the model to 0 in training: the loss then sees wrong outputs; put it before "
                "the last dense layer");
}

}  // namespace

void add_head_mistakes(const Setup& setup, std::vector<std::string>& out) {
  unreachable_targets(setup, out);
  more_outputs_than_classes(setup, out);
  dense_after_dense(setup.model.layers, out);
  dropout_behind_outputs(setup.model, out);
}

}  // namespace pmaptrain::setup
