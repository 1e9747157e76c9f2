// Decides how work is cut into pieces, chunks and parts. The result depends on the program alone.
#include <algorithm>

#include "core/analysis/rows.h"
#include "core/ops/all.h"
#include "core/ops/scatter_add/scatter_add.h"
#include "core/runtime/cpu/plan.h"
#include "core/runtime/cpu/request.h"

namespace pmaptrain::cpu {
namespace {

// Work is measured in floating-point operations plus bytes; a worker does piece_work in about 10 microseconds. Each
// piece costs the calls of its kernels, so it must have enough work: up to `first_pieces` pieces need `piece_work`
// each, and for more pieces each needs `more_work`.
constexpr double piece_work = 1 << 20;
constexpr double first_pieces = 8;
constexpr double more_work = 48 << 20;
// A step with less work takes about 3 microseconds. It is faster on one worker, because a barrier takes longer.
constexpr double tiny_work = 1 << 18;
// A step with less work takes less than about 40 microseconds.
constexpr double short_work = 4 << 20;

// Matrix products with few rows are inefficient. So a piece should have at least `product_rows` rows for a product with
// a packable operand, and `large_rows` if this operand has at least `large_matrix` elements and does not fit the
// caches. But `few_pieces` pieces are always allowed, so that a few workers have a piece each.
constexpr std::int64_t product_rows = 20, large_rows = 64;
constexpr std::int64_t large_matrix = std::int64_t{1} << 20;
constexpr std::int64_t few_pieces = 4;
// The smallest number of rows of a piece in any program. With fewer rows no library is efficient.
constexpr std::int64_t piece_rows = 4;

// The number of rows that a value of this type has on all devices; 0 for a scalar.
std::int64_t rows_of(const Program& program, const Type& type) {
  return type.shape.empty() ? 0 : type.shape.front() * program.mesh.group_size(type.varying);
}

// The rows of a product with a matrix, or with the kernel of a convolution, on all devices: an example of shape [t,n]
// has t of them, an image one for each position.
std::int64_t product_rows_of(const Program& program, const Type& result) {
  std::int64_t rows = rows_of(program, result);
  for (std::size_t d = 1; d + 1 < result.shape.size(); ++d) rows *= result.shape[d];
  return rows;
}

// The largest number of rows of a batch input, in one iteration of the loop over microbatches.
std::int64_t most_rows(const Program& program) {
  std::int64_t most = 0, iterations = 1;
  for (const Input& input : program.inputs) {
    if (input.group == Group::batch) most = std::max(most, rows_of(program, program.type(input.value)));
  }
  for (const Equation& equation : program.equations) {
    if (equation.op.is_loop()) iterations = std::max(iterations, equation.op.loop().iterations);
  }
  return most / iterations;
}

}  // namespace

std::optional<std::size_t> packable_operand(const Program& program, const Equation& equation) {
  const auto prepared = kernels_of(equation.op).prepared_operand;
  const std::optional<std::size_t> index = prepared != nullptr ? prepared(equation.op.data()) : std::nullopt;
  if (!index) return std::nullopt;
  return numel(program.type(equation.operands[*index])) >= least_packed_elements ? index : std::nullopt;
}

std::int64_t pieces_for(const Program& program, double work) {
  if (work < tiny_work) return 1;
  auto pieces = static_cast<std::int64_t>(std::clamp(work / piece_work, 2.0, first_pieces));
  pieces = std::max(pieces, static_cast<std::int64_t>(std::min(work / more_work, static_cast<double>(most_pieces))));
  std::int64_t rows = most_rows(program);
  const bool vary = examples_vary(program);
  for_each_equation(program.equations, [&](const Equation& equation) {
    const KernelRules& kernels = kernels_of(equation.op);
    const bool in_turn = kernels.multiplies_in_turn;  // then rows are few for a small matrix too
    const auto matrix = in_turn ? kernels.prepared_operand(equation.op.data()) : packable_operand(program, equation);
    const Type& result = program.type(equation.results.front());
    if (!matrix || (result.varying.empty() && vary)) return;
    const Type& operand = program.type(equation.operands[*matrix]);
    const std::int64_t rows_of_product = in_turn ? rows_of(program, result) : product_rows_of(program, result);
    const std::int64_t least = numel(operand) >= large_matrix ? large_rows : product_rows;
    pieces = std::min(pieces, std::max(few_pieces, rows_of_product / least));
    if (!in_turn && result.shape.size() > 2 && operand.shape.size() == 2) rows = std::max(rows, rows_of_product);
  });
  return rows > 0 ? std::min(pieces, std::max<std::int64_t>(1, rows / piece_rows)) : pieces;
}

std::int64_t Cut::largest() const {
  std::int64_t largest = 0;
  for (const IndexRange& piece : pieces) largest = std::max(largest, piece.count);
  return largest;
}

std::vector<IndexRange> cut_rows(std::span<const IndexRange> runs, std::int64_t rows, std::int64_t target) {
  const std::int64_t instances = runs.back().first + runs.back().count;
  std::vector<IndexRange> pieces;
  for (const IndexRange& run : runs) {
    const std::int64_t all = run.count * rows, share = (target * run.count + instances - 1) / instances;
    const std::int64_t each = std::clamp<std::int64_t>(share, 1, std::max<std::int64_t>(1, all));
    for (std::int64_t i = 0; i < each; ++i) {
      const std::int64_t begin = all * i / each, end = all * (i + 1) / each;
      pieces.push_back({run.first * rows + begin, end - begin});
    }
  }
  return pieces;
}

std::vector<IndexRange> cut_instances(std::span<const IndexRange> runs, std::int64_t target) {
  const std::int64_t instances = runs.back().first + runs.back().count;
  std::vector<IndexRange> pieces;
  for (const IndexRange& run : runs) {
    const std::int64_t each = std::clamp<std::int64_t>(target * run.count / instances, 1, run.count);
    const std::int64_t size = (run.count + each - 1) / each;
    for (std::int64_t first = 0; first < run.count; first += size) {
      pieces.push_back({run.first + first, std::min(size, run.count - first)});
    }
  }
  return pieces;
}

RowRule::Parts parts_of(const Program& program, const Equation& equation) {
  if (equation.results.size() != 1) return RowRule::Parts::none;
  const RowRule rule = equation.op.rows(types_of(program, equation.operands), types_of(program, equation.results));
  if (rule.kind != RowRule::Kind::sums) return RowRule::Parts::none;
  if (rule.parts != RowRule::Parts::either) return rule.parts;
  // Every part reads all of the operand that is not cut. This should be the narrower one.
  const Shape& shape = program.type(equation.results.front()).shape;
  const bool by_columns = shape.back() > shape.front() && shape.back() >= least_parts * part_columns;
  return by_columns ? RowRule::Parts::columns : RowRule::Parts::rows;
}

bool sums_by_index(const Program& program, const Equation& equation) {
  return equation.op.as<ops::ScatterAdd>() != nullptr && !program.type(equation.operands.front()).shape.empty();
}

std::int64_t size_in_parts(const Program& program, const Equation& equation) {
  const Shape& shape = program.type(equation.results.front()).shape;
  if (sums_by_index(program, equation)) return shape.front();
  switch (parts_of(program, equation)) {
    case RowRule::Parts::rows: return shape.front();
    case RowRule::Parts::columns: return shape.back();
    case RowRule::Parts::none:
    case RowRule::Parts::either: break;
  }
  return 0;
}

std::int64_t part_count(std::int64_t size, bool of_columns, std::int64_t products) {
  const std::int64_t most = std::clamp<std::int64_t>((enough_parts + products - 1) / products, 1, most_parts);
  if (of_columns) return std::clamp<std::int64_t>(size / part_columns, 1, most);
  const std::int64_t fewest = std::clamp<std::int64_t>(size / part_alignment, 1, std::min(least_parts, most));
  return std::clamp(size / part_rows, fewest, most);
}

std::int64_t part_begin(std::int64_t rows, std::int64_t parts, std::int64_t part) {
  return part == parts ? rows : rows * part / parts / part_alignment * part_alignment;
}

bool is_chunked_by_rows(const Program& program, const Equation& equation) {
  if (equation.operands.size() != 1 || !equation.regions.empty() || !equation.op.local()) return false;
  const Type& operand = program.type(equation.operands.front());
  const std::vector<Type> results = types_of(program, equation.results);
  if (operand.shape.size() < 2 || operand.shape.front() == 0 || numel(operand) == 0) return false;
  if (chunk_unit % (numel(operand) / operand.shape.front()) != 0) return false;
  const RowRule rule = equation.op.rows({&operand, 1}, results);
  return rule.kind == RowRule::Kind::keeps && !rule.reads_all_of(0) &&
         std::all_of(results.begin(), results.end(), [&](const Type& result) {
           return !result.shape.empty() && result.shape.front() == operand.shape.front();
         });
}

Value chunked_value(const Program& program, const Equation& equation) {
  const bool by_rows = !equation.op.rules().elementwise && is_chunked_by_rows(program, equation);
  return by_rows ? equation.operands.front() : equation.results.front();
}

bool Plan::is_tiny() const { return work < tiny_work; }
bool Plan::is_short() const { return work < short_work; }

std::int64_t Plan::max_pieces() const {
  std::size_t most = 1;
  for (const Cut& cut : cuts) most = std::max(most, cut.pieces.size());
  return static_cast<std::int64_t>(most);
}

}  // namespace pmaptrain::cpu
