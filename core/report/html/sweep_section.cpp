#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/short_keys.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/report/html/figure.h"
#include "core/report/html/scale.h"
#include "core/report/html/sections.h"
#include "core/report/html/text.h"

namespace pmaptrain::report {
namespace {

constexpr std::size_t most_trials = 100;  // of the table

// The trials with a finite value, the best first: those that advanced furthest, then by value, equal ones by number.
std::vector<const SweepTrial*> ranked(const SweepTable& sweep) {
  std::vector<const SweepTrial*> trials;
  for (const SweepTrial& trial : sweep.trials) {
    if (trial.value && std::isfinite(*trial.value)) trials.push_back(&trial);
  }
  std::stable_sort(trials.begin(), trials.end(), [&](const SweepTrial* a, const SweepTrial* b) {
    if (a->rungs.size() != b->rungs.size()) return a->rungs.size() > b->rungs.size();
    if (*a->value == *b->value) return a->number < b->number;
    return sweep.larger_is_better ? *a->value > *b->value : *a->value < *b->value;
  });
  return trials;
}

std::string title_of(const SweepTable& sweep, const SweepTrial& trial) {
  std::string text =
      fmt::format("trial {}: {} {}", trial.number, sweep.metric, trial.value ? shown_number(*trial.value) : "none");
  for (const auto& [key, value] : trial.parameters) text += fmt::format("\n{}={}", key, shown_value(value));
  return text;
}

Scale value_scale(std::span<const SweepTrial* const> trials, double from = y_from, double to = y_to) {
  std::vector<double> values;
  for (const SweepTrial* trial : trials) values.push_back(*trial->value);
  Scale scale = Scale::of_numbers(values, from, to);
  scale.round_ends();
  return scale;
}

std::string best_so_far(const SweepTable& sweep, std::span<const SweepTrial* const> trials) {
  std::vector<const SweepTrial*> by_number(trials.begin(), trials.end());
  std::sort(by_number.begin(), by_number.end(), [](auto* a, auto* b) { return a->number < b->number; });
  const auto number = [&](std::size_t i) { return static_cast<double>(by_number[i]->number); };
  constexpr std::size_t few = 6;
  std::vector<double> numbers;
  for (std::size_t i = 0; i < by_number.size(); ++i) numbers.push_back(number(i));
  Scale x = Scale::of_numbers({numbers.front(), numbers.back()}, x_from, x_to);
  if (numbers.size() <= few) x.tick_at(numbers);
  const Scale y = value_scale(trials);
  std::string dots, path;
  double best = *by_number.front()->value, before = best, from = x.at(number(0));
  for (std::size_t i = 0; i < by_number.size(); ++i) {
    const double value = *by_number[i]->value, at = x.at(number(i));
    best = sweep.larger_is_better ? std::max(best, value) : std::min(best, value);
    if (best != before || i + 1 == by_number.size()) {
      path += segment(from, y.at(before), at, y.at(before), "mark") + segment(at, y.at(before), at, y.at(best), "mark");
      from = at;
      before = best;
    }
    dots += dot(at, y.at(value), title_of(sweep, *by_number[i]), by_number[i] == trials.front() ? "best" : "");
  }
  return chart("Best value so far", fmt::format("best {} by trial", sweep.metric), axes(x, y, "trial") + path + dots);
}

// The keys of all trials, in the order of their appearance.
std::vector<std::string> keys_of(const SweepTable& sweep) {
  std::vector<std::string> keys;
  for (const SweepTrial& trial : sweep.trials) {
    for (const auto& [key, value] : trial.parameters) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

const std::string* value_of(const SweepTrial& trial, const std::string& key) {
  const auto found =
      std::find_if(trial.parameters.begin(), trial.parameters.end(), [&](const auto& one) { return one.first == key; });
  return found == trial.parameters.end() ? nullptr : &found->second;
}

std::vector<std::string> values_of(std::span<const SweepTrial* const> trials, const std::string& key) {
  std::vector<std::string> values;
  for (const SweepTrial* trial : trials) {
    if (const std::string* const value = value_of(*trial, key)) values.push_back(*value);
  }
  return values;
}

Scale scale_of(const SweepTable& sweep, std::span<const SweepTrial* const> trials, const std::string& key, double from,
               double to) {
  const auto& keys = sweep.logarithmic;
  return Scale::of_texts(values_of(trials, key), from, to, std::find(keys.begin(), keys.end(), key) != keys.end());
}

// One line for each trial through its parameters to its value. The best are drawn last, and strongest.
std::string parallel_coordinates(const SweepTable& sweep, std::span<const SweepTrial* const> trials) {
  const std::vector<std::string> keys = keys_of(sweep), names = short_keys(keys);
  if (keys.size() < 2) return "";
  constexpr double top = 32, left = 4, heading = 16, right = 88, line_height = 13;
  constexpr std::size_t most_of_width = 2;              // parameters of a chart as wide as the others
  constexpr int most_of_all = 36, most_of_metric = 10;  // columns of the texts of a narrow screen
  const int most = std::max(6, most_of_all / static_cast<int>(keys.size()));
  const auto place = [&](std::size_t i) {
    return left + (right - left) * static_cast<double>(i) / static_cast<double>(keys.size());
  };
  std::vector<Scale> scales;
  std::string marks, labels;  // labels are drawn over the lines
  for (std::size_t i = 0; i <= keys.size(); ++i) {
    const bool is_value = i == keys.size();
    scales.push_back(is_value ? value_scale(trials, plot_height, top)
                              : scale_of(sweep, trials, keys[i], plot_height, top));
    marks += segment(place(i), top, place(i), plot_height, "axis");
    double before = -plot_height;
    for (const Scale::Tick& tick : scales.back().ticks()) {
      const bool is_folded = label_lines(tick.text, most).size() > 1;
      if (std::abs(tick.place - before) < line_height * (is_folded ? 2 : 1)) continue;
      before = tick.place;
      labels += label_at(place(i) + 1, tick.place + (is_folded ? -2 : 4), "start", tick.text, most);
    }
    const std::string& name = is_value ? sweep.metric : names[i];
    const int columns = is_value ? most_of_metric : most;
    const double first = heading - label_height * static_cast<double>(label_lines(name, columns).size() - 1);
    labels += label_at(is_value ? 100 : i == 0 ? 0 : place(i), first, is_value ? "end" : "start", name, columns);
  }
  for (std::size_t rank = trials.size(); rank-- > 0;) {
    const SweepTrial& trial = *trials[rank];
    std::string lines;
    double x = 0, y = 0;
    bool is_first = true;
    for (std::size_t i = 0; i <= keys.size(); ++i) {
      const std::string* const value = i < keys.size() ? value_of(trial, keys[i]) : nullptr;
      if (i < keys.size() && value == nullptr) continue;
      const double to = value != nullptr ? scales[i].at(*value) : scales[i].at(*trial.value);
      if (!is_first) lines += segment(x, y, place(i), to, rank == 0 ? "mark best" : "mark");
      is_first = false;
      x = place(i);
      y = to;
    }
    const double share = 1 - static_cast<double>(rank) / static_cast<double>(trials.size());
    marks += group(title_of(sweep, trial), lines, 0.12 + 0.88 * share * share);
  }
  return chart("Parameters of the trials", fmt::format("parallel coordinates of {} trials", trials.size()),
               marks + labels, keys.size() > most_of_width);
}

std::string by_parameter(const SweepTable& sweep, std::span<const SweepTrial* const> trials) {
  std::string out;
  const std::vector<std::string> keys = keys_of(sweep), names = short_keys(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = keys[i];
    if (values_of(trials, key).empty()) continue;
    const Scale x = scale_of(sweep, trials, key, x_from, x_to), y = value_scale(trials);
    std::string marks = axes(x, y, key);
    for (std::size_t rank = trials.size(); rank-- > 0;) {
      const std::string* const value = value_of(*trials[rank], key);
      if (value == nullptr) continue;
      marks += dot(x.at(*value), y.at(*trials[rank]->value), title_of(sweep, *trials[rank]), rank == 0 ? "best" : "");
    }
    out += chart(fmt::format("{} by {}", sweep.metric, names[i]), fmt::format("{} by {}", sweep.metric, key), marks);
  }
  return out;
}

// Empty for a sweep without halving.
std::string rungs(const SweepTable& sweep, const SweepTrial& best) {
  const bool halves = std::any_of(sweep.trials.begin(), sweep.trials.end(),
                                  [](const SweepTrial& trial) { return trial.rungs.size() > 1; });
  if (!halves) return "";
  std::vector<double> steps, values;
  for (const SweepTrial& trial : sweep.trials) {
    for (const auto& [step, value] : trial.rungs) {
      if (!value || !std::isfinite(*value)) continue;
      steps.push_back(static_cast<double>(step));
      values.push_back(*value);
    }
  }
  if (steps.empty()) return "";
  // Each rung has several times the steps of the one before it.
  Scale x = Scale::of_numbers(steps, x_from + 2, x_to - 4, true);
  x.tick_at(steps);
  Scale y = Scale::of_numbers(values, y_from, y_to);
  y.round_ends();
  std::string marks = axes(x, y, "step of the rung"), last;
  for (const SweepTrial& trial : sweep.trials) {
    const char* const classes = trial.number == best.number ? "mark best" : "mark";
    std::string of_trial;
    double before_x = 0, before_y = 0;
    bool is_first = true;
    for (const auto& [step, value] : trial.rungs) {
      if (!value || !std::isfinite(*value)) continue;
      const double px = x.at(static_cast<double>(step)), py = y.at(*value);
      if (!is_first) of_trial += segment(before_x, before_y, px, py, classes);
      of_trial += dot(px, py, "", trial.number == best.number ? "best" : "");
      is_first = false;
      before_x = px;
      before_y = py;
    }
    (trial.number == best.number ? last : marks) += group(title_of(sweep, trial), of_trial);
  }
  return chart("Rungs of successive halving", fmt::format("{} by rung", sweep.metric), marks + last);
}

// In brackets the value so far of a trial that has not ended.
std::string shown_result(const SweepTrial& trial) {
  if (trial.value) return shown_number(*trial.value);
  return trial.so_far ? "(" + shown_number(*trial.so_far) + ")" : "–";
}

std::string trials_table(const SweepTable& sweep, std::span<const SweepTrial* const> trials) {
  const std::vector<std::string> keys = keys_of(sweep);
  // Trials that have ended have the steps of the config, or of their rung.
  const bool has_steps = sweep.unfinished.has_value();
  std::vector<Cell> head{text_cell("trial"), number_cell(sweep.metric), text_cell("status")};
  if (has_steps) head.push_back(number_cell("steps"));
  for (const std::string& key : keys) head.push_back(text_cell(key));
  std::vector<const SweepTrial*> shown(trials.begin(), trials.end());
  for (const SweepTrial& trial : sweep.trials) {
    if (!trial.value || !std::isfinite(*trial.value)) shown.push_back(&trial);
  }
  std::vector<std::vector<Cell>> rows;
  for (const SweepTrial* trial : std::span(shown).first(std::min(most_trials, shown.size()))) {
    const bool is_best = !trials.empty() && trial == trials.front();
    rows.push_back({marked_cell(std::to_string(trial->number), is_best), number_cell(shown_result(*trial)),
                    text_cell(trial->status_text.empty() ? trial->status : trial->status_text)});
    if (has_steps) rows.back().push_back(number_cell(with_commas(trial->steps)));
    for (const std::string& key : keys) {
      const std::string* const value = value_of(*trial, key);
      rows.back().push_back(value != nullptr ? value_cell(*value) : text_cell("–"));
    }
  }
  const std::string all =
      shown.size() > most_trials ? note(fmt::format("The {} best of {} trials.", most_trials, shown.size())) : "";
  std::string meanings;
  if (std::any_of(shown.begin(), shown.end(), [](auto* trial) { return !trial->value && trial->so_far; })) {
    meanings += note(fmt::format("({}): so far, of a trial that has not ended.", sweep.metric));
  }
  for (const std::string& one : sweep.meanings) meanings += note(one);
  return "<h3>Trials</h3>\n" + all + meanings + table("trials, the best first", head, rows);
}

// That the sweep has not ended, and how it goes on.
std::string unfinished_text(const Unfinished& sweep) {
  const std::string command = "<code>" + escaped(printable(sweep.command)) + "</code>";
  const std::string how =
      sweep.runs ? "It runs; if it is stopped or killed, this goes on with it: " : "No process runs it; to go on: ";
  return fmt::format("<p>This sweep has not ended: {}. {}{}</p>\n", escaped(sweep.progress), how, command);
}

// What the best trial is, in one sentence.
std::string best_text(const SweepTable& sweep, const SweepTrial& best) {
  const std::vector<std::string> keys = keys_of(sweep), names = short_keys(keys);
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (const std::string* const value = value_of(best, keys[i]))
      parameters.push_back(names[i] + "=" + shown_value(*value));
  }
  return fmt::format("The best{} is trial {} with {} {}{}.", sweep.unfinished ? " so far" : "", best.number,
                     sweep.metric, shown_number(*best.value), parameters.empty() ? "" : ": " + join(parameters, ", "));
}

}  // namespace

const SweepTrial* best_trial(const SweepTable& sweep) {
  const std::vector<const SweepTrial*> trials = ranked(sweep);
  return trials.empty() ? nullptr : trials.front();
}

std::string sweep_section(const SweepTable& sweep, const std::string& id, const std::string& heading) {
  const std::vector<const SweepTrial*> trials = ranked(sweep);
  std::string html = sweep.unfinished ? unfinished_text(*sweep.unfinished) : "";
  html += paragraph(fmt::format("{}, {} with a value; the {} {} is the best.",
                                counted(std::ssize(sweep.trials), "trial"), with_commas(std::ssize(trials)),
                                sweep.larger_is_better ? "largest" : "smallest", sweep.metric));
  if (!trials.empty()) {
    html += paragraph(best_text(sweep, *trials.front()));
    html += charts(best_so_far(sweep, trials) + by_parameter(sweep, trials) + rungs(sweep, *trials.front()) +
                   parallel_coordinates(sweep, trials));
  }
  return section(id, heading, html + trials_table(sweep, trials));
}

}  // namespace pmaptrain::report
