#include <cudnn.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/runtime/cuda/kernels.h"
#include "core/runtime/cuda/prepare.h"
#include "core/runtime/cuda/trial.h"

namespace pmaptrain::cuda {
namespace {

// How many plans are timed.
constexpr int timed_plans = 3;

// One way to compute the convolution: a cuDNN plan with operands of type `input` and a result of type `sum`. Kernels of
// around.cu do the rest: they convert operands, and add the bias, apply relu and round if the plan does not.
struct Way {
  DType input, sum;
  bool bias_in_plan = false, relu_in_plan = false;
  DType bias = DType::f32;  // type of the bias that the plan reads
};

// All ways, the best one first. Few engines of cuDNN compute f32 results from bf16 operands, and none the gradient of a
// kernel, so its f32 sums are rounded to bf16 once, as in Flax and PyTorch. None adds an f32 bias to a convolution of
// bf16 operands, so the bias is rounded to bf16, as there. The last way converts bf16 operands to f32; bf16 values are
// exact in TF32, so tensor cores can still be used without loss.
std::vector<Way> ways(GpuConv::Kind kind, DType operands, DType result, std::optional<DType> bias, bool relu,
                      Relu variant) {
  std::vector<Way> all;
  if (kind == GpuConv::Kind::kernel_grad && operands == DType::bf16) result = DType::bf16;
  std::vector<DType> in_plan;
  if (bias) in_plan = {*bias};
  if (bias && *bias != operands) in_plan.push_back(operands);
  for (const bool with_relu : {true, false}) {
    if (with_relu && (!relu || variant == Relu::separate)) continue;
    for (const DType as : in_plan) all.push_back({operands, result, true, with_relu, as});
    if (!bias) all.push_back({operands, result, false, with_relu});
  }
  if (bias) all.push_back({operands, result == DType::bf16 ? DType::f32 : result});
  if (operands == DType::bf16) all.push_back({DType::f32, DType::f32});
  return all;
}

// One of the two tensors that the plan reads.
struct Operand {
  std::size_t index = 0;
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  std::optional<std::size_t> widened;  // offset in the workspace of its f32 copy, if the plan reads one
};

class ConvCommand final : public PreparedCommand {
 public:
  ConvCommand(const GpuConv& shape, const GpuRequest& request) : shape_(shape), slices_(request) {
    const bool input_grad = shape_.kind == GpuConv::Kind::input_grad;
    const bool kernel_grad = shape_.kind == GpuConv::Kind::kernel_grad;
    image_ = {input_grad ? std::size_t{1} : 0, shape_.operands, numel(input_grad ? shape_.y : shape_.x), {}};
    other_ = {input_grad ? std::size_t{0} : 1, shape_.operands, numel(kernel_grad ? shape_.y : shape_.kernel), {}};
    result_ = shape_.result;
    if (kernel_grad) bias_gradient_ = shape_.bias;
    if (shape_.kind == GpuConv::Kind::forward) bias_ = shape_.bias;
  }

  // The commands with each of the plans from which one is to be chosen; one without a plan if there is nothing to
  // multiply. Sets `purpose` to what they compute.
  std::vector<Candidate> candidates(std::string_view op, const GpuRequest& request, const CudnnPlanner& planner,
                                    Relu relu, int most, std::string& purpose) {
    std::vector<Candidate> all;
    if (numel(request.results[0]) == 0 || image_.elements == 0) {
      all.push_back({"no plan", with(std::nullopt)});
      return all;
    }
    std::vector<ConvPlan> plans = find_plans(op, request, planner, relu, most, purpose);
    for (ConvPlan& plan : plans) {
      std::string name = plan.name;
      all.push_back({std::move(name), with(std::move(plan))});
    }
    return all;
  }

  bool has_library_relu() const override { return plan_ && way_.relu_in_plan; }
  void run(cudaStream_t stream, const gpu::LaunchArguments& arguments) override {
    for (std::int64_t call = 0; call < shape_.calls; ++call) run_one(stream, arguments, call);
  }

 private:
  std::unique_ptr<ConvCommand> with(std::optional<ConvPlan> plan) const {
    auto command = std::make_unique<ConvCommand>(*this);
    command->plan_ = std::move(plan);
    command->lay_out();
    return command;
  }

