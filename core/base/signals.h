// Signal masks of threads.
#pragma once

#include <csignal>

namespace pmaptrain {

// Blocks signals in this thread during its lifetime. Threads that are started meanwhile inherit the mask and keep it,
// so that signals are delivered to other threads and not to workers or prefetchers. Faults are not blocked.
class BlockSignals {
 public:
  BlockSignals();
  ~BlockSignals();
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_ = {};
};

}  // namespace pmaptrain
