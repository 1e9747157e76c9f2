// Runs vector code as each instruction set of this machine has it, not as the best one only.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <hwy/targets.h>

#include "tests/catch.h"

namespace pmaptrain::test {

template <class F>
void on_every_target(F&& f) {
  const std::int64_t all = hwy::SupportedTargets();
  for (std::int64_t left = all; left != 0; left &= left - 1) {
    const std::int64_t target = left & -left;
    INFO(hwy::TargetName(target));
    hwy::GetChosenTarget().Update(target);
    f();
  }
  hwy::GetChosenTarget().Update(all);
}

}  // namespace pmaptrain::test

#endif  // PMAPTRAIN_REFERENCE_KERNELS
