// A kernel that an emulated device has made ready. A run sees copies of its arguments, each in memory of its own and of
// its exact size, so an access beyond them is one that the address sanitizer finds.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/program.h"
#include "core/ops/all.h"
#include "core/runtime/gpu/device.h"
#include "tests/cuda/emulated.h"

namespace pmaptrain::emulation {

class EmulatedKernel {
 public:
  // A kernel of launches alone is run by its source, the threads in an order by the seed; any other by the reference.
  EmulatedKernel(const Op& op, const GpuRequest& request, const GpuKernel& kernel, const test::Emulation& options);

  const std::string& name() const { return name_; }  // of the op
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  // Throws Error (failed) unless the arguments are what the kernel needs, and what was declared holds them.
  void check(const std::string& what, const gpu::Arguments& arguments, const gpu::Accesses& declared) const;
  void run(const gpu::Arguments& arguments) const;

 private:
  std::string name_;
  std::size_t scratch_bytes_, workspace_bytes_;
  // What the request's spans refer to, which the kernel outlives.
  std::optional<Region> region_;
  std::vector<Type> types_;
  std::vector<std::size_t> operand_bytes_, result_bytes_;
  void carry_out(std::span<const std::byte* const> operands, std::span<std::byte* const> results,
                 std::byte* scratch) const;

  const unsigned seed_;
  const int forgotten_barrier_;
  std::vector<GpuLaunch> launches_;
  std::unique_ptr<CpuKernel> reference_;  // null where there are launches
};

}  // namespace pmaptrain::emulation
