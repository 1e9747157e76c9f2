#include "core/train/record_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/train/record_lines.h"

namespace pmaptrain::train {
namespace {

constexpr std::string_view bold = "\x1b[1m", green = "\x1b[1;32m", yellow = "\x1b[1;33m", red = "\x1b[1;31m",
                           plain = "\x1b[0m";
constexpr std::size_t shown_values = 8;  // of one parameter

using Row = std::vector<std::string>;

std::string pad(const std::string& text, int width, bool left) {
  const auto gap = static_cast<std::size_t>(std::max(0, width - display_width(text)));
  return left ? text + std::string(gap, ' ') : std::string(gap, ' ') + text;
}

// Left-aligned names, right-aligned numbers; the first row is the heading.
std::string table(const std::vector<Row>& rows, bool color) {
  std::vector<int> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line = "  ";
    for (std::size_t i = 0; i < rows[r].size(); ++i) line += (i > 0 ? "  " : "") + pad(rows[r][i], widths[i], i == 0);
    line.erase(line.find_last_not_of(' ') + 1);
    text += color && r == 0 ? std::string(bold) + line + std::string(plain) + "\n" : line + "\n";
  }
  return text;
}

std::string plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", with_commas(count), noun, count == 1 ? "" : "s");
}

std::string headline(const Ended& ended, bool color) {
  std::string what = printable(ended.status);
  if (ended.reason == "max_steps") what = "stopped at --max-steps";
  if (ended.reason == "max_time") what = "stopped at train.max_time";
  if (ended.reason == "early_stopping") what = "stopped early";
  if (ended.reason == "signal") what = "stopped by a signal";
  if (ended.reason == "guard") what = "stopped by a guard";
  if (color) {
    const std::string_view style = ended.status == "done" ? green : ended.exit_status == 0 ? yellow : red;
    what = std::string(style) + what + std::string(plain);
  }
  std::string text = fmt::format("{} after {}", what, plural(ended.steps, "step"));
  if (ended.steps_skipped > 0) text += fmt::format(", {} of them skipped", with_commas(ended.steps_skipped));
  text += fmt::format(" ({}, {}", plural(ended.epochs, "epoch"), plural(ended.examples_seen, "example"));
  if (ended.examples_skipped > 0) text += fmt::format(", {} skipped", with_commas(ended.examples_skipped));
  return text + ") in " + duration(ended.seconds) + "\n";
}

std::string measures_table(const Ended& ended, bool color) {
  Row heading{""};
  for (const auto& [split, measures] : ended.final_measures) {
    for (const auto& measure : measures) {
      if (std::find(heading.begin(), heading.end(), measure.first) == heading.end()) heading.push_back(measure.first);
    }
  }
  if (heading.size() == 1) return "";
  std::vector<Row> rows{heading};
  for (const auto& [split, measures] : ended.final_measures) {
    const bool best = split == "test" && ended.test_parameters == "best";
    Row row{printable(split) + (best ? " (best)" : "")};
    for (std::size_t i = 1; i < heading.size(); ++i) {
      const auto found = std::find_if(measures.begin(), measures.end(),
                                      [&, name = heading[i]](const auto& measure) { return measure.first == name; });
      row.push_back(found == measures.end() ? "-" : compact(found->second));
    }
    rows.push_back(std::move(row));
  }
  return "\n" + table(rows, color);
}

std::string value_at(const std::vector<double>& values, std::size_t i) {
  return i < values.size() ? compact(values[i]) : "-";
}

// |a - b|; none where one of them is missing.
std::optional<double> distance(const std::vector<double>& a, const std::vector<double>& b, std::size_t i) {
  if (i >= a.size() || i >= b.size()) return std::nullopt;
  return std::abs(a[i] - b[i]);
}

std::string comparison_table(const std::vector<Comparison>& comparisons, bool with_truth, bool color) {
  std::vector<Row> rows{with_truth ? Row{"", "initial", "learned", "true", "error"}
                                   : Row{"", "initial", "learned", "change"}};
  std::string below;
  for (const Comparison& c : comparisons) {
    if (c.truth.empty() == with_truth) continue;
    const std::vector<double>& reference = with_truth ? c.truth : c.initial;
    const std::size_t count = std::max({c.initial.size(), c.learned.size(), c.truth.size()});
    // One more row costs no more than the line that would stand for it.
    const std::size_t shown = count <= shown_values + 1 ? count : shown_values;
    for (std::size_t i = 0; i < shown; ++i) {
      const std::string index = count == 1 ? "" : "[" + std::to_string(i) + "]";
      Row row{printable(c.parameter) + index, value_at(c.initial, i), value_at(c.learned, i)};
      if (with_truth) row.push_back(value_at(c.truth, i));
      const std::optional<double> d = distance(c.learned, reference, i);
      row.push_back(d ? compact(*d) : "-");
      rows.push_back(std::move(row));
    }
    if (shown < count) {
      double largest = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const double d = distance(c.learned, reference, i).value_or(0);
        if (!(d <= largest)) largest = d;  // NaN wins
        if (std::isnan(largest)) break;
      }
      below += fmt::format("  {}: {} more values; largest {} {}\n", printable(c.parameter),
                           with_commas(static_cast<std::int64_t>(count - shown)), with_truth ? "error" : "change",
                           compact(largest));
    }
  }
  if (rows.size() == 1) return "";
  return "\n" + table(rows, color) + below;
}

}  // namespace

std::string final_report(const Ended& ended, bool color) {
  std::string text = headline(ended, color);
  text += measures_table(ended, color);
  text += comparison_table(ended.comparisons, true, color);
  text += comparison_table(ended.comparisons, false, color);
  if (ended.best) {
    text += fmt::format("\nbest {}: {} after step {}\n", printable(ended.best->metric), compact(ended.best->value),
                        with_commas(ended.best->step));
  }
  if (!ended.run_dir.empty()) text += "\nrun folder: " + printable(ended.run_dir) + "\n";
  return text;
}

std::string how_to_continue(const Ended& ended) {
  if (ended.run_dir.empty() || !ended.continues) return "";
  return fmt::format("saved after step {}; to go on: pmaptrain run {} --resume\n", with_commas(ended.steps),
                     printable(shell_quoted(ended.run_dir)));
}

}  // namespace pmaptrain::train
