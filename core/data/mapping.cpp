#include "core/data/mapping.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

// What the signal's handler knows of a mapping. It may look at any moment and takes no lock, so a range never leaves
// the list and is never used again: what a process maps in its life is some dozens of files.
struct MappedRange {
  std::uintptr_t begin = 0, end = 0;
  std::atomic<bool> mapped = true;
  std::atomic<bool> broken = false;  // bytes were asked for that are not there
  MappedRange* next = nullptr;
};

namespace {

constexpr std::string_view rename_help =
    "write a new file and rename it over the old one: a run keeps the file that it opened";

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

// Puts zeros in place of the page and all behind it: of a file that was cut short nothing more will come. The flag is
// first, so whoever reads these zeros finds it set.
bool fill_with_zeros(MappedRange& range, void* at) {
  range.broken.store(true);
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t in_page = address % page_size;
  return ::mmap(static_cast<std::byte*>(at) - in_page, range.end - address + in_page, PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool fault = info->si_code > 0;  // else some process sent the signal
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
  // Behind the end of a file that was cut short, the rest of its last page reads as zeros without a fault.
  struct stat status = {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  const bool shorter = known && static_cast<std::uint64_t>(status.st_size) < size_;
  if (!shorter && !range_->broken.load()) return;
  if (shorter) {
    fail_data(
        fmt::format("'{}' was cut short while it was in use: it had {} bytes and has {}", path_, size_, status.st_size),
        std::string(rename_help));
  }
  fail_data(
      fmt::format("'{}' could not be read while it was in use: it was shorter for a time, or its disk fails", path_),
      std::string(rename_help));
}

void Mapping::check_unchanged() const {
  check_intact();
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) return;
  const bool longer = static_cast<std::uint64_t>(status.st_size) != size_;
  const bool written = status.st_mtim.tv_sec != modified_.tv_sec || status.st_mtim.tv_nsec != modified_.tv_nsec;
  if (longer) {
    fail_data(
        fmt::format("'{}' was changed while it was in use: it had {} bytes and has {}", path_, size_, status.st_size),
        std::string(rename_help));
  }
  if (written) {
    fail_data(fmt::format("'{}' was changed while it was in use: its time of modification is no longer what it was "
                          "when the file was opened",
                          path_),
              std::string(rename_help));
  }
}

}  // namespace pmaptrain::data
