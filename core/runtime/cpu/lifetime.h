// When each value is written and read, in the order of the instructions: what memory planning decides from.
#pragma once

#include <map>
#include <vector>

#include "core/runtime/cpu/lower.h"

namespace pmaptrain::cpu {

// What reads: an instruction that runs for each piece, one that every worker runs, one that runs on chunks, or a task.
// An exchange also reads slices of devices of other pieces.
enum class Reader : std::uint8_t { piece, everywhere, chunk, task, exchange };

struct Access {
  int stage = 0;
  int position = 0;
  Reader reader = Reader::piece;
  int cut = -1;  // of pieces
};

struct Lifetime {
  int root = -1;
  Access written;                   // first write
  const Instruction* by = nullptr;  // what writes it; null for inputs and constants
  const Loop* loop = nullptr;       // the innermost loop in whose body it is written, or which carries it
  std::vector<Access> reads;
  int last = 0;  // position of the last read, at least that of the write; a loop's end for what the loop reads from
                 // outside
};

struct Lifetimes {
  std::vector<Lifetime> values;           // in the order of roots
  std::vector<int> places;                // by value: where it is among those; -1 for what is no root
  std::map<const Instruction*, int> end;  // where a loop ends

  const Lifetime& of(int root) const {
    return values[static_cast<std::size_t>(places[static_cast<std::size_t>(root)])];
  }
};

// Positions count instructions and ends of loops from 1, in the order of for_each_instruction, bodies inside.
Lifetimes find_lifetimes(const Lowered& lowered);

// Calls f(instruction, reader, cut) for the instructions of a stage in order: once, chunked, tasks, pieces.
template <class S, class F>
void for_each_instruction(S& stage, F&& f) {
  for (auto& instruction : stage.once) f(instruction, Reader::everywhere, -1);
  for (auto& chunked : stage.chunked) {
    for (auto& instruction : chunked.instructions) f(instruction, Reader::chunk, -1);
  }
  for (auto& instruction : stage.tasks) f(instruction, Reader::task, -1);
  for (auto& list : stage.pieces) {
    for (auto& instruction : list.instructions) f(instruction, Reader::piece, list.cut);
  }
}

}  // namespace pmaptrain::cpu
