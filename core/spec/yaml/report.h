// Errors about nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/spec/yaml/node.h"

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

// "did you mean 'x'?", or "valid keys: a, b, c".
std::string suggest(std::string_view word, const std::vector<std::string>& candidates, std::string_view what);

// Where a user wrote a node: "sweep.yaml:3:3", or an option as it is on the command line.
std::string said_at(const Node& node);

}  // namespace pmaptrain::spec
