// explain --kernels: what carries out each step of the plan.
#pragma once

#include <string>

#include "core/train/kernel_report.h"
#include "core/train/setup.h"

namespace pmaptrain::app {

// Where the time of a step goes by implementation, then a table of all steps in the plan's order with a total. With
// times, also each step's share of them and of the machine's roofline. What should not be there stands out.
std::string kernels_text(const train::KernelReport& report, const Plan& plan, int workers);

}  // namespace pmaptrain::app
