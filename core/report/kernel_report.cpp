#include "core/report/kernel_report.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/report/benchmark.h"

namespace pmaptrain::report {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

double KernelLine::share_of_roofline(const Peaks& peaks) const {
  if (seconds <= 0) return 0;
  return std::max(flops / peaks.gemm_flops_per_second, bytes / peaks.copy_bytes_per_second) / seconds;
}

double KernelReport::sum(double KernelLine::*of_line) const {
  double total = 0;
  for (const KernelLine& line : lines) total += line.*of_line;
  return total;
}

double KernelReport::flops_on_tensor_cores() const {
  double total = 0;
  for (const KernelLine& line : lines) total += line.on_tensor_cores ? line.flops : 0;
  return total;
}

namespace {

// `Of`: a Planned, or the Module that was loaded from it.
template <class Of>
KernelReport report_of(const Backend& backend, const Of& of, const std::vector<InstructionReport>& rows) {
  KernelReport report;
  for (const InstructionReport& row : rows) report.lines.push_back({row, 0});
  report.workers = of.workers();
  report.on_gpus = backend.uses_gpus();
  report.devices = of.source().entries.front().program->mesh.devices();
  report.barriers = of.barriers_per_step(0);
  return report;
}

}  // namespace

KernelReport kernel_report(const Backend& backend, const Planned& planned) {
  KernelReport report = report_of(backend, planned, planned.report(0).instructions);
  report.sent_bytes = planned.report(0).sent_bytes;
  return report;
}

KernelReport measured_kernel_report(const Backend& backend, Module& module) {
  KernelReport report = report_of(backend, module, module.instructions(0));
  const double estimate = measure_step_seconds(module, 0, 0.002);
  const std::int64_t group = std::max<std::int64_t>(1, static_cast<std::int64_t>(0.002 / estimate));
  // Rounds with and without timing of instructions alternate. The time of a line is the median over rounds, so that
  // short disturbances by other processes do not count.
  constexpr int most_rounds = 40, least_rounds = 5;
  constexpr double enough = 0.4;
  std::vector<std::vector<double>> seconds(report.lines.size());
  std::vector<double> whole;
  const Clock::time_point begin = Clock::now();
  for (int round = 0; round < most_rounds && (round < least_rounds || seconds_since(begin) < enough); ++round) {
    const Clock::time_point run = Clock::now();
    module.wait(module.submit(0, 0, group));
    whole.push_back(seconds_since(run) / static_cast<double>(group));
    const Profile profile = module.profile(0, 0, group);
    for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i].push_back(profile.seconds[i]);
  }
  for (std::size_t i = 0; i < seconds.size(); ++i) report.lines[i].seconds = median(seconds[i]);
  report.times = {median(whole), measure_peaks(backend, report.workers, product_dtype(module.program(0)))};
  return report;
}

}  // namespace pmaptrain::report
