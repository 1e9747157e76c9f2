// What a choice between alternatives is written as, where the keys beside them are to stay: maps of keys that are set
// together.
#pragma once

#include <span>
#include <string>

#include "core/spec/types/key.h"
#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

// "opt: {choice: [{optimizer.adam: {}}, {optimizer.sgd: {}}]}" of the values adam and sgd of the key `optimizer`. Empty
// where the key is no choice, or not all values are alternatives of it.
std::string joint_choice(const std::string& name, const Key& key, std::span<const Node> values);

// The same, of any key of a config whose alternatives the values are.
std::string joint_choice(const std::string& name, std::span<const Node> values);

// A name for such a choice: "opt".
std::string joint_name(const Key& key);

}  // namespace pmaptrain::spec