  // Takes the first way for which there are plans.
  std::vector<ConvPlan> find_plans(std::string_view op, const GpuRequest& request, const CudnnPlanner& planner,
                                   Relu relu, int most, std::string& purpose) {
    std::string why;
    for (const Way& way : ways(shape_.kind, image_.dtype, result_, bias_, shape_.relu, relu)) {
      ConvTypes types{way.input, way.sum, way.bias, way.bias_in_plan, way.relu_in_plan};
      types.deterministic = request.deterministic;
      types.tensor_cores = image_.dtype == DType::bf16 || request.tf32;
      if (way.input == image_.dtype) {  // otherwise the plan reads copies in the workspace
        types.input_alignment = alignment_of(request.operands[image_.index], 16);
        if (is_kernel_grad()) {
          types.input_alignment = std::min(types.input_alignment, alignment_of(request.operands[other_.index], 16));
        }
      }
      if (bias_ == way.bias) types.bias_alignment = alignment_of(request.operands[2], 16);
      if (way.sum == result_ && !is_kernel_grad()) {
        types.output_alignment = alignment_of(request.results[0], 16);
      }
      std::vector<ConvPlan> plans = make_conv_plans(planner, shape_, types, most, why);
      if (plans.empty()) continue;
      way_ = way;
      purpose = conv_text(planner, shape_, types);
      return plans;
    }
    fail_running(fmt::format("GPU: cuDNN {} has no engine for {} of {} {} and {}, giving {}: {}", cudnnGetVersion(), op,
                             to_string(image_.dtype), to_string(request.operands[0].shape),
                             to_string(request.operands[1].shape), to_string(request.results[0].shape), why));
  }

  void lay_out() {
    if (plan_) {
      widen(image_);
      if (is_kernel_grad()) widen(other_);
      kernel_part_ = parts_.add(static_cast<std::size_t>(numel(shape_.kernel)) * size_of(kernel_type()));
      if (narrows_bias()) rounded_bias_ = parts_.add(static_cast<std::size_t>(shape_.y.back()) * size_of(way_.bias));
      if (!is_kernel_grad() && way_.sum != result_) {
        sum_part_ = parts_.add(static_cast<std::size_t>(sums()) * size_of(way_.sum));
      }
      plan_part_ = parts_.add(plan_->workspace);
    }
    if (bias_gradient_) {
      bias_part_ = parts_.add(column_sums_workspace(other_.dtype, pixels(), shape_.y.back()));
    }
    workspace_ = parts_.size();
  }

  void widen(Operand& operand) {
    if (way_.input != operand.dtype) {
      operand.widened = parts_.add(static_cast<std::size_t>(operand.elements) * size_of(way_.input));
    }
  }

  bool is_kernel_grad() const { return shape_.kind == GpuConv::Kind::kernel_grad; }
  // The type of the kernel in the plan's layout. What transposes the kernel converts it too.
  DType kernel_type() const { return is_kernel_grad() ? way_.sum : way_.input; }
  // The number of rows of the kernel, seen as a matrix [DHWI, O].
  std::int64_t kernel_rows() const { return numel(shape_.kernel) / shape_.kernel.back(); }
  std::int64_t pixels() const { return numel(shape_.y) / shape_.y.back(); }
  bool narrows_bias() const { return way_.bias_in_plan && bias_ != way_.bias; }

  // The number of elements of the first result, for one call.
  std::int64_t sums() const {
    return numel(shape_.kind == GpuConv::Kind::forward      ? shape_.y
                 : shape_.kind == GpuConv::Kind::input_grad ? shape_.x
                                                            : shape_.kernel);
  }

