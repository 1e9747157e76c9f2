#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/report/html/sections.h"
#include "core/report/html/text.h"
#include "core/report/runs/compare.h"
#include "core/run/records/final_report.h"
#include "core/run/records/lines.h"
#include "core/run/records/shown_measures.h"

namespace pmaptrain::report {
namespace {

std::string fact(std::string_view name, std::string_view html) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), html);
}

std::string status_html(const Standing& standing) {
  std::string text = escaped(standing.status);
  if (standing.ended && standing.ended->reason != "duration")
    text += fmt::format(" ({})", escaped(standing.ended->reason));
  return fmt::format("<span class=\"{}\">{}</span>", escaped(standing.status), text);
}

bool is_same_folder(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;  // of a current folder that is gone: then no two are the same
  const std::filesystem::path first = std::filesystem::absolute(a, error), second = std::filesystem::absolute(b, error);
  return !error && first.lexically_normal() == second.lexically_normal();
}

// The trial that the run is of, and its sweep; null for other runs.
std::pair<const SweepTable*, const SweepTrial*> trial_of(const Page& page, const RunRecord& run) {
  for (const SweepTable& sweep : page.sweeps) {
    for (const SweepTrial& trial : sweep.trials) {
      if (is_same_folder(run.folder, sweep.folder / trial.run_folder)) return {&sweep, &trial};
    }
  }
  return {nullptr, nullptr};
}

// The same; of a run of a sweep how its trial stands, which halving may have ended before the run's own end.
std::string status_html(const Page& page, const RunRecord& run) {
  const auto [sweep, trial] = trial_of(page, run);
  if (trial == nullptr) return status_html(run.standing);
  std::size_t rungs = 0;
  for (const SweepTrial& one : sweep->trials) rungs = std::max(rungs, one.rungs.size());
  const std::string rung = rungs > 1 ? fmt::format(" at rung {} of {}", trial->rungs.size(), rungs) : "";
  const std::size_t colon = trial->status_text.find(": ");
  const std::string reason = colon == std::string::npos ? "" : trial->status_text.substr(colon);
  return fmt::format("<span class=\"{0}\">{0}{1}{2}</span>", escaped(trial->status), rung, escaped(reason));
}

// The run with the best value, where all have one of the same measure on the same split. Of the trials of one sweep it
// is the sweep's best, if that has a run here: of halving, an earlier rung may have better values.
std::optional<std::size_t> best_run(const Page& page) {
  if (page.sweeps.size() == 1) {
    const SweepTrial* const best = best_trial(page.sweeps.front());
    std::optional<std::size_t> found;
    bool are_trials = true;
    for (std::size_t i = 0; i < page.runs.size(); ++i) {
      const SweepTrial* const trial = trial_of(page, page.runs[i]).second;
      are_trials = are_trials && trial != nullptr;
      if (trial != nullptr && trial == best) found = i;
    }
    if (are_trials) return found;
  }
  std::optional<std::size_t> found;
  std::optional<BestValue> best;
  for (std::size_t i = 0; i < page.runs.size(); ++i) {
    const std::optional<BestValue>& one = page.runs[i].best;
    if (!one || (best && (one->measure != best->measure || one->split != best->split))) return std::nullopt;
    if (best && !(one->larger_is_better ? one->value > best->value : one->value < best->value)) continue;
    best = one;
    found = i;
  }
  return page.runs.size() > 1 ? found : std::nullopt;
}

std::vector<Cell> heads(const Page& page, std::string_view first) {
  std::vector<Cell> cells{text_cell(first)};
  const std::optional<std::size_t> best = best_run(page);
  for (std::size_t i = 0; i < page.runs.size(); ++i) cells.push_back(marked_cell(page.runs[i].label, best == i));
  return cells;
}

std::string rows_table(const Page& page, std::string_view label, std::string_view first,
                       const std::vector<Difference>& rows) {
  std::vector<std::vector<Cell>> cells;
  for (const Difference& row : rows) {
    cells.push_back({text_cell(row.what)});
    for (const std::string& value : row.values) cells.back().push_back(value_cell(value));
  }
  return table(label, heads(page, first), cells, "wide");
}

Cell measure_cell(const std::optional<double>& value) { return number_cell(value ? shown_number(*value) : "–"); }

// The splits of one run as rows, and the measures as columns.
std::string splits_table(const run::Ended& ended, const run::MemberEnded& member, std::string_view label) {
  const run::MeasureTable measures = run::measure_table(ended, member);
  std::vector<Cell> head{text_cell("")};
  for (const std::string& name : measures.names) head.push_back(number_cell(run::with_class(name, ended.classes)));
  std::vector<std::vector<Cell>> rows;
  for (std::size_t r = 0; r < measures.rows.size(); ++r) {
    rows.push_back({text_cell(measures.rows[r].name)});
    for (const std::optional<double>& value : measures.values[r]) rows.back().push_back(measure_cell(value));
  }
  return table(label, head, rows);
}

