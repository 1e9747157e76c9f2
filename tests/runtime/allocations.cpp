#include "tests/runtime/allocations.h"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> allocations{0};

void count() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// ThreadSanitizer's library defines these operators itself; what they allocate is counted by its hooks below.
#ifndef __SANITIZE_THREAD__

namespace {

void* allocate(std::size_t size, std::size_t alignment) {
  count();
  if (size == 0) size = 1;
  void* const memory = alignment <= alignof(std::max_align_t)
                           ? std::malloc(size)
                           : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* allocate_or_null(std::size_t size) noexcept {
  try {
    return allocate(size, 1);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

// The whole test program allocates here: in place of the standard library's.
void* operator new(std::size_t size) { return allocate(size, 1); }
void* operator new[](std::size_t size) { return allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate_or_null(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate_or_null(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

#endif

namespace pmaptrain::test {

// ---- the heap below operator new, where libraries also go to directly

namespace {

std::atomic<bool> watching{false};
std::atomic<std::int64_t> calls{0}, held{0}, peak{0};

void allocated(std::size_t bytes) {
  calls.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t now = held.fetch_add(static_cast<std::int64_t>(bytes)) + static_cast<std::int64_t>(bytes);
  std::int64_t most = peak.load();
  while (now > most && !peak.compare_exchange_weak(most, now)) {
  }
}

void freed(std::size_t bytes) { held.fetch_sub(static_cast<std::int64_t>(bytes)); }

bool is_watching() { return watching.load(std::memory_order_relaxed); }

}  // namespace

Heap watch_heap(const std::function<void()>& f) {
  calls = held = peak = 0;
  watching = true;
  f();
  watching = false;
  return {calls.load(), peak.load()};
}

std::int64_t heap_calls() { return calls.load(); }

std::int64_t count_allocations(const std::function<void()>& f) {
  allocations = 0;
  counting = true;
  f();
  counting = false;
  return allocations.load();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

// As sanitizer/allocator_interface.h declares them, which GCC does not install.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*after_malloc)(const volatile void*, std::size_t),
                                                         void (*before_free)(const volatile void*));
extern "C" std::size_t __sanitizer_get_allocated_size(const volatile void* memory);

namespace {

// A sanitizer has its own heap and calls these.
void after_malloc(const volatile void*, std::size_t bytes) {
#ifdef __SANITIZE_THREAD__
  count();
#endif
  if (is_watching()) allocated(bytes);
}
void before_free(const volatile void* memory) {
  if (is_watching() && memory != nullptr) freed(__sanitizer_get_allocated_size(memory));
}
const bool hooked = __sanitizer_install_malloc_and_free_hooks(after_malloc, before_free) != 0;

}  // namespace

}  // namespace pmaptrain::test

#else

namespace {

void* seen(void* memory) {
  if (memory != nullptr && is_watching()) allocated(malloc_usable_size(memory));
  return memory;
}

}  // namespace

}  // namespace pmaptrain::test

// The heap of the whole process: in place of the C library's names, over the C library's own.
extern "C" {
void* __libc_malloc(std::size_t size) noexcept;
void* __libc_calloc(std::size_t count, std::size_t size) noexcept;
void* __libc_realloc(void* memory, std::size_t size) noexcept;
void* __libc_memalign(std::size_t alignment, std::size_t size) noexcept;
void __libc_free(void* memory) noexcept;

void* malloc(std::size_t size) noexcept { return pmaptrain::test::seen(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) noexcept { return pmaptrain::test::seen(__libc_calloc(count, size)); }
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return pmaptrain::test::seen(__libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return pmaptrain::test::seen(__libc_memalign(alignment, size));
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) noexcept {
  void* const found = pmaptrain::test::seen(__libc_memalign(alignment, size));
  if (found == nullptr) return ENOMEM;
  *memory = found;
  return 0;
}
void free(void* memory) noexcept {
  if (memory != nullptr && pmaptrain::test::is_watching()) pmaptrain::test::freed(malloc_usable_size(memory));
  __libc_free(memory);
}
void* realloc(void* memory, std::size_t size) noexcept {
  if (memory != nullptr && pmaptrain::test::is_watching()) pmaptrain::test::freed(malloc_usable_size(memory));
  return pmaptrain::test::seen(__libc_realloc(memory, size));
}
}

#endif
