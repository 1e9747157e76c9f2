#include "core/report/runs/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <system_error>
#include <tuple>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/spec/spec.h"

namespace pmaptrain::report {
namespace {

namespace fs = std::filesystem;

constexpr int most_levels = 4;

// Links to folders are not followed: they may lead back.
void find_runs(const fs::path& folder, int levels, std::vector<fs::path>& found) {
  if (is_run(folder)) {
    found.push_back(folder);
    return;
  }
  if (levels == 0) return;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) find_runs(entry->path(), levels - 1, found);
  }
}

// What a run changes while it goes on. Files that appear or vanish meanwhile are not counted.
void measure_folder(ListedRun& run) {
  std::error_code error;
  fs::file_time_type last = fs::file_time_type::min();
  for (const char* const name : {"config.yaml", "metrics.jsonl", "log.txt", "summary.json"}) {
    const fs::file_time_type written = fs::last_write_time(run.folder / name, error);
    if (!error) last = std::max(last, written);
  }
  if (last != fs::file_time_type::min()) {
    run.age = std::max(0.0, std::chrono::duration<double>(fs::file_time_type::clock::now() - last).count());
  }
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(run.folder, options, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored) || entry->is_symlink(ignored)) continue;
    const std::uintmax_t bytes = entry->file_size(ignored);
    if (!ignored) run.bytes += bytes;
  }
}

ListedRun listed(const fs::path& folder, const std::string& measure) {
  ListedRun run;
  run.folder = folder;
  measure_folder(run);
  try {
    const Standing standing = read_standing(folder);
    run.status = standing.status;
    if (standing.ended) {
      run.reason = standing.ended->reason;
      run.steps = standing.ended->steps;
    }
    std::optional<spec::Loaded> config;
    if (measure.empty()) config = spec::load(folder.string(), {});
    std::error_code error;
    if (!standing.ended && !fs::exists(folder / "metrics.jsonl", error)) return run;
    const Metrics metrics = read_metrics(folder / "metrics.jsonl");
    if (!standing.ended) {
      for (const Series& series : metrics.series) run.steps = std::max(run.steps, series.steps.back());
    }
    run.best = config ? best_of_run(folder, config->spec, metrics)
                      : best_value(metrics, measure, spec::mode_of(measure) == spec::Mode::max);
  } catch (const Error& error) {
    if (run.status.empty()) run.status = "damaged";
    run.problem = error.diagnostics().front().message;
    const Place& place = error.diagnostics().front().place;
    if (place.known()) run.problem = fmt::format("{}: {}", place.file, run.problem);
  }
  return run;
}

}  // namespace

const std::vector<std::string>& list_columns() {
  static const std::vector<std::string> all{"name", "status", "steps", "best", "age", "size"};
  return all;
}

std::vector<ListedRun> list_runs(const fs::path& folder, const std::string& measure) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    const bool there = fs::exists(folder, error);
    fail_usage(there ? fmt::format("'{}' is no folder", folder.string())
                     : fmt::format("there is no folder '{}'", folder.string()),
               "pmaptrain run writes runs to runs/NAME; pmaptrain runs DIR lists those in another folder");
  }
  std::vector<fs::path> found;
  find_runs(folder, most_levels, found);
  std::sort(found.begin(), found.end());
  std::vector<ListedRun> runs;
  runs.reserve(found.size());
  for (const fs::path& run : found) runs.push_back(listed(run, measure));
  return runs;
}

void sort_runs(std::vector<ListedRun>& runs, const std::string& key) {
  const auto by = [&](auto&& key_of) {
    std::stable_sort(runs.begin(), runs.end(),
                     [&](const ListedRun& a, const ListedRun& b) { return key_of(a) < key_of(b); });
  };
  if (key == "name") return by([](const ListedRun& run) { return run.folder; });
  if (key == "status") return by([](const ListedRun& run) { return run.status; });
  if (key == "steps") return by([](const ListedRun& run) { return -run.steps; });
  if (key == "age") return by([](const ListedRun& run) { return run.age; });
  if (key == "size") return by([](const ListedRun& run) { return -static_cast<double>(run.bytes); });
  by([](const ListedRun& run) {
    if (!run.best) return std::tuple(true, std::string(), 0.0);
    return std::tuple(false, run.best->measure, run.best->larger_is_better ? -run.best->value : run.best->value);
  });
}

std::string age_text(double seconds) {
  constexpr double minute = 60, hour = 60 * minute, day = 24 * hour;
  if (seconds < 2 * minute) return fmt::format("{:.0f} s", std::floor(seconds));
  if (seconds < 2 * hour) return fmt::format("{:.0f} min", std::floor(seconds / minute));
  if (seconds < 2 * day) return fmt::format("{:.0f} h", std::floor(seconds / hour));
  return fmt::format("{:.0f} d", std::floor(seconds / day));
}

}  // namespace pmaptrain::report
