// The instructions that a program is lowered to for CPU threads. Operands and results are numbers: during lowering the
// number of a value, in a finished Plan the index of a buffer.
//
// An instruction runs in one of four ways (see Stage): repeated by every worker, once for each chunk of an array's
// elements, as a task of its own, or once for each piece of a cut. README.md defines these terms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/analysis/distribute.h"
#include "core/analysis/row_cut.h"
#include "core/graph/program.h"

namespace pmaptrain::cpu {

struct Instruction;

// Applies an op without communication: to the rows of a piece, to the slices of a piece's instances, to a chunk of
// elements, or to a whole replicated value.
struct Kernel {
  const Equation* equation = nullptr;
  std::vector<int> operands, results;
  // The next two are empty unless the kernel runs on a cut by rows.
  std::vector<RowAccess> operand_reads;  // for each operand: which of its rows the kernel reads
  std::vector<bool> result_has_rows;     // for each result: whether it has one row for each row of the piece
  // If an operand is the result of a PackOperand: the value that was packed, else -1. It lives until the kernel has
  // run, because settle_packing() lets the kernel read it if the library needs no other layout.
  int packed_from = -1;
};

// Applies an op that sums over rows (RowRule::Kind::sums) to the rows of a piece, and writes the results directly into
// the piece's accumulators.
struct RowSums {
  const Equation* equation = nullptr;
  std::vector<int> operands;
  std::vector<int> accumulators;
};

// Computes a product that sums over the rows of all devices, such as a weight gradient, in `parts` tasks for each
// instance of the result. Each task computes a range of rows or columns of the result (RowRule::Parts, part_begin),
// block by block.
struct ProductInParts {
  const Equation* equation = nullptr;
  const Equation* sum = nullptr;  // the psum that adds the products of the blocks
  std::vector<int> operands;
  int result = -1;
  std::int64_t parts = 0;
  bool of_columns = false;  // whether a part is a range of columns, which a task computes in its arena and then copies
  AxisSet apart = {};       // a kernel sums the rows of instances with equal positions along these axes
  std::shared_ptr<const RankSum> ranks = {};  // if not null, the result is `sums` of a ReduceCombine
};

struct Copy {
  int from = -1, to = -1;
  // If positive: `from` has so many parts, and the part of the current iteration of the innermost StageLoop is copied.
  std::int64_t iteration_parts = 0;
};

// Converts one operand of `equation` into the layout that the op's kernel prefers. This is done once per step, and all
// pieces read the packed copy.
struct PackOperand {
  const Equation* equation = nullptr;
  std::size_t operand = 0;  // index among the operands of the equation
  int from = -1, to = -1;
};

// First half of a reduction (psum, pmax and the like): reduces what one piece contributes into the piece's accumulator.
// On a cut into whole instances that is the slice of each of its instances, in order. On a cut by rows it is `operand`,
// the piece's sum over its rows.
struct ReducePartial {
  const Equation* equation = nullptr;
  int operand = -1;
  int accumulator = -1;
};

// Second half of a reduction, after a barrier. For each instance of the result it reduces, block by block (see
// PlanOptions::blocks) and in index order, the accumulators of all pieces whose devices belong to the instance's group.
// If `accumulator` is -1, it reduces the slices of `operand` of the group's devices instead, in device order.
struct ReduceCombine {
  const Equation* equation = nullptr;
  AxisSet axes;  // the addends vary over these axes
  int accumulator = -1;
  int operand = -1;
  int result = -1;
  // If several processes carry the mesh, a reduction has three steps, which `ranks` describes. `own_sums`: each process
  // computes those of its blocks; `result` has a slice for each sum, and is called `sums`. Then the processes exchange
  // these (Communicate). `tree`: all sums are added; they are in `operand`, and if they are added in parts, those of
  // other processes in `received`.
  enum class Step : std::uint8_t { all, own_sums, tree } step = Step::all;
  int received = -1;
  std::shared_ptr<const RankSum> ranks = {};
};

// Exchanges messages with other processes (core/analysis/distribute.h). A stage has at most one, which carries out all
// of its communication, so that all processes exchange their messages in the same order.
struct Communicate {
  const Equation* equation = nullptr;
  struct Values {
    int from = -1, to = -1;
    RankMessages messages;
    // If instances are moved: those of this process are first copied from `from` to their slices of `to`, from where
    // they are sent.
    std::vector<Contribution> instances = {};
    AxisSet axes = {};  // over which they vary
  };
  std::vector<Values> values;
};

// Carries out a collective that moves data between devices (all_gather, all_to_all, ppermute) for one of its operands.
struct Exchange {
  const Equation* equation = nullptr;
  std::size_t index = 0;  // index of the operand and of the result
  int operand = -1, result = -1;
};

// Runs `body` `iterations` times. `carry_copies` initialize the carries before the first iteration. Each of
// `slice_copies` runs before every iteration: its `from` consists of `iterations` slices per device, and iteration k
// copies slice k to `to`.
struct Loop {
  const Equation* equation = nullptr;
  std::int64_t iterations = 0;
  std::vector<Copy> slice_copies, carry_copies;
  std::vector<Instruction> body;
};

struct Instruction : std::variant<Kernel, RowSums, ProductInParts, Copy, PackOperand, ReducePartial, ReduceCombine,
                                  Communicate, Exchange, Loop> {
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

// Calls read(id) for each operand and write(id) for each result; `id` is a reference to the number of a value or
// buffer. For a loop, these are the values that its slice_copies and carry_copies read and write. Its body is not
// visited.
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
          if (i.packed_from >= 0) read(i.packed_from);
          all(i.results, write);
        } else if constexpr (std::is_same_v<Kind, RowSums>) {
          all(i.operands, read);
        } else if constexpr (std::is_same_v<Kind, ProductInParts>) {
          all(i.operands, read);
          write(i.result);
        } else if constexpr (std::is_same_v<Kind, ReducePartial>) {
          read(i.operand);
        } else if constexpr (std::is_same_v<Kind, ReduceCombine>) {
          if (i.operand >= 0) read(i.operand);
          if (i.received >= 0) read(i.received);
          write(i.result);
        } else if constexpr (std::is_same_v<Kind, Communicate>) {
          for (auto& values : i.values) read(values.from), write(values.to);
        } else if constexpr (std::is_same_v<Kind, Exchange>) {
          read(i.operand);
          write(i.result);
        } else if constexpr (std::is_same_v<Kind, Loop>) {
          for (auto& copy : i.carry_copies) read(copy.from), write(copy.to);
          for (auto& slice : i.slice_copies) read(slice.from), write(slice.to);
        } else {
          static_assert(std::is_same_v<Kind, Copy> || std::is_same_v<Kind, PackOperand>);
          read(i.from);
          write(i.to);
        }
      },
      instruction);
}

}  // namespace pmaptrain::cpu
