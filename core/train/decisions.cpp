#include "core/train/decisions.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/base/text.h"

namespace pmaptrain::train {
namespace {

double measure(const run::Measures& measures, const std::string& name) {
  const auto found =
      std::find_if(measures.begin(), measures.end(), [&](const auto& measure) { return measure.first == name; });
  return found != measures.end() ? found->second : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Decisions::Decisions(const spec::Spec& spec) : spec_(spec.train), plateau_spec_(spec.optimizer.reduce_on_plateau) {
  if (const auto& best = spec_.checkpoint.best) {
    best_.emplace().mode = mode_of(*best);
  }
  if (const auto& early = spec_.early_stopping) {
    early_stopping_ = run::EarlyStopping{mode_of(*early), early->patience, early->min_delta, std::nullopt, 0};
  }
}

// Drops state that belongs to another metric or mode than the config's.
void Decisions::restore(const run::MemberState& state, const std::string& best_mode) {
  const auto continues_best = [&](const std::optional<run::Best>& best) {
    return best_ && best && best->metric == spec_.checkpoint.best->metric && best_mode == spec::to_string(best_->mode);
  };
  if (continues_best(state.best)) {
    best_->step = state.best->step;
    best_->value = state.best->value;
    best_->loss_there = state.best->loss;
  }
  if (continues_best(state.lost_best))
    lost_ = run::BestSoFar{best_->mode, state.lost_best->step, state.lost_best->value, state.lost_best->loss};
  if (early_stopping_ && continues_early_stopping(state.early_stopping, *spec_.early_stopping)) {
    early_stopping_->best = state.early_stopping.best;
    early_stopping_->waited = state.early_stopping.waited;
  }
  if (plateau_spec_) plateau_ = state.plateau.state;  // --resume refuses other keys of reduce_on_plateau
}

std::optional<run::Best> Decisions::best() const {
  if (!best_ || !best_->value) return std::nullopt;
  return run::Best{best_->step, spec_.checkpoint.best->metric, *best_->value, best_->loss_there};
}

std::optional<run::Best> Decisions::lost_best() const {
  if (!lost_ || !best_->is_beaten_by(*lost_->value, lost_->loss_there)) return std::nullopt;
  return run::Best{lost_->step, spec_.checkpoint.best->metric, *lost_->value, lost_->loss_there};
}

void Decisions::save(run::MemberState& state) const {
  state.best = best();
  state.lost_best = lost_best();
  state.early_stopping = {};
  if (early_stopping_) {
    state.early_stopping = {spec_.early_stopping->metric, spec::to_string(early_stopping_->mode), early_stopping_->best,
                            early_stopping_->waited};
  }
  state.plateau = {};
  if (plateau_spec_) state.plateau = {plateau_spec_->metric, plateau_};
}

bool Decisions::observe(std::int64_t step, const run::Measures& measures) {
  if (early_stopping_) early_stopping_->observe(measure(measures, spec_.early_stopping->metric));
  if (plateau_spec_) {
    plateau_ = run::observe(*plateau_spec_, plateau_, measure(measures, plateau_spec_->metric));
  }
  if (!best_) return false;
  const run::BestSoFar before = *best_;
  if (!best_->observe(step, measure(measures, spec_.checkpoint.best->metric), measure(measures, "loss"))) return false;
  best_before_ = before;
  return true;
}

void Decisions::revert_best(std::int64_t step) {
  if (!best_ || !best_->value || best_->step != step) return;
  if (!lost_ || lost_->is_beaten_by(*best_->value, best_->loss_there)) lost_ = best_;
  best_ = best_before_;
}

bool continues_early_stopping(const run::MemberState::Waiting& waiting, const spec::EarlyStoppingSpec& spec) {
  return waiting.metric == spec.metric && waiting.mode == spec::to_string(mode_of(spec));
}

std::string Decisions::rate_decrease_note(std::int64_t step) const {
  return "step " + std::to_string(step) + ": " + plateau_spec_->metric + " did not improve in " +
         counted(plateau_spec_->patience, "evaluation") + ": the learning rate is multiplied by " +
         exact(plateau_spec_->factor) + " (optimizer.reduce_on_plateau)";
}

std::vector<std::string> Decisions::no_value_warnings(const run::Measures& measures, const std::string& split) {
  std::map<std::string, std::vector<std::string>> idle;  // by metric: the keys that it decides
  const auto add = [&](const std::string& metric, const std::optional<double>& best, const char* key) {
    if (run::has_no_value_yet(best, measure(measures, metric))) idle[metric].emplace_back(key);
  };
  if (best_) add(spec_.checkpoint.best->metric, best_->value, "train.checkpoint.best");
  if (early_stopping_) add(spec_.early_stopping->metric, early_stopping_->best, "train.early_stopping");
  if (plateau_spec_) add(plateau_spec_->metric, plateau_.best, "optimizer.reduce_on_plateau");
  std::vector<std::string> warnings;
  for (const auto& [metric, keys] : idle) {
    if (!without_value_.insert(metric).second) continue;
    const bool is_of_classes = metric.starts_with("roc_auc") || metric.starts_with("average_precision");
    std::string& warning = warnings.emplace_back(metric);
    warning.append(" has no value (NaN) on the ").append(split).append(" split");
    if (is_of_classes) warning += ", as where a class has no example there";
    warning.append(": ").append(listed(keys, "and")).append(keys.size() == 1 ? " does" : " do");
    warning += " nothing until it has one";
  }
  return warnings;
}

bool Decisions::stops_early() const { return early_stopping_ && early_stopping_->waited >= early_stopping_->patience; }

std::string Decisions::stop_reason() const {
  return "early stopping: " + spec_.early_stopping->metric + " did not improve in " +
         counted(early_stopping_->waited, "evaluation") + " (train.early_stopping.patience)";
}

}  // namespace pmaptrain::train
