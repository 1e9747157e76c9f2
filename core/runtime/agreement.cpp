#include "core/runtime/agreement.h"

#include <array>
#include <span>

#include "core/base/philox.h"

namespace pmaptrain {

Agreement::Answer Agreement::ask(const Word& own, std::optional<ExitStatus> failure, int ended) {
  const auto [process, processes] = processes_.placement;
  // Of the processes that fail, the one with the smallest number wins, with its status.
  constexpr std::int64_t statuses = 256;
  const std::int64_t failed =
      failure ? (std::int64_t{processes} - process) * statuses + static_cast<std::int64_t>(*failure) : 0;
  std::array<std::int64_t, 5> words{own.signal, own.time_is_over ? 1 : 0, failed, ended, own.save_is_due ? 1 : 0};
  if (processes > 1) processes_.transport->largest(words);
  Answer answer;
  answer.signal = words[0];
  answer.time_is_over = words[1];
  answer.ended = words[3];
  answer.save_is_due = words[4];
  if (words[2] > 0) {
    answer.failed = processes - words[2] / statuses;
    answer.status = static_cast<ExitStatus>(words[2] % statuses);
  }
  return answer;
}

Agreement::Answer Agreement::ask_for_success(const Word& own, int ended) {
  const Answer answer = ask(own, std::nullopt, ended);
  if (answer.failed < 0) return answer;
  is_over_ = true;
  throw FailedElsewhere(answer.status, static_cast<int>(answer.failed));
}

Agreement::Word Agreement::agree(const Word& own) {
  const Answer answer = ask_for_success(own);
  return {answer.signal, answer.time_is_over != 0, answer.save_is_due != 0};
}

int Agreement::end(int status) { return static_cast<int>(ask_for_success({}, status).ended); }

void Agreement::check_alike(std::string_view what, std::string_view text) {
  const auto [process, processes] = processes_.placement;
  if (processes == 1) return;
  // Philox's key derivation serves as a hash, which is equal on all machines.
  const PhiloxKey own = stream_key(0, text);
  PhiloxKey first = own;
  processes_.transport->broadcast(std::as_writable_bytes(std::span(first)));
  std::array<std::int64_t, 1> differs{first == own ? 0 : processes - process};
  processes_.transport->largest(differs);
  if (differs[0] == 0) return;
  is_over_ = true;  // all processes fail alike
  throw Error(ExitStatus::usage,
              Diagnostic{"process",
                         {},
                         std::string(what) + " of process " + std::to_string(processes - differs[0]) +
                             " is not that of process 0",
                         "all processes of a run need the same program, config, data and instruction set, because each "
                         "computes the parameters for itself",
                         {}});
}

bool Agreement::fail(ExitStatus status) noexcept {
  const bool is_first = processes_.placement.process == 0;
  if (is_over_) return is_first;
  is_over_ = true;
  try {
    return ask({}, status).failed != 0 || is_first;
  } catch (...) {  // the others do not answer any more
    return true;
  }
}

}  // namespace pmaptrain
