// The interface of GPU kernels: a kernel is a list of commands for one equation with fixed shapes. It is made from the
// shapes alone, on any machine. core/runtime/gpu/device.h carries it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
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

// Carries out the whole equation with a library (cuDNN, cuBLASLt) or with code that is generated from it.
struct GpuCall {
  enum class By : std::uint8_t { library, generated } by = By::library;
};

using GpuCommand = std::variant<GpuLaunch, GpuCall>;

struct GpuKernel {
  std::vector<GpuCommand> commands;
  std::size_t scratch_bytes = 0;  // scratch memory of the launches; libraries have a separate workspace
};

// Declares, in place of gpu(), that no GPU kernel carries out an op.
struct NoGpu {
  std::string_view because;
};

}  // namespace pmaptrain
