// The instructions that a program is lowered to on CPU threads. Each names its operands by number: of values while a
// program is lowered, of buffers in a plan.
//
// Instructions run in one of four ways (Stage): by every worker for itself, on a chunk of elements, as one task, or on
// a piece: a range of the rows of all devices, or a number of whole instances.
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

// An op on local values: on a piece's rows, on the slices of its instances, on a chunk of elements, or on a replicated
// value.
struct Kernel {
  const Equation* equation = nullptr;
  std::vector<int> operands, results;
  std::vector<Reads> operand_rows;  // on rows: what of each operand
  std::vector<bool> result_rows;    // and which results are the piece's rows
  // What a packed operand was packed from: the kernel reads that where the library wants no other layout.
  int unpacked = -1;
};

// An op that sums rows (RowRule::sums), run over a piece's rows. The results go into the piece's accumulators.
struct RowSums {
  const Equation* equation = nullptr;
  std::vector<int> operands;
  std::vector<int> accumulators;
};

// A product that sums rows, over the rows of all devices, whose result is computed in `parts` tasks, each of some rows
// of the result (part_begin).
struct Parts {
  const Equation* equation = nullptr;
  std::vector<int> operands;
  int result = -1;
  std::int64_t parts = 0;
};

struct Copy {
  int from = -1, to = -1;
};

// Packs one operand of `equation` into the layout that the op's kernel expects. This is done once per step, and all
// pieces read the packed copy.
struct PackOperand {
  const Equation* equation = nullptr;
  std::size_t operand = 0;  // of the equation
  int from = -1, to = -1;
};

// A reduction's first half: the slices of a piece's instances in order, or its sum over rows, into its accumulator.
struct ReducePartial {
  const Equation* equation = nullptr;
  int operand = -1;
  int accumulator = -1;
};

// Its second half, after a barrier: for each instance of the result, the accumulators of its group's pieces in index
// order, of psum_scatter its own part of them. Without an accumulator, the group's slices of `operand` in device order.
struct ReduceCombine {
  const Equation* equation = nullptr;
  int accumulator = -1;
  int operand = -1;
  int result = -1;
};

// One operand of a collective that reads other devices' slices.
struct Exchange {
  const Equation* equation = nullptr;
  std::size_t index = 0;  // of the operand and the result
  int operand = -1, result = -1;
};

// `body`, `iterations` times. Before iteration k, part k of each slice's `from`, which has `iterations` parts per
// device, is copied to its `to`. `before` gives the carries their initial values.
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

// One function object from several lambdas, for std::visit.
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

// The equation behind an instruction; null for a copy.
inline const Equation* equation_of(const Instruction& instruction) {
  return visit(Overloaded{[](const Copy&) -> const Equation* { return nullptr; },
                          [](const auto& other) -> const Equation* { return other.equation; }},
               instruction);
}

// Calls read(id) for each operand and write(id) for each result: numbers of values or buffers. Of a loop these are its
// carries and slices; its body has its own.
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
