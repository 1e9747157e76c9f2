#include "core/runtime/cpu/lifetime.h"

#include <algorithm>

namespace pmaptrain::cpu {
namespace {

class Finder {
 public:
  explicit Finder(const Lowered& lowered) : lowered_(lowered) {}

  Lifetimes run() {
    lifetimes_.places.assign(lowered_.values.size(), -1);
    for (std::size_t i = 0; i < lowered_.values.size(); ++i) {
      const int root = lowered_.values[i].root;
      if (root != static_cast<int>(i) || lowered_.info(root).within >= 0) continue;
      lifetimes_.places[i] = static_cast<int>(lifetimes_.values.size());
      lifetimes_.values.emplace_back().root = root;
    }
    for (std::size_t number = 0; number < lowered_.stages.size(); ++number) {
      stage_ = static_cast<int>(number);
      for_each_instruction(lowered_.stages[number], [&](const Instruction& instruction, Reader reader, int cut) {
        cut_ = cut;
        visit(instruction, reader);
      });
    }
    // A range of a bucket has the bucket's lifetime.
    for (std::size_t i = 0; i < lowered_.values.size(); ++i) {
      const int bucket = lowered_.values[i].within;
      if (bucket >= 0) lifetimes_.places[i] = lifetimes_.places[static_cast<std::size_t>(bucket)];
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
    AxisSet axes;  // axes of the chunks
    for_each_value(
        instruction, [](int) {}, [&](int root) { axes = lowered_.info(root).axes; });
    // A chunk that reads a value over other axes, or a range of a bucket, may need elements that another worker's chunk
    // has written.
    const auto reads_as = [&](int root) {
      const ValueInfo& info = lowered_.info(root);
      return as == Reader::chunk && (info.axes != axes || info.within >= 0) ? Reader::task : as;
    };
    for_each_value(
        instruction, [&](int root) { read(root, reads_as(root)); },
        [&](int root) { write(root, instruction, loops_.size()); });
  }

  void visit_loop(const Instruction& instruction, const Loop& loop, Reader reader) {
    loops_.push_back(&loop);
    const std::size_t depth = loops_.size();
    // A carry lives outside the loop's body, until the end of the loop.
    for (const Copy& copy : loop.before) {
      ++position_;
      read(copy.from, reader);
      if (write(copy.to, instruction, depth - 1)) kept_.emplace_back(lowered_.memory_of(copy.to), depth - 1);
    }
    for (const Copy& slice : loop.slices) read(slice.from, reader);
    for (const Copy& slice : loop.slices) write(slice.to, instruction, depth);
    for (const Instruction& inner : loop.body) visit(inner, reader);
    loops_.pop_back();
    lifetimes_.end[&instruction] = ++position_;
    // Values that a loop carries, or reads from outside, live until its end.
    for (const auto& [root, outside] : kept_) {
      if (outside >= loops_.size()) extend(root);
    }
    std::erase_if(kept_, [&](const auto& entry) { return entry.second >= loops_.size(); });
  }

  Lifetime& of(int root) {
    return lifetimes_.values[static_cast<std::size_t>(lifetimes_.places[static_cast<std::size_t>(root)])];
  }

  void read(int value, Reader reader) {
    const int root = lowered_.memory_of(value);
    Lifetime& lifetime = of(root);
    lifetime.reads.push_back({stage_, position_, reader, cut_});
    extend(root);
    if (loops_.empty()) return;
    const auto home = depth_.find(root);
    const std::size_t written_at = home == depth_.end() ? 0 : home->second;
    if (written_at < loops_.size()) kept_.emplace_back(root, written_at);
  }

  // `depth` is the number of loops around the write. Returns whether this is the first write.
  bool write(int value, const Instruction& by, std::size_t depth) {
    const int root = lowered_.memory_of(value);
    Lifetime& lifetime = of(root);
    const bool first = lifetime.by == nullptr;
    if (first) {
      lifetime.by = &by;
      lifetime.written = {stage_, position_, Reader::piece};
      lifetime.loop = loops_.empty() ? nullptr : loops_.back();
      if (depth > 0) depth_[root] = depth;
    }
    extend(root);
    return first;
  }

  void extend(int root) {
    Lifetime& lifetime = of(root);
    lifetime.last = std::max(lifetime.last, position_);
  }

  const Lowered& lowered_;
  Lifetimes lifetimes_;
  std::map<int, std::size_t> depth_;  // number of loops around the write, if there are any
  // Values that a loop reads or carries but that were written outside it, at this depth.
  std::vector<std::pair<int, std::size_t>> kept_;
  std::vector<const Loop*> loops_;
  int stage_ = 0;
  int position_ = 0;
  int cut_ = -1;  // cut of the instructions that are being visited
};

}  // namespace

Lifetimes find_lifetimes(const Lowered& lowered) { return Finder(lowered).run(); }

}  // namespace pmaptrain::cpu
