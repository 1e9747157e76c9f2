// The interface of GPU kernels: a kernel is a list of commands that compute one equation for fixed shapes. It is made
// from the shapes alone, on any machine, and executed by a Device (core/runtime/gpu/device.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/kernel/reference.h"

namespace pmaptrain {

// Requests a kernel for one equation on `devices` neighbouring logical devices, like CpuRequest. A *stacked* operand
// has one slice of its local type (the type on one device) for each device, one after another; all devices read the
// same array of any other operand. Results are always stacked.
struct GpuRequest {
  std::span<const Type> operands;  // local types
  std::span<const Type> results;
  std::int64_t devices = 1;
  std::vector<bool> stacked;         // by operand
  const Region* region = nullptr;    // the equation's region, if it has one
  std::span<const Type> types = {};  // if there is a region: the types of all values of the program
  bool tf32 = false;                 // whether f32 operands of products may be rounded to TF32
  bool deterministic = true;         // whether the bits must be the same in each run and on all GPUs of a kind
};

// An argument of a kernel: an address, or a plain value of at most 8 bytes.
struct GpuArgument {
  enum class Kind : std::uint8_t { operand, result, scratch, value } kind = Kind::value;
  std::size_t index = 0;    // index of the operand or the result
  std::size_t offset = 0;   // for an address: offset in bytes
  std::uint64_t value = 0;  // for a plain value: its bytes are the first ones of this

  static GpuArgument operand(std::size_t index, std::size_t offset = 0) { return {Kind::operand, index, offset, 0}; }
  static GpuArgument result(std::size_t index, std::size_t offset = 0) { return {Kind::result, index, offset, 0}; }
  static GpuArgument scratch(std::size_t offset = 0) { return {Kind::scratch, 0, offset, 0}; }
  template <class T>
  static GpuArgument of(T value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
    GpuArgument argument;
    std::memcpy(&argument.value, &value, sizeof value);
    return argument;
  }
};

// Launches a kernel of this project (core/ops/gpu_kernels.h). The grid depends on shapes only, never on the GPU.
struct GpuLaunch {
  std::string_view kernel;  // its name
  unsigned blocks[3] = {1, 1, 1};
  unsigned threads = 256;  // threads per block
  std::vector<GpuArgument> arguments;
  bool on_tensor_cores = false;  // whether it multiplies there, operands rounded to bf16
};

// Calls a library (cuBLASLt) for matrix products of floating-point elements: result [m,n] = relu(a b + bias). The
// operands are a, b and, if `bias` is set, the bias [n]. The library is called `calls` times. If `calls` is the number
// of logical devices, each call is for the slices of one of them. Each call computes `batch` products: those of the
// op's batch, or one for each logical device.
struct GpuMatmul {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // a is stored as [k,m], b as [n,k]
  bool relu = false;
  DType operands = DType::f32, result = DType::f32;
  std::optional<DType> bias = {};
  std::int64_t batch = 1, calls = 1;
  std::int64_t a_stride = 0, b_stride = 0, bias_stride = 0;  // elements from one product of a batch to the next
  std::optional<DType> column_sums = {};  // of a second result [n] for each product: the sums of b's columns
  // Where a, b and the result are, if not in operands 0 and 1 and result 0: a may have been written by a command
  // before. There is one call, a is not transposed, and nothing is added to the product. `a_row`: elements from one row
  // of a to the next.
  struct Places {
    GpuArgument a, b, result;
    std::int64_t a_row = 0;
  };
  std::optional<Places> places = {};
};

// Calls a library (cuDNN) for a convolution or for one of its gradients. `x`, `kernel` and `y` are the shapes of these
// arrays and of their gradients.
struct GpuConv {
  enum class Kind : std::uint8_t {
    forward,      // operands x, kernel and, if `bias` is set, the bias [O]; result y = relu(conv(x, kernel) + bias)
    input_grad,   // operands kernel and dy; result dx
    kernel_grad,  // operands x and dy; results dkernel and, if `bias` is set, the gradient of the bias
  } kind = Kind::forward;
  Shape x, kernel, y;  // [N,H,W,C], [KH,KW,C/groups,O], [N,OH,OW,O]; of volumes with a depth before the height
  std::vector<std::int64_t> strides, dilation;
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;
  bool relu = false;
  DType operands = DType::f32, result = DType::f32;
  std::optional<DType> bias = {};
  std::int64_t calls = 1;  // 1 if all logical devices are one batch; otherwise one call for each logical device
};

// Calls a library (cuDNN) for attention in bf16, or for its gradient; see the ops (core/ops/attention/attention.h).
// There is no dropout, and k and v have as many heads as q. All examples of all logical devices follow one another;
// each of the `calls` calls is for `examples` of them.
struct GpuAttention {
  enum class Kind : std::uint8_t {
    forward,   // operands q, k, v; results out and lse
    gradient,  // operands q, k, v, out, lse, dout; results dq, dk, dv
  } kind = Kind::forward;
  std::int64_t examples = 0, queries = 0, keys = 0, heads = 0, width = 0;
  bool causal = false;
  bool deterministic = false;
  std::int64_t calls = 1;
};

// Runs kernels whose code is generated from the equation, one after another.
struct GpuGenerated {};
// The name of the function of a launch of generated code; `name` is that of the first one.
inline std::string generated_name(std::string_view name, std::size_t launch) {
  return std::string(name) + (launch == 0 ? "" : "_" + std::to_string(launch));
}

using GpuCommand = std::variant<GpuLaunch, GpuMatmul, GpuConv, GpuAttention, GpuGenerated>;

struct GpuKernel {
  std::vector<GpuCommand> commands;
  std::size_t scratch_bytes = 0;    // scratch memory of its launches; it does not include the workspace of a library
  std::vector<GpuLaunch> own = {};  // what runs instead on a GPU for which the library has no engine

  template <class T>
  const T* find() const {
    for (const GpuCommand& command : commands) {
      if (const T* found = std::get_if<T>(&command)) return found;
    }
    return nullptr;
  }
  bool is_on_tensor_cores() const {
    return std::any_of(commands.begin(), commands.end(), [](const GpuCommand& command) {
      const GpuLaunch* const launch = std::get_if<GpuLaunch>(&command);
      return launch != nullptr && launch->on_tensor_cores;
    });
  }
  bool is_by_library() const {
    return find<GpuMatmul>() != nullptr || find<GpuConv>() != nullptr || find<GpuAttention>() != nullptr;
  }
  GpuKernel without_library() const { return {{own.begin(), own.end()}, scratch_bytes, {}}; }
};

// An op declares a constant of this type in place of the function gpu() if it has no GPU kernel.
struct NoGpu {
  std::string_view because;
};

}  // namespace pmaptrain
