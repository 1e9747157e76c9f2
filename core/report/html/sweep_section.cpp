#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/text.h"
#include "core/report/html/scale.h"
#include "core/report/html/sections.h"
#include "core/report/html/text.h"
#include "core/run/records/lines.h"

namespace pmaptrain::report {
namespace {

constexpr std::size_t most_trials = 100;                   // of the table
constexpr double figure_width = 860, figure_height = 300;  // of a figure
constexpr double margin_left = 60, margin_right = 20, margin_top = 16, margin_bottom = 34;

// The trials with a finite value, the best first; equal ones by number.
std::vector<const SweepTrial*> ranked(const SweepTable& sweep) {
  std::vector<const SweepTrial*> trials;
  for (const SweepTrial& trial : sweep.trials) {
    if (trial.value && std::isfinite(*trial.value)) trials.push_back(&trial);
  }
  std::stable_sort(trials.begin(), trials.end(), [&](const SweepTrial* a, const SweepTrial* b) {
    if (*a->value == *b->value) return a->number < b->number;
    return sweep.larger_is_better ? *a->value > *b->value : *a->value < *b->value;
  });
  return trials;
}

std::string title_of(const SweepTable& sweep, const SweepTrial& trial) {
  std::string text =
      fmt::format("trial {}: {} {}", trial.number, sweep.metric, trial.value ? train::compact(*trial.value) : "none");
  for (const auto& [key, value] : trial.parameters) text += fmt::format("\n{}: {}", key, value);
  return "<title>" + escaped(text) + "</title>";
}

std::string text_at(double x, double y, const char* anchor, std::string_view text) {
  constexpr std::size_t longest = 26;
  const std::string shown =
      text.size() > longest ? std::string(text.substr(0, longest - 3)) + "..." : std::string(text);
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(shown));
}

// A wide figure scrolls inside its frame where there is no room for text that can be read.
std::string figure(std::string_view label, double w, double h, const std::string& marks) {
  constexpr double narrow = 400, least_share = 0.75;
  std::string frame = "class=\"figure\"", style;
  if (w > narrow) {
    frame = fmt::format("class=\"figure wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"", escaped(label));
    style = fmt::format(" style=\"min-width: {:.0f}px\"", w * least_share);
  }
  return fmt::format("<div {}><svg{} viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg></div>\n", frame,
                     style, w, h, escaped(label), marks);
}

// The axes of a figure: lines, ticks and names.
std::string axes(const Scale& x, const Scale& y, double w, double h, std::string_view x_name) {
  std::string out = fmt::format("<path class=\"axis\" d=\"M{0} {1}V{2}H{3}\"/>\n", margin_left, margin_top,
                                h - margin_bottom, w - margin_right);
  for (const Scale::Tick& tick : x.ticks(w > 400 ? 8 : 4))
    out += text_at(tick.place, h - margin_bottom + 14, "middle", tick.text);
  for (const Scale::Tick& tick : y.ticks()) {
    out += text_at(margin_left - 6, tick.place + 4, "end", tick.text);
    out += fmt::format("<path class=\"axis\" d=\"M{} {:.1f}H{}\" stroke-dasharray=\"1 4\"/>\n", margin_left, tick.place,
                       w - margin_right);
  }
  return out + text_at((margin_left + w - margin_right) / 2, h - 4, "middle", x_name);
}

Scale value_scale(std::span<const SweepTrial* const> trials, double from, double to) {
  std::vector<double> values;
  for (const SweepTrial* trial : trials) values.push_back(*trial->value);
  return Scale::of_numbers(values, from, to);
}

std::string best_so_far(const SweepTable& sweep, std::span<const SweepTrial* const> trials) {
  std::vector<const SweepTrial*> by_number(trials.begin(), trials.end());
  std::sort(by_number.begin(), by_number.end(), [](auto* a, auto* b) { return a->number < b->number; });
  std::vector<double> numbers;
  numbers.reserve(by_number.size());
  for (const SweepTrial* trial : by_number) numbers.push_back(static_cast<double>(trial->number));
  const Scale x =
      Scale::of_numbers({numbers.front(), numbers.back()}, margin_left + 8, figure_width - margin_right - 8);
  const Scale y = value_scale(trials, figure_height - margin_bottom - 6, margin_top + 6);
  std::string marks = axes(x, y, figure_width, figure_height, "trial"), path;
  double best = *by_number.front()->value;
  for (std::size_t i = 0; i < by_number.size(); ++i) {
    const double value = *by_number[i]->value;
    best = sweep.larger_is_better ? std::max(best, value) : std::min(best, value);
    path += fmt::format("{}{:.1f}{}{:.1f}", i == 0 ? "M" : "H", x.at(numbers[i]), i == 0 ? " " : "V", y.at(best));
    marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" opacity=\".6\">{}</circle>\n", x.at(numbers[i]),
                         y.at(value), title_of(sweep, *by_number[i]));
  }
  marks += fmt::format("<path class=\"mark\" stroke-width=\"2\" d=\"{}\"/>\n", path);
  return "<h3>Best value so far</h3>\n" +
         figure(fmt::format("best {} by trial", sweep.metric), figure_width, figure_height, marks);
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
  const std::vector<std::string> keys = keys_of(sweep);
  if (keys.empty()) return "";
  const double gap = std::max(110.0, (figure_width - 2 * margin_left) / static_cast<double>(keys.size()));
  const double total = 2 * margin_left + gap * static_cast<double>(keys.size());
  constexpr double names = 40;
  const auto place = [&](std::size_t i) { return margin_left + gap * static_cast<double>(i); };
  std::vector<Scale> scales;
  std::string marks, labels;  // labels are drawn over the lines
  for (std::size_t i = 0; i <= keys.size(); ++i) {
    scales.push_back(i < keys.size() ? scale_of(sweep, trials, keys[i], figure_height - margin_bottom, names)
                                     : value_scale(trials, figure_height - margin_bottom, names));
    marks +=
        fmt::format("<path class=\"axis\" d=\"M{0:.1f} {1}V{2}\"/>\n", place(i), names, figure_height - margin_bottom);
    for (const Scale::Tick& tick : scales.back().ticks()) {
      labels += text_at(place(i) + 5, tick.place + 4, "start", tick.text);
    }
    const std::string name = i < keys.size() ? keys[i].substr(keys[i].rfind('.') + 1) : sweep.metric;
    labels += text_at(place(i), i % 2 == 0 ? 14 : 28, i == keys.size() ? "end" : "middle", name);
  }
  for (std::size_t rank = trials.size(); rank-- > 0;) {
    const SweepTrial& trial = *trials[rank];
    std::string path;
    for (std::size_t i = 0; i <= keys.size(); ++i) {
      const std::string* const value = i < keys.size() ? value_of(trial, keys[i]) : nullptr;
      if (i < keys.size() && value == nullptr) continue;
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", place(i),
                          value != nullptr ? scales[i].at(*value) : scales[i].at(*trial.value));
    }
    const double share = 1 - static_cast<double>(rank) / static_cast<double>(trials.size());
    marks += fmt::format("<path class=\"mark\" stroke-width=\"{:.1f}\" opacity=\"{:.2f}\" d=\"{}\">{}</path>\n",
                         rank == 0 ? 2.5 : 1.3, 0.12 + 0.88 * share * share, path, title_of(sweep, trial));
  }
  return "<h3>Parameters of the trials</h3>\n" +
         figure(fmt::format("parallel coordinates of {} trials", trials.size()), total, figure_height, marks + labels);
}

