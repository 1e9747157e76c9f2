#include "core/sweep/summary.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/version.h"
#include "core/base/wrap.h"
#include "core/report/json.h"
#include "core/run/files/file_writer.h"
#include "core/sweep/table.h"

namespace pmaptrain::sweep {

Summary write_summary(const std::filesystem::path& sweep, bool stopped, double seconds, int columns) {
  constexpr std::int64_t most_on_terminal = 10;
  const std::int64_t most_shown = columns > 0 ? most_on_terminal : 0;
  const Results results = read_results(sweep);
  std::int64_t done = 0, failed = 0;
  for (const TrialResult& trial : results.trials) {
    done += trial.status == Status::done ? 1 : 0;
    failed += trial.status == Status::failed ? 1 : 0;
  }
  const std::int64_t all = std::ssize(results.trials);
  Summary summary;
  const bool without_value = !stopped && !has_best(results);
  summary.exit_status = without_value ? static_cast<int>(ExitStatus::failed) : 0;
  report::Json document;
  document["status"] = stopped ? "stopped" : without_value ? "failed" : "done";
  document["exit_status"] = summary.exit_status;
  document["trials"] = all;
  document["done"] = done;
  document["failed"] = failed;
  document["metric"] = results.metric;
  document["mode"] = spec::to_string(results.mode);
  document["best"] = nullptr;
  if (has_best(results)) document["best"] = parse_json(best_json(results, sweep));
  if (without_value) document["errors"] = report::errors_json({no_value(results)});
  document["seconds"] = seconds;
  document["version"] = version;
  summary.json = report::to_text(document);
  run::write_whole((sweep / "summary.json").string(), summary.json);
  const std::string folder = shell_quoted(sweep.string());
  summary.text = results_text(results, most_shown, false, columns);
  if (most_shown > 0 && all > most_shown) summary.text += "  pmaptrain sweep show " + folder + " shows all\n";
  summary.text += "\n";
  if (has_best(results)) summary.text += best_text(results, sweep);
  if (without_value) summary.failure = no_value(results);
  if (stopped) summary.text += "stopped; to go on: " + resume_command(sweep) + "\n";
  summary.text = wrapped(summary.text, columns);
  return summary;
}

}  // namespace pmaptrain::sweep
