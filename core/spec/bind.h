// The checked tree to a Spec, and the checks between keys.
#pragma once

#include <vector>

#include "core/spec/check.h"
#include "core/spec/node.h"
#include "core/spec/spec.h"

namespace pmaptrain::spec {

// Fills in what depends on other keys (names of layers, data.axes) in `config`, checks keys against each other, and
// returns the Spec. Invalid parts are left at their defaults: the result counts only if `errors` stays empty.
Spec bind(Node& config, std::vector<Diagnostic>& errors);

// The part of it that is below `data`.
void bind_data(Node& config, const Mesh& mesh, const Reporter& reporter, DataSpec& out);

// Batch, microbatches and durations against the mesh.
void check_division(const Spec& spec, const Node& config, std::vector<Diagnostic>& errors);

}  // namespace pmaptrain::spec
