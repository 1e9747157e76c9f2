#include "core/setup/initial_advice.h"

#include <algorithm>
#include <cstddef>

#include "core/base/text.h"
#include "core/setup/advice.h"
#include "core/setup/initial_patterns.h"

namespace pmaptrain::train {

std::vector<std::string> frozen_draws(const Setup& setup, const InitialValues& initial) {
  const Optimizer& optimizer = setup.optimizer();
  const std::vector<spec::ParameterGroup>& groups = optimizer.spec.groups;
  std::vector<std::vector<std::string>> drawn(groups.size());
  for (std::size_t i = 0; i < setup.model.parameters.size(); ++i) {
    const model::Parameter& parameter = setup.model.parameters[i];
    if (parameter.is_state || optimizer.parameter_options[i].trained || !initial.draws(parameter)) continue;
    // The first group that matches a parameter applies to it.
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const spec::ParameterGroup& candidate) {
      return std::any_of(candidate.parameters.begin(), candidate.parameters.end(),
                         [&](const spec::Pattern& pattern) { return matches(pattern.text, parameter.name); });
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

}  // namespace pmaptrain::train
