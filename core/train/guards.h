// What stops a member that goes wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/setup/setup.h"
#include "core/setup/values.h"

namespace pmaptrain::train {

class Guards {
 public:
  // Setup and reader outlive this; `reader` is of the module that trains.
  Guards(const Setup& setup, SlicedReader& reader, std::int64_t member)
      : setup_(setup), reader_(reader), member_(member) {}

  // Why the member is to stop; empty while it is not.
  const std::string& reason() const { return reason_; }
  bool stop() const { return !reason_.empty(); }
  // After a step that was not finite: how many good ones the parameters have behind them.
  std::optional<std::int64_t> good_steps() const { return good_steps_; }

  // False once a step was not finite with on_nonfinite: halt. The update itself has kept the last good values since.
  bool finite() const;
  // A resumed run has left out so many steps before.
  void continue_from(std::int64_t steps_skipped) { skipped_before_ = steps_skipped; }
  // The steps that were not finite and changed nothing (on_nonfinite: skip, now or before the run was resumed).
  std::int64_t steps_skipped() const;
  // The steps that changed the parameters, as the program counts them.
  std::int64_t updates() const { return static_cast<std::int64_t>(state(setup_.roles.step)); }
  // What to tell of them where the run goes well otherwise; empty where there are none.
  std::string skipped_steps() const;

  // Each of these says whether it has found the first reason to stop. check_finite() replays the step, for its words,
  // where that is asked for.
  bool check_finite(bool replays = true);
  bool check_any_good(std::int64_t steps);
  // Compares private copies, once a step.
  bool check_replicas(std::int64_t step);

 private:
  double state(std::size_t input) const;
  std::string replayed(std::int64_t step) const;

  const Setup& setup_;
  SlicedReader& reader_;
  std::int64_t member_;
  std::string reason_;
  std::optional<std::int64_t> good_steps_;
  std::int64_t compared_at_ = -1, skipped_before_ = 0;
};

}  // namespace pmaptrain::train
