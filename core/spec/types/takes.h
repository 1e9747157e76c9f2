// Texts about the values of a key, for errors and help.
#pragma once

#include <string>
#include <vector>

#include "core/spec/keys.h"

namespace pmaptrain::spec {

// "an integer of at least 1", "one of cpu, auto", "a duration such as 100 steps or 2 epochs".
std::string takes(const Key& key);
// The largest exponent that a count of steps, epochs or examples is written with, so that a pattern can say which are
// whole.
inline constexpr int largest_exponent = 12;

// The units of a duration or amount, in pairs of singular and plural: "step", "steps", ...
std::vector<std::string> units_of(const Key& key);
// "required", "default 5", "default: the file's name", "optional", or nothing for an alternative.
std::string fallback_of(const Key& key);

}  // namespace pmaptrain::spec
