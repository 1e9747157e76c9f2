// Memory for what is read from files and computed from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace pmaptrain {

// Uninitialised memory. Throws Error (resource) if there is not enough.
struct Memory {
  std::shared_ptr<std::byte[]> owner;
  std::span<std::byte> view;
};
Memory allocate(std::uint64_t bytes, std::string_view name);

}  // namespace pmaptrain
