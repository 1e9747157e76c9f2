#include "app/display/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "app/display/style.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/run/records/lines.h"
#include "core/sweep/plan.h"
#include "core/sweep/value_text.h"

namespace pmaptrain::display {
namespace {

constexpr int narrow = 50;            // columns; below, words are shorter and columns closer
constexpr int most_value_width = 20;  // of a parameter
constexpr int least_trials = 2;       // fewer lines of trials are not worth the line of names

// As much of a text as has this width.
std::string cut(const std::string& text, int width) {
  int columns = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Character character = utf8_at(text, at);
    columns += display_width(character.code);
    if (columns > width) break;
    at += character.bytes;
  }
  return text.substr(0, at);
}

std::vector<std::string> head_parts(const sweep::Progress& progress, const spec::SweepSpec& sweep, bool is_narrow) {
  const std::int64_t all = progress.waiting + progress.running + progress.done + progress.failed;
  std::vector<std::string> parts;
  parts.push_back(fmt::format("{} of {} done", with_commas(progress.done), counted(all, "run")));
  if (progress.best && progress.best->value) {
    const std::string metric = is_narrow ? "" : printable(sweep.metric) + " ";
    parts.push_back(fmt::format("best {}{:.6g} (trial {})", metric, *progress.best->value, progress.best->number));
  }
  if (progress.seconds_left) parts.push_back(run::clock_time(*progress.seconds_left) + " left");
  parts.push_back(fmt::format("{} running", with_commas(progress.running)));
  parts.push_back(fmt::format("{} waiting", with_commas(progress.waiting)));
  if (progress.failed > 0) parts.push_back(fmt::format("{} failed", with_commas(progress.failed)));
  return parts;
}

// The parts with commas, folded between them. What does not fit into `most` lines goes.
std::vector<std::string> folded(const std::vector<std::string>& parts, int width, std::size_t most) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part = parts[i] + (i + 1 < parts.size() ? "," : "");
    if (!lines.empty() && display_width(lines.back()) + 1 + display_width(part) <= width) {
      lines.back() += " " + part;
    } else if (lines.size() == most) {
      break;
    } else {
      lines.push_back(cut(part, width));
    }
  }
  if (!lines.empty() && lines.back().ends_with(',')) lines.back().pop_back();
  return lines;
}

// The last words of the paths of parameters, with as many as make them differ: "learning_rate".
std::vector<std::string> short_names(const std::vector<spec::SweepParameter>& parameters) {
  std::vector<std::string> names;
  for (const spec::SweepParameter& parameter : parameters) {
    const auto end_of = [](const std::string& path, std::size_t words) {
      std::size_t at = path.size();
      for (std::size_t i = 0; i < words && at != std::string::npos && at > 0; ++i) at = path.rfind('.', at - 1);
      return at == std::string::npos || at == 0 ? path : path.substr(at + 1);
    };
    std::string name = parameter.name;
    for (std::size_t words = 1; words < parameter.name.size(); ++words) {
      name = end_of(parameter.name, words);
      const auto same = std::count_if(parameters.begin(), parameters.end(), [&](const spec::SweepParameter& other) {
        return end_of(other.name, words) == name;
      });
      if (same == 1) break;
    }
    names.push_back(printable(name));
  }
  return names;
}

struct Column {
  std::string name;
  std::vector<std::string> values;
  int least_name = 0;  // columns to which the name may be cut in a narrow terminal; 0: it stays whole

  int width(bool is_narrow) const {
    int width = 0;
    for (const std::string& value : values) width = std::max(width, display_width(value));
    const int of_name = display_width(name);
    return std::max(width, is_narrow && least_name > 0 ? std::min(of_name, least_name) : of_name);
  }
};

std::string number_text(const std::optional<double>& value) { return value ? run::compact(*value) : "-"; }

std::string share_text(const sweep::RunningTrial& trial) {
  if (trial.steps <= 0) return "-";
  const double share = std::clamp(static_cast<double>(trial.step) / static_cast<double>(trial.steps), 0.0, 1.0);
  return fmt::format("{}%", static_cast<int>(std::floor(share * 100)));
}

