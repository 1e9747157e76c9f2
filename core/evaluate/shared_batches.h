// The batches of an evaluation or a prediction that several processes carry together: each has the rows of its devices.
#pragma once

#include <cstdint>

#include "core/run/first_process.h"
#include "core/runtime/agreement.h"

namespace pmaptrain::evaluate {

// Agrees with the other processes on every batch before it is submitted, because its sums are exchanged: a process that
// cannot read its rows must tell the others before they wait for it.
class SharedBatches {
 public:
  // One process, which agrees with itself at once.
  SharedBatches() = default;
  // Null: one process. The agreement outlives this.
  explicit SharedBatches(Agreement* agreement) : agreement_(agreement) {}

  Agreement* agreement() const { return agreement_; }
  run::FirstProcess first_process() const { return run::FirstProcess(agreement_); }
  Processes processes() const { return agreement_ != nullptr ? agreement_->processes() : Processes(); }
  bool is_alone() const { return processes().placement.processes == 1; }
  // Whether this process has the terminal and the files of results.
  bool is_first() const { return processes().placement.process == 0; }

  // To be called before a module is loaded, which all processes do together, and when its work is done: GPUs of other
  // processes may still read from those of this one. Throws FailedElsewhere.
  void meet() const {
    if (!is_alone()) agreement_->agree({});
  }

  // To be called before the rows of a batch are read, after that, and when its results are there. Batches count from 0.
  void reads(std::int64_t batch) const { tell(Transport::Phase::reading, batch); }
  // Returns the largest signal that came to any process; `signal` is the one that came to this process, 0 for none.
  // Throws FailedElsewhere.
  int has_read(std::int64_t batch, int signal = 0) const {
    if (is_alone()) return signal;
    tell(Transport::Phase::computing, batch);
    return static_cast<int>(agreement_->agree({.signal = signal}).signal);
  }
  void has_computed(std::int64_t batch) const { tell(Transport::Phase::recording, batch); }

 private:
  void tell(Transport::Phase phase, std::int64_t batch) const {
    if (!is_alone()) processes().transport->tell(phase, batch + 1);
  }

  Agreement* agreement_ = nullptr;
};

}  // namespace pmaptrain::evaluate
