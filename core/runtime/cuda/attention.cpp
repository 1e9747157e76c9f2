#include <memory>
#include <optional>
#include <utility>

#include "core/kernel/gpu_budget.h"
#include "core/runtime/cuda/kernels.h"
#include "core/runtime/cuda/prepare.h"

namespace pmaptrain::cuda {
namespace {

class AttentionCommand final : public PreparedCommand {
 public:
  // Without a plan it cannot run, and its workspace is the most that any plan takes.
  AttentionCommand(const GpuAttention& call, const GpuRequest& request, std::optional<AttentionPlan> plan)
      : call_(call), plan_(std::move(plan)) {
    for (const Type& type : request.operands) operand_bytes_.push_back(bytes_of_call(type, request));
    for (const Type& type : request.results) result_bytes_.push_back(bytes_of_call(type, request));
    WorkspaceLayout parts;
    const std::int64_t rows = call_.examples * call_.heads * call_.queries;
    stats_part_ = parts.add(static_cast<std::size_t>(rows) * sizeof(float));
    if (plan_) plan_part_ = parts.add(plan_->workspace);
    workspace_ = plan_ ? parts.size() : attention_workspace(call_);
  }

  void run(cudaStream_t stream, const gpu::LaunchArguments& arguments) override {
    for (std::int64_t call = 0; call < call_.calls; ++call) run_one(stream, arguments, call);
  }

 private:
  std::int64_t bytes_of_call(const Type& type, const GpuRequest& request) const {
    return static_cast<std::int64_t>(bytes(type)) * request.devices / call_.calls;
  }

  void run_one(cudaStream_t stream, const gpu::LaunchArguments& arguments, std::int64_t call) const {
    const auto operand = [&](std::size_t i) {
      return const_cast<std::byte*>(arguments.operands[i]) + operand_bytes_[i] * call;
    };
    const auto result = [&](std::size_t i) { return arguments.results[i] + result_bytes_[i] * call; };
    AttentionMemory memory{.q = operand(0), .k = operand(1), .v = operand(2)};
    memory.stats = arguments.workspace + stats_part_;
    memory.workspace = arguments.workspace + plan_part_;
    // lse has the heads of a query one after another, cuDNN the queries of a head.
    const FloatingMatrix stats{DType::f32, memory.stats};
    if (call_.kind == GpuAttention::Kind::forward) {
      memory.out = result(0);
      plan_->run(stream, memory);
      check(transpose({DType::f32, result(1)}, stats, call_.heads, call_.queries, stream, call_.examples), "lse");
      return;
    }
    check(transpose(stats, {DType::f32, operand(4)}, call_.queries, call_.heads, stream, call_.examples), "lse");
    memory.out = operand(3);
    memory.dout = operand(5);
    memory.dq = result(0);
    memory.dk = result(1);
    memory.dv = result(2);
    plan_->run(stream, memory);
  }

  GpuAttention call_;
  std::optional<AttentionPlan> plan_;
  std::vector<std::int64_t> operand_bytes_, result_bytes_;  // of one call
  std::size_t stats_part_ = 0, plan_part_ = 0;
};

}  // namespace

std::unique_ptr<PreparedCommand> prepare_attention(const GpuAttention& attention, const GpuRequest& request,
                                                   const CudnnPlanner* planner) {
  std::optional<AttentionPlan> plan;
  if (planner != nullptr) {
    plan = make_attention_plan(*planner, attention);
    if (!plan) return nullptr;
  }
  auto command = std::make_unique<AttentionCommand>(attention, request, std::move(plan));
  if (command->workspace() > attention_workspace(attention)) return nullptr;
  return command;
}

}  // namespace pmaptrain::cuda
