// Decides which operands are packed.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/base/saturate.h"
#include "core/runtime/cpu/request.h"

namespace pmaptrain::cpu {
namespace {

struct Packing {
  std::string layout;
  std::size_t bytes = 0;
};

// The packed layout of an operand that the kernels of all pieces prefer. 0 bytes if they take it as it is, or if
// kernels for pieces of different sizes prefer different layouts.
Packing packing_of(const Plan& plan, const PackedReader& reader, KernelChoice choice) {
  Packing packing;
  std::set<std::int64_t> counts;
  const Cut& cut = plan.cuts[static_cast<std::size_t>(reader.cut)];
  for (const IndexRange& piece : cut.pieces) {
    if (!counts.insert(piece.count).second) continue;
    KernelRequest request = request_of(plan, *reader.kernel, extent_of(cut, piece));
    const auto preparation = make_preparation(reader.kernel->equation->op, request.get(), choice);
    if (!preparation || (packing.bytes > 0 && preparation->layout() != packing.layout)) return {};
    packing = {preparation->layout(), preparation->bytes()};
  }
  return packing;
}

void replace_buffers(std::vector<Instruction>& instructions, const std::map<int, int>& replaced) {
  const auto replace = [&](int& buffer) {
    const auto found = replaced.find(buffer);
    if (found != replaced.end()) buffer = found->second;
  };
  for (Instruction& instruction : instructions) {
    for_each_value(instruction, replace, replace);
    if (Loop* const loop = instruction.as<Loop>()) replace_buffers(loop->body, replaced);
  }
}

}  // namespace

std::size_t settle_packing(Plan& plan, const KernelFactory& kernels) {
  const std::map<int, PackedReader> readers = readers_of_packed(plan);
  if (readers.empty()) return 0;
  use_one_thread_in_libraries();
  std::map<int, int> replaced;                           // packed buffers that are not made
  std::map<std::pair<int, std::string>, int> by_layout;  // by what is packed: the first buffer with it in this layout
  std::size_t total = 0;
  for (Stage& stage : plan.stages) {
    std::erase_if(stage.tasks, [&](const Instruction& instruction) {
      const PackOperand* const pack = instruction.as<PackOperand>();
      if (pack == nullptr) return false;
      const Packing packing = packing_of(plan, readers.at(pack->to), kernels.choice);
      if (packing.bytes == 0) {
        replaced[pack->to] = pack->from;
        return true;
      }
      const auto [first, is_new] = by_layout.try_emplace({pack->from, packing.layout}, pack->to);
      if (!is_new) {
        replaced[pack->to] = first->second;
        return true;
      }
      plan.buffers[static_cast<std::size_t>(pack->to)].offset = total;
      total = sum_of(total, round_up(packing.bytes, alignment));
      return false;
    });
  }
  for (Stage& stage : plan.stages) {
    for (PieceList& list : stage.piece_lists) replace_buffers(list.instructions, replaced);
  }
  erase_empty_stages(plan);
  return total;
}

}  // namespace pmaptrain::cpu