// For each split under one checkpoint a table: the measures as columns, and the members as rows.
std::string members_tables(const run::Ended& ended) {
  std::string html;
  const std::vector<run::MemberColumn> all = run::member_columns(ended);
  for (auto end = all.begin(), begin = end; begin != all.end(); begin = end) {
    end = std::find_if(begin, all.end(), [&](const auto& column) { return column.group != begin->group; });
    std::vector<Cell> head{text_cell("member")};
    for (const auto& [key, value] : ended.members.front().varied) head.push_back(text_cell(key));
    for (auto column = begin; column != end; ++column) {
      head.push_back(number_cell(run::with_class(column->name, ended.classes)));
    }
    std::vector<std::vector<Cell>> rows;
    for (std::size_t m = 0; m < ended.members.size(); ++m) {
      rows.push_back({text_cell(std::to_string(m))});
      for (const auto& [key, value] : ended.members[m].varied) rows.back().push_back(value_cell(value));
      for (auto column = begin; column != end; ++column) rows.back().push_back(measure_cell(column->values[m]));
    }
    html += fmt::format("<h3>{}</h3>\n", escaped(begin->group)) + table("members on " + begin->group, head, rows);
  }
  return html;
}

}  // namespace

std::string facts_of(const RunRecord& run) {
  std::string out =
      fmt::format("<p class=\"muted\"><code>{}</code></p>\n<dl class=\"facts\">\n", escaped(run.folder.string()));
  out += fact("status", status_html(run.standing));
  if (run.standing.status == "killed") {
    out += fact("to go on", fmt::format("<code>pmaptrain run {} --resume</code>",
                                        escaped(shell_quoted(printable(run.folder.string())))));
  }
  if (const auto& best = run.best) {
    out += fact(fmt::format("best {} {}", best->split, best->measure),
                escaped(fmt::format("{} at step {}", shown_number(best->value), with_commas(best->step))));
  }
  if (run.standing.ended) {
    const run::Ended& ended = *run.standing.ended;
    out += fact("steps", with_commas(ended.steps));
    out += fact("epochs", with_commas(ended.epochs));
    out += fact("time", escaped(run::duration(ended.seconds)));
    out += fact("parameters", with_commas(ended.parameters));
    if (ended.is_ensemble) out += fact("members", std::to_string(ended.members.size()));
    if (ended.steps_skipped() > 0) out += fact("steps skipped", with_commas(ended.steps_skipped()));
  }
  return out + "</dl>\n";
}

std::string cards_of(const Page& page) {
  if (page.runs.empty() || (page.runs.size() == 1 && page.sweeps.empty())) return "";
  const std::optional<std::size_t> best = best_run(page);
  std::string out = "<ul class=\"cards\">\n";
  for (std::size_t i = 0; i < page.runs.size(); ++i) {
    const RunRecord& run = page.runs[i];
    out += fmt::format("<li{}><b>{}</b> {}<br>", best == i ? " class=\"best\"" : "", escaped(run.label),
                       best == i ? "<span class=\"mark-best\">best</span> " : "");
    std::vector<std::string> parts{status_html(page, run)};
    if (const auto& value = run.best) {
      parts.push_back(escaped(fmt::format("{} {} {} at step {}", value->split, value->measure,
                                          shown_number(value->value), with_commas(value->step))));
    } else {
      parts.push_back(escaped("no " + selection_of(run.config.spec).measure + (run.standing.ended ? "" : " yet")));
    }
    if (run.standing.ended) {
      parts.push_back(escaped(counted(run.standing.ended->steps, "step")));
      parts.push_back(escaped(run::duration(run.standing.ended->seconds)));
    }
    out += join(parts, "<br>") + "</li>\n";
  }
  out += "</ul>\n";
  if (page.runs.size() > 1) return out;
  return out + paragraph(fmt::format("What follows the sweep is of this run, {}.", page.runs.front().label));
}

std::string results_section(const Page& page) {
  if (page.runs.empty()) return "";
  if (page.runs.size() > 1) {
    std::vector<std::vector<std::pair<std::string, std::string>>> facts;
    for (const RunRecord& run : page.runs) facts.push_back(result_facts(run));
    return section("results", "Results", rows_table(page, "results by run", "", rows_of(facts, true)));
  }
  const RunRecord& run = page.runs.front();
  if (!run.standing.ended) {
    return section("results", "Results", note("The run has no summary.json: it has not ended, or was killed."));
  }
  const run::Ended& ended = *run.standing.ended;
  std::string html;
  if (ended.normalised_targets) html += note("The loss is in units of the targets' standard deviation.");
  if (ended.is_ensemble && !ended.members.empty()) {
    html += members_tables(ended);
  } else if (!ended.members.empty()) {
    html += splits_table(ended, ended.members.front(), "measures at the end of the run");
  }
  for (const run::Changed& change : ended.changes) {
    html += paragraph(fmt::format("From step {} on, {} was {} in place of {}.", with_commas(change.step + 1),
                                  change.key, change.value, change.before));
  }
  return section("results", "Results", html);
}

std::string differences_section(const Page& page) {
  if (page.runs.size() < 2) return "";
  const RunDifferences found = compare_runs(page.runs);
  std::string html;
  html += found.config.empty() ? paragraph("The configs are the same, but for their names.")
                               : rows_table(page, "keys that differ", "key", found.config);
  if (!found.data.empty()) html += "<h3>Data</h3>\n" + rows_table(page, "data that differs", "", found.data);
  if (found.has_data && found.data.empty()) html += paragraph("What the checkpoints say of the data is the same.");
  for (const std::string& one : found.notes) html += note(one);
  return section("differences", "Differences", html);
}

std::string config_section(const Page& page) {
  std::string html;
  for (const RunRecord& run : page.runs) {
    html += fmt::format("<details><summary>{}</summary><pre tabindex=\"0\">{}</pre></details>\n",
                        escaped(page.runs.size() == 1 ? "config.yaml, with all defaults" : run.label),
                        escaped(run.config.resolved));
  }
  return html.empty() ? "" : section("config", "Config", html);
}

}  // namespace pmaptrain::report
