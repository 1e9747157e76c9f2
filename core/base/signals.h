// Which threads a signal goes to.
#pragma once

#include <csignal>

namespace pmaptrain {

// While it lives, this thread and those that it starts block signals, the latter for good: signals go to the threads
// that handle them, never to a worker or a prefetcher. A fault still ends the process where it happens.
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
