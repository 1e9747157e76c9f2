// predict --prompt: continues a text.
#pragma once

#include <optional>
#include <string>

#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "app/options/streams.h"
#include "core/evaluate/predictor.h"

namespace pmaptrain::app {

struct PromptOptions {
  std::optional<std::string> prompt;  // a text, or @FILE
  std::optional<std::int64_t> tokens, top_k;
  std::optional<std::string> temperature, top_p;

  void add_to(Arguments& arguments);
  // Throws Error (usage) for an option that needs --prompt, where there is none.
  void check_alone() const;
};

// Writes the prompt and what the model adds to it, as it comes. Returns the exit status.
int continue_text(const PromptOptions& options, ConfigOptions config, const std::optional<std::string>& checkpoint,
                  const evaluate::PredictionRequest& request, const Streams& streams);

}  // namespace pmaptrain::app
