// The text of `explain --kernels`.
#pragma once

#include <string>

#include "core/report/kernel_report.h"

namespace pmaptrain::report {

// The time of a step by implementation, then a table of all instructions in their order, with a total. With times, also
// the share of each instruction in the step and in the roofline. Reference kernels and layout changes are marked.
// `width`: columns of a terminal; in one that is narrower than the table, columns are below the others; 0: none.
std::string kernels_text(const KernelReport& report, int width = 0);

}  // namespace pmaptrain::report
