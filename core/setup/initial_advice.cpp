#include "core/setup/initial_advice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/setup/advice.h"
#include "core/setup/initial/patterns.h"

namespace pmaptrain::setup {

std::vector<std::string> frozen_draws(const Setup& setup, const InitialValues& initial) {
  const step::Optimizer& optimizer = setup.optimizer();
  const std::vector<optimizers::ParameterGroup>& groups = optimizer.options.groups;
  std::vector<std::vector<std::string>> drawn(groups.size());
  for (std::size_t i = 0; i < setup.model.parameters.size(); ++i) {
    const model::Parameter& parameter = setup.model.parameters[i];
    if (parameter.is_state || optimizer.parameter_options[i].trained || !initial.draws(parameter)) continue;
    // The first group that matches a parameter applies to it.
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const optimizers::ParameterGroup& candidate) {
      return std::any_of(candidate.parameters.begin(), candidate.parameters.end(),
                         [&](const declare::Pattern& pattern) { return matches(pattern.text, parameter.name); });
    });
    if (group != groups.end()) drawn[static_cast<std::size_t>(group - groups.begin())].push_back(parameter.name);
  }
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (drawn[i].empty()) continue;
    const bool one = drawn[i].size() == 1;
    warnings.push_back("optimizer.groups" + in_parentheses(groups[i].parameters.front().place) + " freezes " +
                       some_of(drawn[i]) + ", which " + (one ? "is" : "are") + " drawn at random and " +
                       (one ? "stays" : "stay") +
                       " so: model.init.from takes trained values; without freeze: true the group is trained");
  }
  return warnings;
}

namespace {

// The number of a list that has one for each channel, or one for all.
double number_of(const std::vector<double>& list, std::size_t channel) {
  return list.size() == 1 ? list.front() : list.at(channel);
}

// What is done to a channel: none of a config without data.normalize.
std::pair<double, double> mean_and_std(const std::optional<FieldStatistics>& normalize, std::size_t channel) {
  if (!normalize) return {0.0, 1.0};
  return {number_of(normalize->mean, channel), number_of(normalize->std, channel)};
}

// "{mean: [0.5], std: [0.25]}"; `wide`: with the digits of a double, since float32 has too few.
std::string written(const FieldStatistics& normalize, bool wide) {
  const auto list = [&](const std::vector<double>& numbers) {
    std::vector<std::string> texts;
    texts.reserve(numbers.size());
    for (const double number : numbers) texts.push_back(wide ? exact(number) : exact(static_cast<float>(number)));
    return "[" + join(texts, ", ") + "]";
  };
  return "{mean: " + list(normalize.mean) + ", std: " + list(normalize.std) + "}";
}

bool takes_any(const Setup& setup, const InitialValues& initial) {
  return std::any_of(setup.model.parameters.begin(), setup.model.parameters.end(),
                     [&](const model::Parameter& parameter) { return initial.takes(parameter); });
}

std::string run_path(const Setup& setup) { return "'" + setup.member_spec().model.initial_from->path + "'"; }

}  // namespace

std::string other_normalisation(const Setup& setup, const InitialValues& initial) {
  constexpr double slight = 0.01;   // of a standard deviation: as much as other examples of the same kind change it
  constexpr std::size_t most = 32;  // numbers that a line shows
  const InitialRun* const run = initial.run();
  const data::Field& input = setup.source.train->input();
  if (run == nullptr || !takes_any(setup, initial) || input.shape.empty()) return "";
  const auto channels = static_cast<std::size_t>(input.shape.back());
  const std::optional<FieldStatistics>& before = run->normalize;
  const std::optional<FieldStatistics>& now = setup.model.normalize;
  const auto fits = [&](const std::optional<FieldStatistics>& normalize) {
    return !normalize || ((normalize->mean.size() == 1 || normalize->mean.size() == channels) &&
                          (normalize->std.size() == 1 || normalize->std.size() == channels));
  };
  if (!fits(before) || !fits(now)) return "";
  std::size_t differ = 0;
  for (std::size_t c = 0; c < channels; ++c) {
    const auto [mean, std] = mean_and_std(before, c);
    const auto [new_mean, new_std] = mean_and_std(now, c);
    if (std::abs(new_mean - mean) > slight * std || std::abs(new_std - std) > slight * std) ++differ;
  }
  if (differ == 0) return "";
  const std::string what =
      "model.init.from: " + run_path(setup) + " was trained on inputs that are normalised otherwise";
  if (!before) return what + ", by nothing: without data.normalize the parameters see what they were trained on";
  const std::string of = channels == 1 ? ""
                                       : " in " + with_commas(static_cast<std::int64_t>(differ)) + " of " +
                                             counted(static_cast<std::int64_t>(channels), "channel");
  if (before->mean.size() + before->std.size() > most) {
    return what + of + "; the mean and the std of its data are in the statistics of its state.json, and " +
           "data.normalize: {mean: [...], std: [...]} takes them";
  }
  return what + of + "; as there: data.normalize: " + written(*before, setup.source.encoding.wide_inputs);
}

std::string other_classes(const Setup& setup, const InitialValues& initial) {
  constexpr std::size_t most = 5;  // names that are listed
  const InitialRun* const run = initial.run();
  const std::vector<std::string>& classes = setup.source.encoding.classes;
  if (run == nullptr || run->classes.empty() || classes.empty() || run->classes == classes) return "";
  const auto layers = setup.model.nodes();
  const auto head =
      std::find_if(layers.rbegin(), layers.rend(), [](const model::Node* layer) { return !layer->parameters.empty(); });
  if (head == layers.rend()) return "";
  const model::Node& last = **head;
  if (std::none_of(last.parameters.begin(), last.parameters.end(),
                   [&](const model::Parameter& parameter) { return initial.takes(parameter); })) {
    return "";
  }
  std::vector<std::string> exclude;
  for (const declare::Pattern& pattern : setup.member_spec().model.initial_from->exclude)
    exclude.push_back("\"" + pattern.text + "\"");
  exclude.push_back("\"" + last.name + ".*\"");
  return "model.init.from: " + run_path(setup) + " was trained on the classes " + shown_list(run->classes, most) +
         ", and the data has " + shown_list(classes, most) + ": " + last.name + in_parentheses(last.place) +
         ", which is taken from it, answers for the former; model.init.from.exclude: [" + join(exclude, ", ") +
         "] draws it anew";
}

}  // namespace pmaptrain::setup
