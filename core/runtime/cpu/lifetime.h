// The live ranges of values: when each value is written and read, in instruction order. Memory planning is based on
// them.
#pragma once

#include <map>
#include <vector>

#include "core/runtime/cpu/lower.h"

namespace pmaptrain::cpu {

// Which kind of instruction reads a value: one that runs for each piece, one that every worker repeats, one that runs
// on chunks, a task, or an exchange. An exchange also reads slices of devices that belong to other pieces.
enum class Reader : std::uint8_t { piece, everywhere, chunk, task, exchange };

struct Access {
  int stage = 0;
  int position = 0;
  Reader reader = Reader::piece;
  int cut = -1;  // the cut, for a reader that runs on pieces
};

struct Lifetime {
  int root = -1;
  Access written;                   // first write
  const Instruction* by = nullptr;  // the instruction that writes it; null for inputs and constants
  const Loop* loop = nullptr;       // the innermost loop whose body writes it or which carries it
  std::vector<Access> reads;
  // Position of the last read, or of the write if that is later. A value that a loop reads from outside lives to the
  // loop's end.
  int last = 0;
};

struct Lifetimes {
  std::vector<Lifetime> values;           // one for each root that is no range of a bucket, in order of roots
  std::vector<int> places;                // by value: index in `values`; -1 for a value that is no root
  std::map<const Instruction*, int> end;  // position of each loop's end

  const Lifetime& of(int root) const {
    return values[static_cast<std::size_t>(places[static_cast<std::size_t>(root)])];
  }
};

// Positions count from 1. Instructions, including those of loop bodies, and ends of loops are counted, in the order of
// for_each_instruction.
Lifetimes find_lifetimes(const Lowered& lowered);

// Calls f(instruction, reader, cut) for the instructions of a stage, in the order once, chunked, tasks, pieces.
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
