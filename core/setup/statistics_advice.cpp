#include "core/setup/statistics_advice.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/setup/advice.h"

namespace pmaptrain::setup {
namespace {

bool has_statistics(const model::Node& node) {
  return std::any_of(node.parameters.begin(), node.parameters.end(),
                     [](const model::Parameter& parameter) { return parameter.is_state; });
}

ValuesBehind values_behind(const Setup& setup, const model::Node& node) {
  const std::int64_t rows = setup.batch.rows_per_device / setup.batch.microbatches;
  const std::int64_t devices = setup.mesh().group_size(node.statistics_axes);
  // Of few examples the first batch is not full either.
  return {std::min(rows * devices, setup.batch.examples_in(0)),
          numel(Shape(node.input.begin(), node.input.end() - 1)),
          {node.name}};
}

std::string described(const ValuesBehind& values) {
  return counted(values.count(), "value") + " (" + counted(values.rows, "row") + " x " +
         counted(values.positions, "position") + ")";
}

}  // namespace

std::vector<ValuesBehind> values_behind_statistics(const Setup& setup) {
  std::vector<ValuesBehind> found;
  for (const model::Node* node : setup.model.nodes()) {
    if (!has_statistics(*node)) continue;
    ValuesBehind own = values_behind(setup, *node);
    const auto same = std::find_if(found.begin(), found.end(), [&](const ValuesBehind& other) {
      return other.rows == own.rows && other.positions == own.positions;
    });
    if (same == found.end()) {
      found.push_back(std::move(own));
    } else {
      same->nodes.push_back(node->name);
    }
  }
  return found;
}

void check_statistics(const Setup& setup) {
  for (const model::Node* node : setup.model.nodes()) {
    if (!has_statistics(*node)) continue;
    const ValuesBehind values = values_behind(setup, *node);
    if (values.count() >= 2) continue;
    throw Error(ExitStatus::usage,
                Diagnostic{"config",
                           node->place,
                           node->name + " has statistics of one value, " + described(values) +
                               ": its variance is 0, and the layer gives its bias for any input",
                           "use a larger batch or fewer microbatches, name mesh axes in axes, or use layer_norm, which "
                           "normalises each example",
                           {}});
  }
}

std::vector<std::string> doubtful_statistics(const Setup& setup, const InitialValues& initial) {
  constexpr std::int64_t few = 16;
  std::vector<std::string> found;
  std::int64_t updates = setup.timetable.steps;
  if (setup.timetable.eval_every > 0) updates = std::min(updates, setup.timetable.eval_every);
  bool said_few = false, said_late = false;
  for (const model::Node* node : setup.model.nodes()) {
    if (!has_statistics(*node)) continue;
    const std::string name = node->name + in_parentheses(node->place);
    const ValuesBehind values = values_behind(setup, *node);
    const bool begin_anew =
        std::any_of(node->parameters.begin(), node->parameters.end(),
                    [&](const model::Parameter& parameter) { return parameter.is_state && !initial.takes(parameter); });
    if (values.count() < few && !std::exchange(said_few, true)) {
      found.push_back(name + " has statistics of " + described(values) +
                      ", which differ much from batch to batch: a larger batch, or mesh axes in axes, has more");
    }
    if (node->momentum < 0.5) {
      found.push_back(name + " has the momentum " + exact(node->momentum) +
                      ", the share of the running statistics that a step keeps: PyTorch's 0.1 is 0.9 here");
    } else if (begin_anew && std::pow(node->momentum, static_cast<double>(updates)) > 0.5 &&
               !std::exchange(said_late, true)) {
      found.push_back(name + " has the momentum " + exact(node->momentum) + ", and " + counted(updates, "update") +
                      " before an evaluation: its running statistics are then mostly the initial ones; a smaller "
                      "momentum moves them faster");
    }
  }
  return found;
}

}  // namespace pmaptrain::setup
