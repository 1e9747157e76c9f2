// What the checks of one value of one key have in common.
#pragma once

#include "core/spec/check.h"
#include "core/spec/keys.h"
#include "core/spec/node.h"

namespace pmaptrain::spec {

// Report a value that the key does not take, and one that is empty. They return an invalid node.
Node wrong_value(const Key& key, const Node& value, const Reporter& reporter);
Node empty_value(const Key& key, const Node& value, const Reporter& reporter);

// Checks mesh.axes: one axis as a map, or a list of them. Returns a list.
Node check_axes(const Key& key, const Node& value, const Reporter& reporter);

}  // namespace pmaptrain::spec
