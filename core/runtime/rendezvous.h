// What ranks do together in the steps of a module's entries, in order. A rank is a process, or a GPU.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/program.h"
#include "core/runtime/transport.h"

namespace pmaptrain {

struct Rendezvous {
  std::vector<int> ranks;  // that take part; of a message the sender and the receiver
  std::string what;        // "a message of 4096 bytes for psum of 'sync', 8 times"
};

// "4096 bytes for psum of 'sync', 8 times"
std::string rendezvous_text(std::size_t bytes, const Equation& equation, double times);

// Compares the ranks when a module is loaded, since two whose plans differ would wait for each other without end. Every
// process calls it with the sequences of its own ranks, which are numbered from `first_rank` on; `noun` is the word for
// a rank in messages. If two ranks differ in what they do together, each process throws Error (failed).
void check_rendezvous(const Processes& processes, std::string_view noun, int first_rank,
                      const std::vector<std::vector<Rendezvous>>& own);

}  // namespace pmaptrain
