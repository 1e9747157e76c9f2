#include "core/runtime/cpu/temporaries.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/saturate.h"
#include "core/storage/intervals.h"

namespace pmaptrain::cpu {
namespace {

// Memory that several values use one after another.
struct Slot {
  int user = -1;  // the value that uses it last
  int first = 0;  // position at which the first value is written
  std::size_t bytes = 0, offset = 0;
  int first_stage = 0, last_stage = 0;  // of all values that use it
};

class Placing {
 public:
  Placing(const Lowered& lowered, const Lifetimes& lifetimes, const std::vector<Pool>& pools)
      : lowered_(lowered), lifetimes_(lifetimes), pools_(pools) {}

  Temporaries run(std::vector<int> roots, std::size_t shared_bytes) {
    std::stable_sort(roots.begin(), roots.end(), [&](int a, int b) { return position_of(a) < position_of(b); });
    std::vector<std::size_t> slot_of;
    slot_of.reserve(roots.size());
    for (const int root : roots) slot_of.push_back(choose_slot(root));
    Temporaries out;
    out.arena_bytes =
        place_slots(false, 0, [&](const Slot& slot) { return std::pair(slot.first, last_of(slot.user)); });
    // Between two stages is a barrier, so workers may divide what is in the memory in any way.
    out.shared_bytes =
        place_slots(true, shared_bytes, [](const Slot& slot) { return std::pair(slot.first_stage, slot.last_stage); });
    for (std::size_t i = 0; i < roots.size(); ++i) out.values.push_back({roots[i], slots_[slot_of[i]].offset});
    return out;
  }

 private:
  const ValueInfo& info(int root) const { return lowered_.info(root); }
  const Type& type(int root) const { return lowered_.type(root); }
  Pool pool_of(int root) const { return pools_[static_cast<std::size_t>(root)]; }
  int position_of(int root) const { return lifetimes_.of(root).first_write.position; }
  int last_of(int root) const { return lifetimes_.of(root).last_position; }

  // Sets the offsets, from `begin` on, of the slots of the shared pool or of the other slots, which need their memory
  // for the range that interval() returns. Returns the end.
  template <class F>
  std::size_t place_slots(bool shared, std::size_t begin, F&& interval) {
    std::vector<Interval> intervals;
    std::vector<Slot*> placed;
    for (Slot& slot : slots_) {
      if ((pool_of(slot.user) == Pool::shared) != shared) continue;
      const auto [first, last] = interval(std::as_const(slot));
      intervals.push_back({static_cast<std::size_t>(first), static_cast<std::size_t>(last), slot.bytes});
      placed.push_back(&slot);
    }
    const Offsets offsets = place(intervals, alignment);
    for (std::size_t i = 0; i < placed.size(); ++i) placed[i]->offset = sum_of(begin, offsets.of[i]);
    return sum_of(begin, offsets.end);
  }

  std::size_t choose_slot(int root) {
    const bool is_shared = pool_of(root) == Pool::shared;
    if (is_shared) release_shared(position_of(root) - 1);
    std::optional<std::size_t> slot = slot_to_take_over(root);
    if (slot) {
      const int operand = slots_[*slot].user;
      used_.erase(operand);
      live_shared_.erase({last_of(operand), operand});
    } else if (is_shared) {
      slot = free_slot(root);
    }
    const auto [first, last] = stages_of(lowered_, lifetimes_.of(root));
    if (!slot) {
      slot = slots_.size();
      slots_.push_back({root, position_of(root), is_shared ? shared_bytes(root) : arena_bytes(root), 0, first, last});
    }
    Slot& chosen = slots_[*slot];
    chosen.user = root;
    chosen.first_stage = std::min(chosen.first_stage, first);
    chosen.last_stage = std::max(chosen.last_stage, last);
    used_[root] = *slot;
    if (is_shared) live_shared_.emplace(last_of(root), root);
    return *slot;
  }

