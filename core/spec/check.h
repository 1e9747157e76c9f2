// Checks a tree against the table of keys: reports all errors, fills in defaults and converts values to canonical form.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/spec/keys.h"
#include "core/spec/node.h"

namespace pmaptrain::spec {

// Collects the errors.
class Reporter {
 public:
  explicit Reporter(std::vector<Diagnostic>& out) : out_(out) {}
  // Returns an invalid node at the same place, for `return report(...)`.
  Node report(const Node& at, std::string message, std::string help = {}, std::vector<std::string> notes = {}) const;

 private:
  std::vector<Diagnostic>& out_;
};

// Checks the whole config. Returns a map of all keys with a value, in the order of the table, with canonical scalars
// (integers as digits, numbers by exact(), absolute paths). Invalid values become invalid nodes. `run_name` is the
// default of `name`.
Node check_config(const Node& root, const std::string& run_name, std::vector<Diagnostic>& errors);

// Checks the value of a key with all keys below it; `at` is the key, for what is missing there.
Node check_value(const Key& key, const Node& at, const Node& value, const Reporter& reporter);

// Checks one value of a key without keys below it.
Node check_leaf(const Key& key, const Node& value, const Reporter& reporter);

// "did you mean 'x'?", or "valid keys: a, b, c".
std::string suggest(std::string_view word, const std::vector<std::string>& candidates, std::string_view what);

}  // namespace pmaptrain::spec
