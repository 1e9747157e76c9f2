#include "core/setup/without_effect.h"

#include <fmt/format.h>

#include <type_traits>
#include <variant>

#include "core/base/text.h"
#include "core/setup/advice.h"

namespace pmaptrain::train {
namespace {

// Finds what a schedule does not reach. Boundaries count from the start of their schedule.
class UnreachedBoundaries {
 public:
  UnreachedBoundaries(const data::BatchPlan& batch, std::int64_t length, std::vector<std::string>& out)
      : batch_(batch), length_(length), out_(out) {}

  void find_in(const spec::LearningRate& rate, std::int64_t start) {
    if (!rate.schedule) return;
    std::visit([&](const auto& kind) { find(kind, start); }, *rate.schedule);
  }

 private:
  template <class Kind>
  void find(const Kind& /*kind*/, std::int64_t /*start*/) {}  // it has no boundaries

  void find(const spec::schedule::WarmupCosineDecay& warmup, std::int64_t start) {
    check(warmup.warmup, "warmup", start, "the rate does not reach peak_value");
  }

  void find(const spec::schedule::PiecewiseConstant& pieces, std::int64_t start) {
    for (const spec::schedule::Scale& scale : pieces.boundaries_and_scales) {
      check(scale.boundary, "boundaries_and_scales", start, "this boundary has no effect");
    }
  }

  void find(const spec::schedule::Join& join, std::int64_t start) {
    for (std::size_t i = 0; i < join.schedules.size(); ++i) {
      if (i == 0) {
        find_in(join.schedules[i], start);
      } else if (check(join.boundaries[i - 1], "boundaries", start,
                       "the schedule behind this boundary has no effect")) {
        find_in(join.schedules[i], start + to_steps(join.boundaries[i - 1], batch_, "boundaries"));
      }
    }
  }

  // Whether the run reaches it.
  bool check(const spec::Duration& boundary, const char* key, std::int64_t start, const char* effect) {
    const std::int64_t step = start + to_steps(boundary, batch_, key);
    if (step < length_) return true;
    out_.push_back(fmt::format("{}{} is at step {}, and the run ends after {}: {}", key, in_parentheses(boundary.place),
                               with_commas(step), counted(length_, "step"), effect));
    return false;
  }

  const data::BatchPlan& batch_;
  const std::int64_t length_;
  std::vector<std::string>& out_;
};

}  // namespace

std::vector<std::string> unused_keys(const data::Source& source, const spec::TrainSpec& train) {
  if (source.validation || source.test || !train.eval_every || train.eval_every_is_default) return {};
  return {"train.eval_every" + in_parentheses(train.eval_every->place) +
          " does nothing: the data has no test split; data.validation would make one to evaluate on"};
}

std::vector<std::string> unreached_boundaries(const Setup& setup) {
  std::vector<std::string> found;
  UnreachedBoundaries(setup.batch, setup.timetable.steps, found)
      .find_in(setup.member_spec().optimizer.learning_rate, 0);
  return found;
}

std::string best_model_not_kept(const spec::TrainSpec& train) {
  if (!train.early_stopping || train.checkpoint.best) return "";
  return fmt::format(
      "train.early_stopping{} stops the run some evaluations after the best one, and eval, predict and export take the "
      "last model; train.checkpoint.best: {{metric: {}}} keeps the best one, and they take that",
      in_parentheses(train.early_stopping->place), train.early_stopping->metric);
}

}  // namespace pmaptrain::train
