// What a command says at its end, on a stream whose reader may have stopped reading.
#pragma once

#include <ostream>
#include <string>

namespace pmaptrain::app {

// Writes and flushes, and waits for the reader as any write does. Where a signal only sets StopSignals' flag, the wait
// ends half a second after it came: false then, and the stream is not to be touched again, for a thread of its own
// still writes there. Such a process ends by a signal or by _exit(): exit() would wait for that thread's lock.
bool deliver(std::ostream& stream, const std::string& text);

}  // namespace pmaptrain::app
