// How work is cut into pieces, chunks and parts: by the program and fixed constants alone.
#include <algorithm>

#include "core/ops/all.h"
#include "core/runtime/cpu/plan.h"

namespace pmaptrain::cpu {
namespace {

// Floating operations and bytes that pay for the dispatch of a piece's kernels: about 10 microseconds of work.
constexpr double piece_work = 1 << 20;
// Below this, some 3 microseconds, a barrier costs more than a second worker saves.
constexpr double tiny_work = 1 << 18;

// Fewer rows than these leave a large product's inner loops short. Still a few workers should have a piece each.
constexpr std::int64_t least_rows = 64;
constexpr std::int64_t few_pieces = 4;

}  // namespace

std::optional<std::size_t> packable_operand(const Program& program, const Equation& equation) {
  const auto prepared = kernels_of(equation.op).prepared_operand;
  const std::optional<std::size_t> index = prepared != nullptr ? prepared(equation.op.data()) : std::nullopt;
  if (!index) return std::nullopt;
  return numel(program.type(equation.operands[*index])) >= prepared_elements ? index : std::nullopt;
}

std::int64_t pieces_for(const Program& program, double work) {
  if (work < tiny_work) return 1;
  auto pieces = static_cast<std::int64_t>(std::clamp(work / piece_work, 2.0, static_cast<double>(most_pieces)));
  for_each_equation(program.equations, [&](const Equation& equation) {
    if (!packable_operand(program, equation)) return;
    const Type& result = program.type(equation.results.front());
    if (result.varying.empty()) return;
    const std::int64_t rows = result.shape.front() * program.mesh.devices();
    pieces = std::min(pieces, std::max(few_pieces, rows / least_rows));
  });
  return pieces;
}

std::int64_t part_begin(std::int64_t rows, std::int64_t parts, std::int64_t part) {
  return part == parts ? rows : rows * part / parts / part_alignment * part_alignment;
}

std::int64_t chunks_of(std::int64_t elements) {
  return std::clamp<std::int64_t>(elements / chunk_elements, 1, most_chunks);
}

std::int64_t chunk_begin(const Chunked& chunked, std::int64_t chunk) {
  constexpr std::int64_t unit = 64;
  const std::int64_t size = (chunked.elements + chunked.chunks * unit - 1) / (chunked.chunks * unit) * unit;
  return std::min(chunked.elements, chunk * size);
}

bool Plan::is_tiny() const { return work < tiny_work; }

}  // namespace pmaptrain::cpu
