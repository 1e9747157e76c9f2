#include "core/run/find_checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/run/files/directory.h"

namespace pmaptrain::run {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view step_prefix = "step-", best_prefix = "best-";

// A number of digits only, if the type can hold it.
std::optional<std::int64_t> whole_number(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = wrong == std::errc() && end == digits.data() + digits.size() && value >= 0;
  return whole ? std::optional(value) : std::nullopt;
}

// Throws Error (data) if reading the folder of checkpoints failed.
void check_readable(const fs::path& checkpoints, const std::error_code& problem) {
  if (!problem || problem == std::errc::no_such_file_or_directory || problem == std::errc::not_a_directory) return;
  fail_data(fmt::format("'{}' cannot be read: {}", checkpoints.string(), problem.message()),
            "check the permissions of the run folder");
}

// The target of a link, or the folder itself; none if it is neither. A running process changes its links before it
// removes the old target.
std::optional<fs::path> folder_at(const fs::path& place, std::error_code& error) {
  constexpr int tries = 100;
  fs::path before;
  for (int i = 0; i < tries; ++i) {
    const fs::path target = link_target(AT_FDCWD, place.string());
    const fs::path folder = target.empty() ? place : place.parent_path() / target;
    if (fs::is_directory(folder, error)) return folder;
    if (target.empty() || target == before) break;
    before = target;
  }
  return std::nullopt;
}

}  // namespace

std::string checkpoint_name(std::int64_t step) { return fmt::format("{}{:08}", step_prefix, step); }

std::optional<std::int64_t> checkpoint_step(std::string_view name) {
  if (!name.starts_with(step_prefix)) return std::nullopt;
  return whole_number(name.substr(step_prefix.size()));
}

std::string best_name(std::int64_t step) { return fmt::format("{}{:08}", best_prefix, step); }

bool is_best_name(std::string_view name) { return name.starts_with(best_prefix); }

std::vector<std::int64_t> checkpoint_steps(const fs::path& run) {
  const fs::path checkpoints = run / "checkpoints";
  std::error_code error;
  std::vector<std::int64_t> steps;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints, error)) {
    const auto found = checkpoint_step(entry.path().filename().string());
    if (found) steps.push_back(*found);
  }
  check_readable(checkpoints, error);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<fs::path> checkpoint_folder(const fs::path& run, const std::string& which) {
  std::error_code ignored;
  return folder_at(run / "checkpoints" / which, ignored);
}

fs::path find_checkpoint(const fs::path& run, const std::string& which) {
  const fs::path checkpoints = run / "checkpoints";
  std::error_code error;
  const std::optional<std::int64_t> step = whole_number(which);
  if (step || which == "last" || which == "best") {
    if (const auto folder = folder_at(checkpoints / (step ? checkpoint_name(*step) : which), error)) return *folder;
  }
  check_readable(checkpoints, error);

  const std::vector<std::int64_t> steps = checkpoint_steps(run);
  // A process may have been killed before it made the link.
  if (which == "last" && !steps.empty()) return checkpoints / checkpoint_name(steps.back());
  std::vector<std::string> there;
  there.reserve(steps.size() + 2);
  for (const std::int64_t value : steps) there.push_back(std::to_string(value));
  for (const char* const word : {"last", "best"}) {
    if (folder_at(checkpoints / word, error)) there.emplace_back(word);
  }
  if (!fs::is_directory(run, error)) {
    fail_usage(fmt::format("'{}' is not a run folder: there is no such folder", run.string()),
               "runs are written to runs/<name>");
  }
  fail_usage(fmt::format("the run '{}' has no checkpoint '{}'", run.string(), which),
             there.empty() ? "it has none yet" : "it has " + join(there, ", "));
}

}  // namespace pmaptrain::run
