// Decisions from the evaluations of a member: the best checkpoint, early stopping, and the factor of the learning rate.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/run/records/events.h"
#include "core/run/run_state.h"
#include "core/run/selection.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// Whether the early stopping of the config watches the same metric with the same mode as `waiting`, its state in a
// checkpoint.
bool continues_early_stopping(const run::MemberState::Waiting& waiting, const spec::EarlyStoppingSpec& spec);

class Decisions {
 public:
  // `spec` outlives this.
  explicit Decisions(const spec::Spec& spec);

  // `best_mode` is RunState::best_mode.
  void restore(const run::MemberState& state, const std::string& best_mode);
  void save(run::MemberState& state) const;

  // Updates early stopping, the learning rate's plateau and the best evaluation with the measures of the evaluation
  // after `step` (on validation; on test if there is no validation split). Returns whether they are the best so far;
  // false if no best checkpoint is configured.
  bool observe(std::int64_t step, const run::Measures& measures);

  // Called if the checkpoint of `step` could not be written. If that was the best, the previous best becomes best()
  // again, and the evaluation of `step` becomes lost_best().
  void revert_best(std::int64_t step);

  // The best evaluation so far.
  std::optional<run::Best> best() const;
  // An evaluation that was better than best(), but whose checkpoint could not be written.
  std::optional<run::Best> lost_best() const;

  // The factor of the learning rate (optimizer.reduce_on_plateau).
  double learning_rate_scale() const { return plateau_.scale; }
  // A note for the user, if the evaluation after `step` decreased the learning rate.
  std::string rate_decrease_note(std::int64_t step) const;

  // Of the metrics that decide something, a warning for each that was NaN in this evaluation, as it was in all before,
  // so that it decides nothing. Each is told once.
  std::vector<std::string> no_value_warnings(const run::Measures& measures, const std::string& split);

  // Whether training stops early, and why.
  bool stops_early() const;
  std::string stop_reason() const;

 private:
  const spec::TrainSpec& spec_;
  const std::optional<optimizers::ReduceOnPlateau>& plateau_spec_;
  std::optional<run::BestSoFar> best_, best_before_, lost_;
  std::optional<run::EarlyStopping> early_stopping_;
  run::PlateauState plateau_;
  std::set<std::string> without_value_;  // metrics that were told to be NaN
};

}  // namespace pmaptrain::train
