// The checked tree to a Spec, and the checks between keys.
#pragma once

#include <vector>

#include "core/spec/check.h"
#include "core/spec/node.h"
#include "core/spec/spec.h"

namespace pmaptrain::spec {

// Fills in what depends on other keys (names of layers, data.axes) in `config`, stores every key by its row (row.h),
// checks keys against each other, and returns the Spec. Invalid parts are left at their defaults: the result counts
// only if `errors` stays empty.
Spec bind(Node& config, std::vector<Diagnostic>& errors);

// What is by hand below `data`: the keys that depend on others, and the checks.
void bind_data(Node& config, const Mesh& mesh, const Reporter& reporter, DataSpec& out);

// Batch, microbatches and durations against the mesh.
void check_division(const Spec& spec, const Node& config, std::vector<Diagnostic>& errors);

}  // namespace pmaptrain::spec
