#include "tests/fuzz/target.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace pmaptrain::fuzz {

data::Bytes copy_of(std::span<const std::byte> input) {
  std::shared_ptr<std::byte[]> memory(new std::byte[input.size()]);
  if (!input.empty()) std::memcpy(memory.get(), input.data(), input.size());
  const std::byte* const start = memory.get();
  return {std::move(memory), {start, input.size()}};
}

std::string text_of(std::span<const std::byte> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

void require(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

void plant_bug(bool reached, std::span<const std::byte> bytes) {
  static const bool planted = std::getenv("PMAPTRAIN_FUZZ_PLANT") != nullptr;
  if (!planted || !reached) return;
  const std::unique_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  // Volatile, so that the read is made although nothing comes of it.
  const volatile std::byte* const start = copy.get();
  static_cast<void>(start[bytes.size()]);
}

}  // namespace pmaptrain::fuzz
