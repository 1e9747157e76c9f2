// What the collectives do, shown by running them: the one list of them, and one of them carried out over some axes of a
// mesh by the same runtime that trains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/builder.h"
#include "core/runtime/backend.h"

namespace pmaptrain::app {

struct Demonstration {
  std::string_view name;     // as in a program's text
  std::string_view meaning;  // the result on a member of the group
  bool several = false;      // takes several axes at once
  bool operand = true;       // takes one
  bool replicated = false;   // which is the same on the members of the group
  enum class Shape {
    scalar,  // []
    vector,  // [n]: it joins values along a dimension
    parts,   // a multiple of the group's size: each member's value is cut into a part for every member
  } shape = Shape::scalar;
  // Appends the collective; `x` is no value where it takes no operand.
  Value (*emit)(Builder& b, Value x, AxisSet axes) = nullptr;
};

// Every op that moves values between devices, then what is made of them.
std::span<const Demonstration> demonstrations();

// A collective's input and result on every device, in device order.
struct Shown {
  std::optional<Type> input_type;  // none: it takes no operand
  Type result_type;
  std::vector<std::vector<std::byte>> inputs, results;
  int workers = 1;  // that carried the devices
};

// Runs `what` over `axes`. Device d holds d, or, in an op that takes several numbers, 10 d + 0, 10 d + 1, ... (or 100 d
// and so on, for groups of more than ten). Throws Error (resource) when there is not so much memory.
Shown show(const Demonstration& what, const Mesh& mesh, AxisSet axes, const Backend& backend);

struct Timing {
  std::int64_t bytes = 0;       // of each device's operand, in f32
  double seconds = 0;           // the median
  double bytes_per_second = 0;  // what all devices send together, over `seconds`
};

// None where the collective takes no operand or sends nothing, or its operand cannot have this size: a whole number of
// f32, and of parts where it is cut. Throws Error (resource) when there is not so much memory.
std::optional<Timing> measure(const Demonstration& what, const Mesh& mesh, AxisSet axes, const Backend& backend,
                              std::int64_t bytes);

}  // namespace pmaptrain::app
