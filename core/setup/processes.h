// What several processes of a run do before its first step.
#pragma once

#include <string_view>

#include "core/runtime/agreement.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// Sets the time after which a silent process ends the run (mesh.timeout), and throws Error (usage) unless all processes
// have the same program, config, options, instruction set, checkpoint and data: each process computes the parameters
// for itself, so all must compute the same. `options` and `checkpoint` are texts that are equal for equal options of
// the command line and for the same checkpoint to continue from. Every process calls this.
void prepare_processes(Agreement& agreement, const Setup& setup, std::string_view options, std::string_view checkpoint);

}  // namespace pmaptrain::train