std::string by_parameter(const SweepTable& sweep, std::span<const SweepTrial* const> trials) {
  constexpr double w = 320, h = 220;
  std::string out;
  for (const std::string& key : keys_of(sweep)) {
    if (values_of(trials, key).empty()) continue;
    const Scale x = scale_of(sweep, trials, key, margin_left + 10, w - margin_right),
                y = value_scale(trials, h - margin_bottom - 6, margin_top + 6);
    std::string marks = axes(x, y, w, h, key);
    for (const SweepTrial* trial : trials) {
      const std::string* const value = value_of(*trial, key);
      if (value == nullptr) continue;
      marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" opacity=\".6\">{}</circle>\n", x.at(*value),
                           y.at(*trial->value), title_of(sweep, *trial));
    }
    out += figure(fmt::format("{} by {}", sweep.metric, key), w, h, marks);
  }
  return out.empty()
             ? ""
             : fmt::format("<h3>{} by parameter</h3>\n<div class=\"small\">\n{}</div>\n", escaped(sweep.metric), out);
}

std::string rungs(const SweepTable& sweep) {
  std::vector<double> steps, values;
  for (const SweepTrial& trial : sweep.trials) {
    for (const auto& [step, value] : trial.rungs) {
      if (!value || !std::isfinite(*value)) continue;
      steps.push_back(static_cast<double>(step));
      values.push_back(*value);
    }
  }
  if (steps.empty()) return "";
  const Scale x = Scale::of_numbers(steps, margin_left + 8, figure_width - margin_right - 8);
  const Scale y = Scale::of_numbers(values, figure_height - margin_bottom - 6, margin_top + 6);
  std::string marks = axes(x, y, figure_width, figure_height, "step of the rung");
  for (const SweepTrial& trial : sweep.trials) {
    std::string path, dots;
    for (const auto& [step, value] : trial.rungs) {
      if (!value || !std::isfinite(*value)) continue;
      const double px = x.at(static_cast<double>(step)), py = y.at(*value);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", px, py);
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>", px, py);
    }
    marks +=
        fmt::format("<g opacity=\".6\">{}<path class=\"mark\" d=\"{}\"/>{}</g>\n", title_of(sweep, trial), path, dots);
  }
  return "<h3>Rungs of successive halving</h3>\n" +
         figure(fmt::format("{} by rung", sweep.metric), figure_width, figure_height, marks);
}

