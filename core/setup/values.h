// Reads values of a module to the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/runtime/backend.h"

namespace pmaptrain::setup {

// Converts the elements of a value of any element type.
std::vector<double> to_doubles(std::span<const std::byte> bytes, DType dtype);
// The elements of a module's value on one device of a member.
std::vector<double> to_doubles(Module& module, Handle value, DeviceOfMember instance = 0);
// The elements of several values of each of `members`: by member, then by value. All processes make the call, and it is
// one exchange even if they have different members. Processes have no parts of any (Module::is_sharded).
std::vector<std::vector<std::vector<double>>> numbers_of(Module& module, std::span<const Handle> values,
                                                         std::span<const std::int64_t> members);

// The bytes of a value on one device of a member: by a call of all processes (Module::read), or of those that have the
// member (Module::read_here).
std::vector<std::byte> bytes_of(Module& module, Handle value, DeviceOfMember instance = 0);
std::vector<std::byte> bytes_here(Module& module, Handle value, DeviceOfMember instance);

// Reads values of any size through a buffer of fixed size, which is allocated once.
class SlicedReader {
 public:
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;

  // The module outlives this.
  explicit SlicedReader(Module& module);
  Module& module() const { return module_; }
  // Calls `use` with the value's bytes on a device of a member, slice by slice in order. Outside lead(), the member
  // must be one of this process.
  void read(Handle value, DeviceOfMember instance, const std::function<void(std::span<const std::byte>)>& use);
  // The same with some of the value's bytes.
  void read(Handle value, DeviceOfMember instance, std::size_t offset, std::size_t size,
            const std::function<void(std::span<const std::byte>)>& use);

  // Whether processes have different members, or parts of some value that is kept from step to step
  // (Module::is_divided). Such values are read by all processes together: process 0 calls lead(), and the others call
  // help() at the same place.
  bool is_divided() const { return is_sharded_ || !module_.member_share().is_whole(); }
  // Whether processes have parts of some value.
  bool is_sharded() const { return is_sharded_; }
  // Calls `reads`, which may read any values, and then ends the others' calls of help(). Throws what it throws.
  void lead(const std::function<void()>& reads);
  // Takes part in the reads of process 0 until it is done.
  void help();

 private:
  // One read, which process 0 tells the others; a value below 0 ends.
  struct Request {
    std::int64_t value = -1, member = 0, offset = 0, size = 0;
  };
  void tell(Request& request);

  Module& module_;
  std::vector<std::byte> slice_;
  bool is_sharded_ = false, leads_ = false;
};

}  // namespace pmaptrain::setup
