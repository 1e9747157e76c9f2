// The tree against the table of keys: every mistake is reported, every default filled in, every value made canonical.
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

// The whole config, checked key by key: a map of every key that has a value, in the table's order, with canonical
// scalars (integers as digits, numbers by exact(), absolute paths). What was wrong is an invalid node.
// `run_name` is the default of `name`.
Node check_config(const Node& root, const std::string& run_name, std::vector<Diagnostic>& errors);

// One value of a key that has no keys below it. `at` is the key, where a missing part is reported.
Node check_leaf(const Key& key, const Node& at, const Node& value, const Reporter& reporter);

// "did you mean 'x'?", or "valid keys: a, b, c".
std::string suggest(std::string_view word, const std::vector<std::string>& candidates, std::string_view what);

}  // namespace pmaptrain::spec
