#include "core/setup/advice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <variant>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/statistics.h"
#include "core/data/tables/csv_reader.h"
#include "core/model/prediction.h"
#include "core/run/records/lines.h"
#include "core/setup/head.h"
#include "core/setup/looking_ahead.h"
#include "core/setup/target_advice.h"

namespace pmaptrain::setup {
namespace {

// The config's text at a place.
std::string written_at(const Place& place) {
  const std::string_view line = place.excerpt.text();
  std::size_t begin = 0;
  for (int column = 1; column < place.column && begin < line.size(); ++column) begin += utf8_at(line, begin).bytes;
  std::size_t end = begin;
  for (int i = 0; i < place.length && end < line.size(); ++i) end += utf8_at(line, end).bytes;
  return std::string(line.substr(begin, end - begin));
}

bool is_bare_number(const Place& place) {
  const std::string text = written_at(place);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// Warns if the loss takes logits but the last layer computes none. The last layer then applies the function that the
// loss applies too, or a function with a limited range.
void function_before_loss(const model::Model& model, std::vector<std::string>& out) {
  const model::Node& last = *model.nodes().back();
  const bool softmax = model.outputs() == losses::Outputs::softmax_logits;
  const bool sigmoid = model.outputs() == losses::Outputs::sigmoid_logits;
  const std::string layer = "the last layer, " + last.name + in_parentheses(last.place) + ", is a " + last.kind +
                            ", and the loss " + model.loss->name();
  if ((last.kind == "softmax" && softmax) || (last.kind == "sigmoid" && sigmoid)) {
    out.push_back(layer + " applies one itself: gradients are then small, and training is slow; remove the layer");
  } else if (last.kind == "relu" && (softmax || sigmoid)) {
    out.push_back(layer +
                  " takes logits, which may be negative: classes whose logits are all cut to 0 do not train; remove "
                  "the layer");
  }
}

// Warns if the inputs are bytes and the numbers of data.normalize are in units of bytes (0 to 255). Bytes are scaled to
// 0..1 before they are normalised.
void unscaled_normalize(const model::Model& model, std::vector<std::string>& out) {
  const auto& normalize = model.normalize;
  if (!normalize || model.input.dtype != DType::u8) return;
  const auto most = [](const std::vector<double>& values) {
    return values.empty() ? 0.0 : *std::max_element(values.begin(), values.end());
  };
  const double largest = std::max(most(normalize->mean), most(normalize->std));
  if (largest <= 1) return;
  out.push_back("data.normalize" + in_parentheses(model.normalize_place) + " has " + exact(largest) +
                ", but inputs are bytes, which are scaled to 0..1 first: divide mean and std by 255, or write "
                "normalize: auto");
}

// Warns about a column of a CSV file whose cells are numbers with fractions, but which is read as categories, so that
// each distinct number becomes an input of its own. `place` is the place of the data source in the config.
void measured_categories(const data::Encoding& encoding, const Place& place, std::vector<std::string>& out) {
  constexpr std::size_t most = 20;
  for (const data::Encoding::Column& column : encoding.columns) {
    const std::vector<std::string>& names = column.categories;
    if (names.size() <= most) continue;
    const auto is_number = [](const std::string& name) {
      return data::to_number(name).kind == data::CellNumber::Kind::number;
    };
    const bool measured =
        std::all_of(names.begin(), names.end(), is_number) &&
        std::any_of(names.begin(), names.end(), [](const std::string& name) { return !data::to_number(name).integer; });
    if (!measured) continue;
    out.push_back("column '" + shown_name(column.name) + "'" + in_parentheses(place) + " is categorical and has " +
                  with_commas(std::ssize(names)) + " different numbers, each of which becomes " +
                  (column.numbered ? "a row of a table" : "an input") +
                  ": without its name in categorical it is one number");
  }
}

void images_channels_first(const model::Model& model, std::vector<std::string>& out) {
  std::string text = channels_first_warning(model.input.shape);
  if (text.empty()) return;
  const std::vector<const model::Node*> layers = model.nodes();
  const bool has_images = std::any_of(layers.begin(), layers.end(), [](const model::Node* layer) {
    return layer->kind == "conv" || layer->kind.ends_with("_pool");
  });
  if (has_images) out.push_back(std::move(text));
}

void short_duration(const spec::Duration& duration, const step::Timetable& times, std::vector<std::string>& out) {
  if (times.steps >= times.steps_per_epoch || !is_bare_number(duration.place)) return;
  const std::string count = std::to_string(duration.count);
  out.push_back("train.duration" + in_parentheses(duration.place) + " is " + counted(duration.count, "step") +
                ", less than an epoch of " + std::to_string(times.steps_per_epoch) +
                ": a number alone counts steps; '" + count + (duration.count == 1 ? " epoch" : " epochs") +
                "' counts epochs");
}

void large_batch(const spec::DataSpec& data, const BatchPlan& batch, std::vector<std::string>& out) {
  if (std::holds_alternative<spec::BatchAll>(data.batch_size) || 2 * batch.global <= batch.dataset) return;
  out.push_back("a batch of " + with_commas(batch.global) + in_parentheses(data.batch_size_place) +
                " is more than half of the " + with_commas(batch.dataset) + " training examples, so an epoch has " +
                counted(batch.steps_per_epoch, "step") + "; batch_size: all says that this is meant");
}

// "column 'age'"; for inputs without names "channel 3 of the inputs", counted from 0.
std::string name_of_input(const data::Encoding& encoding, std::size_t channel) {
  std::size_t at = 0;
  for (const data::Encoding::Column& column : encoding.columns) {
    at += column.width();
    if (channel < at) return "column '" + shown_name(column.name) + "'";
  }
  return "channel " + std::to_string(channel) + " of the inputs";
}

// Warns if inputs that are not normalised have a mean or a standard deviation above `far`. Of a large data set, reads
// only examples at equal distances. `place` is the place of the data source in the config.
void distant_inputs(const model::Model& model, const data::Source& source, const Place& place,
                    std::vector<std::string>& out) {
  constexpr double far = 10;
  constexpr std::int64_t most_numbers = 10'000'000;
  const data::Dataset& train = *source.train;
  const data::Field input = train.input();
  if (model.normalize || input.dtype != DType::f32 || numel(input.shape) == 0) return;
  const auto numbers = static_cast<std::size_t>(numel(input.shape));
  const std::size_t channels = input.shape.empty() ? 1 : static_cast<std::size_t>(input.shape.back());
  const std::int64_t examples = std::clamp<std::int64_t>(most_numbers / numel(input.shape), 1, train.size());
  std::vector<float> row(numbers), first;
  std::vector<std::byte> target(train.target().bytes());
  // Sums of differences from the first example, because sums of large values would lose digits.
  std::vector<double> sums(channels), squares(channels);
  for (std::int64_t i = 0; i < examples; ++i) {
    train.read(i * train.size() / examples, reinterpret_cast<std::byte*>(row.data()), target.data());
    if (first.empty()) first = row;
    for (std::size_t j = 0; j < numbers; ++j) {
      const double distance = static_cast<double>(row[j]) - static_cast<double>(first[j % channels]);
      sums[j % channels] += distance;
      squares[j % channels] += distance * distance;
    }
  }
  const double count = static_cast<double>(examples) * static_cast<double>(numbers / channels);
  std::size_t worst = 0;
  double worst_mean = 0, worst_deviation = 0, distance = far;
  const std::vector<data::Encoding::Column>& columns = source.encoding.columns;
  for (std::size_t c = 0; c < channels; ++c) {
    if (columns.size() == channels && columns[c].numbered) continue;  // no quantity
    const double from_first = sums[c] / count, mean = static_cast<double>(first[c]) + from_first;
    const double deviation = std::sqrt(std::max(0.0, squares[c] / count - from_first * from_first));
    if (std::max(std::abs(mean), deviation) <= distance) continue;
    distance = std::max(std::abs(mean), deviation);
    worst = c;
    worst_mean = mean;
    worst_deviation = deviation;
  }
  if (distance <= far) return;
  const std::string which = channels == 1 ? "inputs have" : name_of_input(source.encoding, worst) + " has";
  out.push_back(which + " the mean " + run::compact(worst_mean) + " and the standard deviation " +
                run::compact(worst_deviation) + ", and nothing brings inputs near 0 and 1" + in_parentheses(place) +
                ": such numbers train slowly, or not at all; data.normalize: auto scales them");
}

// "column 'age'"; for targets without names "the targets", or "number 2 of the targets", counted from 0.
std::string name_of_target(const spec::DataSpec& data, const data::Field& target, std::size_t number) {
  const std::vector<std::string> names = data.source->target_names();
  if (!names.empty()) return "column '" + shown_name(names.at(number)) + "'";
  return (numel(target.shape) == 1 ? "" : "number " + std::to_string(number) + " of ") + "the targets";
}

// Warns of numbers that are fewer in float32, where nothing takes them to 0 before. Those that are all one are refused
// if `refuses`.
void collapsed_numbers(const Setup& setup, bool refuses, std::vector<std::string>& out) {
  const spec::DataSpec& data = setup.spec().data;
  const data::Dataset& train = *setup.source.train;
  const auto tell = [&](const data::Collapsed& found, const std::string& name, const std::string& key) {
    const std::string what =
        name + " has " + with_commas(static_cast<std::int64_t>(found.numbers)) + " different numbers, which are " +
        (found.in_float == 1 ? "one" : with_commas(static_cast<std::int64_t>(found.in_float))) + " in float32";
    const std::string help = key + ": auto takes their mean and normalises them in float64";
    if (refuses && found.in_float == 1)
      throw Error(ExitStatus::data, Diagnostic{"data", data.source_place, what, help, {}});
    out.push_back(what + in_parentheses(data.source_place) + ": " + help);
  };
  if (!setup.model.normalize) {
    for (const data::Collapsed& found : data::collapsed_inputs(train)) {
      tell(found, name_of_input(setup.source.encoding, found.channel), "data.normalize");
    }
  }
  if (!takes_numbers(setup.model.loss)) return;
  const std::vector<data::TargetScale> scales = spec::target_scales(data, numel(train.target().shape));
  for (const data::Collapsed& found : data::collapsed_targets(train)) {
    if (scales[found.channel] == data::TargetScale::automatic) continue;
    tell(found, name_of_target(data, train.target(), found.channel), "data.normalize_targets");
  }
}

// A mesh of one device that a file gives is meant.
void single_device(const spec::MeshSpec& mesh, std::vector<std::string>& out) {
  if (mesh.mesh.devices() > 1 || (mesh.place.known() && !mesh.place.file.starts_with("--"))) return;
  out.emplace_back("the mesh has fewer than 2 logical devices: there is nothing to synchronise (mesh.axes, --devices)");
}

// Warns of a mode that takes the worst values of a metric for the best.
template <class Section>
void opposite_mode(const std::optional<Section>& section, const char* key, const char* effect,
                   std::vector<std::string>& out) {
  if (!section) return;
  const spec::Mode better = spec::mode_of(section->metric);
  if (!section->mode || *section->mode == better) return;
  out.push_back(std::string(key) + " has mode: " + spec::to_string(*section->mode) + in_parentheses(section->place) +
                ", and " + (better == spec::Mode::max ? "larger" : "smaller") + " values of " + section->metric +
                " are better: " + effect + "; remove mode, or write mode: " + spec::to_string(better));
}

// Warns of metrics of numbers where the outputs are logits, which are no numbers like the targets.
void numbers_of_logits(const spec::Spec& spec, const model::Model& model, std::vector<std::string>& out) {
  if (losses::output_kind(model) != losses::OutputKind::sigmoid_logits) return;
  for (const metrics::Metric& metric : spec.metrics) {
    if (metric.kind->compares() != metrics::Compares::numbers) continue;
    out.push_back("metric " + metric.label() + in_parentheses(metric.place) +
                  " compares the targets with the outputs, which are logits with " + model.loss->name() +
                  ", no probabilities: it says little; accuracy and f1 are for labels of 0 and 1");
  }
}

void opposite_modes(const spec::Spec& spec, std::vector<std::string>& out) {
  opposite_mode(spec.train.checkpoint.best, "train.checkpoint.best", "the worst checkpoint is kept as the best", out);
  opposite_mode(spec.train.early_stopping, "train.early_stopping", "a run that gets better is stopped", out);
  opposite_mode(spec.optimizer.reduce_on_plateau, "optimizer.reduce_on_plateau",
                "the learning rate falls where a run gets better", out);
}

}  // namespace

std::string in_parentheses(const Place& place) {
  if (place.line == 0) return "";
  return " (" + place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ")";
}

std::string channels_first_warning(const Shape& input) {
  const auto are_channels = [](std::int64_t size) { return size == 1 || size == 3 || size == 4; };
  if (input.size() != 3 || !are_channels(input[0]) || are_channels(input[2])) return "";
  if (std::min(input[1], input[2]) < 2 * input[0]) return "";
  return "inputs of shape " + to_string(input) +
         " look like images whose channels come first; they are read as (height, width, channels): in NumPy, "
         "x.transpose(0, 2, 3, 1) moves the channels";
}

std::vector<std::string> likely_mistakes(const Setup& setup) {
  const spec::DataSpec& data = setup.spec().data;
  std::vector<std::string> found;
  single_device(setup.spec().mesh, found);
  opposite_modes(setup.spec(), found);
  numbers_of_logits(setup.spec(), setup.model, found);
  function_before_loss(setup.model, found);
  add_head_mistakes(setup, found);
  add_seen_targets(setup, found);
  unscaled_normalize(setup.model, found);
  measured_categories(setup.source.encoding, data.source_place, found);
  images_channels_first(setup.model, found);
  short_duration(setup.spec().train.duration, setup.timetable, found);
  large_batch(data, setup.batch, found);
  add_distant_targets(setup, found);
  distant_inputs(setup.model, setup.source, data.source_place, found);
  collapsed_numbers(setup, true, found);
  return found;
}

std::vector<std::string> mistakes_of_older_versions(const Setup& setup) {
  std::vector<std::string> found;
  collapsed_numbers(setup, false, found);
  return found;
}

}  // namespace pmaptrain::setup
