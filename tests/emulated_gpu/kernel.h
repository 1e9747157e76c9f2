// A kernel that an emulated device has made ready. A run sees copies of its arguments, each in memory of its own and of
// its exact size, so an access beyond them is one that the address sanitizer finds.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/program.h"
#include "core/runtime/gpu/device.h"
#include "tests/emulated_gpu/library.h"
#include "tests/emulated_gpu/platform.h"

namespace pmaptrain::emulation {

class EmulatedKernel {
 public:
  // Launches are run by their kernels' source, the threads in an order by the seed; calls of libraries as they are
  // described; in place of generated code, the reference of the op. The options outlive the kernel.
  EmulatedKernel(const Op& op, const GpuRequest& request, const GpuKernel& kernel, const test::Emulation& options);
  EmulatedKernel(const EmulatedKernel&) = delete;
  EmulatedKernel& operator=(const EmulatedKernel&) = delete;

  const std::string& name() const { return name_; }  // of the op
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  // Throws Error (failed) unless the arguments are what the kernel needs, and what was declared holds them.
  void check(const std::string& what, const gpu::LaunchArguments& arguments, const gpu::Accesses& declared) const;
  void run(const gpu::LaunchArguments& arguments) const;

 private:
  RunCommand run_reference(const Op& op, const GpuRequest& request) const;

  std::string name_;
  std::size_t scratch_bytes_, workspace_bytes_;
  // What the request's spans refer to, which the kernel outlives.
  std::optional<Region> region_;
  std::vector<Type> types_;
  std::vector<std::size_t> operand_bytes_, result_bytes_;
  std::vector<RunCommand> commands_;
};

}  // namespace pmaptrain::emulation
