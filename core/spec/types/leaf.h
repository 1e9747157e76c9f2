// What the checks of one value of one key have in common.
#pragma once

#include <string>

#include "core/spec/types/key.h"
#include "core/spec/yaml/node.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {

// Report a value that the key does not take, one that is near to what it takes, and one that is empty. They return an
// invalid node.
Node wrong_value(const Key& key, const Node& value, const Reporter& reporter);
Node misspelt_value(const Key& key, const Node& value, const std::string& near, const Reporter& reporter);
Node empty_value(const Key& key, const Node& value, const Reporter& reporter);

// Checks one value of a key without keys below it.
Node check_leaf(const Key& key, const Node& value, const Reporter& reporter);

// Checks mesh.axes: one axis as a map, or a list of them. Returns a list.
Node check_axes(const Key& key, const Node& value, const Reporter& reporter);

// Checks one duration, interval or amount; also one of a list.
Node check_duration(const Key& key, const Node& value, const Reporter& reporter);

}  // namespace pmaptrain::spec
