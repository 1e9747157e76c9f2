// The numbers of a config that are inputs of its programs: what members of an ensemble may have different values of,
// and what --change may change within a run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/spec/keys.h"
#include "core/spec/keys/check.h"
#include "core/spec/yaml/node.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {

struct Variable {
  std::string path;  // items of lists by index: "model.layers.2.dropout.rate"
  const Key* key;
};

// The variables of a checked config, including defaults.
std::vector<Variable> variables_of(const Node& config);
// Null if there is none at this path.
const Variable* find_variable(const std::vector<Variable>& variables, std::string_view path);

// Checks a value of one, like the key itself. A schedule is none.
Node check_variable(const Variable& variable, const Node& value, const Reporter& reporter);
// Whether the program has other equations with this checked value (Key::structural).
bool is_structural(const Variable& variable, const Node& value);

// A dotted path with the items of lists by index, and whether the config has it. Where it has not, the rest of the path
// is as it was.
struct Resolved {
  std::string path;
  bool exists;
};
Resolved resolve(const Node& config, std::string_view path);

// The node at a resolved path of a config that may lack the last segment, which is then added.
Node& node_at(Node& config, std::string_view path);

}  // namespace pmaptrain::spec
