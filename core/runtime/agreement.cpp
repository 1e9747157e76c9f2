#include "core/runtime/agreement.h"

#include <array>

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
