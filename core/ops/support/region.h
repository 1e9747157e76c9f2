// Runs a region equation by equation.
#pragma once

#include <functional>

#include "core/graph/program.h"
#include "core/kernel/reference.h"

namespace pmaptrain::ops {

// Computes the results of a call from its region, by the references of the region's equations. The operands of a call
// may have other numbers of rows than their declared types: `type_here` gives the type of an equation's result in this
// call.
void run_region(const ReferenceCall& call, const std::function<Type(Value)>& type_here);

}  // namespace pmaptrain::ops
