// The evaluations of a run: at intervals, and after its last step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/evaluate/evaluator.h"
#include "core/run/checkpoint.h"
#include "core/runtime/agreement.h"
#include "core/train/members.h"
#include "core/train/run_report.h"

namespace pmaptrain::train {

class Evaluations {
 public:
  // All references outlive this; `module` is the module that trains. `is_to_stop`: as for Evaluator::run().
  Evaluations(const setup::Setup& setup, Module& module, Members& members, RunReport& report, Agreement& agreement,
              evaluate::Evaluator::IsToStop is_to_stop);

  bool empty() const { return evaluators_.empty(); }

  // Evaluates the sound members (MemberRun::is_sound) after `step`, on the first split of Setup::evaluations. Returns
  // an empty list if a signal interrupted the evaluation.
  std::vector<evaluate::Evaluation> run(std::int64_t step);

  // Evaluates after the last step, without members that a guard stopped. First evaluates members that were not
  // evaluated after their last step, on the first split. If there are two splits, then evaluates the second, test,
  // under the last parameters, and once more under the best ones of each member that has others. Returns, by member,
  // the best checkpoint with its measures; empty for members without one, and for all of them, after a warning, if it
  // cannot be loaded.
  std::vector<std::optional<run::Selected>> run_last(std::int64_t step, const run::RunFolder& folder);

 private:
  // `checkpoint` is "best" if the module holds the members' best parameters.
  std::vector<evaluate::Evaluation> run(std::size_t which, const std::vector<std::int64_t>& members,
                                        const std::vector<std::int64_t>& updates, std::int64_t step,
                                        const std::string& checkpoint = {});
  std::vector<std::int64_t> updates_of(const std::vector<std::int64_t>& members) const;
  std::vector<evaluate::Evaluation> evaluate_last(const std::vector<std::int64_t>& members, std::int64_t step);
  std::optional<run::Checkpoint> load_best(const run::RunFolder& folder);
  run::Selected selected_of(const MemberRun& member, const run::RunState& best) const;

  const setup::Setup& setup_;
  Module& module_;
  Members& members_;
  RunReport& report_;
  Agreement& agreement_;
  const evaluate::Evaluator::IsToStop is_to_stop_;
  std::vector<std::unique_ptr<evaluate::Evaluator>> evaluators_;  // in the order of Setup::evaluations
};

}  // namespace pmaptrain::train
