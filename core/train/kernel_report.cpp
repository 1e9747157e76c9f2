#include "core/train/kernel_report.h"

#include <algorithm>
#include <map>

#include "core/base/clock.h"
#include "core/train/benchmark.h"

namespace pmaptrain::train {
namespace {

bool varies(const std::vector<Type>& types) {
  return std::any_of(types.begin(), types.end(), [](const Type& type) { return !type.varying.empty(); });
}

double bytes_of(const std::vector<Type>& types) {
  double total = 0;
  for (const Type& type : types) total += static_cast<double>(bytes(type));
  return total;
}

class Lister {
 public:
  explicit Lister(const CpuExecutor& executor) : plan_(executor.plan()), kernels_(executor.kernels()) {
    for (std::size_t number = 0; number < plan_.stages.size(); ++number) {
      KernelLine where;
      where.stage = number;
      add(plan_.stages[number].invariant, where, 1);
      where.invariant = false;
      add(plan_.stages[number].varying, where, 1);
    }
  }

  std::vector<KernelLine> lines;

 private:
  // `where` says stage, part and depth; `times` how often loops repeat it.
  void add(const std::vector<Step>& steps, const KernelLine& where, double times) {
    for (const Step& step : steps) {
      KernelLine line = where;
      line.step = &step;
      const auto kernel = kernels_.find(&step);
      if (kernel != kernels_.end()) line.kernel = kernel->second;
      const Cost cost = cost_of(step);
      const double devices =
          varies(step.operand_types) || varies(step.result_types) ? static_cast<double>(devices_of_program()) : 1;
      line.flops = times * devices * cost.flops;
      line.bytes = times * devices * cost.bytes;
      for (const LayoutChange& change : line.kernel.layout_changes) {
        line.layout_bytes += times * static_cast<double>(change.bytes);
      }
      lines.push_back(line);
      KernelLine inside = where;
      ++inside.depth;
      add(step.before, inside, times);
      add(step.body, inside, times * static_cast<double>(step.iterations));
    }
  }

  std::int64_t devices_of_program() const { return plan_.program->mesh.devices(); }

  // Of one device and one iteration.
  Cost cost_of(const Step& step) const {
    Cost cost;
    switch (step.kind) {
      case Step::Kind::kernel:
        cost = step.equation->op.cost(plan_.program->mesh, step.operand_types, step.result_types);
        for (const Region& region : step.equation->regions) add_region(region, cost);
        break;
      case Step::Kind::exchange:
        cost = step.equation->op.cost(plan_.program->mesh, step.operand_types, step.result_types);
        break;
      case Step::Kind::copy:
      case Step::Kind::loop:  // each iteration copies its slices, which are all of the operands in the end
        cost.bytes = 2 * bytes_of(step.operand_types);
        break;
      case Step::Kind::accumulate: {
        const Buffer& operand = plan_.buffers[static_cast<std::size_t>(step.operands.front())];
        cost.flops = static_cast<double>(operand.elements);
        cost.bytes = 2 * static_cast<double>(operand.slice_bytes());
        break;
      }
      case Step::Kind::combine: {
        const Accumulator& sums = plan_.accumulators[static_cast<std::size_t>(step.accumulator)];
        const auto elements = static_cast<double>(sums.elements), blocks = static_cast<double>(plan_.blocks.size());
        cost.flops = blocks * elements;
        cost.bytes = (blocks + 1) * elements * static_cast<double>(size_of(sums.dtype));
        break;
      }
    }
    return cost;
  }

  // A chain's equations compute; what they pass on to each other stays in the cache.
  void add_region(const Region& region, Cost& cost) const {
    const Program& program = *plan_.program;
    for (const Equation& equation : region.equations) {
      if (equation.op.rules().view) continue;
      const Cost inner =
          equation.op.cost(program.mesh, types_of(program, equation.operands), types_of(program, equation.results));
      cost.flops += inner.flops;
    }
  }

  const Plan& plan_;
  const std::map<const Step*, KernelInfo> kernels_;
};

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

double KernelReport::flops() const {
  double total = 0;
  for (const KernelLine& line : lines) total += line.flops;
  return total;
}

double KernelReport::bytes() const {
  double total = 0;
  for (const KernelLine& line : lines) total += line.bytes;
  return total;
}

double KernelReport::seconds() const {
  double total = 0;
  for (const KernelLine& line : lines) total += line.seconds;
  return total;
}

KernelReport kernel_report(const CpuExecutor& executor) { return {Lister(executor).lines, {}}; }

KernelReport measured_kernel_report(CpuExecutor& executor) {
  KernelReport report = kernel_report(executor);
  const double estimate = estimate_step(executor, 0.002);
  const std::int64_t group = std::max<std::int64_t>(1, static_cast<std::int64_t>(0.002 / estimate));
  // Rounds with the clock inside and without, in turn; by step of the plan the median over rounds, so that what others
  // take from the machine at times does not count.
  constexpr int most_rounds = 40, least_rounds = 5;
  constexpr double enough = 0.4;
  std::map<const Step*, std::vector<double>> seconds;
  std::vector<double> whole;
  const Clock::time_point begin = Clock::now();
  for (int round = 0; round < most_rounds && (round < least_rounds || seconds_since(begin) < enough); ++round) {
    const Clock::time_point run = Clock::now();
    executor.run(group);
    whole.push_back(seconds_since(run) / static_cast<double>(group));
    const Profile profile = executor.profile(group);
    for (const auto& [step, taken] : profile.seconds) {
      seconds[step].push_back(taken / static_cast<double>(group) / static_cast<double>(executor.workers()));
    }
  }
  for (KernelLine& line : report.lines) {
    const auto found = seconds.find(line.step);
    if (found != seconds.end()) line.seconds = median(found->second);
  }
  report.times = {median(whole), measure_peaks(executor.workers())};
  return report;
}

}  // namespace pmaptrain::train