  void run_one(cudaStream_t stream, const gpu::LaunchArguments& arguments, std::int64_t call) {
    std::byte* const result = slices_.result(arguments, 0, call);
    if (bias_gradient_) {
      const std::byte* const dy = slices_.operand(arguments, 1, call);
      check(
          column_sums({*bias_gradient_, slices_.result(arguments, 1, call)}, {other_.dtype, const_cast<std::byte*>(dy)},
                      pixels(), shape_.y.back(), arguments.workspace + bias_part_, stream),
          "the gradient of a bias");
    }
    if (!plan_) {  // the sum has no addends
      check(cudaMemsetAsync(result, 0, static_cast<std::size_t>(sums()) * size_of(result_), stream), "a convolution");
      return finish_sums(stream, arguments, call, {result_, result}, result);
    }
    const FloatingMatrix kernel{kernel_type(), arguments.workspace + kernel_part_};
    const std::byte* const image = as_input(image_, stream, arguments, call);
    std::byte* const sum = way_.sum == result_ ? result : arguments.workspace + sum_part_;
    ConvMemory memory{.kernel = kernel.data, .to = sum, .workspace = arguments.workspace + plan_part_};
    if (is_kernel_grad()) {
      memory.x = image;
      memory.y = as_input(other_, stream, arguments, call);
      memory.to = kernel.data;
      plan_->run(stream, memory);
      check(transpose({result_, result}, kernel, shape_.kernel.back(), kernel_rows(), stream), "a kernel's layout");
      return;
    }
    if (shape_.kind == GpuConv::Kind::forward) {
      memory.x = image;
      if (bias_) memory.bias = slices_.operand(arguments, 2, call);
      if (narrows_bias()) {
        std::byte* const rounded = arguments.workspace + rounded_bias_;
        check(convert({way_.bias, rounded}, {*bias_, const_cast<std::byte*>(memory.bias)}, shape_.y.back(), stream),
              "the bias of a convolution");
        memory.bias = rounded;
      }
    } else {
      memory.y = image;
    }
    const std::byte* const other = slices_.operand(arguments, other_.index, call);
    check(transpose(kernel, {other_.dtype, const_cast<std::byte*>(other)}, kernel_rows(), shape_.kernel.back(), stream),
          "a kernel's layout");
    plan_->run(stream, memory);
    finish_sums(stream, arguments, call, {way_.sum, sum}, result);
  }

  const std::byte* as_input(const Operand& operand, cudaStream_t stream, const gpu::LaunchArguments& arguments,
                            std::int64_t call) const {
    const std::byte* const given = slices_.operand(arguments, operand.index, call);
    if (!operand.widened) return given;
    std::byte* const widened = arguments.workspace + *operand.widened;
    check(convert({way_.input, widened}, {operand.dtype, const_cast<std::byte*>(given)}, operand.elements, stream),
          "converting an operand");
    return widened;
  }

  // Adds the bias, applies relu and rounds to the type of the result, unless the plan has already done so.
  void finish_sums(cudaStream_t stream, const gpu::LaunchArguments& arguments, std::int64_t call, FloatingMatrix sum,
                   std::byte* result) const {
    const bool add_bias = bias_ && (!plan_ || !way_.bias_in_plan);
    const bool relu = shape_.relu && !has_library_relu();
    if (!add_bias && !relu && sum.data == result) return;
    Epilogue rest{{result_, result}, sum, {}, relu, 1, sums()};
    if (bias_) {
      rest.rows = pixels();
      rest.columns = shape_.y.back();
    }
    if (add_bias) rest.bias = {*bias_, const_cast<std::byte*>(slices_.operand(arguments, 2, call))};
    check(apply_epilogue(rest, stream), "finishing a convolution");
  }

  GpuConv shape_;
  Slices slices_;
  Operand image_;  // x, or for the gradient of x: dy
  Operand other_;  // the kernel, or for the gradient of the kernel: dy
  DType result_ = DType::f32;
  std::optional<DType> bias_, bias_gradient_;
  Way way_{};
  std::optional<ConvPlan> plan_;  // empty if there is nothing to multiply
  WorkspaceLayout parts_;
  std::size_t kernel_part_ = 0, rounded_bias_ = 0, sum_part_ = 0, plan_part_ = 0, bias_part_ = 0;
};

}  // namespace

std::unique_ptr<PreparedCommand> prepare_conv(const GpuConv& conv, std::string_view op, const GpuRequest& request,
                                              const CudnnPlanner& planner, gpu::TimedChoices* choices, Relu relu) {
  const int most = request.deterministic || choices == nullptr ? 1 : timed_plans;
  std::string purpose;
  std::vector<Candidate> candidates = ConvCommand(conv, request).candidates(op, request, planner, relu, most, purpose);
  if (candidates.size() == 1) return std::move(candidates.front().command);
  return fastest_of(std::move(candidates), purpose, request, *choices);
}

}  // namespace pmaptrain::cuda
