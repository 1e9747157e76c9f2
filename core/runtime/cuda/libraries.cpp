#include "core/runtime/cuda/libraries.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace pmaptrain::cuda {

Slices::Slices(const GpuRequest& request) : devices(request.devices) {
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    operand_stride.push_back(request.stacked[i] ? static_cast<std::int64_t>(bytes(request.operands[i])) : 0);
  }
  for (const Type& type : request.results) result_stride.push_back(static_cast<std::int64_t>(bytes(type)));
}

std::size_t alignment_of(const Type& type, std::size_t limit) {
  return bytes(type) == 0 ? limit : std::gcd(bytes(type), limit);
}

Kernel::Kernel(std::vector<std::unique_ptr<PreparedCommand>> commands, bool is_own)
    : commands_(std::move(commands)), is_own_(is_own) {
  for (const auto& command : commands_) workspace_ = std::max(workspace_, command->workspace());
}

void Kernel::run(cudaStream_t stream, const gpu::LaunchArguments& arguments) const {
  for (const auto& command : commands_) command->run(stream, arguments);
}

bool Kernel::has_library_relu() const {
  return std::any_of(commands_.begin(), commands_.end(),
                     [](const auto& command) { return command->has_library_relu(); });
}

Libraries::Libraries(int compute_capability, GenerateSource generate_source, std::shared_ptr<Shared> shared,
                     const std::string& properties, bool plans_attention)
    : compute_capability_(compute_capability),
      generate_source_(generate_source),
      shared_(std::move(shared)),
      runs_on_(properties.empty() ? RunsOn::device : RunsOn::nowhere),
      plans_attention_(plans_attention || properties.empty()) {
  if (!properties.empty()) cudnn_ = make_cudnn_planner(properties);
}

void Libraries::begin_preparing(const Op& op, const GpuRequest& request, const GpuKernel& kernel) {
  if (kernel.find<GpuGenerated>() != nullptr)
    shared_->compiler.begin(generated_for(op, request).text, compute_capability_);
}

Kernel Libraries::prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel, Relu relu) {
  std::vector<std::unique_ptr<PreparedCommand>> commands;
  for (const GpuCommand& command : kernel.commands) {
    commands.push_back(std::visit([&](const auto& each) { return make(each, op, request, relu); }, command));
    if (commands.back() != nullptr) continue;
    std::vector<std::unique_ptr<PreparedCommand>> own;
    for (const GpuLaunch& launch : kernel.own) own.push_back(make(launch, op, request, relu));
    return Kernel(std::move(own), true);
  }
  return Kernel(std::move(commands));
}

std::unique_ptr<PreparedCommand> Libraries::make(const GpuLaunch& launch, const Op&, const GpuRequest&, Relu) {
  return prepare_launch(launch, runs_on_);
}

std::unique_ptr<PreparedCommand> Libraries::make(const GpuMatmul& product, const Op& op, const GpuRequest& request,
                                                 Relu relu) {
  if (!cublas_ && runs_on_ == RunsOn::device) check(cublasLtCreate(cublas_.create()), "starting cuBLASLt");
  return prepare_matmul(product, op.name(), request, cublas_.get(), choices(), relu);
}

std::unique_ptr<PreparedCommand> Libraries::make(const GpuConv& conv, const Op& op, const GpuRequest& request,
                                                 Relu relu) {
  return prepare_conv(conv, op.name(), request, cudnn(), choices(), relu);
}

std::unique_ptr<PreparedCommand> Libraries::make(const GpuAttention& attention, const Op&, const GpuRequest& request,
                                                 Relu) {
  return prepare_attention(attention, request, plans_attention_ ? &cudnn() : nullptr);
}

std::unique_ptr<PreparedCommand> Libraries::make(const GpuGenerated&, const Op& op, const GpuRequest& request, Relu) {
  const gpu::GeneratedSource generated = generated_for(op, request);
  const std::string code = shared_->compiler.code(generated.text, compute_capability_);
  return prepare_generated(code, generated.launches, runs_on_);
}

const CudnnPlanner& Libraries::cudnn() {
  if (cudnn_ == nullptr) cudnn_ = make_cudnn_planner();
  return *cudnn_;
}

gpu::GeneratedSource Libraries::generated_for(const Op& op, const GpuRequest& request) const {
  if (generate_source_ == nullptr) fail_running(fmt::format("GPU: nothing generates code for {}", op.name()));
  return generate_source_(op, request);
}

}  // namespace pmaptrain::cuda
