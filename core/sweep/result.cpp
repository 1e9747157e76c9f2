#include "core/sweep/result.h"

#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/run/records/records.h"

namespace pmaptrain::sweep {
namespace {

// The first error of a failed run: of its JSON document, or the last line that it wrote.
std::string error_of(const Exit& exit) {
  const auto document = try_parse_json(exit.out);
  if (document.is_object() && document.contains("errors") && document["errors"].is_array() &&
      !document["errors"].empty()) {
    const auto& error = document["errors"].front();
    if (error.is_object() && error.contains("message") && error["message"].is_string()) {
      return error["message"].get<std::string>();
    }
  }
  std::string text = exit.err;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::optional<double> finite(double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; }

}  // namespace

std::optional<run::Ended> read_summary(const std::filesystem::path& run) {
  std::ifstream stream(run / "summary.json", std::ios::binary);
  if (!stream) return std::nullopt;
  return run::parse_summary({std::istreambuf_iterator<char>(stream), {}});
}

std::string selection_split(const run::Ended& ended) {
  std::string split;
  for (const auto& [name, measures] : ended.members.front().final_measures) {
    if (name == "validation" || (name == "test" && split.empty())) split = name;
  }
  return split;
}

std::optional<double> value_of(const run::Ended& ended, const spec::SweepSpec& sweep, std::size_t number) {
  const run::MemberEnded& member = ended.members.at(number);
  if (sweep.by_best) return member.best ? finite(member.best->value) : std::nullopt;
  const std::string split = selection_split(ended);
  for (const auto& [name, measures] : member.final_measures) {
    if (name != split) continue;
    for (const auto& [measure, value] : measures) {
      if (measure == sweep.metric) return finite(value);
    }
  }
  return std::nullopt;
}

Result result_of_member(const run::Ended& ended, const spec::SweepSpec& sweep, std::size_t number) {
  const run::MemberEnded& member = ended.members.at(number);
  Result result;
  result.steps = member.steps;
  result.seconds = ended.seconds;  // of the ensemble, as the member's summary.json has it
  if (!member.reason.empty() && member.reason != "early_stopping") {
    result.exit_status = static_cast<int>(ExitStatus::guard);
    result.error = fmt::format("a guard stopped it at step {}: {}", member.steps, member.reason);
    return result;
  }
  result.exit_status = static_cast<int>(ExitStatus::done);
  result.value = value_of(ended, sweep, number);
  if (!result.value) result.error = fmt::format("it has no finite {}", sweep.metric);
  return result;
}

Result result_of(const Exit& exit, const std::filesystem::path& run, const spec::SweepSpec& sweep, bool stopping) {
  Result result;
  if (exit.signal == 0) result.exit_status = exit.status;
  const std::optional<run::Ended> ended = read_summary(run);
  const bool has_result = ended && !ended->members.empty();
  if (has_result) {
    result.steps = ended->steps;
    result.seconds = ended->seconds;
  }
  const auto status = static_cast<ExitStatus>(exit.status);
  if (exit.signal != 0) {
    result.kind = stopping ? Result::Kind::stopped : Result::Kind::died;
    const char* const name = sigabbrev_np(exit.signal);
    result.error = fmt::format("ended by the signal {}",
                               name != nullptr ? fmt::format("SIG{}", name) : std::to_string(exit.signal));
    if (exit.signal == SIGKILL) result.error += ", as the system does where memory runs out";
  } else if (status == ExitStatus::guard) {
    result.error = error_of(exit);
  } else if (status != ExitStatus::done) {
    const bool again = status == ExitStatus::failed || status == ExitStatus::resource;
    result.kind = again ? Result::Kind::died : Result::Kind::failed;
    result.error = error_of(exit);
  } else if (!has_result) {
    result.kind = Result::Kind::died;
    result.error = "the run left no summary.json";
  } else {
    result.value = value_of(*ended, sweep);
    if (!result.value) result.error = fmt::format("it has no finite {}", sweep.metric);
  }
  return result;
}

}  // namespace pmaptrain::sweep
