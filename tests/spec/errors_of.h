// What the tests of config errors share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/spec/load.h"
#include "tests/catch.h"

namespace pmaptrain {

// A config without mistakes, to be put behind lines that have some.
inline const std::string base = R"(data: {source: fashion_mnist, batch_size: 128}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)";

// The same with `line` in front, in place of its own line of that key.
inline std::string base_with(const std::string& line) {
  const std::string key = line.substr(0, line.find(':') + 1);
  const std::size_t begin = base.find(key);
  return line + "\n" + base.substr(0, begin) + base.substr(base.find('\n', begin) + 1);
}

// What load_text says about `text`, as it is shown to the user; empty if it is accepted.
inline std::string errors_of(const std::string& text, std::vector<std::string> set = {}, std::int64_t devices = 0) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  if (devices != 0) overrides.devices = devices;
  try {
    spec::load_text(text, "c.yaml", "/base", overrides);
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::usage);
    return error.what();
  }
  return {};
}

}  // namespace pmaptrain
