// Plans of cuDNN for convolutions and attention. This interface hides the library's frontend, which takes half a minute
// to compile and is included by a single source file.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel/gpu.h"

namespace pmaptrain::cuda {

// What make_conv_plan() needs: a cuDNN handle for the current GPU, or the properties of a described GPU.
struct CudnnPlanner;

// For the current GPU; throws Error (resource) if cuDNN does not start. For a GPU with these properties, a text of
// properties_for_planning(); throws Error (failed) if cuDNN cannot read it.
std::shared_ptr<CudnnPlanner> make_cudnn_planner();
std::shared_ptr<CudnnPlanner> make_cudnn_planner(const std::string& properties);

// The properties of a GPU of this machine, as the JSON text that cuDNN prints.
std::string properties_for_planning(int gpu);

// The element types of a plan, and the alignment of the addresses that it gets (a power of two, at most 16). `input` is
// the type of both operands. A plan reads or writes the kernel in the layout [O, H, W, I].
struct ConvTypes {
  DType input = DType::f32, output = DType::f32, bias = DType::f32;
  bool with_bias = false, with_relu = false;
  bool tensor_cores = true;   // whether tensor cores may be used; f32 operands are then rounded to TF32
  bool deterministic = true;  // see GpuRequest
  std::size_t input_alignment = 16, output_alignment = 16, bias_alignment = 16;
};

// The addresses that a plan works on. The tensor that the plan computes (x, kernel or y) is written to `to`; its own
// member is not used.
struct ConvMemory {
  const std::byte* x = nullptr;
  const std::byte* kernel = nullptr;
  const std::byte* y = nullptr;
  const std::byte* bias = nullptr;
  std::byte* to = nullptr;
  std::byte* workspace = nullptr;
};

struct ConvPlan {
  std::string name;           // of the engine and its settings
  std::size_t workspace = 0;  // bytes
  std::function<void(cudaStream_t stream, const ConvMemory& memory)> run;
};

// The first `most` plans of cuDNN's heuristics, the best one first. None needs more workspace than the first: where no
// GPU is, memory is planned for the first. Returns nothing if cuDNN has no engine for this convolution, and sets `why`
// to its message.
std::vector<ConvPlan> make_conv_plans(const CudnnPlanner& planner, const GpuConv& shape, const ConvTypes& types,
                                      int most, std::string& why);

// What is planned, for which GPU and by which versions of the library, as a text that differs if times may differ.
std::string conv_text(const CudnnPlanner& planner, const GpuConv& shape, const ConvTypes& types);

// The addresses that a plan of attention works on. `stats` is lse as [examples, heads, queries]. The forward pass reads
// q, k and v, and writes out and stats; the gradient reads these, and writes dq, dk and dv.
struct AttentionMemory {
  std::byte *q = nullptr, *k = nullptr, *v = nullptr, *out = nullptr, *stats = nullptr;
  std::byte *dout = nullptr, *dq = nullptr, *dk = nullptr, *dv = nullptr;
  std::byte* workspace = nullptr;
};

struct AttentionPlan {
  std::size_t workspace = 0;  // bytes
  std::function<void(cudaStream_t stream, const AttentionMemory& memory)> run;
};

// The plan of one call. Returns nothing if cuDNN has no engine. cuDNN compiles engines of attention while it plans,
// which takes half a second, and loads them by the driver; without one there is no plan.
std::optional<AttentionPlan> make_attention_plan(const CudnnPlanner& planner, const GpuAttention& call);

}  // namespace pmaptrain::cuda
