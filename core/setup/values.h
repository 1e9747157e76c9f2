// Reads values of a module to the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/runtime/backend.h"

namespace pmaptrain::train {

// Converts the elements of a value of any element type.
std::vector<double> to_doubles(std::span<const std::byte> bytes, DType dtype);
// The elements of a module's value on one device of a member.
std::vector<double> to_doubles(Module& module, Handle value, DeviceOfMember instance = 0);
// The element of a scalar.
double scalar(Module& module, Handle value, DeviceOfMember instance = 0);

// The bytes of a value on one device of a member.
std::vector<std::byte> bytes_of(Module& module, Handle value, DeviceOfMember instance = 0);

// Reads values of any size through a buffer of fixed size, which is allocated once.
class SlicedReader {
 public:
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;

  // The module outlives this.
  explicit SlicedReader(Module& module);
  Module& module() const { return module_; }
  // Calls `use` with the value's bytes on a device of a member, slice by slice in order.
  void read(Handle value, DeviceOfMember instance, const std::function<void(std::span<const std::byte>)>& use);

 private:
  Module& module_;
  std::vector<std::byte> slice_;
};

}  // namespace pmaptrain::train
