// diff: what differs between two runs.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "app/commands/commands.h"
#include "app/display/terminal.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/wrap.h"
#include "core/report/json.h"
#include "core/report/runs/compare.h"
#include "core/run/records/lines.h"

namespace pmaptrain::app {
namespace {

constexpr std::size_t widest_value = 60;

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
  return is_number ? std::optional(number) : std::nullopt;
}

// A number or a truth value as such; null for nothing.
report::Json json_of(const std::string& value) {
  if (value.empty()) return nullptr;
  report::Json json = try_parse_json(value);
  return json.is_number() || json.is_boolean() ? json : report::Json(value);
}

report::Json rows_json(const std::vector<report::Difference>& rows, const char* what) {
  report::Json list = report::Json::array();
  for (const report::Difference& row : rows) {
    list.push_back({{what, row.what}, {"before", json_of(row.values.front())}, {"after", json_of(row.values.back())}});
  }
  return list;
}

// Measures of results have five digits; values of a config are those of its file.
std::string shown(const std::string& value, bool is_measure) {
  if (value.empty()) return "-";
  const bool has_fraction = value.find_first_of(".e") != std::string::npos;
  if (is_measure && has_fraction && number_in(value)) return run::compact(*number_in(value));
  std::string text = printable(value);
  if (text.size() <= widest_value) return text;
  std::size_t end = widest_value - 3;
  while ((static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // within a character of UTF-8
  return text.substr(0, end) + "...";
}

std::string change_text(const report::Difference& row) {
  const auto before = number_in(row.values.front()), after = number_in(row.values.back());
  if (!before || !after) return "";
  const double change = *after - *before;
  const bool is_whole = (row.values.front() + row.values.back()).find_first_of(".e") == std::string::npos;
  return (change > 0 ? "+" : "") + (is_whole ? fmt::format("{:.0f}", change) : run::compact(change));
}

std::string section(const std::string& title, const std::vector<report::Difference>& rows,
                    const std::vector<std::string>& names, bool is_result, int width) {
  if (rows.empty()) return title + ": no difference\n";
  std::vector<std::vector<std::string>> lines{{"", names.front(), names.back()}};
  for (const report::Difference& row : rows) {
    lines.push_back({printable(row.what), shown(row.values.front(), is_result), shown(row.values.back(), is_result)});
    if (is_result) lines.back().push_back(change_text(row));
  }
  return title + "\n" + in_columns(lines, {false, false, false, true}, width);
}

}  // namespace

int command_diff(CommandArguments arguments, const Streams& streams) {
  std::string first, second;
  bool json = false;
  Arguments a("diff", "Shows what differs between two runs: keys of their configs, their data, their results.");
  a.positional("RUN", first, "a run folder", "runs/a runs/b");
  a.positional("OTHER", second, "the run folder that it is compared with", "runs/a runs/b");
  a.flag("--json", json, "print the differences as a JSON document");
  a.footer(
      "The exit status is 0 whether the runs differ or not. Configs are compared with all defaults written out, but\n"
      "for `name`. The data is what the last checkpoints say of it: numbers of examples, classes, columns, "
      "statistics.\n"
      "Of an ensemble the results are the medians over its members.\n");
  if (!a.parse(arguments, streams)) return 0;
  const std::vector<std::string> folders{first, second};
  std::vector<report::RunRecord> runs;
  for (const std::string& folder : folders) {
    check_run_folder("diff", folder);
    runs.push_back(report::read_run(folder));
  }
  const report::RunDifferences found = report::compare_runs(runs);
  if (json) {
    report::Json document{{"runs", folders},
                          {"config", rows_json(found.config, "key")},
                          {"data", found.has_data ? rows_json(found.data, "what") : report::Json(nullptr)},
                          {"result", rows_json(found.result, "what")}};
    if (!found.notes.empty()) document["notes"] = found.notes;
    streams.out << report::to_text(document);
    return 0;
  }
  const std::vector<std::string> names{printable(first), printable(second)};
  const int width = display::text_columns(streams.out_fd);
  std::string text = section("config", found.config, names, false, width) + "\n";
  if (found.has_data) text += section("data", found.data, names, false, width) + "\n";
  streams.out << for_reader(text + section("result", found.result, names, true, width), streams);
  print_notes(found.notes, streams);
  return 0;
}

}  // namespace pmaptrain::app
