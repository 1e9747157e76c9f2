// Gradients of whole programs beside central differences of their loss.
#pragma once

#include "tests/catch.h"
#include "tests/model/fixture.h"

namespace pmaptrain::testing {

// How far a gradient may be from its difference, and of which elements it is taken: each, or every third.
struct DifferenceOptions {
  double epsilon = 1e-6, margin = 1e-8;
  std::size_t every = 1;
};

// Checks that `result`, what the program of a step gives for `feed`, has subtracted from each parameter the gradient of
// the loss.
inline void check_gradients(const Program& program, const model::Model& model, const Feed& feed, const Feed& result,
                            const DifferenceOptions& options = {}) {
  for (const model::Parameter& parameter : model.parameters) {
    if (parameter.is_state || parameter.lora == layers::LoraRole::base) continue;
    const Numbers& values = feed.at(parameter.name);
    for (std::size_t i = 0; i < values.size(); i += options.every) {
      const double step = 1e-5;
      Feed above = feed, below = feed;
      above[parameter.name][i] += step;
      below[parameter.name][i] -= step;
      const double expected =
          (results_of(program, above)["loss"].front() - results_of(program, below)["loss"].front()) / (2 * step);
      INFO(parameter.name << "[" << i << "]");
      CHECK(values[i] - result.at(parameter.name)[i] ==
            Approx(expected).epsilon(options.epsilon).margin(options.margin));
    }
  }
}

}  // namespace pmaptrain::testing
