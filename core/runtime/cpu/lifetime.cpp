#include "core/runtime/cpu/lifetime.h"

#include <algorithm>

namespace pmaptrain::cpu {
namespace {

class Finder {
 public:
  explicit Finder(const Lowered& lowered) : lowered_(lowered) {}

  Lifetimes run() {
    lifetimes_.index_of_root.assign(lowered_.values.size(), -1);
    for (std::size_t i = 0; i < lowered_.values.size(); ++i) {
      const int root = lowered_.values[i].root;
      if (root != static_cast<int>(i) || lowered_.info(root).bucket >= 0) continue;
      lifetimes_.index_of_root[i] = static_cast<int>(lifetimes_.values.size());
      lifetimes_.values.emplace_back().root = root;
    }
    for (std::size_t number = 0; number < lowered_.stages.size(); ++number) {
      stage_ = static_cast<int>(number);
      for_each_instruction(lowered_.stages[number], [&](const Instruction& instruction, Reader reader, int cut) {
        cut_ = cut;
        visit(instruction, reader);
      });
    }
    // An array inside a bucket has the lifetime of the bucket.
    for (std::size_t i = 0; i < lowered_.values.size(); ++i) {
      const int bucket = lowered_.values[i].bucket;
      if (bucket >= 0) lifetimes_.index_of_root[i] = lifetimes_.index_of_root[static_cast<std::size_t>(bucket)];
    }
    return std::move(lifetimes_);
  }

 private:
  void visit(const Instruction& instruction, Reader reader) {
    ++position_;
    if (const Loop* const loop = instruction.as<Loop>()) return visit_loop(instruction, *loop, reader);
    const ReduceCombine* const combine = instruction.as<ReduceCombine>();
    const bool exchanges = instruction.as<Exchange>() != nullptr || (combine != nullptr && combine->operand >= 0);
    const Reader as = exchanges ? Reader::exchange : reader;
    AxisSet axes;  // the axes of the result: the instruction runs on its chunks
    for_each_value(
        instruction, [](int) {}, [&](int root) { axes = lowered_.info(root).axes; });
    // An instruction on chunks may read elements that belong to another worker's chunk: of a value with other axes, or
    // of an array inside a bucket. Its reads then count as reads of a task.
    const auto reads_as = [&](int root) {
      const ValueInfo& info = lowered_.info(root);
      return as == Reader::chunk && (info.axes != axes || info.bucket >= 0) ? Reader::task : as;
    };
    for_each_value(
        instruction, [&](int root) { read(root, reads_as(root)); },
        [&](int root) { write(root, instruction, loops_.size()); });
  }

  void visit_loop(const Instruction& instruction, const Loop& loop, Reader reader) {
    loops_.push_back(&loop);
    const std::size_t depth = loops_.size();
    // A carry counts as written outside the loop, so it lives until the end of the loop.
    for (const Copy& copy : loop.carry_copies) {
      ++position_;
      read(copy.from, reader);
      if (write(copy.to, instruction, depth - 1)) kept_.emplace_back(lowered_.memory_root(copy.to), depth - 1);
    }
    for (const Copy& slice : loop.slice_copies) read(slice.from, reader);
    for (const Copy& slice : loop.slice_copies) write(slice.to, instruction, depth);
    for (const Instruction& inner : loop.body) visit(inner, reader);
    loops_.pop_back();
    lifetimes_.loop_end[&instruction] = ++position_;
    // The loop's carries, and the values from outside that its body reads, live until this position.
    for (const auto& [root, outside] : kept_) {
      if (outside >= loops_.size()) extend(root);
    }
    std::erase_if(kept_, [&](const auto& entry) { return entry.second >= loops_.size(); });
  }

  Lifetime& of(int root) {
    return lifetimes_.values[static_cast<std::size_t>(lifetimes_.index_of_root[static_cast<std::size_t>(root)])];
  }

  void read(int value, Reader reader) {
    const int root = lowered_.memory_root(value);
    Lifetime& lifetime = of(root);
    lifetime.reads.push_back({stage_, position_, reader, cut_});
    extend(root);
    if (loops_.empty()) return;
    const auto home = depth_.find(root);
    const std::size_t written_at = home == depth_.end() ? 0 : home->second;
    if (written_at < loops_.size()) kept_.emplace_back(root, written_at);
  }

  // `depth` is the number of loops that enclose the write. Returns whether this is the first write of the value.
  bool write(int value, const Instruction& by, std::size_t depth) {
    const int root = lowered_.memory_root(value);
    Lifetime& lifetime = of(root);
    const bool first = lifetime.writer == nullptr;
    if (first) {
      lifetime.writer = &by;
      lifetime.first_write = {stage_, position_, Reader::piece};
      lifetime.loop = loops_.empty() ? nullptr : loops_.back();
      if (depth > 0) depth_[root] = depth;
    }
    extend(root);
    return first;
  }

  void extend(int root) {
    Lifetime& lifetime = of(root);
    lifetime.last_position = std::max(lifetime.last_position, position_);
    lifetime.last_stage = std::max(lifetime.last_stage, stage_);
  }

  const Lowered& lowered_;
  Lifetimes lifetimes_;
  std::map<int, std::size_t> depth_;  // by root: the number of loops that enclose the first write, if any
  // Values that the current loops carry or read but that were written outside of them, and the depth of that write.
  std::vector<std::pair<int, std::size_t>> kept_;
  std::vector<const Loop*> loops_;
  int stage_ = 0;
  int position_ = 0;
  int cut_ = -1;  // of the instruction that is visited, see for_each_instruction
};

}  // namespace

std::pair<int, int> stages_of(const Lowered& lowered, const Lifetime& value) {
  int first = value.first_write.stage, last = value.last_stage;
  for (const Access& read : value.reads) first = std::min(first, read.stage);
  // Outer loops come first, so the range may grow beyond an inner loop, and then beyond the outer one.
  for (auto loop = lowered.loops.rbegin(); loop != lowered.loops.rend(); ++loop) {
    const auto begin = static_cast<int>(loop->first), end = static_cast<int>(loop->end);
    const bool overlaps = first < end && last >= begin, within = first >= begin && last < end;
    const bool next_iteration = std::any_of(value.reads.begin(), value.reads.end(), [&](const Access& read) {
      return read.position < value.first_write.position;
    });
    if (!overlaps || (within && !next_iteration)) continue;
    first = std::min(first, begin);
    last = std::max(last, end - 1);
  }
  return {first, last};
}

Lifetimes find_lifetimes(const Lowered& lowered) { return Finder(lowered).run(); }

}  // namespace pmaptrain::cpu
