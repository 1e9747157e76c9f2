#include "core/report/runs/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <system_error>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/data/file.h"
#include "core/report/json.h"
#include "core/run/checkpoint.h"
#include "core/run/find_checkpoint.h"
#include "core/run/records/records.h"
#include "core/run/run_folder.h"
#include "core/run/selection.h"

namespace pmaptrain::report {

namespace fs = std::filesystem;

bool is_run(const fs::path& folder) {
  const auto has = [&](const char* name) {
    std::error_code error;
    return fs::exists(folder / name, error);
  };
  return has("config.yaml") && (has(".pmaptrain") || has("metrics.jsonl"));
}

Standing read_standing(const fs::path& folder) {
  Standing standing;
  const fs::path file = folder / "summary.json";
  std::error_code error;
  if (!fs::exists(file, error)) {
    standing.status = run::is_being_written(folder) ? "running" : "killed";
    return standing;
  }
  const std::vector<std::byte> bytes = data::read_file(file.string());
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  standing.ended = run::parse_summary(text);
  if (!standing.ended) {
    fail_data(fmt::format("'{}' is damaged", file.string()),
              "pmaptrain run " + shell_quoted(folder.string()) + " --resume writes it anew");
  }
  standing.status = standing.ended->status;
  const Json json = parse_json(text);
  if (json.contains("version") && json["version"].is_string()) standing.version = json["version"].get<std::string>();
  return standing;
}

RunRecord read_run(const fs::path& folder) {
  RunRecord record;
  record.folder = folder;
  const fs::path named = folder.lexically_normal();
  record.label = (named.has_filename() ? named : named.parent_path()).filename().string();
  if (record.label.empty() || record.label == "." || record.label == "..") {
    std::error_code error;
    record.label = fs::canonical(folder, error).filename().string();
  }
  record.config = spec::load(folder.string(), {});
  record.standing = read_standing(folder);
  record.metrics = read_metrics(folder / "metrics.jsonl");
  record.best = best_of_run(folder, record.config.spec, record.metrics);
  return record;
}

namespace {

// The value of a series at a step; NaN if it has none.
double value_at(const Series* series, std::int64_t step) {
  if (series == nullptr) return std::numeric_limits<double>::quiet_NaN();
  const auto found = std::lower_bound(series->steps.begin(), series->steps.end(), step);
  if (found == series->steps.end() || *found != step) return std::numeric_limits<double>::quiet_NaN();
  return series->values[static_cast<std::size_t>(found - series->steps.begin())];
}

}  // namespace

std::optional<BestValue> best_value(const Metrics& metrics, const std::string& measure, bool larger_is_better) {
  struct Source {
    const char *event, *split;
  };
  constexpr std::array<Source, 4> sources{
      {{"eval", "validation"}, {"eval", "test"}, {"epoch", "train"}, {"step", "train"}}};
  for (const Source& source : sources) {
    std::optional<BestValue> best;
    double loss_of_best = 0;
    for (const Series& series : metrics.series) {
      if (series.event != source.event || series.split != source.split || series.measure != measure) continue;
      const Series* const losses = metrics.find(source.event, source.split, "loss", series.member);
      for (std::size_t i = 0; i < series.values.size(); ++i) {
        const double value = series.values[i];
        if (std::isnan(value)) continue;
        const double loss = value_at(losses, series.steps[i]);
        const bool is_better = !best || (larger_is_better ? value > best->value : value < best->value) ||
                               (value == best->value && loss < loss_of_best);
        if (!is_better) continue;
        loss_of_best = loss;
        best = {measure, source.split, value, series.steps[i], series.member, larger_is_better, series.event != "eval"};
      }
    }
    if (best) return best;
  }
  return std::nullopt;
}

Selection selection_of(const spec::Spec& spec) {
  const auto& best = spec.train.checkpoint.best;
  if (!best) return {};
  return {best->metric, best->mode.value_or(spec::mode_of(best->metric)) == spec::Mode::max};
}

namespace {

// What the state of a checkpoint has as the best.
std::optional<BestValue> best_of_state(const run::RunState& state, const Metrics& metrics) {
  const spec::Mode mode = state.best_mode == spec::to_string(spec::Mode::max) ? spec::Mode::max : spec::Mode::min;
  const auto is_validation = [](const Series& series) {
    return series.event == "eval" && series.split == "validation";
  };
  const bool validates = std::any_of(metrics.series.begin(), metrics.series.end(), is_validation);
  run::BestSoFar so_far{mode};
  std::optional<BestValue> best;
  for (std::size_t m = 0; m < state.members.size(); ++m) {
    const std::optional<run::Best>& own = state.members[m].best;
    if (!own || !so_far.observe(own->step, own->value, own->loss)) continue;
    best = {own->metric, validates ? "validation" : "test", own->value, own->step, {}, mode == spec::Mode::max, false};
    if (state.is_ensemble) best->member = static_cast<std::int64_t>(m);
  }
  return best;
}

}  // namespace

std::optional<BestValue> best_of_run(const fs::path& folder, const spec::Spec& spec, const Metrics& metrics) {
  try {
    const std::optional<fs::path> last = run::checkpoint_folder(folder, "last");
    auto best = last ? best_of_state(run::load_run_state(*last), metrics) : std::nullopt;
    if (best) return best;
  } catch (const Error& error) {  // of a checkpoint that is damaged, or removed meanwhile
    if (error.status() != ExitStatus::data) throw;
  }
  const Selection selection = selection_of(spec);
  return best_value(metrics, selection.measure, selection.larger_is_better);
}

}  // namespace pmaptrain::report
