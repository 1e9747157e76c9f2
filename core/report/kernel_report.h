// What each instruction of a training step is carried out by, what it costs, and how long it takes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/report/peaks.h"
#include "core/runtime/backend.h"

namespace pmaptrain::report {

struct KernelLine : InstructionReport {
  double seconds = 0;  // measured: of each worker on average

  bool is_reference() const { return kernel && implementation.starts_with("reference"); }
  // The time at peak GEMM rate or memory bandwidth, as a share of the measured one.
  double share_of_roofline(const Peaks& peaks) const;
};

struct KernelReport {
  std::vector<KernelLine> lines;  // in the order in which they run, loops before what they repeat
  int workers = 1;
  bool on_gpus = false;                    // the workers are GPUs
  std::int64_t devices = 1, barriers = 0;  // of a step
  // Measured, of one training step.
  struct Times {
    double step_seconds = 0;  // as run, without a clock inside
    Peaks peaks;
  };
  std::optional<Times> times;
  std::shared_ptr<const void> owner;  // of what the lines point to, unless a module is

  double flops() const;
  double bytes() const;
  double seconds() const;
};

// Of the first entry of what the backend would load.
KernelReport kernel_report(const Backend& backend, const Source& source);
// Of the first entry of the backend's module, which must outlive the report, measured on steps on the batch in slot 0;
// inputs must be set. A few tenths of a second, or some steps where they are long, and the peak GEMM rate and memory
// bandwidth after that.
KernelReport measured_kernel_report(const Backend& backend, Module& module);

}  // namespace pmaptrain::report
