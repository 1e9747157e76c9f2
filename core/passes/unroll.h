// Loops whose iterations cannot run apart from other devices.
#pragma once

#include <memory>

#include "core/graph/program.h"

namespace pmaptrain {

// The program with every loop in which devices communicate written out, iteration after iteration: a runtime then meets
// where the text says so, and needs no loop around its stages. The same values, bit for bit; the program itself where
// there is no such loop. Throws Error (usage) where more than 100,000 equations would come of it.
std::shared_ptr<const Program> unroll_communication(std::shared_ptr<const Program> program);

}  // namespace pmaptrain
