// A cuDNN plan for one convolution. This interface hides the library's frontend, which takes half a minute to compile
// and is included by a single source file.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>

#include "core/kernel/gpu.h"

namespace pmaptrain::cuda {

// Creates plans for the current GPU, or for a GPU that is described by its properties.
class ConvPlanner;
struct ConvPlannerDeleter {
  void operator()(ConvPlanner* planner) const;
};
using OwnConvPlanner = std::unique_ptr<ConvPlanner, ConvPlannerDeleter>;

// Throw Error: resource; or failed if the library cannot read the properties.
OwnConvPlanner make_conv_planner();
OwnConvPlanner make_conv_planner(const std::string& properties);

// The properties of a GPU of this machine, as text for make_conv_planner().
std::string properties_for_planning(int gpu);

// The element types of a plan, and the alignment of its addresses (a power of two up to 16). `input` is the type of
// both operands. The kernel, or its gradient, has the layout [O, H, W, I].
struct ConvTypes {
  DType input = DType::f32, output = DType::f32, bias = DType::f32;
  bool with_bias = false, with_relu = false;
  bool tensor_cores = true;     // for f32 operands: round them to TF32
  bool is_relu_strict = false;  // whether only engines may be used that are documented to keep NaNs
  std::size_t input_alignment = 16, output_alignment = 16, bias_alignment = 16;
};

struct ConvMemory {
  const std::byte* x = nullptr;
  const std::byte* kernel = nullptr;
  const std::byte* y = nullptr;  // The tensor that is computed is written to `to`; its own member is not read.
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
