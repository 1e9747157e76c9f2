// What process 0 reads from files, in every process that carries a run: only process 0 needs to see the run folder.
#pragma once

#include <functional>
#include <string>

#include "core/data/file.h"
#include "core/runtime/agreement.h"

namespace pmaptrain::run {

// Every process makes the same sequence of calls. An Error of the function that a call is given is thrown in process 0,
// and ends the other processes as FailedElsewhere.
class FirstProcess {
 public:
  // One process, which reads for itself.
  FirstProcess() = default;
  // Null: one process. The agreement outlives this.
  explicit FirstProcess(Agreement* agreement) : agreement_(agreement) {}

  bool is_alone() const { return processes().placement.processes == 1; }
  // Whether this is process 0, which reads.
  bool is_this() const { return processes().placement.process == 0; }

  // The text that `read` returns in process 0. It is not called in other processes.
  std::string text(const std::function<std::string()>& read) const;

  // The file that `open` returns in process 0. It is not called in other processes: they receive the bytes in pieces,
  // and keep them in a file without a name in TMPDIR, which is gone when no copy of the result is left. Throws the same
  // Error in all processes: resource if one of them cannot write that file, data if the file of process 0 is truncated
  // meanwhile.
  data::Bytes bytes(const std::function<data::Bytes()>& open) const;

 private:
  Processes processes() const { return agreement_ != nullptr ? agreement_->processes() : Processes(); }

  Agreement* agreement_ = nullptr;
};

}  // namespace pmaptrain::run
