#include "tests/emulated_gpu/kernel.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <variant>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/ops/all.h"
#include "tests/emulated_gpu/memory.h"

namespace pmaptrain::emulation {
namespace {

// What a call to a library asks for, so that who launches it provides it.
constexpr std::size_t workspace_of_libraries = 512;

std::vector<Range> ranges_of(auto addresses, const std::vector<std::size_t>& sizes) {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < sizes.size(); ++i) ranges.push_back({addresses[i], sizes[i]});
  return ranges;
}

bool same(Range a, Range b) { return a.begin == b.begin && a.size == b.size; }

}  // namespace

EmulatedKernel::EmulatedKernel(const Op& op, const GpuRequest& request, const GpuKernel& kernel,
                               const test::Emulation& options)
    : name_(op.name()),
      scratch_bytes_(kernel.scratch_bytes),
      workspace_bytes_(kernel.is_by_library() ? workspace_of_libraries : 0),
      types_(request.types.begin(), request.types.end()) {
  const auto devices = static_cast<std::size_t>(request.devices);
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    operand_bytes_.push_back(bytes(request.operands[i]) * (request.stacked[i] ? devices : 1));
  }
  for (const Type& type : request.results) result_bytes_.push_back(bytes(type) * devices);
  if (request.region != nullptr) region_ = *request.region;

  for (const GpuCommand& command : kernel.commands) {
    if (const auto* const launch = std::get_if<GpuLaunch>(&command)) {
      commands_.push_back([launch = *launch, &options](const test::HostMemory& memory) {
        const auto order = static_cast<test::ThreadOrder>(options.seed % 3);
        test::launch_on_host(launch, memory, order, options.seed, options.forgotten_barrier);
      });
    } else if (const auto* const product = std::get_if<GpuMatmul>(&command)) {
      commands_.push_back(run_by_library(*product, request));
    } else if (const auto* const conv = std::get_if<GpuConv>(&command)) {
      commands_.push_back(run_by_library(*conv, request));
    } else if (const auto* const attention = std::get_if<GpuAttention>(&command)) {
      commands_.push_back(run_by_library(*attention, request));
    } else {
      commands_.push_back(run_reference(op, request));
    }
  }
}

RunCommand EmulatedKernel::run_reference(const Op& op, const GpuRequest& request) const {
  const std::shared_ptr<CpuKernel> reference = make_reference_kernel(op.shared(), kernels_of(op).reference,
                                                                     {.operands = request.operands,
                                                                      .results = request.results,
                                                                      .devices = request.devices,
                                                                      .stacked = request.stacked,
                                                                      .region = region_ ? &*region_ : nullptr,
                                                                      .types = types_});
  return [reference](const test::HostMemory& memory) {
    reference->run({memory.operands.data(), memory.results.data(), nullptr});
  };
}

void EmulatedKernel::check(const std::string& what, const gpu::LaunchArguments& arguments,
                           const gpu::Accesses& declared) const {
  const auto refuse = [&](const std::string& why) { fail_running(what + ": " + why); };
  if (arguments.operands.size() != operand_bytes_.size() || arguments.results.size() != result_bytes_.size()) {
    refuse("it has " + counted(std::ssize(arguments.operands), "operand") + " and " +
           counted(std::ssize(arguments.results), "result") + ", where the kernel takes " +
           std::to_string(operand_bytes_.size()) + " and " + std::to_string(result_bytes_.size()));
  }
  if (scratch_bytes_ > 0 && arguments.scratch == nullptr) refuse("it lacks scratch memory");
  if (workspace_bytes_ > 0 && arguments.workspace == nullptr) refuse("it lacks a workspace");

  const auto operands = ranges_of(arguments.operands, operand_bytes_);
  const auto results = ranges_of(arguments.results, result_bytes_);
  const auto check_declared = [&](const std::vector<Range>& ranges, const std::vector<Range>& known,
                                  const std::string& argument, const std::string& access) {
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (covered(ranges[i], known)) continue;
      refuse(argument + " " + std::to_string(i) + " (" + counted(static_cast<std::int64_t>(ranges[i].size), "byte") +
             ") lies outside of what the launch declares to " + access);
    }
  };
  check_declared(operands, declared.reads, "operand", "read");
  check_declared(results, declared.writes, "result", "write");

  for (std::size_t r = 0; r < results.size(); ++r) {
    const auto refuse_overlap = [&](const std::string& argument, std::size_t i) {
      refuse("result " + std::to_string(r) + " and " + argument + " " + std::to_string(i) + " overlap");
    };
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (overlap(results[r], operands[i]) && !same(results[r], operands[i])) refuse_overlap("operand", i);
    }
    for (std::size_t i = 0; i < r; ++i) {
      if (overlap(results[r], results[i])) refuse_overlap("result", i);
    }
  }
}

void EmulatedKernel::run(const gpu::LaunchArguments& arguments) const {
  const auto copies = [](const std::vector<std::size_t>& sizes) {
    std::vector<std::unique_ptr<std::byte[]>> memory;
    for (const std::size_t size : sizes) memory.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
    return memory;
  };
  const auto copy_bytes = [](std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);  // addresses of nothing may be null
  };
  const auto operands = copies(operand_bytes_), results = copies(result_bytes_);
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    copy_bytes(operands[i].get(), arguments.operands[i], operand_bytes_[i]);
    from.push_back(operands[i].get());
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    to.push_back(results[i].get());
    std::memset(to[i], 0xff, result_bytes_[i]);
    // Written over an operand: in the copies too.
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (same({arguments.operands[k], operand_bytes_[k]}, {arguments.results[i], result_bytes_[i]})) {
        std::memcpy(to[i], operands[k].get(), result_bytes_[i]);
        from[k] = to[i];
      }
    }
  }
  if (scratch_bytes_ > 0) std::memset(arguments.scratch, 0xff, scratch_bytes_);
  if (workspace_bytes_ > 0) std::memset(arguments.workspace, 0xff, workspace_bytes_);
  for (const RunCommand& command : commands_) command({from, to, arguments.scratch});
  for (std::size_t i = 0; i < results.size(); ++i) copy_bytes(arguments.results[i], to[i], result_bytes_[i]);
}

}  // namespace pmaptrain::emulation
