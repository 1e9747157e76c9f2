// The data structure that lowering fills: instructions by stage, and cuts.
#include <algorithm>

#include "core/runtime/cpu/lower.h"

namespace pmaptrain::cpu {

int Lowered::add_like(int like) {
  ValueInfo copy = info(like);
  copy.root = static_cast<int>(values.size());
  copy.within = -1;
  copy.begin = 0;
  copied_types.push_back(Type(type(like)));
  values.push_back(copy);
  return copy.root;
}

int Lowered::add_range(int id, std::int64_t begin, Shape shape) {
  const int range = add_like(id);
  copied_types.back().shape = std::move(shape);
  info(range).within = memory_of(id);
  info(range).begin = info(id).begin + begin;
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
    if (cuts[i].axes == axes && cuts[i].rows == 0) return static_cast<int>(i);
  }
  // A piece has neighbouring instances along the innermost axis only. Then its slices of a value that varies over fewer
  // axes are one slice, or contiguous.
  const Mesh& mesh = program->mesh;
  int innermost = -1, used = 0;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
    if (axes.contains(axis) && mesh.size(axis) > 1) innermost = axis, ++used;
  }
  const std::int64_t instances = mesh.group_size(axes);
  const std::int64_t run = used > 1 && varies_in_parts ? mesh.size(innermost) : instances;
  cuts.push_back({axes, 0, cut_instances(instances, run, target)});
  return static_cast<int>(cuts.size()) - 1;
}

Chunked& Lowered::chunked(int stage, std::int64_t elements, AxisSet axes) {
  std::vector<Chunked>& all = stages[static_cast<std::size_t>(stage)].chunked;
  const auto same = std::find_if(
      all.begin(), all.end(), [&](const Chunked& known) { return known.elements == elements && known.axes == axes; });
  if (same != all.end()) return *same;
  return all.emplace_back(Chunked{elements, chunks_of(elements), axes, {}});
}

std::vector<Instruction>& Lowered::pieces(int stage, int cut) {
  std::vector<PieceList>& all = stages[static_cast<std::size_t>(stage)].pieces;
  const auto same = std::find_if(all.begin(), all.end(), [&](const PieceList& known) { return known.cut == cut; });
  return (same != all.end() ? *same : all.emplace_back(PieceList{cut, {}})).instructions;
}

void Lowered::add(Instruction instruction, const ValueInfo& like, int stage, std::int64_t elements) {
  if (static_cast<std::size_t>(stage) >= stages.size()) stages.resize(static_cast<std::size_t>(stage) + 1);
  Stage& into = stages[static_cast<std::size_t>(stage)];
  if (like.of == Class::varying) {
    pieces(stage, like.cut >= 0 ? like.cut : cut_of(like.axes)).push_back(std::move(instruction));
  } else if (like.of != Class::chunked) {
    into.once.push_back(std::move(instruction));
  } else if (instruction.as<Parts>() != nullptr || instruction.as<PackOperand>() != nullptr) {
    into.tasks.push_back(std::move(instruction));
  } else {
    chunked(stage, elements, like.axes).instructions.push_back(std::move(instruction));
  }
}

}  // namespace pmaptrain::cpu
