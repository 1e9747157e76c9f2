#include "core/train/advice.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/base/utf8.h"

namespace pmaptrain::train {
namespace {

// The text of the config at a place.
std::string written_at(const Place& place) {
  std::size_t begin = 0;
  for (int column = 1; column < place.column && begin < place.excerpt.size(); ++column) {
    begin += utf8_at(place.excerpt, begin).bytes;
  }
  std::size_t end = begin;
  for (int i = 0; i < place.length && end < place.excerpt.size(); ++i) end += utf8_at(place.excerpt, end).bytes;
  return place.excerpt.substr(begin, end - begin);
}

bool is_bare_number(const Place& place) {
  const std::string text = written_at(place);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// The loss applies the function that the last layer is.
void twice_normalised(const Setup& setup, std::vector<std::string>& out) {
  const std::vector<const model::PlannedLayer*> layers = setup.model.leaves();
  const model::PlannedLayer& last = *layers.back();
  const spec::Loss& loss = setup.model.loss;
  const bool softmax = last.kind == "softmax" && std::holds_alternative<spec::SoftmaxCrossEntropy>(loss);
  const bool sigmoid = last.kind == "sigmoid" && std::holds_alternative<spec::SigmoidCrossEntropy>(loss);
  if (!softmax && !sigmoid) return;
  out.push_back("the last layer, " + last.name + in_parentheses(last.place) + ", is a " + last.kind +
                ", and the loss " + to_string(loss) +
                " applies one itself: gradients are then small, and training is slow; remove the layer");
}

// Images are (height, width, channels).
void channels_first(const Setup& setup, std::vector<std::string>& out) {
  const Shape& shape = setup.model.input.shape;
  const auto are_channels = [](std::int64_t size) { return size == 1 || size == 3 || size == 4; };
  if (shape.size() != 3 || !are_channels(shape[0]) || are_channels(shape[2])) return;
  if (std::min(shape[1], shape[2]) < 2 * shape[0]) return;
  const std::vector<const model::PlannedLayer*> layers = setup.model.leaves();
  const bool has_images = std::any_of(layers.begin(), layers.end(), [](const model::PlannedLayer* layer) {
    return layer->kind == "conv" || layer->kind.ends_with("_pool");
  });
  if (!has_images) return;
  out.push_back("inputs of shape " + to_string(shape) +
                " look like images whose channels come first; they are read as (height, width, channels): in NumPy, "
                "x.transpose(0, 2, 3, 1) moves the channels");
}

void short_duration(const Setup& setup, std::vector<std::string>& out) {
  const spec::Duration& duration = setup.spec().train.duration;
  if (setup.timetable.steps >= setup.timetable.steps_per_epoch || !is_bare_number(duration.place)) return;
  const std::string count = std::to_string(duration.count);
  out.push_back("train.duration" + in_parentheses(duration.place) + " is " + counted(duration.count, "step") +
                ", less than an epoch of " + std::to_string(setup.timetable.steps_per_epoch) +
                ": a number alone counts steps; '" + count + (duration.count == 1 ? " epoch" : " epochs") +
                "' counts epochs");
}

void large_batch(const Setup& setup, std::vector<std::string>& out) {
  const data::BatchPlan& batch = setup.batch;
  if (std::holds_alternative<spec::BatchAll>(setup.spec().data.batch_size) || 2 * batch.global <= batch.dataset) return;
  out.push_back("a batch of " + with_commas(batch.global) + in_parentheses(setup.spec().data.batch_size_place) +
                " is more than half of the " + with_commas(batch.dataset) + " training examples, so an epoch has " +
                counted(batch.steps_per_epoch, "step") + "; batch_size: all says that this is meant");
}

void single_device(const Setup& setup, std::vector<std::string>& out) {
  if (setup.mesh().devices() > 1) return;
  out.emplace_back("the mesh has fewer than 2 logical devices: there is nothing to synchronise (mesh.axes, --devices)");
}

}  // namespace

std::string in_parentheses(const Place& place) {
  if (place.line == 0) return "";
  return " (" + place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ")";
}

std::vector<std::string> likely_mistakes(const Setup& setup) {
  std::vector<std::string> found;
  single_device(setup, found);
  twice_normalised(setup, found);
  channels_first(setup, found);
  short_duration(setup, found);
  large_batch(setup, found);
  return found;
}

}  // namespace pmaptrain::train
