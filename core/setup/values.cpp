#include "core/setup/values.h"

#include <algorithm>
#include <cstring>

namespace pmaptrain::setup {
namespace {

// The size of the largest parameter or state input, at most `most`, and so that a slice ends with an element.
std::size_t slice_size(const Module& module, std::size_t most) {
  std::size_t largest = 0;
  for (std::size_t entry = 0; entry < module.source().entries.size(); ++entry) {
    const Program& program = module.program(entry);
    for (const Input& input : program.inputs) {
      if (is_kept(input.group)) {
        largest = std::max(largest, bytes(program.type(input.value)));
      }
    }
  }
  return std::min((largest + 7) / 8 * 8, most);
}

}  // namespace

std::vector<std::byte> bytes_of(Module& module, Handle value, DeviceOfMember instance) {
  std::vector<std::byte> bytes(module.slice_bytes(value));
  module.wait(module.read(value, instance, bytes));
  return bytes;
}

std::vector<std::byte> bytes_here(Module& module, Handle value, DeviceOfMember instance) {
  std::vector<std::byte> bytes(module.slice_bytes(value));
  module.wait(module.read_here(value, instance, bytes));
  return bytes;
}

std::vector<double> to_doubles(std::span<const std::byte> bytes, DType dtype) {
  return dispatch(dtype, [&]<class T>() {
    std::vector<double> elements(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < elements.size(); ++i) {
      T number{};
      std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof number);
      elements[i] = static_cast<double>(number);
    }
    return elements;
  });
}

std::vector<double> to_doubles(Module& module, Handle value, DeviceOfMember instance) {
  return to_doubles(bytes_of(module, value, instance), module.type(value).dtype);
}

std::vector<std::vector<std::vector<double>>> numbers_of(Module& module, std::span<const Handle> values,
                                                         std::span<const std::int64_t> members) {
  if (members.empty()) return {};
  std::size_t of_member = 0;
  for (const Handle value : values) of_member += module.slice_bytes(value);
  std::vector<std::byte> bytes(of_member * members.size());
  // Calls f(member's place, value, its bytes).
  const auto for_each = [&](auto&& f) {
    std::span<std::byte> rest(bytes);
    for (std::size_t m = 0; m < members.size(); ++m) {
      for (const Handle value : values) {
        f(m, value, rest.first(module.slice_bytes(value)));
        rest = rest.subspan(module.slice_bytes(value));
      }
    }
  };
  Ticket last;
  for_each([&](std::size_t m, Handle value, std::span<std::byte> into) {
    if (!module.member_share().has(members[m])) return;
    last = module.read_here(value, {module.own_device(), members[m]}, into);
  });
  module.wait(last);
  module.share_of_members(members, bytes);
  std::vector<std::vector<std::vector<double>>> numbers(members.size());
  for_each([&](std::size_t m, Handle value, std::span<const std::byte> from) {
    numbers[m].push_back(to_doubles(from, module.type(value).dtype));
  });
  return numbers;
}

SlicedReader::SlicedReader(Module& module) : module_(module), slice_(slice_size(module, most_bytes)) {
  for (std::size_t entry = 0; entry < module.source().entries.size(); ++entry) {
    for (const Variable& variable : module.variables(entry)) {
      is_sharded_ = is_sharded_ || (is_kept(variable.group) && module.is_sharded(module.input(variable.name)));
    }
  }
}

void SlicedReader::read(Handle value, DeviceOfMember instance,
                        const std::function<void(std::span<const std::byte>)>& use) {
  read(value, instance, 0, module_.slice_bytes(value), use);
}

void SlicedReader::read(Handle value, DeviceOfMember instance, std::size_t offset, std::size_t size,
                        const std::function<void(std::span<const std::byte>)>& use) {
  for (const std::size_t end = offset + size; offset < end; offset += slice_.size()) {
    const std::span<std::byte> slice(slice_.data(), std::min(slice_.size(), end - offset));
    if (leads_ && module_.is_divided(value)) {
      Request request{value.id, instance.member, static_cast<std::int64_t>(offset), std::ssize(slice)};
      tell(request);
    }
    module_.wait(leads_ ? module_.read(value, instance, slice, offset, 0)
                        : module_.read_here(value, instance, slice, offset));
    use(slice);
  }
}

void SlicedReader::tell(Request& request) {
  module_.processes().transport->broadcast(std::as_writable_bytes(std::span(&request, 1)));
}

void SlicedReader::lead(const std::function<void()>& reads) {
  if (!is_divided()) return reads();
  leads_ = true;
  Request over;
  try {
    reads();
  } catch (...) {
    leads_ = false;
    tell(over);
    throw;
  }
  leads_ = false;
  tell(over);
}

void SlicedReader::help() {
  while (is_divided()) {
    Request request;
    tell(request);
    if (request.value < 0) return;
    const std::span<std::byte> slice(slice_.data(), static_cast<std::size_t>(request.size));
    module_.wait(module_.read({static_cast<std::int32_t>(request.value)}, {module_.own_device(), request.member}, slice,
                              static_cast<std::size_t>(request.offset), 0));
  }
}

}  // namespace pmaptrain::setup
