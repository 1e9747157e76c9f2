// Options over a config: --set, --devices, --workers, --seed, --name.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/spec/load.h"
#include "core/spec/node.h"

namespace pmaptrain::spec {

// Applies the options to the tree of a file, later ones over earlier ones and --set before the options with a name of
// their own. What an option sets stands in that option, so that later errors point into the argument. `notes` receives
// a line where a choice is replaced.
void apply(const Overrides& overrides, Node& root, std::vector<Diagnostic>& errors, std::vector<std::string>& notes);

}  // namespace pmaptrain::spec
