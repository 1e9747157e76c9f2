// What a process decides by itself, such as to stop because of a signal, and what all processes of a run then do.
//
// A process that stopped alone would leave the others waiting for its messages. So each process says what it wants at
// the same places, before it submits work in which processes communicate, and all act on the answer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/runtime/transport.h"

namespace pmaptrain {

// Thrown in a process because another one has failed, which reports why.
class FailedElsewhere : public Error {
 public:
  FailedElsewhere(ExitStatus status, int process)
      : Error(status, Diagnostic{"process", {}, "process " + std::to_string(process) + " has failed", {}, {}}) {}
};

class Agreement {
 public:
  // One process, which agrees with itself at once.
  Agreement() = default;
  explicit Agreement(Processes processes) : processes_(processes) {}
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  const Processes& processes() const { return processes_; }

  struct Word {
    std::int64_t signal = 0;  // the number of the signal that came; 0: none
    bool time_is_over = false;
    bool save_is_due = false;  // by the clock
  };
  // Returns the largest signal that came to any process, and what is true for any. Throws FailedElsewhere
  // if a process has called fail().
  Word agree(const Word& own);

  // Whether it is true for any process.
  bool any(bool own);

  // To be called when the run is over. Returns the largest exit status of all processes. Throws FailedElsewhere.
  int end(int status);

  // Throws Error (usage) in every process unless all give the same text. The message names what differs, and the first
  // process whose text is not that of process 0. `differences`: notes on the text of process 0 and that of this one.
  using Differences = std::function<std::vector<std::string>(const std::string& first, const std::string& other)>;
  void check_alike(std::string_view what, std::string_view text, std::string_view help,
                   const Differences& differences = {});

  // Tells the other processes, in their next call of agree(), that this one fails with `status`. Does nothing after the
  // first call, and after agree() has thrown. Returns whether this process should report its error: process 0 should,
  // and another one only if process 0 has no error itself.
  bool fail(ExitStatus status) noexcept;

 private:
  // What a process gives, and what all get.
  struct Question {
    Word word = {};
    std::optional<ExitStatus> failure = {};
    int ended = 0;
    std::int64_t hash = 0;
    bool is_true = false;
  };
  struct Answer {
    Word word;
    int failed = -1;  // the smallest number of a process that has failed; -1: none
    ExitStatus status = ExitStatus::failed;
    int ended = 0;
    bool is_alike = true;  // whether all hashes are equal
    std::int64_t hash_of_first = 0;
    int first_true = -1;  // the smallest number of a process for which it is true; -1: none
  };
  Answer exchange(const Question& own) const;
  // Throws FailedElsewhere if a process has failed.
  Answer ask(const Question& own);

  Processes processes_;
  bool is_over_ = false;  // a failure was agreed on
};

}  // namespace pmaptrain
