#include "core/runtime/gpu/report.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "core/analysis/cost.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/runtime/gpu/plans.h"

namespace pmaptrain::gpu {
namespace {

std::string_view made_by(const GpuLaunch& launch) { return launch.kernel; }
std::string_view made_by(const GpuMatmul&) { return "cuBLASLt"; }
std::string_view made_by(const GpuConv&) { return "cuDNN"; }
std::string_view made_by(const GpuAttention& attention) {
  return attention.kind == GpuAttention::Kind::forward ? "cuDNN sdpa" : "cuDNN sdpa_backward";
}
std::string_view made_by(const GpuGenerated&) { return "generated"; }

// Names what computes a launch, each once: "cuDNN", "cuBLASLt", "generated", or the names of this project's kernels.
std::string implementation_of(const GpuKernel& kernel) {
  std::vector<std::string> names;
  for (const GpuCommand& command : kernel.commands) {
    std::string name(std::visit([](const auto& each) { return made_by(each); }, command));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names.empty() ? "nothing to do" : join(names, ", ");
}

// Whether most of a kernel's operations are products on tensor cores, of bf16 or of TF32.
bool is_on_tensor_cores(const GpuKernel& kernel, bool tf32) {
  const auto are = [&](DType operands) { return operands == DType::bf16 || (operands == DType::f32 && tf32); };
  const GpuMatmul* const product = kernel.find<GpuMatmul>();
  const GpuConv* const convolution = kernel.find<GpuConv>();
  // A depthwise convolution has no products of matrices.
  const bool has_products =
      convolution != nullptr && (convolution->kernel[convolution->kernel.size() - 2] > 1 || convolution->x.back() == 1);
  return (product != nullptr && are(product->operands)) || (has_products && are(convolution->operands)) ||
         kernel.find<GpuAttention>() != nullptr || kernel.is_on_tensor_cores();
}

// The same of a command that is no launch.
std::string implementation_of(const Command& command) {
  if (const Loop* const loop = std::get_if<Loop>(&command)) return std::to_string(loop->iterations) + " times";
  if (const Collect* const collect = std::get_if<Collect>(&command)) {
    const std::string_view name = to_string(collect->kind);  // without what it computes
    return std::string(name.ends_with("_sum") ? name.substr(0, name.size() - 4) : name) + " between GPUs";
  }
  if (std::holds_alternative<Await>(command)) return "wait for other GPUs";
  return std::holds_alternative<Reduce>(command) ? "reduce" : "copy";
}

}  // namespace

std::vector<InstructionReport> instructions_of(const Plan& plan, const MakeKernel& make_kernel,
                                               const std::function<bool(const Launch&)>& runs_own) {
  std::vector<InstructionReport> rows;
  for_each_command(plan.commands, [&](const Command& command, int depth, double times) {
    InstructionReport& row = rows.emplace_back();
    const Launch* const launch = std::get_if<Launch>(&command);
    row.equation = equation_of(command);
    row.depth = depth;
    row.section = "each GPU";
    if (launch == nullptr) row.implementation = implementation_of(command);
    row.name = row.equation != nullptr ? std::string(row.equation->op.name()) : "copy";
    if (row.equation != nullptr && !row.equation->results.empty()) {
      row.result = to_string(plan.program->type(row.equation->results.front()), plan.program->mesh);
    }
    if (launch == nullptr) return;
    GpuKernel kernel = make_kernel(launch->equation->op, request_of(plan, *launch));
    if (runs_own && runs_own(*launch)) kernel = kernel.without_library();
    row.implementation = implementation_of(kernel);
    row.on_tensor_cores = is_on_tensor_cores(kernel, plan.tf32);
    // An equation that is not part of the program has no values.
    if (row.result.empty()) row.result = to_string(launch->result_types.front(), plan.program->mesh);
    row.kernel = true;
    const Cost cost = row.equation->op.cost(plan.program->mesh, launch->operand_types, launch->result_types);
    const auto all = times * static_cast<double>(launch->logical_devices) * static_cast<double>(plan.division.gpus());
    row.flops = all * (cost.flops + flops_inside(*plan.program, *row.equation));
    row.bytes = all * cost.bytes;
  });
  return rows;
}

std::vector<StageReport> stages_of(const Plan& plan, const MakeKernel& make_kernel) {
  StageReport all;
  for (const InstructionReport& row : instructions_of(plan, make_kernel)) all.total += row.flops + row.bytes;
  all.tasks = plan.division.gpus();
  all.largest_task = all.total / static_cast<double>(all.tasks);
  return {all};
}

namespace {

// The bytes that each GPU sends to others for a collective.
std::size_t sent_for(const Plan& plan, const Collect& collect) {
  return bytes_sent(collect.kind, collect.bytes, static_cast<std::size_t>(plan.division.grid.group_size(collect.axes)));
}

}  // namespace

std::map<const Equation*, std::vector<RankStep>> rank_steps_of(const Plan& plan) {
  std::map<const Equation*, std::vector<RankStep>> all;
  for_each_of<Collect>(plan.commands, [&](const Collect& collect, double) { all[collect.equation]; });
  for_each_command(plan.commands, [&](const Command& command) {
    const auto steps = all.find(equation_of(command));
    if (steps == all.end()) return;
    if (const Collect* const collect = std::get_if<Collect>(&command)) {
      const std::size_t sent = sent_for(plan, *collect);
      add_step(steps->second, {std::string(to_string(collect->kind)), 0, sent, sent});
    } else if (const Reduce* const reduce = std::get_if<Reduce>(&command)) {
      const std::string what = reduce->stream == Stream::compute ? "sum_blocks" : "sum_tree";
      for (const Reduce::Group& group : reduce->groups) add_step(steps->second, {what, group.elements});
    }
  });
  return all;
}

std::size_t sent_bytes_of(const Plan& plan) {
  std::size_t bytes = 0;
  for_each_of<Collect>(plan.commands, [&](const Collect& collect, double times) {
    bytes = sum_of(bytes, product_of(static_cast<std::size_t>(times), sent_for(plan, collect)));
  });
  return bytes;
}

std::vector<std::pair<AxisSet, double>> sent_along(const Plan& plan) {
  std::vector<std::pair<AxisSet, double>> sent;
  for_each_of<Collect>(plan.commands, [&](const Collect& collect, double times) {
    auto known = std::find_if(sent.begin(), sent.end(), [&](const auto& each) { return each.first == collect.axes; });
    if (known == sent.end()) known = sent.insert(known, {collect.axes, 0.0});
    known->second += times * static_cast<double>(sent_for(plan, collect));
  });
  return sent;
}

std::int64_t barriers_of(const Plan& plan) {
  std::int64_t barriers = 0;
  for_each_of<Collect>(plan.commands,
                       [&](const Collect&, double times) { barriers += static_cast<std::int64_t>(times); });
  return barriers;
}

}  // namespace pmaptrain::gpu
