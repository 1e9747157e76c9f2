#include "core/runtime/agreement.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/philox.h"

namespace pmaptrain {
namespace {

// Of the processes for which something is true, the one with the smallest number is told.
std::int64_t first_word(const Placement& placement, bool is_true) {
  return is_true ? std::int64_t{placement.processes} - placement.process : 0;
}

// A number that is equal on all machines for equal texts. It is positive, so it can be negated.
std::int64_t hash_of(std::string_view text) {
  const PhiloxKey key = stream_key(0, text);
  return static_cast<std::int64_t>((std::uint64_t{key[0]} << 32 | key[1]) >> 1);
}

}  // namespace

// Every call exchanges the same number of words, so that a process that fails can answer any call of the others.
Agreement::Answer Agreement::exchange(const Question& own) const {
  constexpr std::int64_t statuses = 256;
  const auto& [process, processes] = processes_.placement;
  const std::int64_t failure = own.failure ? static_cast<std::int64_t>(*own.failure) : 0;
  std::array<std::int64_t, 9> words{own.word.signal,
                                    own.word.time_is_over ? 1 : 0,
                                    own.word.save_is_due ? 1 : 0,
                                    first_word(processes_.placement, own.failure.has_value()) * statuses + failure,
                                    own.ended,
                                    own.hash,
                                    -own.hash,
                                    process == 0 ? own.hash : 0,
                                    first_word(processes_.placement, own.is_true)};
  if (processes > 1) processes_.transport->largest(words);
  Answer answer;
  answer.word = {words[0], words[1] != 0, words[2] != 0};
  if (words[3] >= statuses) {
    answer.failed = static_cast<int>(processes - words[3] / statuses);
    answer.status = static_cast<ExitStatus>(words[3] % statuses);
  }
  answer.ended = static_cast<int>(words[4]);
  answer.is_alike = words[5] == -words[6];
  answer.hash_of_first = words[7];
  if (words[8] > 0) answer.first_true = static_cast<int>(processes - words[8]);
  return answer;
}

Agreement::Answer Agreement::ask(const Question& own) {
  const Answer answer = exchange(own);
  if (answer.failed < 0) return answer;
  is_over_ = true;
  throw FailedElsewhere(answer.status, answer.failed);
}

Agreement::Word Agreement::agree(const Word& own) { return ask({.word = own}).word; }

bool Agreement::any(bool own) { return ask({.is_true = own}).first_true >= 0; }

int Agreement::end(int status) { return ask({.ended = status}).ended; }

void Agreement::check_alike(std::string_view what, std::string_view text, std::string_view help,
                            const Differences& differences) {
  const std::int64_t own = hash_of(text);
  const Answer answer = ask({.hash = own});
  if (answer.is_alike) return;
  const int process = ask({.is_true = own != answer.hash_of_first}).first_true;
  std::vector<std::string> notes;
  if (differences) {
    const std::vector<std::string> texts = texts_of_all(processes_, std::string(text));
    notes = differences(texts.front(), texts[static_cast<std::size_t>(process)]);
  }
  is_over_ = true;  // all processes fail alike
  throw Error(ExitStatus::usage,
              Diagnostic{"process",
                         {},
                         std::string(what) + " of process " + std::to_string(process) + " is not that of process 0",
                         std::string(help),
                         std::move(notes)});
}

bool Agreement::fail(ExitStatus status) noexcept {
  const bool is_first = processes_.placement.process == 0;
  if (is_over_) return is_first;
  is_over_ = true;
  try {
    return exchange({.failure = status}).failed != 0 || is_first;
  } catch (...) {  // the others do not answer any more
    return true;
  }
}

}  // namespace pmaptrain
