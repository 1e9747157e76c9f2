// One command of a kernel, made ready for a device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/kernel/gpu.h"
#include "core/runtime/gpu/device.h"

namespace pmaptrain::cuda {

// Where the relu of a convolution or a product is. A NaN has to stay one. What libraries make of it they do not
// document, but for the few engines of cuDNN with the note STRICT_NAN_PROP. So these are tried with NaN, one after
// another, until one of them keeps it.
enum class Relu : std::uint8_t {
  by_library,  // within the library's first choice
  strict,      // within an engine that has the note and is about as fast, else apart
  apart,       // by a kernel of our own
};
inline constexpr Relu relus[] = {Relu::by_library, Relu::strict, Relu::apart};

class Work {
 public:
  virtual ~Work() = default;
  // Queues it. Bytes of workspace() lie at `arguments.workspace`, aligned to 256.
  virtual void run(cudaStream_t stream, const gpu::Arguments& arguments) = 0;
  std::size_t workspace() const { return workspace_; }
  // Whether a library applies a relu.
  virtual bool has_library_relu() const { return false; }

 protected:
  std::size_t workspace_ = 0;
};

// A request by slices: where the slice of one logical device begins, and over how many of them a library can be called
// once.
struct Slices {
  explicit Slices(const GpuRequest& request);

  const std::byte* operand(const gpu::Arguments& arguments, std::size_t index, std::int64_t device) const {
    return arguments.operands[index] + static_cast<std::ptrdiff_t>(operand_stride[index] * device);
  }
  std::byte* result(const gpu::Arguments& arguments, std::size_t index, std::int64_t device) const {
    return arguments.results[index] + static_cast<std::ptrdiff_t>(result_stride[index] * device);
  }

  std::int64_t devices;
  std::vector<std::int64_t> operand_stride, result_stride;  // bytes; 0 of an operand that all devices share
};

// What every address of slices of this type is a multiple of, up to `limit` bytes.
std::size_t alignment_of(const Type& type, std::size_t limit);

// A workspace in parts, each aligned to 256 bytes.
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
