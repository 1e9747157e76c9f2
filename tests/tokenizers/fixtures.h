// The tokenizers and ids of the package tokenizers (make_fixtures.py).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/tokenizers/definition.h"
#include "core/tokenizers/file.h"
#include "tests/files.h"

namespace pmaptrain::tests {

inline const nlohmann::json& tokenizer_fixtures() {
  static const nlohmann::json all = nlohmann::json::parse(test::read_text("tests/tokenizers/fixtures.json"));
  return all;
}

// Its tokenizer.json.
inline std::string tokenizer_text(const std::string& name) {
  return tokenizer_fixtures()["tokenizers"][name]["file"].dump();
}
inline tokenizers::Definition tokenizer_named(const std::string& name) {
  return tokenizers::read_definition(tokenizer_text(name), "tokenizer.json");
}

inline std::vector<std::string> fixture_corpus() {
  return tokenizer_fixtures()["corpus"].get<std::vector<std::string>>();
}

}  // namespace pmaptrain::tests
