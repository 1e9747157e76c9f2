// The member functions of Lowered, the data structure that lowering fills.
#include <algorithm>

#include "core/mesh/blocks.h"
#include "core/runtime/cpu/lower.h"

namespace pmaptrain::cpu {

int Lowered::add_like(int like) {
  ValueInfo copy = info(like);
  copy.root = static_cast<int>(values.size());
  copy.bucket = -1;
  copy.bucket_begin = 0;
  copied_types.push_back(Type(type(like)));
  values.push_back(copy);
  return copy.root;
}

int Lowered::add_range(int id, std::int64_t begin, Shape shape) {
  const int range = add_like(id);
  copied_types.back().shape = std::move(shape);
  info(range).bucket = memory_root(id);
  info(range).bucket_begin = info(id).bucket_begin + begin;
  return range;
}

const StageLoop* Lowered::loop_of(int stage) const {
  const auto at = static_cast<std::size_t>(stage);
  const auto innermost = std::find_if(loops.rbegin(), loops.rend(),
                                      [&](const StageLoop& loop) { return loop.first <= at && at < loop.end; });
  return innermost == loops.rend() ? nullptr : &*innermost;
}

int Lowered::cut_of(AxisSet axes) {
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    if (cuts[i].axes == axes && cuts[i].rows_per_instance == 0) return static_cast<int>(i);
  }
  // If kernels also read values over other axes, a piece may only have instances that are neighbours along the
  // innermost axis. Of a value that varies over fewer axes, the piece then reads one slice, or contiguous slices.
  // Whether there are such kernels does not depend on shards of buckets, which only collectives bring together with
  // other values. So the pieces, and the order in which they are added, are the same with shards and without.
  const Mesh& mesh = program->mesh;
  int innermost = -1, used = 0;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
    if (axes.contains(axis) && mesh.size(axis) > 1) innermost = axis, ++used;
  }
  const std::int64_t span = used > 1 && mixed.contains(axes.bits()) ? mesh.size(innermost) : mesh.group_size(axes);
  return add_cut({axes, 0, cut_instances(Blocks(mesh, options.blocks).runs(axes, span), target), {}});
}

int Lowered::rows_cut_of(AxisSet axes) const {
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    if (cuts[i].axes == axes && cuts[i].rows_per_instance > 0) return static_cast<int>(i);
  }
  return -1;
}

int Lowered::add_cut(Cut cut) {
  const IndexRange instances = share().instances(cut.axes);
  const std::int64_t unit = std::max<std::int64_t>(1, cut.rows_per_instance);
  // Pieces do not cross the bounds of blocks, and neither does the share of a process.
  const auto piece_from = [&](std::int64_t first) {
    return std::partition_point(cut.pieces.begin(), cut.pieces.end(),
                                [&](const IndexRange& piece) { return piece.first < first * unit; }) -
           cut.pieces.begin();
  };
  cut.own.first = piece_from(instances.first);
  cut.own.count = piece_from(instances.first + instances.count) - cut.own.first;
  cuts.push_back(std::move(cut));
  return static_cast<int>(cuts.size()) - 1;
}

ChunkList& Lowered::chunk_list(int stage, std::int64_t elements, AxisSet axes) {
  std::vector<ChunkList>& all = stages[static_cast<std::size_t>(stage)].chunk_lists;
  const auto same = std::find_if(
      all.begin(), all.end(), [&](const ChunkList& known) { return known.elements == elements && known.axes == axes; });
  if (same != all.end()) return *same;
  return all.emplace_back(ChunkList{elements, chunk_count(elements), axes, {}});
}

std::vector<Instruction>& Lowered::piece_instructions(int stage, int cut) {
  std::vector<PieceList>& all = stages[static_cast<std::size_t>(stage)].piece_lists;
  const auto same = std::find_if(all.begin(), all.end(), [&](const PieceList& known) { return known.cut == cut; });
  return (same != all.end() ? *same : all.emplace_back(PieceList{cut, {}})).instructions;
}

void Lowered::add(Instruction instruction, const ValueInfo& like, int stage, std::int64_t elements) {
  if (static_cast<std::size_t>(stage) >= stages.size()) stages.resize(static_cast<std::size_t>(stage) + 1);
  Stage& into = stages[static_cast<std::size_t>(stage)];
  if (like.storage == Storage::varying) {
    piece_instructions(stage, like.cut >= 0 ? like.cut : cut_of(like.axes)).push_back(std::move(instruction));
  } else if (like.storage != Storage::chunked) {
    into.every_worker.push_back(std::move(instruction));
  } else if ((like.by_one_task && instruction.as<Kernel>() != nullptr) || instruction.as<ProductInParts>() != nullptr ||
             instruction.as<PackOperand>() != nullptr || instruction.as<Communicate>() != nullptr ||
             instruction.as<Exchange>() != nullptr) {
    into.tasks.push_back(std::move(instruction));
  } else {
    chunk_list(stage, elements, like.axes).instructions.push_back(std::move(instruction));
  }
}

}  // namespace pmaptrain::cpu
