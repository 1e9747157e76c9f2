// What guards find about the members while they train: ends those that go wrong, and tells why.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/runtime/agreement.h"
#include "core/setup/setup.h"
#include "core/train/members.h"
#include "core/train/run_report.h"

namespace pmaptrain::train {

class Checks {
 public:
  // All references outlive this. `private_copies`: whether the logical devices have copies, which are compared.
  Checks(const setup::Setup& setup, Members& members, RunReport& report, Agreement& agreement, bool private_copies)
      : setup_(setup), members_(members), report_(report), agreement_(agreement), private_copies_(private_copies) {}

  // Runs a step again for these members, to restore its outputs, and returns its entry (Pacing::repeat).
  using Repeat = std::function<std::size_t(std::int64_t step, std::span<const std::int64_t> members)>;
  // Each check looks at the members that have not finished, after `step`, which was one of `entry`; all processes call
  // it together.
  void nonfinite(std::int64_t step, std::size_t entry, const Repeat& repeat);
  void loss_spikes(std::int64_t step);
  void replicas(std::int64_t step);
  void all_skipped(std::int64_t step);

  // Ends a member after `step`, before the duration.
  void finish(MemberRun& member, const std::string& kind, const std::string& why, std::int64_t step);
  // Says how many steps members have skipped, for a run that ends well.
  void tell_skipped();
  // Emits what was found since the last call.
  void emit_told();

 private:
  const setup::Setup& setup_;
  Members& members_;
  RunReport& report_;
  Agreement& agreement_;
  const bool private_copies_;
  MemberTexts told_;
};

}  // namespace pmaptrain::train
