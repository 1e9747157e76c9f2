#include "core/runtime/agreement.h"

#include <array>
#include <span>

#include "core/base/philox.h"

namespace pmaptrain {

Agreement::Answer Agreement::ask(const Word& own, bool fails, ExitStatus status) {
  const auto [process, processes] = processes_.placement;
  // The process with the smallest number wins, with its status.
  const std::int64_t failed = fails ? (std::int64_t{processes} - process) * 256 + static_cast<std::int64_t>(status) : 0;
  std::array<std::int64_t, 3> words{own.signal, own.time_is_over ? 1 : 0, failed};
  if (processes > 1) processes_.transport->largest(words);
  Answer answer{words[0], words[1], -1, status};
  if (words[2] > 0) {
    answer.failed = processes - words[2] / 256;
    answer.status = static_cast<ExitStatus>(words[2] % 256);
  }
  return answer;
}

Agreement::Word Agreement::agree(const Word& own) {
  const Answer answer = ask(own, false, ExitStatus::failed);
  if (answer.failed >= 0) {
    is_over_ = true;
    throw FailedElsewhere(answer.status, static_cast<int>(answer.failed));
  }
  return {answer.signal, answer.time_is_over != 0};
}

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
    return ask({}, true, status).failed != 0 || is_first;
  } catch (...) {  // the others do not answer any more
    return true;
  }
}

}  // namespace pmaptrain
