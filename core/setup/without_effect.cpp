#include "core/setup/without_effect.h"

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/setup/advice.h"

namespace pmaptrain::setup {
std::vector<std::string> unused_keys(const data::Source& source, const spec::TrainSpec& train) {
  if (source.validation || source.test || !train.eval_every || train.eval_every_is_default) return {};
  return {"train.eval_every" + in_parentheses(train.eval_every->place) +
          " does nothing: the data has no test split; data.validation would make one to evaluate on"};
}

std::vector<std::string> unreached_boundaries(const Setup& setup) {
  std::vector<std::string> found;
  const std::optional<schedules::Schedule>& schedule = setup.optimizer().schedule;
  if (!schedule) return found;
  for (const schedules::Unreached& one : schedule->unreached) {
    found.push_back(fmt::format("{}{} is at step {}, and the run ends after {}: {}", one.key, in_parentheses(one.place),
                                with_commas(one.step), counted(setup.timetable.steps, "step"), one.effect));
  }
  return found;
}

std::string best_model_not_kept(const spec::TrainSpec& train) {
  if (!train.early_stopping || train.checkpoint.best) return "";
  return fmt::format(
      "train.early_stopping{} stops the run some evaluations after the best one, and eval, predict and export take the "
      "last model; train.checkpoint.best: {{metric: {}}} keeps the best one, and they take that",
      in_parentheses(train.early_stopping->place), train.early_stopping->metric);
}

}  // namespace pmaptrain::setup
