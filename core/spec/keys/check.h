// Checks a tree against the table of keys: reports all errors, fills in defaults and converts values to canonical form.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/spec/keys.h"
#include "core/spec/yaml/node.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {

// Checks the whole config. Returns a map of all keys with a value, in the order of the table, with canonical scalars
// (integers as digits, numbers by exact(), absolute paths). Invalid values become invalid nodes. `run_name` is the
// default of `name`.
Node check_config(const Node& root, const std::string& run_name, std::vector<Diagnostic>& errors);

// Checks the value of a key and all keys below it. Missing keys are reported at `at`, the key.
Node check_value(const Key& key, const Node& at, const Node& value, const Reporter& reporter);

}  // namespace pmaptrain::spec
