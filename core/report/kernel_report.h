// The instructions of a training step: the implementation of each, its cost, and its time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/peaks.h"
#include "core/runtime/backend.h"

namespace pmaptrain::report {

struct KernelLine : InstructionReport {
  double seconds = 0;  // if measured: the mean over workers

  bool is_reference() const { return kernel && implementation.starts_with("reference"); }
  // The time that the instruction would take at the peak GEMM rate or memory bandwidth, divided by the measured time.
  double share_of_roofline(const Peaks& peaks) const;
};

struct KernelReport {
  std::vector<KernelLine> lines;  // in the order in which they run; a loop precedes its body
  int workers = 1;
  bool on_gpus = false;                    // whether the workers are GPUs
  std::int64_t devices = 1, barriers = 0;  // barriers of one step
  std::size_t sent_bytes = 0;              // by each GPU to others in a step
  // Measured times of one training step.
  struct Times {
    double step_seconds = 0;  // without timing of instructions
    Peaks peaks;
  };
  std::optional<Times> times;

  double sum(double KernelLine::*of_line) const;
  double flops() const { return sum(&KernelLine::flops); }
  double bytes() const { return sum(&KernelLine::bytes); }
  double seconds() const { return sum(&KernelLine::seconds); }
  double flops_on_tensor_cores() const;
};

// The report of the first entry of the backend's plan, which must outlive the report.
KernelReport kernel_report(const Backend& backend, const Planned& planned);
// The report of the first entry of the backend's module, measured on the batch in slot 0. The module must outlive the
// report, and its inputs must be set. Takes a few tenths of a second, or some steps if these are longer; and then the
// time to measure the peak GEMM rate and memory bandwidth.
KernelReport measured_kernel_report(const Backend& backend, Module& module);

}  // namespace pmaptrain::report
