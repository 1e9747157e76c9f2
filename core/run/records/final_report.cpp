#include "core/run/records/final_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/short_keys.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/wrap.h"
#include "core/run/records/lines.h"
#include "core/run/records/shown_measures.h"
#include "core/run/records/spread.h"

namespace pmaptrain::run {
namespace {

constexpr std::string_view green = "\x1b[1;32m", yellow = "\x1b[1;33m", red = "\x1b[1;31m", plain = "\x1b[0m";
constexpr std::size_t shown_values = 8;    // of one parameter
constexpr std::size_t shown_members = 16;  // members with a row of their own
constexpr std::size_t most_columns = 8;    // in a table of members

using Row = std::vector<std::string>;

// Whether the table fits into `columns` columns of a terminal.
bool fits(const std::vector<Row>& rows, int columns) { return columns <= 0 || columns_of_table(rows) <= columns; }

// Left-aligned names, right-aligned numbers; the first rows are the heading.
std::string table(const std::vector<Row>& rows, bool color, int columns, std::size_t headings = 1) {
  std::vector<bool> right(rows.front().size(), true);
  right.front() = false;
  return in_columns(rows, right, columns, color ? headings : 0);
}

std::string outcome(const Ended& ended) {
  if (ended.reason == "max_steps") return "stopped at --max-steps";
  if (ended.reason == "max_time") return "stopped at train.max_time";
  if (ended.reason == "early_stopping") return "stopped early";
  if (ended.reason == "signal") return "stopped by a signal";
  if (ended.reason == "guard") return "stopped by a guard";
  return printable(ended.status);
}

std::string headline(const Ended& ended, bool color) {
  std::string text = fmt::format("{} after {}", outcome(ended), counted(ended.steps, "step"));
  if (const std::int64_t skipped = ended.steps_skipped(); skipped > 0) {
    text += ended.members.size() == 1 ? fmt::format(", {} of them skipped", with_commas(skipped))
                                      : fmt::format(", {} skipped by members", with_commas(skipped));
  }
  text += fmt::format(" ({}, {}", ended.epochs == 0 ? "less than an epoch" : counted(ended.epochs, "epoch"),
                      counted(ended.examples_seen, "example"));
  if (ended.examples_skipped > 0) text += fmt::format(", {} skipped", with_commas(ended.examples_skipped));
  text += ") in " + duration(ended.seconds) + "\n";
  if (!color) return text;
  const std::string_view style = ended.status == "done" ? green : ended.exit_status == 0 ? yellow : red;
  const std::size_t end = text.find_last_not_of(" \n", text.find("after") - 1) + 1;
  return std::string(style) + text.substr(0, end) + std::string(plain) + text.substr(end);
}

// Exchanges rows and columns.
std::vector<Row> transposed(const std::vector<Row>& rows) {
  std::vector<Row> turned(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) turned[i].push_back(row[i]);
  }
  return turned;
}

// Why the training split has no value where others have one: a sentence, or nothing.
std::string of_evaluations_alone(const MeasureTable& measures) {
  constexpr std::ptrdiff_t most = 6;  // that are named
  std::vector<std::string> names;
  bool has_train = false;
  for (std::size_t i = 0; i < measures.names.size(); ++i) {
    bool is_of_train = false;
    for (std::size_t r = 0; r < measures.rows.size(); ++r) {
      if (measures.rows[r].split != "train") continue;
      has_train = true;
      is_of_train = is_of_train || measures.values[r][i].has_value();
    }
    if (!is_of_train) names.push_back(measures.names[i]);
  }
  if (!has_train || names.empty()) return "";
  const bool one = names.size() == 1;
  const auto more = std::ssize(names) - most;
  if (more > 0) names.resize(static_cast<std::size_t>(most));
  return fmt::format("\n{}{} {} computed in evaluations alone; pmaptrain eval RUN --split train has {} of train\n",
                     join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "", one ? "is" : "are",
                     one ? "that" : "those");
}

std::string cell_of(const std::optional<double>& value) { return value ? compact(*value) : "-"; }

// A table with a row for each split, or a row for each measure if that would be too wide.
std::string measures_table(const Ended& ended, const MemberEnded& member, bool color, int columns) {
  const MeasureTable measures = measure_table(ended, member);
  if (measures.names.empty()) return "";
  std::vector<Row> rows{{""}};
  for (const std::string& name : measures.names) rows.front().push_back(with_class(name, ended.classes));
  for (std::size_t r = 0; r < measures.rows.size(); ++r) {
    Row& row = rows.emplace_back(Row{measures.rows[r].name});
    for (const std::optional<double>& value : measures.values[r]) row.push_back(cell_of(value));
  }
  return "\n" + table(fits(rows, columns) ? rows : transposed(rows), color, columns) + of_evaluations_alone(measures);
}

// The confusion matrix of the last split that has one under the checkpoint used by default, if it has few enough
// classes.
std::string confusion_table(const Ended& ended, const MemberEnded& member, bool color, int columns) {
  const ShownMeasures* last = nullptr;
  const std::vector<ShownMeasures> all = shown_measures(ended, member);
  for (const ShownMeasures& of_split : all) {
    const bool of_same = last == nullptr || of_split.checkpoint == last->checkpoint;
    if (of_split.confusion != nullptr && of_same) last = &of_split;
  }
  return last == nullptr ? "" : confusion_text(*last->confusion, last->name, ended.classes, color, columns);
}

std::string value_at(const std::vector<double>& values, std::size_t i) {
  return i < values.size() ? compact(values[i]) : "-";
}

// a - b|; none if one of the values is missing.
std::optional<double> distance(const std::vector<double>& a, const std::vector<double>& b, std::size_t i) {
  if (i >= a.size() || i >= b.size()) return std::nullopt;
  return std::abs(a[i] - b[i]);
}

std::string comparison_table(const std::vector<Comparison>& comparisons, bool with_truth, bool color, int columns) {
  std::vector<Row> rows{with_truth ? Row{"", "initial", "learned", "true", "error"}
                                   : Row{"", "initial", "learned", "change"}};
  std::string below;
  for (const Comparison& c : comparisons) {
    if (c.truth.empty() == with_truth) continue;
    const std::vector<double>& reference = with_truth ? c.truth : c.initial;
    const std::size_t count = std::max({c.initial.size(), c.learned.size(), c.truth.size()});
    // A line that says "1 more" takes as much space as the value itself.
    const std::size_t shown = count <= shown_values + 1 ? count : shown_values;
    for (std::size_t i = 0; i < shown; ++i) {
      const std::string index = count == 1 ? "" : "[" + std::to_string(i) + "]";
      Row row{shown_name(c.parameter) + index, value_at(c.initial, i), value_at(c.learned, i)};
      if (with_truth) row.push_back(value_at(c.truth, i));
      const std::optional<double> d = distance(c.learned, reference, i);
      row.push_back(cell_of(d));
      rows.push_back(std::move(row));
    }
    if (shown < count) {
      double largest = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const double d = distance(c.learned, reference, i).value_or(0);
        if (!(d <= largest)) largest = d;  // NaN wins
        if (std::isnan(largest)) break;
      }
      below += fmt::format("  {}: {} more values; largest {} {}\n", shown_name(c.parameter),
                           with_commas(static_cast<std::int64_t>(count - shown)), with_truth ? "error" : "change",
                           compact(largest));
    }
  }
  if (rows.size() == 1) return "";
  return "\n" + table(rows, color, columns) + below;
}

