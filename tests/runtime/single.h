// The values of a module of one program by name.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/runtime/cpu/module.h"

namespace pmaptrain::test {

class NamedValues {
 public:
  // The module outlives this, and may be made later.
  explicit NamedValues(Module& module) : module_(module) {}

  // On one device, or on all that there are copies for.
  void set(std::string_view name, std::int64_t device, std::span<const std::byte> value) {
    if (!is_batch(name)) return module_.wait(module_.write(module_.input(name), device, value));
    const std::span<std::byte> memory = module_.batch(0, 0, name);
    for (std::int64_t d = 0; d < program().mesh.devices(); ++d) {
      if ((device == every_device || device == d) && has(name, d)) {
        std::copy(value.begin(), value.end(), memory.subspan(slice_of(name, d)).begin());
      }
    }
  }
  void set(std::string_view name, std::span<const std::byte> value) { set(name, every_device, value); }
  // Each device's own; of a value that is kept once, the first.
  void set_each(std::string_view name, const std::vector<std::vector<std::byte>>& values) {
    const bool differs = private_copies() ? !is_replicated_batch(name) : !type_of(name).varying.empty();
    if (!differs) return set(name, values.front());
    for (std::size_t d = 0; d < values.size(); ++d) {
      if (has(name, static_cast<std::int64_t>(d))) set(name, static_cast<std::int64_t>(d), values[d]);
    }
  }

  void run(std::int64_t steps = 1) { module_.wait(module_.submit(0, 0, steps)); }

  std::vector<std::byte> output(std::string_view name, std::int64_t device = 0) {
    return read(module_.output(0, name), device);
  }
  std::vector<std::byte> input(std::string_view name, std::int64_t device = 0) {
    if (!is_batch(name)) return read(module_.input(name), device);
    const std::span<const std::byte> memory = module_.batch(0, 0, name);
    const std::size_t size = bytes(type_of(name));
    const std::span<const std::byte> slice = memory.subspan(slice_of(name, device), size);
    return {slice.begin(), slice.end()};
  }

 private:
  // Of a batch input: where the slice of a device begins.
  std::size_t slice_of(std::string_view name, std::int64_t device) const {
    const Type& type = type_of(name);
    const std::int64_t slice = program().mesh.position(device, type.varying) - share().instances(type.varying).first;
    return static_cast<std::size_t>(slice) * bytes(type);
  }
  Share share() const { return module_.share(0); }
  // Whether the process has the input of a device.
  bool has(std::string_view name, std::int64_t device) const {
    if (!is_batch(name)) return module_.has(module_.input(name), device);
    const AxisSet axes = type_of(name).varying;
    return share().has_instance(program().mesh.position(device, axes), axes, share().process());
  }
  const Program& program() const { return module_.program(0); }
  const Type& type_of(std::string_view name) const { return program().type(program().find_input(name)->value); }
  bool private_copies() const { return module_.source().private_copies; }
  bool is_batch(std::string_view name) const {
    const Input* const input = program().find_input(name);
    return input != nullptr && input->group == Group::batch;
  }
  bool is_replicated_batch(std::string_view name) const { return is_batch(name) && type_of(name).varying.empty(); }
  std::vector<std::byte> read(Handle handle, std::int64_t device) {
    std::vector<std::byte> value(module_.slice_bytes(handle));
    module_.wait(module_.read(handle, device, value));
    return value;
  }

  Module& module_;
};

// One program in a module of the CPU backend.
class Single : public NamedValues {
 public:
  explicit Single(std::shared_ptr<const Program> program, const CpuBackendOptions& options = {},
                  bool private_copies = false, std::int64_t blocks = 1)
      : NamedValues(cpu_), cpu_({{{"test", std::move(program), 1}}, private_copies, 1, blocks}, options) {}

  CpuModule& module() { return cpu_; }
  const CpuModule& module() const { return cpu_; }

 private:
  CpuModule cpu_;
};

}  // namespace pmaptrain::test
