#include "core/runtime/cpu/request.h"

#include <algorithm>

#include "core/analysis/row_cut.h"
#include "core/base/saturate.h"
#include "core/mesh/blocks.h"

namespace pmaptrain::cpu {

std::int64_t slice_index(const Plan& plan, const Buffer& buffer, const Extent& extent, std::int64_t instance) {
  const Mesh& mesh = plan.program->mesh;
  // Which of the devices that hold the instance is asked only matters for a value that differs among them.
  const std::int64_t device = extent.axes.contains(buffer.axes)
                                  ? mesh.device_at(instance, extent.axes)
                                  : plan.share().own_device(instance, extent.axes).value_or(-1);
  return device < 0 ? -1 : mesh.position(device, buffer.axes);
}

bool is_stacked(const Plan& plan, const Buffer& buffer, const Extent& extent) {
  if (buffer.pool == Pool::arena) return true;
  if (buffer.axes.empty() || buffer.pool == Pool::piece || extent.instances() == 1) return false;
  return slice_index(plan, buffer, extent, extent.first + 1) != slice_index(plan, buffer, extent, extent.first);
}

KernelRequest request_of(const Plan& plan, const Kernel& kernel, const Extent& extent) {
  KernelRequest out;
  const Equation& equation = *kernel.equation;
  out.operands = types_of(*plan.program, equation.operands);
  out.results = types_of(*plan.program, equation.results);
  for (std::size_t i = 0; i < kernel.operand_reads.size(); ++i) {
    if (kernel.operand_reads[i] != RowAccess::whole) out.operands[i].shape.front() = extent.count;
  }
  for (std::size_t i = 0; i < kernel.result_has_rows.size(); ++i) {
    if (kernel.result_has_rows[i]) out.results[i].shape.front() = extent.count;
  }
  if (extent.kind == Extent::Kind::chunk) {
    const bool by_rows = !equation.op.rules().elementwise;
    const auto cut = [&](Type& type) {
      if (by_rows) {
        type.shape.front() = type.shape.front() * extent.count / extent.chunked_elements;
      } else {
        type.shape = numel(type) == extent.chunked_elements ? Shape{extent.count} : Shape{};
      }
    };
    for (Type& type : out.operands) cut(type);
    for (Type& type : out.results) cut(type);
  }
  const bool several = is_stacked(plan, buffer_of(plan, kernel.results.front()), extent);
  out.request.devices = several ? extent.instances() : 1;
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    const Buffer& operand = buffer_of(plan, kernel.operands[i]);
    out.request.stacked.push_back(out.request.devices == 1 || is_stacked(plan, operand, extent));
    if (operand.layout == Layout::packed) {
      out.request.packed = i;
      out.request.stacked[i] = false;
    }
  }
  if (!equation.regions.empty()) {
    out.request.region = &equation.regions.front();
    out.request.types = plan.program->types;
  }
  return out;
}

Extent extent_of(const Cut& cut, const IndexRange& piece) {
  Extent extent;
  extent.kind = Extent::Kind::piece;
  extent.first = piece.first;
  extent.count = piece.count;
  extent.axes = cut.axes;
  extent.rows_per_instance = cut.rows_per_instance;
  extent.instance = cut.rows_per_instance > 0 ? piece.first / cut.rows_per_instance : piece.first;
  return extent;
}

AxisSet axes_of_rows(const Plan& plan, const ProductInParts& parts) {
  return plan.program->type(parts.equation->operands.front()).varying;
}

AxisSet axes_of_sums(const Plan& plan, const ProductInParts& parts) {
  return axes_of_rows(plan, parts) - parts.sum->op.axes();
}

std::vector<IndexRange> runs_of(const Plan& plan, const ProductInParts& parts, std::int64_t result) {
  const Mesh& mesh = plan.program->mesh;
  const AxisSet axes = axes_of_rows(plan, parts), kept = axes_of_sums(plan, parts);
  const std::int64_t span = contiguous_instances(mesh, axes, parts.apart);
  std::vector<IndexRange> runs = Blocks(mesh, plan.options.blocks).runs(axes, span);
  std::erase_if(runs,
                [&](const IndexRange& run) { return mesh.position(mesh.device_at(run.first, axes), kept) != result; });
  return runs;
}

std::size_t runs_of_block(const Plan& plan, const ProductInParts& parts, std::span<const IndexRange> runs) {
  const Share share = plan.share();
  const auto block = [&](const IndexRange& run) {
    return share.blocks().of_instance(run.first, axes_of_rows(plan, parts));
  };
  std::size_t count = 1;
  while (count < runs.size() && block(runs[count]) == block(runs.front())) ++count;
  return count;
}

