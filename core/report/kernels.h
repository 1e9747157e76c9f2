// explain --kernels: what carries out each instruction of a step.
#pragma once

#include <string>

#include "core/report/kernel_report.h"

namespace pmaptrain::report {

// Where the time of a step goes by implementation, then a table of all instructions in their order with a total. With
// times, also each step's share of them and of the roofline. Reference kernels and layout changes are marked.
std::string kernels_text(const KernelReport& report);

}  // namespace pmaptrain::report