// The columns of the first `count` trials, the most important ones first.
std::vector<Column> table_columns(const sweep::Progress& progress, const spec::SweepSpec& sweep, std::size_t count,
                                  bool is_narrow) {
  Column name{"trial", {}}, value{printable(sweep.metric), {}, 8}, share{"done", {}}, epoch{"epoch", {}},
      step{"step", {}}, loss{"training loss", {}};
  std::vector<Column> parameters;
  for (std::string& one : short_names(sweep.parameters)) parameters.push_back({std::move(one), {}, 6});
  std::vector<std::string> names;
  for (const spec::SweepParameter& parameter : sweep.parameters) names.push_back(parameter.name);
  bool has_epochs = false, has_losses = false;
  for (std::size_t i = 0; i < count; ++i) {
    const sweep::RunningTrial& trial = progress.trials[i];
    name.values.push_back(sweep::trial_name(trial.row->number, trial.row->replicate));
    value.values.push_back(number_text(trial.value));
    share.values.push_back(share_text(trial));
    epoch.values.push_back(trial.epoch > 0 ? std::to_string(trial.epoch) : "-");
    step.values.push_back(fmt::format("{}/{}", trial.step, trial.steps));
    loss.values.push_back(number_text(trial.loss));
    has_epochs = has_epochs || trial.epoch > 0;
    has_losses = has_losses || trial.loss;
    const std::vector<std::string> values = sweep::parameter_values(trial.row->parameters, names, is_narrow ? 2 : 4);
    for (std::size_t p = 0; p < parameters.size(); ++p)
      parameters[p].values.push_back(cut(values[p], most_value_width));
  }
  std::vector<Column> columns{std::move(name), std::move(value), std::move(share)};
  for (Column& one : parameters) columns.push_back(std::move(one));
  if (has_losses) columns.push_back(std::move(loss));
  if (has_epochs) columns.push_back(std::move(epoch));
  columns.push_back(std::move(step));
  return columns;
}

// One line of the table: the cells of a row, or the names.
std::string line_of(const std::vector<Column>& columns, std::optional<std::size_t> row, const SweepTableStyle& style) {
  const bool is_narrow = style.width < narrow;
  const int gap = is_narrow ? 1 : 2;
  std::string line;
  int used = 0;
  for (const Column& column : columns) {
    const int width = std::min(column.width(is_narrow), style.width), lead = line.empty() ? 0 : gap;
    if (used + lead + width > style.width && used > 0) break;
    const std::string cell = cut(row ? column.values[*row] : column.name, width);
    line.append(static_cast<std::size_t>(std::max(lead + width - display_width(cell), 0)), ' ');
    line += cell;
    used += lead + width;
  }
  return line;
}

}  // namespace

std::string sweep_table(const sweep::Progress& progress, const spec::SweepSpec& sweep, const SweepTableStyle& style) {
  if (progress.waiting + progress.running + progress.done + progress.failed == 0) return "";  // it has not begun
  const bool is_narrow = style.width < narrow;
  const std::size_t trials = progress.trials.size();
  const auto height = static_cast<std::size_t>(std::max(style.height, 1));
  std::vector<std::string> lines =
      folded(head_parts(progress, sweep, is_narrow), style.width, std::max<std::size_t>(height / 4, 1));
  const std::size_t room = height - std::min(height, lines.size() + 1);  // below the line of names
  if (trials > 0 && room >= std::min<std::size_t>(trials, least_trials)) {
    const std::size_t count = trials <= room ? trials : room - 1;
    const std::vector<Column> columns = table_columns(progress, sweep, count, is_narrow);
    lines.push_back(painted(dim, line_of(columns, std::nullopt, style), style.color));
    for (std::size_t i = 0; i < count; ++i) lines.push_back(line_of(columns, i, style));
    if (count < trials) {
      const std::string more = fmt::format("and {} more", with_commas(static_cast<std::int64_t>(trials - count)));
      lines.push_back(painted(dim, cut(more, style.width), style.color));
    }
  }
  return join(lines, "\n");
}

}  // namespace pmaptrain::display
