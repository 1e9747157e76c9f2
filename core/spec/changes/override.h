// Options that override a config: --set, --devices, --workers, --seed, --name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/spec/changes/assignment.h"
#include "core/spec/changes/loaded.h"
#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

// Applies the options to the tree of a file, first --set, then the others, then `values`, which are not of options;
// later ones override earlier ones. A value
// set by an option has its place in that option, so that errors point into the argument. Adds a note to `notes` if an
// option replaces a choice.
void apply(const Overrides& overrides, std::span<const Assignment> values, Node& root, std::vector<Diagnostic>& errors,
           std::vector<std::string>& notes);

// The time of --max-time, checked like train.max_time.
Interval max_time_of(const Overrides& overrides, std::vector<Diagnostic>& errors);

}  // namespace pmaptrain::spec
