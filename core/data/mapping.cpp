#include "core/data/mapping.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace pmaptrain::data {

// The record of a mapping for the signal handler. The handler takes no lock and may run at any moment, so a range is
// never removed from the list or reused. A process maps some dozens of files in its lifetime.
struct MappedRange {
  std::uintptr_t begin = 0, end = 0;
  std::atomic<bool> mapped = true;
  std::atomic<bool> broken = false;  // missing bytes were accessed
  MappedRange* next = nullptr;
};

namespace {

constexpr std::string_view rename_help =
    "write a new file and rename it over the old one; a run keeps the old file open";

static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<MappedRange*>::is_always_lock_free,
              "a signal handler must not wait on a lock");

std::atomic<MappedRange*> ranges = nullptr;
struct sigaction handler_before = {};
std::uintptr_t page_size = 0;

MappedRange* range_at(std::uintptr_t address) {
  for (MappedRange* range = ranges.load(); range != nullptr; range = range->next) {
    if (range->mapped.load() && range->begin <= address && address < range->end) return range;
  }
  return nullptr;
}

// Maps zeros over this page and all later ones, because the rest of a truncated file is missing, too. The flag is set
// first, so that a thread which reads these zeros finds it set. By the system call itself, which is safe in a handler:
// ThreadSanitizer takes mmap() for a write that races with the reads of other threads.
bool fill_with_zeros(MappedRange& range, void* at) {
  range.broken.store(true);
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t in_page = address % page_size;
  return ::syscall(SYS_mmap, static_cast<std::byte*>(at) - in_page, range.end - address + in_page, long{PROT_READ},
                   long{MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED}, -1L, 0L) != -1;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool fault = info->si_code > 0;  // else the signal was sent by a process
  MappedRange* const range = fault ? range_at(reinterpret_cast<std::uintptr_t>(info->si_addr)) : nullptr;
  if (range != nullptr && fill_with_zeros(*range, info->si_addr)) {
    errno = error;
    return;
  }
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) return handler_before.sa_sigaction(signal, info, context);
  if (handler_before.sa_handler == SIG_IGN && !fault) return;
  if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    return handler_before.sa_handler(signal);
  }
  // Blocked until this handler returns, and then final.
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &handler_before);
  });
}

MappedRange* enlist(const std::byte* start, std::size_t size) {
  auto* const range = new MappedRange;
  range->begin = reinterpret_cast<std::uintptr_t>(start);
  range->end = range->begin + size;
  range->next = ranges.load();
  while (!ranges.compare_exchange_weak(range->next, range)) {
  }
  return range;
}

}  // namespace

Mapping::Mapping(int descriptor, std::size_t size, timespec modified, std::string path)
    : descriptor_(descriptor), size_(size), modified_(modified), path_(std::move(path)) {
  install_handler();
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (start == MAP_FAILED) {
    const int error = errno;
    ::close(descriptor);
    throw std::system_error(error, std::generic_category());
  }
  start_ = static_cast<const std::byte*>(start);
  range_ = enlist(start_, size);
}

Mapping::~Mapping() {
  range_->mapped.store(false);
  ::munmap(const_cast<std::byte*>(start_), size_);
  ::close(descriptor_);
}

void Mapping::check_intact() const {
  // After the end of a truncated file, the rest of its last page reads as zeros without a fault.
  struct stat status = {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  const bool shorter = known && static_cast<std::uint64_t>(status.st_size) < size_;
  if (!shorter && !range_->broken.load()) return;
  if (shorter) {
    fail_data(fmt::format("'{}' was truncated during use: it had {} bytes and has {}", path_, size_, status.st_size),
              std::string(rename_help));
  }
  fail_data(fmt::format("'{}' could not be read: it was truncated for a time, or its disk failed", path_),
            std::string(rename_help));
}

void Mapping::check_unchanged() const {
  check_intact();
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) return;
  const bool longer = static_cast<std::uint64_t>(status.st_size) != size_;
  const bool written = status.st_mtim.tv_sec != modified_.tv_sec || status.st_mtim.tv_nsec != modified_.tv_nsec;
  if (longer) {
    fail_data(fmt::format("'{}' was modified during use: it had {} bytes and has {}", path_, size_, status.st_size),
              std::string(rename_help));
  }
  if (written) {
    fail_data(fmt::format("'{}' was modified during use: its modification time has changed since it was opened", path_),
              std::string(rename_help));
  }
}

}  // namespace pmaptrain::data
