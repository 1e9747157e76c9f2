// Parts of chains: the equations that some of a chain's values are computed from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/graph/program.h"

namespace pmaptrain {

// By value of a region: the value outside of the region that it equals.
using Outside = std::unordered_map<std::int32_t, Value>;

// Whether an equation is `fused`, or another elementwise one.
bool is_chain(const Equation& equation);
// The region of a `fused` equation, or one with the equation alone if it is another elementwise equation.
Region region_of(const Equation& chain);
// The operands of a chain, by parameter of its region.
Outside outside_of(const Equation& chain, const Region& region);

// Whether an equation is a chain over this number of columns: it computes a value for each, and each of its equations
// reads values for all of them, or one for all.
bool is_of_columns(const Program& program, const Equation& chain, std::int64_t columns);

struct Slice {
  std::vector<std::size_t> equations;  // indices in the region, ascending
  std::vector<Value> reads;            // values of the region that are read from outside
};

// What is needed to compute `wanted`, values of a region. Those in `outside` are read, all others are computed.
Slice slice_of(const Region& region, const std::vector<Value>& wanted, const Outside& outside);

// Makes an equation from a slice: appends operands to `made`, and parameters and copies of the equations, with values
// of their own, to `body`. Returns the copies by value of the region.
Outside copy_slice(Program& program, const Region& region, const Slice& slice, const Outside& outside, Equation& made,
                   Region& body);

// The `fused` equation that yields these values of a chain's region, under the names of the chain's results where they
// are among them, and as new values else. Values in `outside` are read.
Equation part_of_chain(Program& program, const Equation& chain, const std::vector<Value>& yielded,
                       const Outside& outside);

// A value of the same type as `like`.
Value new_value(Program& program, Value like);

}  // namespace pmaptrain