// The measures of all members. Without best checkpoints, also the best values.
std::vector<MemberColumn> columns_of(const Ended& ended) {
  std::vector<MemberColumn> columns = member_columns(ended);
  if (!columns.empty() && columns.front().checkpoint == "best") return columns;
  for (std::size_t m = 0; m < ended.members.size(); ++m) {
    const std::optional<Best>& best = ended.members[m].best;
    if (!best) continue;
    if (columns.empty() || columns.back().group != "best" || columns.back().name != best->metric) {
      columns.push_back({"", "best", best->metric, std::vector<std::optional<double>>(ended.members.size())});
    }
    columns.back().values[m] = best->value;
  }
  return columns;
}

// The keys in which members differ, by short names: "learning_rate" for "optimizer.learning_rate".
std::vector<std::string> names_of_keys(const std::vector<std::pair<std::string, std::string>>& varied) {
  std::vector<std::string> keys;
  keys.reserve(varied.size());
  for (const auto& [path, value] : varied) keys.push_back(path);
  keys = short_keys(keys);
  for (std::string& key : keys) key = shown_name(key);
  return keys;
}

// A row for each member, with a column for each key in which they differ and for each measure.
std::vector<Row> rows_by_member(const Ended& ended, const std::vector<MemberColumn>& columns) {
  Row groups{""}, names{""};
  for (std::string& name : names_of_keys(ended.members.front().varied)) {
    groups.emplace_back("");
    names.push_back(std::move(name));
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    groups.push_back(i > 0 && columns[i - 1].group == columns[i].group ? "" : columns[i].group);
    names.push_back(with_class(columns[i].name, ended.classes));
  }
  std::vector<Row> rows{groups, names};
  for (std::size_t m = 0; m < ended.members.size(); ++m) {
    Row& row = rows.emplace_back(Row{fmt::format("member {}", m)});
    for (const auto& [path, value] : ended.members[m].varied) row.push_back(shown_name(value));
    for (const MemberColumn& column : columns) row.push_back(cell_of(column.values[m]));
  }
  return rows;
}