std::string trials_table(const SweepTable& sweep, std::span<const SweepTrial* const> trials) {
  const std::vector<std::string> keys = keys_of(sweep);
  std::vector<Cell> head{number_cell("trial"), number_cell(sweep.metric), text_cell("status")};
  for (const std::string& key : keys) head.push_back(text_cell(key));
  std::vector<const SweepTrial*> shown(trials.begin(), trials.end());
  for (const SweepTrial& trial : sweep.trials) {
    if (!trial.value || !std::isfinite(*trial.value)) shown.push_back(&trial);
  }
  std::vector<std::vector<Cell>> rows;
  for (const SweepTrial* trial : std::span(shown).first(std::min(most_trials, shown.size()))) {
    rows.push_back({number_cell(std::to_string(trial->number)),
                    number_cell(trial->value ? train::compact(*trial->value) : "–"), text_cell(trial->status)});
    for (const std::string& key : keys) {
      const std::string* const value = value_of(*trial, key);
      rows.back().push_back(text_cell(value != nullptr ? *value : "–"));
    }
  }
  const std::string all =
      shown.size() > most_trials ? note(fmt::format("The {} best of {} trials.", most_trials, shown.size())) : "";
  return "<h3>Trials</h3>\n" + all + table("trials, the best first", head, rows);
}

}  // namespace

std::string sweep_section(const SweepTable& sweep, const std::string& id, const std::string& heading) {
  const std::vector<const SweepTrial*> trials = ranked(sweep);
  std::string html = paragraph(fmt::format("{}: {}, {} with a value; the {} {} is the best.", sweep.name,
                                           counted(std::ssize(sweep.trials), "trial"), trials.size(),
                                           sweep.larger_is_better ? "largest" : "smallest", sweep.metric));
  if (!trials.empty()) {
    html +=
        best_so_far(sweep, trials) + parallel_coordinates(sweep, trials) + by_parameter(sweep, trials) + rungs(sweep);
  }
  return section(id, heading, html + trials_table(sweep, trials));
}

}  // namespace pmaptrain::report
