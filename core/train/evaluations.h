// The evaluations of a run: at intervals, and after its last step.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/evaluate/evaluator.h"
#include "core/train/members.h"
#include "core/train/run_report.h"

namespace pmaptrain::train {

class Evaluations {
 public:
  // All outlive this; the module is what trains. Once `stop` is not zero, nothing more is evaluated.
  Evaluations(const Setup& setup, Module& module, Members& members, RunReport& report, const std::atomic<int>* stop);

  bool empty() const { return evaluators_.empty(); }

  // After `step`, on the split that decides, of the members that are sound. Nothing where a signal left it undone.
  std::vector<Evaluation> run(std::int64_t step);

  // On that split, of the members that have not been evaluated after their last step, and on test beside it, with the
  // best parameters of the members that have them; where none has, with the last ones of all. Of no member that a guard
  // stopped. Returns what test was evaluated with: "best" or "last"; nothing where it was not.
  std::string run_last(std::int64_t step, const RunFolder& folder);

 private:
  std::vector<Evaluation> run(std::size_t which, const std::vector<std::int64_t>& members,
                              const std::vector<std::int64_t>& updates, std::int64_t step);
  std::vector<std::int64_t> updates_of(const std::vector<std::int64_t>& members) const;
  bool restore_best(const std::vector<std::int64_t>& members, std::vector<std::int64_t>& updates,
                    const RunFolder& folder);
  bool is_stopped() const { return stop_ != nullptr && *stop_ != 0; }

  const Setup& setup_;
  Module& module_;
  Members& members_;
  RunReport& report_;
  const std::atomic<int>* stop_;
  std::vector<std::unique_ptr<Evaluator>> evaluators_;  // of Setup::evaluations
};

}  // namespace pmaptrain::train