// The values in which these members differ: "member 3: learning_rate 0.001".
std::string differences(const Ended& ended, const std::set<std::int64_t>& members) {
  std::string text;
  for (const std::int64_t member : members) {
    const auto& varied = ended.members[static_cast<std::size_t>(member)].varied;
    const std::vector<std::string> names = names_of_keys(varied);
    std::string values;
    for (std::size_t i = 0; i < varied.size(); ++i) {
      values += (values.empty() ? "" : ", ") + names[i] + " " + shown_name(varied[i].second);
    }
    if (!values.empty()) text += fmt::format("  member {}: {}\n", member, values);
  }
  return text;
}

// A row for each measure, with the best and the worst members, which are added to `shown`.
std::vector<Row> rows_by_measure(const std::vector<MemberColumn>& columns, const std::vector<std::string>& classes,
                                 std::set<std::int64_t>& shown) {
  std::vector<Row> rows{{"", "best", "median", "worst"}};
  for (const MemberColumn& column : columns) {
    MeasureOfMembers measure{column.name, {}, {}};
    for (std::size_t m = 0; m < column.values.size(); ++m) {
      if (column.values[m]) measure.add(static_cast<std::int64_t>(m), *column.values[m]);
    }
    const Spread spread = measure.spread();
    shown.insert({spread.best_member, spread.worst_member});
    rows.push_back({column.group + " " + with_class(column.name, classes),
                    fmt::format("{} ({})", compact(spread.best), spread.best_member), compact(spread.median),
                    fmt::format("{} ({})", compact(spread.worst), spread.worst_member)});
  }
  return rows;
}

std::string members_table(const Ended& ended, bool color, int terminal_columns) {
  const std::vector<MemberColumn> columns = columns_of(ended);
  if (columns.empty()) return "";
  if (ended.members.size() <= shown_members) {
    const std::vector<Row> rows = rows_by_member(ended, columns);
    if (fits(rows, terminal_columns)) return "\n" + table(rows, color, terminal_columns, 2);
  }
  std::set<std::int64_t> shown;
  const std::vector<Row> rows = rows_by_measure(columns, ended.classes, shown);
  return "\n" + table(rows, color, terminal_columns) + differences(ended, shown);
}

// One element of a compared parameter, in every member.
struct Learned {
  std::string name;
  std::string initial, truth;  // empty if the members have different values, or if it is unknown
  std::vector<double> members;
};

