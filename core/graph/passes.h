// Passes: plain functions from program to program. A check follows each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/graph/builder.h"

namespace pmaptrain {

// Removes equations that no output and no update needs, and computes equal equations once. Every op is pure, so this
// depends on no particular op; it never reorders and never changes a bit of a result.
Program simplify(Program program);

// A value, and the axes over which its reduction may still vary.
struct Synchronised {
  Value value;
  AxisSet target;
};

// The synchronisation that the types call for: sums each value over its set minus its target set, all values of the
// same axes in one psum, in the order given. Returns the reduced values. A set that lacks an axis of its target is an
// error of the program that built it.
std::vector<Value> synchronise(Builder& b, std::span<const Synchronised> values);

}  // namespace pmaptrain
