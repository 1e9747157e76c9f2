// The live ranges of values: at which positions in the order of instructions each value is written and read. plan.cpp
// lets values whose ranges do not overlap share memory.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/runtime/cpu/lower.h"

namespace pmaptrain::cpu {

// Which instruction reads a value: one of a PieceList, of Stage::every_worker, of a ChunkList or of Stage::tasks.
// `exchange`: an instruction of any of these that reads slices of other pieces, namely Exchange, and ReduceCombine
// without accumulator.
enum class Reader : std::uint8_t { piece, every_worker, chunk, task, exchange };

struct Access {
  int stage = 0;
  int position = 0;
  Reader reader = Reader::piece;
  int cut = -1;  // the cut, for a reader that runs on pieces
};

struct Lifetime {
  int root = -1;  // the value (see ValueInfo::root)
  Access first_write;
  const Instruction* writer = nullptr;  // the instruction of the first write; null for inputs and constants
  const Loop* loop = nullptr;           // the innermost loop whose body writes the value, or that carries it
  std::vector<Access> reads;
  // The position of the last access, and its stage. A value that is written before a loop and read in its body lives to
  // the loop's end.
  int last_position = 0, last_stage = 0;
};

struct Lifetimes {
  std::vector<Lifetime> values;  // one for each root that has memory of its own, in ascending order
  // By root: the index in `values`. An array inside a bucket has the index of the bucket. -1 for values that are no
  // roots.
  std::vector<int> index_of_root;
  std::map<const Instruction*, int> loop_end;  // the position of the end of each loop

  const Lifetime& of(int root) const {
    return values[static_cast<std::size_t>(index_of_root[static_cast<std::size_t>(root)])];
  }
};

// Numbers positions from 1 in the order of for_each_instruction. Each instruction has one position. In a loop, so has
// each of carry_copies, each instruction of the body, and the end of the loop.
Lifetimes find_lifetimes(const Lowered& lowered);

// The first and the last stage in which the memory of a value is needed. A value that a loop over stages reads or
// writes, and that is also needed outside of the loop or in its next iteration, is needed in all stages of the loop.
std::pair<int, int> stages_of(const Lowered& lowered, const Lifetime& value);

// Calls f(instruction, reader, cut) for the instructions of a stage, list by list; bodies of loops are not visited.
// `cut` is -1 except for instructions of a PieceList.
template <class S, class F>
void for_each_instruction(S& stage, F&& f) {
  for (auto& instruction : stage.every_worker) f(instruction, Reader::every_worker, -1);
  for (auto& chunked : stage.chunk_lists) {
    for (auto& instruction : chunked.instructions) f(instruction, Reader::chunk, -1);
  }
  for (auto& instruction : stage.tasks) f(instruction, Reader::task, -1);
  for (auto& list : stage.piece_lists) {
    for (auto& instruction : list.instructions) f(instruction, Reader::piece, list.cut);
  }
}

}  // namespace pmaptrain::cpu
