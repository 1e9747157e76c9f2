// The instructions that a program is lowered to for CPU threads. Operands are identified by number: the number of a
// value during lowering, of a buffer in a plan.
//
// An instruction runs in one of four ways (see Stage): repeated by every worker, on a chunk of elements, as a single
// task, or on a piece. A piece is a range of the rows of all devices, or a number of whole instances.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/analysis/row_cut.h"
#include "core/graph/program.h"

namespace pmaptrain::cpu {

struct Instruction;

// Applies an op to local values: to a piece's rows, to the slices of its instances, to a chunk of elements, or to a
// replicated value.
struct Kernel {
  const Equation* equation = nullptr;
  std::vector<int> operands, results;
  std::vector<RowAccess> operand_rows;  // if it runs on rows: which rows it reads of each operand
  std::vector<bool> result_rows;        // if it runs on rows: which results are rows of the piece
  // The buffer that a packed operand was packed from. The kernel reads this one if the library needs no other layout.
  int unpacked = -1;
};

// Applies an op that sums rows (RowRule::sums) to a piece's rows. The results go into the piece's accumulators.
struct RowSums {
  const Equation* equation = nullptr;
  std::vector<int> operands;
  std::vector<int> accumulators;
};

// Computes a matrix product that sums over the rows of all devices, in `parts` tasks. Each task computes a range of
// rows of the result (see part_begin).
struct Parts {
  const Equation* equation = nullptr;
  std::vector<int> operands;
  int result = -1;
  std::int64_t parts = 0;
};

struct Copy {
  int from = -1, to = -1;
  // If positive: `from` has so many parts, and the part of the current iteration of the innermost StageLoop is copied.
  std::int64_t parts = 0;
};

// Packs one operand of `equation` into the layout that the op's kernel expects. This is done once per step, and all
// pieces read the packed copy.
struct PackOperand {
  const Equation* equation = nullptr;
  std::size_t operand = 0;  // index among the operands of the equation
  int from = -1, to = -1;
};

// First half of a reduction: adds the slices of a piece's instances, in order, or the piece's sum over rows, into its
// accumulator.
struct ReducePartial {
  const Equation* equation = nullptr;
  int operand = -1;
  int accumulator = -1;
};

// Second half of a reduction, after a barrier: for each instance of the result, adds the accumulators of its group's
// pieces in index order; for psum_scatter only the instance's part of them. Without an accumulator, adds the group's
// slices of `operand` in device order.
struct ReduceCombine {
  const Equation* equation = nullptr;
  int accumulator = -1;
  int operand = -1;
  int result = -1;
};

// Handles one operand of a collective that reads slices of other devices.
struct Exchange {
  const Equation* equation = nullptr;
  std::size_t index = 0;  // index of the operand and of the result
  int operand = -1, result = -1;
};

// Runs `body` `iterations` times. Before iteration k, part k of each slice's `from` is copied to its `to`; `from` has
// `iterations` parts per device. The copies in `before` initialize the carries.
struct Loop {
  const Equation* equation = nullptr;
  std::int64_t iterations = 0;
  std::vector<Copy> slices, before;
  std::vector<Instruction> body;
};

struct Instruction
    : std::variant<Kernel, RowSums, Parts, Copy, PackOperand, ReducePartial, ReduceCombine, Exchange, Loop> {
  using variant::variant;
  template <class T>
  const T* as() const {
    return std::get_if<T>(this);
  }
  template <class T>
  T* as() {
    return std::get_if<T>(this);
  }
};

// Combines several lambdas into one function object for std::visit.
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

template <class F>
decltype(auto) visit(F&& f, const Instruction& instruction) {
  return std::visit(std::forward<F>(f), static_cast<const Instruction::variant&>(instruction));
}
template <class F>
decltype(auto) visit(F&& f, Instruction& instruction) {
  return std::visit(std::forward<F>(f), static_cast<Instruction::variant&>(instruction));
}

// The equation that an instruction was lowered from; null for a copy.
inline const Equation* equation_of(const Instruction& instruction) {
  return visit(Overloaded{[](const Copy&) -> const Equation* { return nullptr; },
                          [](const auto& other) -> const Equation* { return other.equation; }},
               instruction);
}

// Calls read(id) for each operand and write(id) for each result, where ids are numbers of values or buffers. For a
// loop, these are its carries and slices; instructions of its body are not visited.
template <class I, class Read, class Write>
void for_each_value(I& instruction, Read&& read, Write&& write) {
  const auto all = [](auto& ids, auto& f) {
    for (auto& id : ids) f(id);
  };
  visit(
      [&]<class T>(T& i) {
        using Kind = std::remove_const_t<T>;
        if constexpr (std::is_same_v<Kind, Kernel>) {
          all(i.operands, read);
          if (i.unpacked >= 0) read(i.unpacked);
          all(i.results, write);
        } else if constexpr (std::is_same_v<Kind, RowSums>) {
          all(i.operands, read);
        } else if constexpr (std::is_same_v<Kind, Parts>) {
          all(i.operands, read);
          write(i.result);
        } else if constexpr (std::is_same_v<Kind, ReducePartial>) {
          read(i.operand);
        } else if constexpr (std::is_same_v<Kind, ReduceCombine>) {
          if (i.operand >= 0) read(i.operand);
          write(i.result);
        } else if constexpr (std::is_same_v<Kind, Exchange>) {
          read(i.operand);
          write(i.result);
        } else if constexpr (std::is_same_v<Kind, Loop>) {
          for (auto& copy : i.before) read(copy.from), write(copy.to);
          for (auto& slice : i.slices) read(slice.from), write(slice.to);
        } else {
          static_assert(std::is_same_v<Kind, Copy> || std::is_same_v<Kind, PackOperand>);
          read(i.from);
          write(i.to);
        }
      },
      instruction);
}

}  // namespace pmaptrain::cpu
