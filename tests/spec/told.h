// What is told of a config with one mistake.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/spec/load.h"
#include "tests/catch.h"

namespace pmaptrain::testing {

inline const std::string config = R"(mesh: {axes: {devices: 8}}
data:
  source: fashion_mnist
  batch_size: 128
model:
  layers:
    - conv: {features: 8, kernel_size: [3, 3]}
    - flatten
    - dense: 10
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer:
  adam: {}
  learning_rate: 0.001
train:
  duration: 2 epochs
)";

// The message and the help of the only error of the config with `to` in place of `from`.
inline std::string told(const std::string& from, const std::string& to) {
  std::string text = config;
  REQUIRE(text.find(from) != std::string::npos);
  text.replace(text.find(from), from.size(), to);
  try {
    spec::load_text(text, "c.yaml", "/base", {});
  } catch (const Error& error) {
    std::vector<std::string> lines;
    for (const Diagnostic& d : error.diagnostics()) {
      lines.push_back(std::to_string(d.place.line) + ": " + d.message + ": " + d.help);
    }
    return join(lines, "\n");
  }
  return "accepted";
}

}  // namespace pmaptrain::testing