// Up to shown_values values of each parameter. `below` receives a text about the others.
std::vector<Learned> learned_values(const Ended& ended, std::string& below) {
  std::vector<Learned> all;
  const std::vector<Comparison>& first = ended.members.front().comparisons;
  for (std::size_t c = 0; c < first.size(); ++c) {
    const std::size_t count = first[c].learned.size();  // 0 if the last step failed
    const std::size_t shown = count <= shown_values + 1 ? count : shown_values;
    const auto same = [&](const MemberEnded& member) { return member.comparisons[c].initial == first[c].initial; };
    const bool common = std::all_of(ended.members.begin(), ended.members.end(), same);
    for (std::size_t i = 0; i < shown; ++i) {
      Learned& value = all.emplace_back();
      value.name = shown_name(first[c].parameter) + (count == 1 ? "" : "[" + std::to_string(i) + "]");
      if (common) value.initial = value_at(first[c].initial, i);
      if (!first[c].truth.empty()) value.truth = value_at(first[c].truth, i);
      for (const MemberEnded& member : ended.members) value.members.push_back(member.comparisons[c].learned.at(i));
    }
    if (shown < count) {
      below += fmt::format("  {}: {} more values\n", shown_name(first[c].parameter),
                           with_commas(static_cast<std::int64_t>(count - shown)));
    }
  }
  return all;
}

// The learned values of every member or, for many members, the least, the median and the largest.
std::vector<Row> rows_of(const std::vector<Learned>& values, bool by_member) {
  const auto any = [&](auto part) {
    return std::any_of(values.begin(), values.end(), [&](const Learned& value) { return !(value.*part).empty(); });
  };
  const bool initial = any(&Learned::initial), truth = any(&Learned::truth);
  Row heading{"learned"};
  if (initial) heading.emplace_back("initial");
  if (by_member) {
    for (std::size_t m = 0; m < values.front().members.size(); ++m) heading.push_back(fmt::format("member {}", m));
  } else {
    heading.insert(heading.end(), {"least", "median", "largest"});
  }
  if (truth) heading.emplace_back("true");
  std::vector<Row> rows{heading};
  for (const Learned& value : values) {
    Row& row = rows.emplace_back(Row{value.name});
    const auto known = [](const std::string& text) { return text.empty() ? "-" : text; };
    if (initial) row.push_back(known(value.initial));
    if (by_member) {
      for (const double of_member : value.members) row.push_back(compact(of_member));
    } else {
      // Ordered like a loss, where less is better.
      const Spread spread =
          MeasureOfMembers{"loss", value.members, std::vector<std::int64_t>(value.members.size())}.spread();
      for (const double one : {spread.best, spread.median, spread.worst}) row.push_back(compact(one));
    }
    if (truth) row.push_back(known(value.truth));
  }
  return rows;
}

std::string learned_table(const Ended& ended, bool color, int columns) {
  std::string below;
  const std::vector<Learned> values = learned_values(ended, below);
  if (values.empty()) return "";
  const std::vector<Row> rows = rows_of(values, true);
  const bool by_member = ended.members.size() <= most_columns && fits(rows, columns);
  return "\n" + table(by_member ? rows : rows_of(values, false), color, columns) + below;
}

// The members that ended before the run: "1 member ended by early stopping: 3 (step 12)".
std::string finished_members(const Ended& ended) {
  constexpr std::size_t most = 8;
  std::map<std::string, std::vector<std::size_t>> by_reason;
  for (std::size_t m = 0; m < ended.members.size(); ++m) {
    if (!ended.members[m].reason.empty()) by_reason[ended.members[m].reason].push_back(m);
  }
  std::string text;
  for (const auto& [reason, members] : by_reason) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(members.size(), most); ++i) {
      names.push_back(fmt::format("{} (step {})", members[i], with_commas(ended.members[members[i]].steps)));
    }
    text += fmt::format("\n{} ended by {}:\n", counted(static_cast<std::int64_t>(members.size()), "member"),
                        reason_text(reason));
    for (std::size_t i = 0; i < names.size(); ++i) {
      text += (i == 0 ? "  " : i % 4 == 0 ? ",\n  " : ", ") + names[i];
    }
    text += "\n";
    if (members.size() > most) text += fmt::format("  and {} more: summary.json has them\n", members.size() - most);
  }
  return text;
}

