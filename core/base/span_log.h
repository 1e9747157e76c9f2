// When a thread did what, for traces of some steps.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "core/base/clock.h"

namespace pmaptrain {

struct Span {
  const char* name = "";  // a literal
  std::int64_t step = 0;  // from 1
  Clock::time_point begin, end;
};

// Keeps spans of the steps `first` to `last`. Any thread may add to it.
class SpanLog {
 public:
  SpanLog(std::int64_t first, std::int64_t last) : first_(first), last_(last) {}
  bool covers(std::int64_t step) const { return first_ <= step && step <= last_; }

  void add(const Span& span) {
    const std::lock_guard lock(mutex_);
    spans_.push_back(span);
  }
  std::vector<Span> spans() const {
    const std::lock_guard lock(mutex_);
    return spans_;
  }

  // Adds a span from its construction to its destruction. Reads no clock if there is no log, or if the log does not
  // cover the step.
  class Scope {
   public:
    Scope(SpanLog* log, std::int64_t step, const char* name) {
      if (log == nullptr || !log->covers(step)) return;
      log_ = log;
      span_ = {name, step, Clock::now(), {}};
    }
    ~Scope() {
      if (log_ == nullptr) return;
      span_.end = Clock::now();
      log_->add(span_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    SpanLog* log_ = nullptr;
    Span span_;
  };

 private:
  const std::int64_t first_, last_;
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
};

}  // namespace pmaptrain
