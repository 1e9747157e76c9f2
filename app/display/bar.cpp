#include "app/display/bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "app/display/style.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/run/records/lines.h"

namespace pmaptrain::display {
namespace {

constexpr int least_bar = 6, most_bar = 32;  // columns
constexpr int narrow_bar = 3;                // beside the loss and the time left, which say more than it does
// In this order after what the other parts have.
constexpr int priority_of_time = 3, priority_of_step = 4, priority_of_extremes = 5, priority_of_epoch = 6,
              priority_of_evaluation = 7, priority_of_best = 8, priority_of_metrics = 10, priority_of_steps = 900,
              priority_of_elapsed = 910, priority_of_epoch_times = 920, priority_of_examples = 1000;

std::string repeat(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

std::string bar(double fraction, int width, const BarStyle& style) {
  if (style.utf8) {
    // The head may stand at half a column.
    const int halves = static_cast<int>(std::floor(fraction * 2 * width));
    const int full = halves / 2, half = halves % 2;
    return painted(cyan, repeat("━", full) + repeat("╸", half), style.color) +
           painted(dim, repeat("─", width - full - half), style.color);
  }
  const int inside = width - 2;
  const int full = static_cast<int>(std::floor(fraction * inside));
  const int head = full < inside && fraction > 0 ? 1 : 0;
  return "[" + painted(cyan, repeat("=", full) + repeat(">", head), style.color) + repeat(" ", inside - full - head) +
         "]";
}

double fraction_of(std::int64_t done, std::int64_t total) {
  return total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 0.0;
}

// Rounded down: 100 % is said only of what is complete.
std::string percent(double fraction) { return fmt::format("{:>3}%", static_cast<int>(std::floor(fraction * 100))); }

struct Part {
  std::string label, value;  // "loss", "0.4321"; only one of them may be empty
  int gap = 2;               // columns before it, unless it is the first
  int priority = 0;          // small ones stay longest
  bool kept = false;
  bool is_bar = false;

  int width(int of_bar) const {
    if (is_bar) return of_bar;
    return display_width(label) + display_width(value) + (label.empty() || value.empty() ? 0 : 1);
  }
};

int total_width(const std::vector<Part>& parts, int of_bar) {
  int width = 0;
  for (const Part& part : parts) {
    if (part.kept) width += (width > 0 ? part.gap : 0) + part.width(of_bar);
  }
  return width;
}

// Of the loss of several members the best and the worst: with their members, or beside the median in short.
enum class Extremes : std::uint8_t { named, short_form };

std::vector<Part> parts_of(const BarState& state, double fraction, Extremes extremes) {
  std::vector<Part> parts;
  const std::string total = std::to_string(state.steps);
  if (state.epoch > 0) {
    std::string epoch = std::to_string(state.epoch);
    if (state.epochs > 0) {
      const std::string epochs = std::to_string(state.epochs);
      epoch = fmt::format("{:>{}}/{}", epoch, epochs.size(), epochs);
    }
    parts.push_back({"epoch", epoch, 0, priority_of_epoch});
    if (state.epoch_elapsed >= 0 && state.epoch_left >= 0) {
      parts.push_back(
          {"", fmt::format("({}, {} left)", run::clock_time(state.epoch_elapsed), run::clock_time(state.epoch_left)), 1,
           priority_of_epoch_times});
    }
  }
  parts.push_back({"", "", 2, 1, false, true});
  parts.push_back({"", percent(fraction), 1, 0});
  parts.push_back({"", fmt::format("{:>{}}/{}", state.step, total.size(), total), 2, priority_of_step});
  for (std::size_t i = 0; i < state.measures.size(); ++i) {
    const auto& [name, value] = state.measures[i];
    const int priority = i == 0 ? 2 : priority_of_metrics + static_cast<int>(i);
    // The best and the worst are those of a line, and so is the median beside them.
    const double shown = i == 0 && state.loss ? state.loss->median : value;
    parts.push_back({shown_name(name), fmt::format("{:>7}", run::compact(shown)), 2, priority});
    if (i > 0 || !state.loss) continue;
    const run::Spread& loss = *state.loss;
    if (extremes == Extremes::short_form) {
      const std::string range = fmt::format("({} to {})", run::compact(loss.best), run::compact(loss.worst));
      parts.push_back({"", range, 1, priority_of_extremes});
      continue;
    }
    const auto extreme = [&](const char* label, double of_member, std::int64_t member) {
      parts.push_back({label, fmt::format("{:>7} ({})", run::compact(of_member), member), 2, priority_of_extremes});
    };
    extreme("best", loss.best, loss.best_member);
    extreme("worst", loss.worst, loss.worst_member);
  }
  if (state.evaluation) {
    const BarState::Evaluation& found = *state.evaluation;
    parts.push_back({shown_name(found.measure), run::compact(found.last), 2, priority_of_evaluation});
    parts.push_back({"", fmt::format("(best {})", run::compact(found.best)), 1, priority_of_best});
  }
  const auto speed = [&](double per_second, const char* unit, int priority) {
    if (!(per_second > 0 && per_second < 1e15)) return;
    const std::string number =
        per_second < 100 ? fmt::format("{:.3g}", per_second) : with_commas(std::llround(per_second));
    parts.push_back({unit, number, 2, priority});
  };
  speed(state.steps_per_second, "steps/s", priority_of_steps);
  speed(state.examples_per_second, "examples/s", priority_of_examples);
  if (state.seconds < 0 && state.elapsed >= 0) {
    parts.push_back({"elapsed", run::clock_time(state.elapsed), 2, priority_of_elapsed});
  }
  if (state.seconds >= 0) {
    parts.push_back({"", run::duration(state.seconds), 2, priority_of_time});
  } else if (state.seconds_left >= 0) {
    parts.push_back({"left", run::clock_time(state.seconds_left), 2, priority_of_time});
  }
  return parts;
}

// With the best and the worst member by name, if only the epoch, the metrics and the speed have to go for it.
std::vector<Part> parts_that_fit(const BarState& state, double fraction, int width) {
  std::vector<Part> parts = parts_of(state, fraction, Extremes::named);
  for (Part& part : parts) part.kept = part.priority < priority_of_epoch;
  const bool fits = total_width(parts, least_bar) <= width;
  for (Part& part : parts) part.kept = false;
  return fits || !state.loss ? parts : parts_of(state, fraction, Extremes::short_form);
}

// Words that follow their number.
bool label_last(const Part& part) {
  return part.label == "left" || part.label == "elapsed" || part.label == "steps/s" || part.label == "examples/s";
}

// The parts of a line that fit, the most important first; the bar takes what is left.
std::string fitted_line(std::vector<Part> parts, double fraction, const BarStyle& style) {
  std::vector<Part*> order;
  order.reserve(parts.size());
  for (Part& part : parts) order.push_back(&part);
  std::stable_sort(order.begin(), order.end(), [](const Part* a, const Part* b) { return a->priority < b->priority; });
  for (Part* const part : order) {
    part->kept = true;
    const int of_bar = part->priority <= priority_of_time ? narrow_bar : least_bar;
    if (total_width(parts, of_bar) <= style.width || part->priority == 0) continue;
    part->kept = false;
    // A less important part that is shorter does not slip in: what is shown would jump about as numbers grow.
    if (!part->is_bar) break;
  }
  const int spare = std::max(0, style.width - total_width(parts, narrow_bar));
  const int bar_width = std::min(most_bar, narrow_bar + spare);

  std::string line;
  for (const Part& part : parts) {
    if (!part.kept) continue;
    if (!line.empty()) line += std::string(static_cast<std::size_t>(part.gap), ' ');
    if (part.is_bar) {
      line += bar(fraction, bar_width, style);
      continue;
    }
    const std::string label = painted(dim, part.label, style.color);
    const bool last = label_last(part);
    line += last ? part.value : label;
    if (!part.label.empty() && !part.value.empty()) line += ' ';
    line += last ? label : part.value;
  }
  return line;
}

}  // namespace

std::string work_line(const WorkState& state, const BarStyle& style) {
  std::vector<Part> parts{{"", state.what.substr(0, static_cast<std::size_t>(style.width)), 0, 0}};
  const double fraction = fraction_of(state.done, state.total);
  if (state.total > 0) {
    parts.push_back({"", "", 2, 2, false, true});
    parts.push_back({"", percent(fraction), 1, 1});
    parts.push_back({"", fmt::format("{}/{}", state.done, state.total), 2, priority_of_step});
  }
  if (state.seconds_left >= 0) {
    parts.push_back({"left", run::clock_time(state.seconds_left), 2, priority_of_time});
  }
  return fitted_line(std::move(parts), fraction, style);
}

std::string bar_line(const BarState& state, const BarStyle& style) {
  const double fraction = fraction_of(state.step, state.steps);
  return fitted_line(parts_that_fit(state, fraction, style.width), fraction, style);
}

}  // namespace pmaptrain::display