std::string member_report(const Ended& ended, const MemberEnded& member, bool color, int columns) {
  std::string text = measures_table(ended, member, color, columns);
  text += confusion_table(ended, member, color, columns);
  text += comparison_table(member.comparisons, true, color, columns);
  text += comparison_table(member.comparisons, false, color, columns);
  if (member.best) {
    // The evaluation after --max-steps or train.max_time is an extra one: the run without the limit has none there.
    const bool has_extra = ended.reason == "max_steps" || ended.reason == "max_time";
    text += fmt::format("\nbest {}: {} after step {}{}{}\n", shown_name(member.best->metric),
                        compact(member.best->value), with_commas(member.best->step),
                        has_extra && member.best->step != member.steps ? " of the evaluations at train.eval_every" : "",
                        member.selected ? ", the checkpoint of eval, predict and export" : "");
  }
  return text;
}

}  // namespace

std::string with_class(const std::string& measure, const std::vector<std::string>& classes) {
  const std::size_t at = measure.find_last_not_of("0123456789");
  if (at == std::string::npos || measure[at] != '_' || measure.size() - at - 1 > 9 || at + 1 == measure.size()) {
    return shown_name(measure);
  }
  const auto number = static_cast<std::size_t>(std::stoul(measure.substr(at + 1)));
  return number < classes.size() ? shown_name(measure) + " (" + shown_name(classes[number]) + ")" : shown_name(measure);
}

std::string confusion_text(const std::vector<std::vector<double>>& matrix, const std::string& split,
                           const std::vector<std::string>& classes, bool color, int columns) {
  constexpr std::size_t most_classes = 12;
  if (matrix.size() > most_classes) return "";
  const auto name = [&](std::size_t c) { return c < classes.size() ? shown_name(classes[c]) : std::to_string(c); };
  std::vector<Row> rows{Row{split + ": true \\ predicted"}};
  for (std::size_t c = 0; c < matrix.size(); ++c) {
    rows.front().push_back(name(c));
    Row& row = rows.emplace_back(Row{name(c)});
    for (const double value : matrix[c]) {
      row.push_back(value == std::floor(value) ? with_commas(std::llround(value)) : compact(value));
    }
  }
  if (fits(rows, columns)) return "\n" + table(rows, color, columns);
  // The columns get the numbers of classes as headings; the rows get both numbers and names.
  for (std::size_t c = 0; c < matrix.size(); ++c) {
    rows[0][c + 1] = std::to_string(c);
    rows[c + 1][0] = std::to_string(c) + (c < classes.size() ? " " + name(c) : "");
  }
  return "\n" + table(rows, color, columns);
}

std::string final_report(const Ended& ended, bool color, int columns) {
  std::string text = headline(ended, color);
  text += ended.members.size() == 1
              ? member_report(ended, ended.members.front(), color, columns)
              : members_table(ended, color, columns) + learned_table(ended, color, columns) + finished_members(ended);
  if (ended.normalised_targets) {
    text +=
        "\nthe loss is of normalised targets, in units of their standard deviation; metrics are in the targets' own "
        "units\n";
  }
  text = wrapped(text, columns);
  // A path is copied, so it is not broken, whatever it contains.
  if (!ended.run_dir.empty()) text += "\nrun folder: " + printable(ended.run_dir) + "\n";
  return text;
}

std::string how_to_continue(const Ended& ended) {
  if (ended.run_dir.empty() || !ended.continues) return "";
  return fmt::format("saved after step {}; to go on: pmaptrain run {} --resume\n", with_commas(ended.steps),
                     printable(shell_quoted(ended.run_dir)));
}

}  // namespace pmaptrain::run
