#include "core/runtime/cuda/libraries.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/conv/conv.h"
#include "core/ops/matmul/batch.h"
#include "core/ops/matmul/matmul.h"
#include "core/runtime/cuda/conv.h"

namespace pmaptrain::cuda {

Kernel::Kernel(std::vector<std::unique_ptr<Work>> commands) : commands_(std::move(commands)) {
  for (const auto& command : commands_) workspace_ = std::max(workspace_, command->workspace());
}

void Kernel::run(cudaStream_t stream, const gpu::Arguments& arguments) const {
  for (const auto& command : commands_) command->run(stream, arguments);
}

bool Kernel::has_library_relu() const {
  return std::any_of(commands_.begin(), commands_.end(),
                     [](const auto& command) { return command->has_library_relu(); });
}

Libraries::Libraries(int compute_capability, Generate generate, std::shared_ptr<Compiler> compiler)
    : compute_capability_(compute_capability), generate_(generate), compiler_(std::move(compiler)) {}

Libraries::Libraries(int compute_capability, Generate generate, std::shared_ptr<Compiler> compiler,
                     const std::string& properties)
    : compute_capability_(compute_capability),
      generate_(generate),
      compiler_(std::move(compiler)),
      runs_on_(RunsOn::nowhere),
      convolutions_(make_conv_planner(properties)) {}

void Libraries::begin(const Op& op, const GpuRequest& request, const GpuKernel& kernel) {
  for (const GpuCommand& command : kernel.commands) {
    const auto* const call = std::get_if<GpuCall>(&command);
    if (call == nullptr || call->by != GpuCall::By::generated) continue;
    compiler_->begin(generated_for(op, request).text, compute_capability_);
  }
}

Kernel Libraries::prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel, Relu relu) {
  std::vector<std::unique_ptr<Work>> commands;
  for (const GpuCommand& command : kernel.commands) {
    if (const auto* launch = std::get_if<GpuLaunch>(&command)) {
      commands.push_back(prepare_launch(*launch, runs_on_));
    } else if (std::get<GpuCall>(command).by == GpuCall::By::library) {
      commands.push_back(prepare_by_library(op, request, relu));
    } else {
      const gpu::Generated generated = generated_for(op, request);
      const std::string code = compiler_->code(generated.text, compute_capability_);
      commands.push_back(prepare_generated(code, generated.launch, runs_on_));
    }
  }
  return Kernel(std::move(commands));
}

gpu::Generated Libraries::generated_for(const Op& op, const GpuRequest& request) const {
  if (generate_ == nullptr) fail_running(fmt::format("GPU: nothing generates code for {}", op.name()));
  return generate_(op, request);
}

std::unique_ptr<Work> Libraries::prepare_by_library(const Op& op, const GpuRequest& request, Relu relu) {
  if (op.name() == ops::Matmul::name || op.name() == ops::BatchMatmul::name) {
    if (!cublas_ && runs_on_ == RunsOn::device) check(cublasLtCreate(cublas_.create()), "starting cuBLASLt");
    return prepare_matmul(op, request, cublas_.get(), relu);
  }
  if (op.name() == ops::Conv::name || op.name() == ops::ConvInputGrad::name || op.name() == ops::ConvKernelGrad::name) {
    if (convolutions_ == nullptr) convolutions_ = make_conv_planner();
    return prepare_conv(op, request, *convolutions_, relu);
  }
  fail_running(fmt::format("GPU: no library carries out {}; this is a mistake of pmaptrain", op.name()));
}

}  // namespace pmaptrain::cuda
