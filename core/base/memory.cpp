#include "core/base/memory.h"

#include <fmt/format.h>

#include <new>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/machine.h"

namespace pmaptrain {

Memory allocate(std::uint64_t bytes, std::string_view name) {
  demand_memory(bytes, std::string(name));
  try {
    std::shared_ptr<std::byte[]> owner(new std::byte[bytes]);  // not zeroed: the caller fills it
    std::byte* const start = owner.get();
    return {std::move(owner), {start, static_cast<std::size_t>(bytes)}};
  } catch (const std::bad_alloc&) {
    fail_resource(fmt::format("{} needs {} bytes of memory, which are not available", name, bytes));
  }
}

}  // namespace pmaptrain
