// What the evaluations of a member decide: the best checkpoint, whether to stop early, and by what the learning rate is
// multiplied.
#pragma once

#include <cstdint>
#include <optional>

#include "core/run/records/events.h"
#include "core/run/run_state.h"
#include "core/setup/setup.h"
#include "core/train/selection.h"

namespace pmaptrain::train {

// Whether what a run has waited for is still what early stopping looks at.
bool continues(const MemberState::Waiting& waiting, const spec::EarlyStoppingSpec& spec);

class Decisions {
 public:
  // Outlives this.
  explicit Decisions(const spec::Spec& spec);

  // `best_mode` is RunState's.
  void restore(const MemberState& state, const std::string& best_mode);
  void save(MemberState& state) const;

  // Of the evaluation after `step` on the split that decides. Returns whether it is the best so far.
  bool observe(std::int64_t step, const Measures& measures);

  // The checkpoint of this step, the best, could not be written: the one before is the best again.
  void lose_best(std::int64_t step);

  // The best evaluation so far.
  std::optional<Best> best() const;
  // One that was lost and was better than best().
  std::optional<Best> better_lost() const;

  // Of the learning rate (optimizer.reduce_on_plateau).
  double learning_rate_scale() const { return plateau_.scale; }
  // What is told of the evaluation after `step`, at which it fell.
  std::string why_rate_falls(std::int64_t step) const;

  // Whether training is to stop early, and why.
  bool stops() const;
  std::string why() const;

 private:
  const spec::TrainSpec& spec_;
  const std::optional<spec::ReduceOnPlateau>& plateau_spec_;
  std::optional<BestSoFar> best_, best_before_, lost_;
  std::optional<EarlyStopping> early_stopping_;
  PlateauState plateau_;
};

}  // namespace pmaptrain::train
