// A reason to stop that one thread gives and others look for.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "core/base/error.h"

namespace pmaptrain::gpu {

// Any thread may set it. The first reason is kept.
class Abort {
 public:
  void set(const std::string& reason) noexcept {
    const std::lock_guard lock(mutex_);
    if (!reason_) reason_ = reason;
  }
  std::optional<std::string> reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }
  bool is_set() const { return reason().has_value(); }
  // Throws Error (failed) with the reason if set() has been called.
  void check() const {
    if (const std::optional<std::string> why = reason()) fail_running(*why);
  }

 private:
  mutable std::mutex mutex_;
  std::optional<std::string> reason_;
};

}  // namespace pmaptrain::gpu
