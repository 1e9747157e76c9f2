// Refuses a sweep file in which two values set one key of a trial: the trial would keep one of them alone.
#pragma once

#include <vector>

#include "core/base/error.h"
#include "core/spec/sweep/sweep_file.h"
#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

// `base` is the config of the base, in which keys are looked up. Appends to `errors`, and to the notes of the sweep
// where --set replaces what the file has below 'set', and where a map of a choice leaves out a key of the others.
void check_set_once(SweepFile& file, const Node& base, std::vector<Diagnostic>& errors);

}  // namespace pmaptrain::spec
