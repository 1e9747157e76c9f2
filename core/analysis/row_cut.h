// Where a backend may cut the rows of a program's values into pieces. A piece is a range of rows, out of the rows of
// all devices laid one after another.
#pragma once

#include <map>
#include <vector>

#include "core/analysis/packed_sums.h"
#include "core/analysis/rows.h"

namespace pmaptrain {

// Whether an op adds the values of a group of devices and gives each device only its part of the sum.
inline bool is_reduce_scatter(const Op& op) { return op.rules().communication == Communication::scatter; }
// Whether an op adds the values of a group of devices: a `psum` or a reduce-scatter.
inline bool is_sum_over_devices(const Op& op) {
  return op.rules().communication == Communication::sum || is_reduce_scatter(op);
}

// What a kernel reads of an operand when it computes a range of rows.
enum class RowAccess : std::uint8_t {
  whole,      // the whole operand
  same_rows,  // the rows of the same range
  any_rows,   // as many rows, from anywhere in the operand, because all of its rows are equal
};

// What `equation`, which runs on rows, reads of the operand with index `operand`.
RowAccess row_access_of(const Program& program, const Facts& facts, const RowFacts& rows, const Equation& equation,
                        std::size_t operand);

// Whether `equation` is computed piece by piece, on the pieces of values that vary over the axes of its first result.
// A reduction over devices whose results have rows is not: it adds rows of other pieces.
bool runs_on_pieces(const RowFacts& rows, const Equation& equation);

// The axes along which all rows of a piece must have the same position, of the pieces of values that vary over
// `varying`. A piece reads one instance of each whole operand and has one accumulator for each sum over its rows. So if
// a matrix product reads a weight that varies over `replicas`, no piece may contain rows of two replicas. Nor may it if
// it reads rows that do not vary over `replicas`: these would not lie one after another.
AxisSet axes_that_bound_pieces(const Program& program, const Facts& facts, const RowFacts& rows, AxisSet varying);

// By value: the axes along which all rows of a sum over rows (RowKind::partial) must have the same position. It serves
// a backend without pieces, where each sum adds the rows of as many devices as it may. A sum that devices only add to
// each other adds the rows of all devices. A sum that each device reads for itself adds the rows of one device. Sums
// that one equation makes, or adds to each other, have the same axes. The packs in `packed` are never made, so their
// operands do not share axes. A uniform value also has axes: those of what it is computed from.
std::vector<AxisSet> axes_that_bound_sums(const Program& program, const Facts& facts, const RowFacts& rows,
                                          const std::map<std::int32_t, PackedSum>& packed);

// Calls f(value) for each value that an output, an update, or an equation that needs all rows reads. A sum over rows
// that is read so must be complete. `f` may replace the value, where the program is not constant.
template <class P, class F>
void for_each_whole_read(P& program, const RowFacts& rows, F&& f);

// The instances of a value that varies over `axes` lie in the order of the mesh. Returns how many neighbours among them
// have the same position along `along`. Example: with replicas=2 shards=3, axes {replicas, shards} and along
// {replicas}, these are the 3 instances of a replica.
std::int64_t contiguous_instances(const Mesh& mesh, AxisSet axes, AxisSet along);

template <class E, class F>
void for_each_whole_read_of(E& equations, const RowFacts& rows, F& f) {
  for (auto& equation : equations) {
    const bool is_loop_of_stages = equation.op.is_loop() && communicates(equation);
    if (!runs_on_pieces(rows, equation) && !is_sum_over_devices(equation.op)) {
      for (auto& operand : equation.operands) f(operand);
    }
    if (!is_loop_of_stages) continue;
    for_each_whole_read_of(equation.regions.front().equations, rows, f);
    for (auto& yield : equation.regions.front().results) f(yield);  // carries are complete
  }
}

template <class P, class F>
void for_each_whole_read(P& program, const RowFacts& rows, F&& f) {
  for_each_whole_read_of(program.equations, rows, f);
  for (auto& output : program.outputs) f(output.value);
  for (auto& input : program.inputs) {
    if (input.next) f(*input.next);
  }
}

}  // namespace pmaptrain