std::size_t sums_in_arena(const Plan& plan, const ProductInParts& parts) {
  std::int64_t most = 1;  // blocks
  bool adds_runs = false;
  for (std::int64_t result = 0; result < plan.program->mesh.group_size(axes_of_sums(plan, parts)); ++result) {
    const std::vector<IndexRange> all = runs_of(plan, parts, result);
    std::int64_t blocks = 0;
    for (std::span<const IndexRange> runs = all; !runs.empty(); ++blocks) {
      const std::size_t count = runs_of_block(plan, parts, runs);
      adds_runs = adds_runs || count > 1;
      runs = runs.subspan(count);
    }
    most = std::max(most, blocks);
  }
  return static_cast<std::size_t>(tree_depth(most)) + (adds_runs ? 1 : 0) + (parts.of_columns ? 1 : 0);
}

std::vector<std::int64_t> rows_of_pieces(const Plan& plan, AxisSet axes, const IndexRange& instances) {
  std::vector<std::int64_t> rows;
  const auto cut = std::find_if(plan.cuts.begin(), plan.cuts.end(),
                                [&](const Cut& each) { return each.axes == axes && each.rows_per_instance > 0; });
  const std::int64_t first = instances.first * cut->rows_per_instance;
  const std::int64_t end = first + instances.count * cut->rows_per_instance;
  for (const IndexRange& piece : cut->pieces) {
    if (piece.count > 0 && piece.first >= first && piece.first < end) rows.push_back(piece.count);
  }
  return rows;
}

Type type_of_part(const Plan& plan, const ProductInParts& parts, std::int64_t rows) {
  Type part = plan.program->type(parts.equation->results.front());
  (parts.of_columns ? part.shape.back() : part.shape.front()) = rows;
  return part;
}

std::vector<Extent> extents_of(const Plan& plan, const ChunkList& chunked) {
  std::vector<Extent> extents;
  if (chunked.elements == 0) return extents;
  const IndexRange instances = plan.share().instances(chunked.axes);
  for (std::int64_t i = 0; i < instances.count * chunked.chunks; ++i) {
    const std::int64_t chunk = i % chunked.chunks;
    Extent& extent = extents.emplace_back();
    extent.kind = Extent::Kind::chunk;
    extent.first = chunk_begin(chunked.elements, chunk);
    extent.count = chunk_begin(chunked.elements, chunk + 1) - extent.first;
    extent.axes = chunked.axes;
    extent.instance = instances.first + i / chunked.chunks;
    extent.chunked_elements = chunked.elements;
  }
  return extents;
}

std::vector<Extent> extents_of(const Plan& plan, const Instruction& task) {
  std::vector<Extent> extents;
  const ProductInParts* const parts = task.as<ProductInParts>();
  const std::int64_t count = parts != nullptr ? parts->parts : 1;
  const std::int64_t rows = parts != nullptr ? size_in_parts(*plan.program, *parts->equation) : 1;
  const AxisSet axes = parts != nullptr ? axes_of_sums(plan, *parts) : AxisSet();
  const IndexRange instances = plan.share().instances(axes);
  for (std::int64_t i = 0; i < instances.count * count; ++i) {
    const std::int64_t part = i % count;
    Extent& extent = extents.emplace_back();
    extent.kind = Extent::Kind::part;
    extent.first = part_begin(rows, count, part);
    extent.count = part_begin(rows, count, part + 1) - extent.first;
    extent.axes = axes;
    extent.instance = instances.first + i / count;
  }
  return extents;
}

std::vector<Extent> extents_of(const Plan& plan, const PieceList& list) {
  std::vector<Extent> extents;
  const Cut& cut = plan.cuts[static_cast<std::size_t>(list.cut)];
  const auto first = static_cast<std::size_t>(cut.own.first), count = static_cast<std::size_t>(cut.own.count);
  for (std::size_t p = first; p < first + count; ++p) {
    if (cut.pieces[p].count == 0) continue;
    extents.push_back(extent_of(cut, cut.pieces[p]));
    extents.back().piece = p - first;
  }
  return extents;
}

std::map<int, PackedReader> readers_of_packed(const Plan& plan) {
  std::map<int, PackedReader> readers;
  const auto look = [&](const auto& self, const std::vector<Instruction>& instructions, int cut) -> void {
    for (const Instruction& instruction : instructions) {
      if (const Loop* const loop = instruction.as<Loop>()) self(self, loop->body, cut);
      const Kernel* const kernel = instruction.as<Kernel>();
      if (kernel == nullptr) continue;
      for (int operand : kernel->operands) {
        if (buffer_of(plan, operand).layout == Layout::packed) readers[operand] = {kernel, cut};
      }
    }
  };
  for (const Stage& stage : plan.stages) {
    for (const PieceList& list : stage.piece_lists) look(look, list.instructions, list.cut);
  }
  return readers;
}

Extent first_piece_of(const Plan& plan, const PackedReader& reader) {
  const Cut& cut = plan.cuts[static_cast<std::size_t>(reader.cut)];
  return extent_of(cut, cut.pieces.front());
}

}  // namespace pmaptrain::cpu
