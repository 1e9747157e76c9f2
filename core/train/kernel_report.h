// What each step of a plan is carried out by, what it costs, and how long it takes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/runtime/cpu/executor.h"
#include "core/train/peaks.h"

namespace pmaptrain::train {

struct KernelLine {
  const Step* step = nullptr;
  std::size_t stage = 0;
  bool invariant = true;  // of the stage's steps that run before its blocks
  int depth = 0;          // of loops around it
  KernelInfo kernel;      // of kernel steps
  // In one training step, over all devices and the iterations of loops, as the program says; what every worker
  // computes for itself counts once.
  double flops = 0, bytes = 0;
  double layout_bytes = 0;  // of the library's changes of layout, which come on top
  // Measured: of each worker on average.
  double seconds = 0;

  bool is_reference() const { return kernel.implementation.starts_with("reference"); }
  // The least time that the machine's peaks allow, as a share of the measured one.
  double share_of_roofline(const Peaks& peaks) const;
};

struct KernelReport {
  std::vector<KernelLine> lines;  // in the plan's order, loops before what they repeat
  // Measured, of one training step.
  struct Times {
    double step_seconds = 0;  // as run, without a clock inside
    Peaks peaks;
  };
  std::optional<Times> times;

  double flops() const;
  double bytes() const;
  double seconds() const;
};

// Of the executor's plan; the executor must outlive it.
KernelReport kernel_report(const CpuExecutor& executor);
// The same, measured on steps of the executor, whose inputs must be set: a few tenths of a second, or some steps where
// they are long, and the machine's peaks after that.
KernelReport measured_kernel_report(CpuExecutor& executor);

}  // namespace pmaptrain::train