  // The slot of an operand that is not read after an elementwise op has written `result`.
  std::optional<std::size_t> slot_to_take_over(int result) const {
    const Kernel* const kernel = lifetimes_.of(result).writer->as<Kernel>();
    if (kernel == nullptr || !kernel->equation->op.rules().elementwise) return std::nullopt;
    for (const int operand : kernel->operands) {
      const bool reads_range = std::any_of(kernel->operands.begin(), kernel->operands.end(), [&](int other) {
        return other != operand && lowered_.memory_root(other) == operand;
      });
      const auto used = used_.find(operand);
      if (reads_range || used == used_.end() || last_of(operand) != position_of(result)) continue;
      if (pool_of(operand) == pool_of(result) && info(operand).axes == info(result).axes &&
          info(operand).kind == info(result).kind && numel(type(operand)) == numel(type(result)) &&
          size_of(type(operand).dtype) == size_of(type(result).dtype)) {
        return used->second;
      }
    }
    return std::nullopt;
  }

  std::size_t arena_bytes(int root) const {
    const std::size_t whole = bytes(type(root));
    if (pool_of(root) != Pool::arena) return whole;
    const auto most = static_cast<std::size_t>(lowered_.cuts[static_cast<std::size_t>(info(root).cut)].largest());
    if (info(root).kind != RowKind::rows) return product_of(whole, most);
    return product_of(whole / static_cast<std::size_t>(type(root).shape.front()), most);
  }

  // ---- shared memory: within a stage, a temporary may only reuse the memory of one with equally many elements. Both
  // are cut into the same chunks, so a worker does not overwrite elements that another worker still reads. Tasks divide
  // values differently.

  using ChunkShape = std::tuple<std::int64_t, std::size_t, std::uint32_t>;
  ChunkShape shape_of_chunks(int root) const {
    return {numel(type(root)), size_of(type(root).dtype), info(root).axes.bits()};
  }

  std::size_t shared_bytes(int root) const {
    const auto instances = static_cast<std::size_t>(lowered_.share().instances(info(root).axes).count);
    return round_up(product_of(bytes(type(root)), instances), alignment);
  }

  // A slot whose value is not needed any more, if one was in this stage. Those of earlier stages are left to
  // place_slots(), which lets values of any size use their memory.
  std::optional<std::size_t> free_slot(int root) {
    release_shared(position_of(root));
    std::vector<std::size_t>& free = free_shared_[shape_of_chunks(root)];
    const int stage = stages_of(lowered_, lifetimes_.of(root)).first;
    if (free.empty() || info(root).written_by_tasks || slots_[free.back()].last_stage < stage) return std::nullopt;
    const std::size_t slot = free.back();
    free.pop_back();
    return slot;
  }

  // Releases what no instruction after `position` reads, in an order that depends on the program alone.
  void release_shared(int position) {
    while (!live_shared_.empty() && live_shared_.begin()->first <= position) {
      const int root = live_shared_.begin()->second;
      free_shared_[shape_of_chunks(root)].push_back(used_.at(root));
      used_.erase(root);
      live_shared_.erase(live_shared_.begin());
    }
  }

