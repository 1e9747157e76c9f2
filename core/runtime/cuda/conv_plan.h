// One convolution as a plan of cuDNN. The one source that includes the library's frontend, which takes half a minute to
// compile, is behind this.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>

#include "core/kernel/gpu.h"

namespace pmaptrain::cuda {

// Where plans are made: for the current GPU, or from the properties of one that is not here.
class ConvPlanner;
struct ConvPlannerDeleter {
  void operator()(ConvPlanner* planner) const;
};
using OwnConvPlanner = std::unique_ptr<ConvPlanner, ConvPlannerDeleter>;

// Throw Error: resource, or failed for properties that the library does not read.
OwnConvPlanner make_conv_planner();
OwnConvPlanner make_conv_planner(const std::string& properties);

// The properties of a GPU that is here, as text.
std::string properties_for_planning(int gpu);

// The element types of a plan, and what is known of its addresses (a power of two up to 16). `input` is of both
// operands. The kernel, or its gradient, lies as [O, H, W, I].
struct ConvTypes {
  DType input = DType::f32, output = DType::f32, bias = DType::f32;
  bool with_bias = false, with_relu = false;
  bool tensor_cores = true;     // for f32: products of operands that are rounded to TF32
  bool is_relu_strict = false;  // only engines that document that a NaN stays
  std::size_t input_alignment = 16, output_alignment = 16, bias_alignment = 16;
};

struct ConvMemory {
  const std::byte* x = nullptr;
  const std::byte* kernel = nullptr;
  const std::byte* y = nullptr;  // what is computed is in `to` and not read
  const std::byte* bias = nullptr;
  std::byte* to = nullptr;
  std::byte* workspace = nullptr;
};

class ConvPlan {
 public:
  virtual ~ConvPlan() = default;
  virtual std::size_t workspace() const = 0;
  virtual void run(cudaStream_t stream, const ConvMemory& memory) = 0;
};

// Null where the library has no engine; `why` then says so.
std::unique_ptr<ConvPlan> make_conv_plan(ConvPlanner& planner, const GpuConv& shape, const ConvTypes& types,
                                         std::string& why);

}  // namespace pmaptrain::cuda
