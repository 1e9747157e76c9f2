// One command of a kernel, prepared for a device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/kernel/gpu.h"
#include "core/runtime/gpu/device.h"

namespace pmaptrain::cuda {

// How the relu of a convolution or a product is computed. A NaN must be kept. Libraries do not document what they do
// with NaNs, except for the few cuDNN engines with the note STRICT_NAN_PROP. So these variants are tried with NaNs, in
// order, until one keeps them.
enum class Relu : std::uint8_t {
  by_library,  // by the library's first choice of an engine
  strict,      // by an engine that has the note and is about as fast; otherwise as `apart`
  apart,       // by a separate kernel of our own
};
inline constexpr Relu relus[] = {Relu::by_library, Relu::strict, Relu::apart};

class Work {
 public:
  virtual ~Work() = default;
  // Queues the command. `arguments.workspace` must have workspace() bytes, aligned to 256.
  virtual void run(cudaStream_t stream, const gpu::Arguments& arguments) = 0;
  std::size_t workspace() const { return workspace_; }
  // Whether a library computes a relu.
  virtual bool has_library_relu() const { return false; }

 protected:
  std::size_t workspace_ = 0;
};

// The slices of a request: the number of logical devices, and the distances between their slices.
struct Slices {
  explicit Slices(const GpuRequest& request);

  const std::byte* operand(const gpu::Arguments& arguments, std::size_t index, std::int64_t device) const {
    return arguments.operands[index] + static_cast<std::ptrdiff_t>(operand_stride[index] * device);
  }
  std::byte* result(const gpu::Arguments& arguments, std::size_t index, std::int64_t device) const {
    return arguments.results[index] + static_cast<std::ptrdiff_t>(result_stride[index] * device);
  }

  std::int64_t devices;
  std::vector<std::int64_t> operand_stride, result_stride;  // in bytes; 0 for an operand that all devices share
};

// The alignment, up to `limit` bytes, of every slice of this type.
std::size_t alignment_of(const Type& type, std::size_t limit);

// The layout of a workspace that consists of several parts, each aligned to 256 bytes.
class Workspace {
 public:
  std::size_t add(std::size_t bytes) {
    const std::size_t begin = size_;
    size_ += (bytes + 255) / 256 * 256;
    return begin;
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

}  // namespace pmaptrain::cuda
