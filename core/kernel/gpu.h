// The interface of GPU kernels: a kernel is a list of commands for one equation with fixed shapes. It is made from the
// shapes alone, on any machine. core/runtime/gpu/device.h carries it out.
#pragma once

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

// Requests a kernel for one equation on a range of `devices` neighbouring logical devices, like CpuRequest. A stacked
// operand holds one slice of its local type for each device, contiguously; any other operand is shared by all devices.
// Results are always stacked.
struct GpuRequest {
  std::span<const Type> operands;  // local types
  std::span<const Type> results;
  std::int64_t devices = 1;
  std::vector<bool> stacked;         // by operand
  const Region* region = nullptr;    // the equation's region, if it has one
  std::span<const Type> types = {};  // if there is a region: the types of all values of the program
  bool tf32 = false;                 // whether f32 operands of products may be rounded to TF32
};

// An argument of a kernel: an address, or a plain value of at most 8 bytes.
struct GpuArgument {
  enum class Kind : std::uint8_t { operand, result, scratch, value } kind = Kind::value;
  std::size_t index = 0;    // index of the operand or the result
  std::size_t offset = 0;   // for an address: offset in bytes
  std::uint64_t value = 0;  // for a plain value: its bytes, the first ones first

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

// Launches a kernel of core/ops/gpu_kernels.h. The grid depends on shapes only, never on the GPU.
struct GpuLaunch {
  std::string_view kernel;
  unsigned blocks[3] = {1, 1, 1};
  unsigned threads = 256;  // threads per block
  std::vector<GpuArgument> arguments;
};

// The equation as products of matrices by a library (cuBLASLt), result [m,n] = relu(a · b + bias), of floating
// elements. Operands are a, b and, where there is one, the bias [n]. A product is called `calls` times, each for the
// slices of one logical device; a call has `batch` products, those of the op's batch or of all logical devices.
struct GpuMatmul {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // a is stored as [k,m], b as [n,k]
  bool relu = false;
  DType operands = DType::f32, result = DType::f32;
  std::optional<DType> bias = {};
  std::int64_t batch = 1, calls = 1;
  std::int64_t a_stride = 0, b_stride = 0, bias_stride = 0;  // elements, from a product of the batch to the next
};

// The equation by a library (cuDNN), as y = relu(conv(x, kernel) + bias), of x, kernel and, where there is one, the
// bias [O]; as the gradient of x, of kernel and dy; or as the gradient of the kernel, of x and dy, whose second result
// is the gradient of the bias, where there is one. `x`, `kernel` and `y` are also the shapes of the gradients.
struct GpuConv {
  enum class Kind : std::uint8_t { forward, input_grad, kernel_grad } kind = Kind::forward;
  Shape x, kernel, y;  // [N,H,W,C], [KH,KW,C/groups,O], [N,OH,OW,O]
  std::vector<std::int64_t> strides, dilation;
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;
  bool relu = false;
  DType operands = DType::f32, result = DType::f32;
  std::optional<DType> bias = {};
  std::int64_t calls = 1;  // of one logical device each, where not all of them are one batch
};

// The equation by code that is generated from it.
struct GpuGenerated {};

using GpuCommand = std::variant<GpuLaunch, GpuMatmul, GpuConv, GpuGenerated>;

struct GpuKernel {
  std::vector<GpuCommand> commands;
  std::size_t scratch_bytes = 0;  // of its launches; a library has a workspace of its own

  template <class T>
  const T* find() const {
    for (const GpuCommand& command : commands) {
      if (const T* found = std::get_if<T>(&command)) return found;
    }
    return nullptr;
  }
  bool is_by_library() const { return find<GpuMatmul>() != nullptr || find<GpuConv>() != nullptr; }
};

// Declares, in place of gpu(), that no GPU kernel carries out an op.
struct NoGpu {
  std::string_view because;
};

}  // namespace pmaptrain