  const Lowered& lowered_;
  const Lifetimes& lifetimes_;
  const std::vector<Pool>& pools_;
  std::vector<Slot> slots_;
  std::map<int, std::size_t> used_;            // by value in use: its slot
  std::set<std::pair<int, int>> live_shared_;  // position of the last read and root, of shared values in use
  std::map<ChunkShape, std::vector<std::size_t>> free_shared_;
};

// Calls f(accumulator) for those that an instruction writes or reads.
template <class F>
void for_each_accumulator(const Instruction& instruction, F&& f) {
  if (const auto* const sums = instruction.as<RowSums>()) {
    for (const int accumulator : sums->accumulators) f(accumulator);
  } else if (const auto* const partial = instruction.as<ReducePartial>()) {
    f(partial->accumulator);
  } else if (const auto* const combine = instruction.as<ReduceCombine>(); combine && combine->accumulator >= 0) {
    f(combine->accumulator);
  } else if (const auto* const loop = instruction.as<Loop>()) {
    for (const Instruction& inner : loop->body) for_each_accumulator(inner, f);
  }
}

// By accumulator: the first and the last stage in which its memory is needed.
std::vector<std::pair<int, int>> stages_of_accumulators(const Lowered& lowered) {
  std::vector<Lifetime> used(lowered.accumulators.size());
  for (std::size_t stage = 0; stage < lowered.stages.size(); ++stage) {
    for_each_instruction(lowered.stages[stage], [&](const Instruction& instruction, Reader, int) {
      for_each_accumulator(instruction, [&](int accumulator) {
        Lifetime& lifetime = used[static_cast<std::size_t>(accumulator)];
        const bool is_first = std::exchange(lifetime.writer, &instruction) == nullptr;
        if (is_first) lifetime.first_write.stage = static_cast<int>(stage);
        lifetime.last_stage = static_cast<int>(stage);
      });
    });
  }
  std::vector<std::pair<int, int>> stages;
  stages.reserve(used.size());
  for (const Lifetime& lifetime : used) stages.push_back(stages_of(lowered, lifetime));
  return stages;
}

}  // namespace

Temporaries place_temporaries(const Lowered& lowered, const Lifetimes& lifetimes, const std::vector<Pool>& pools,
                              const std::vector<int>& roots, std::size_t shared_bytes) {
  return Placing(lowered, lifetimes, pools).run(roots, shared_bytes);
}

std::size_t place_accumulators(Lowered& lowered) {
  // The small arrays of a piece share cache lines. After the barrier, a worker waits for each line that another worker
  // has written, so a step of a few scalars takes less time with fewer lines.
  std::map<int, std::size_t> line_of_cut;  // the bytes of a piece
  const auto is_small = [](const Accumulator& accumulator) { return accumulator.bytes() <= alignment; };
  const auto pieces = [&](int cut) {
    return static_cast<std::size_t>(lowered.cuts[static_cast<std::size_t>(cut)].own.count);
  };
  for (Accumulator& accumulator : lowered.accumulators) {
    if (!is_small(accumulator)) continue;
    std::size_t& end = line_of_cut[accumulator.cut];
    accumulator.offset = round_up(end, size_of(accumulator.dtype));
    end = accumulator.offset + accumulator.bytes();
  }
  std::size_t bytes = 0;
  std::map<int, std::size_t> begin_of_cut;
  for (const auto& [cut, line] : line_of_cut) {
    begin_of_cut[cut] = bytes;
    bytes = sum_of(bytes, product_of(round_up(line, alignment), pieces(cut)));
  }
  const std::vector<std::pair<int, int>> stages = stages_of_accumulators(lowered);
  std::vector<Interval> intervals;
  std::vector<Accumulator*> large;
  for (std::size_t i = 0; i < lowered.accumulators.size(); ++i) {
    Accumulator& accumulator = lowered.accumulators[i];
    if (is_small(accumulator)) {
      accumulator.piece_stride = round_up(line_of_cut.at(accumulator.cut), alignment);
      accumulator.offset += begin_of_cut.at(accumulator.cut);
      continue;
    }
    accumulator.piece_stride = round_up(accumulator.bytes(), alignment);
    const auto [first, last] = stages[i];
    intervals.push_back({static_cast<std::size_t>(first), static_cast<std::size_t>(last),
                         product_of(accumulator.piece_stride, pieces(accumulator.cut))});
    large.push_back(&accumulator);
  }
  const Offsets offsets = place(intervals, alignment);
  for (std::size_t i = 0; i < large.size(); ++i) large[i]->offset = sum_of(bytes, offsets.of[i]);
  return sum_of(bytes, offsets.end);
}

}  // namespace pmaptrain::cpu
