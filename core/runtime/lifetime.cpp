#include "core/runtime/lifetime.h"

#include <algorithm>

namespace pmaptrain {
namespace {

class Finder {
 public:
  explicit Finder(const Schedule& schedule) : schedule_(schedule) {}

  Lifetimes run() {
    lifetimes_.places.assign(schedule_.values.size(), -1);
    for (std::size_t i = 0; i < schedule_.values.size(); ++i) {
      const int root = schedule_.values[i].root;
      if (root != static_cast<int>(i)) continue;
      lifetimes_.places[i] = static_cast<int>(lifetimes_.values.size());
      lifetimes_.values.emplace_back().root = root;
    }
    for (std::size_t number = 0; number < schedule_.stages.size(); ++number) {
      stage_ = static_cast<int>(number);
      const Stage& stage = schedule_.stages[number];
      for (const Step& step : stage.invariant) visit(step, step.split ? Reader::range : Reader::everywhere);
      for (const Step& step : stage.varying) visit(step, Reader::varying);
    }
    return std::move(lifetimes_);
  }

 private:
  void visit(const Step& step, Reader reader) {
    ++position_;
    if (step.kind == Step::Kind::loop) return visit_loop(step, reader);
    for (int root : step.operands) read(root, step.kind == Step::Kind::exchange ? Reader::exchange : reader);
    for (int root : step.results) write(root, step);
  }

  void visit_loop(const Step& loop, Reader reader) {
    loops_.push_back(&loop);
    for (const Step& step : loop.before) visit(step, reader);
    for (int root : loop.operands) read(root, reader);
    for (int root : loop.slices) write(root, loop);
    for (const Step& step : loop.body) visit(step, reader);
    loops_.pop_back();
    lifetimes_.end[&loop] = ++position_;
    // What a loop reads from outside, and what it carries, lives until its end.
    for (const auto& [root, depth] : kept_) {
      if (depth >= loops_.size()) extend(root);
    }
    std::erase_if(kept_, [&](const auto& entry) { return entry.second >= loops_.size(); });
  }

  Lifetime& of(int root) {
    return lifetimes_.values[static_cast<std::size_t>(lifetimes_.places[static_cast<std::size_t>(root)])];
  }

  void read(int root, Reader reader) {
    Lifetime& lifetime = of(root);
    lifetime.reads.push_back({stage_, position_, reader});
    extend(root);
    if (loops_.empty()) return;
    const auto home = depth_.find(root);
    const std::size_t written_at = home == depth_.end() ? 0 : home->second;
    if (written_at < loops_.size()) kept_.emplace_back(root, written_at);
  }

  void write(int root, const Step& step) {
    Lifetime& lifetime = of(root);
    const bool carried = lifetime.by != nullptr;  // written before: a carry
    if (!carried) {
      lifetime.by = &step;
      lifetime.written = {stage_, position_, Reader::varying};
      lifetime.inside_loop = !loops_.empty();
      const bool initial = step.kind == Step::Kind::copy && !loops_.empty() && is_before(step);
      const std::size_t depth = loops_.size() - (initial ? 1 : 0);
      if (depth > 0) depth_[root] = depth;
      if (initial) kept_.emplace_back(root, loops_.size() - 1);
    }
    extend(root);
  }

  bool is_before(const Step& step) const {
    const std::vector<Step>& before = loops_.back()->before;
    return !before.empty() && &step >= &before.front() && &step <= &before.back();
  }

  void extend(int root) {
    Lifetime& lifetime = of(root);
    lifetime.last = std::max(lifetime.last, position_);
  }

  const Schedule& schedule_;
  Lifetimes lifetimes_;
  std::map<int, std::size_t> depth_;               // loops around the write, where there are any
  std::vector<std::pair<int, std::size_t>> kept_;  // read inside a loop, written outside: at this depth
  std::vector<const Step*> loops_;
  int stage_ = 0;
  int position_ = 0;
};

}  // namespace

Lifetimes find_lifetimes(const Schedule& schedule) { return Finder(schedule).run(); }

}  // namespace pmaptrain
