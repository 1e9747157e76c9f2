#include <utility>

#include "core/base/saturate.h"
#include "core/runtime/gpu/lowering.h"
#include "core/storage/intervals.h"

namespace pmaptrain::gpu {
namespace {

// Visits the commands of a plan in order and records the accesses to buffers.
class Walk {
 public:
  Walk(const Plan& plan, const std::vector<Command>& commands) : plan_(plan), lifetimes_(plan.buffers.size()) {
    visit(commands);
  }
  std::vector<Lifetime> take() { return std::move(lifetimes_); }

 private:
  // Records an access to a buffer and to all buffers that contain it.
  void touch(int buffer) {
    if (is_beside_) running_.push_back(buffer);
    for (int each = buffer; each >= 0; each = plan_.buffer(each).container) {
      Lifetime& lifetime = lifetimes_[static_cast<std::size_t>(each)];
      if (lifetime.first == 0) lifetime.first = position_, lifetime.first_equation = equation_;
      lifetime.last = position_, lifetime.last_equation = equation_;
    }
  }

  void begin(const Equation* equation) {
    if (position_ == 0 || equation != equation_) ++position_;
    equation_ = equation;
  }

  void visit(const std::vector<Command>& commands) {
    for (const Command& command : commands) {
      begin(equation_of(command));
      is_beside_ = stream_of(command) == Stream::communicate;
      std::visit([&](const auto& known) { touch_all(known); }, static_cast<const Command::variant&>(command));
    }
  }

  void touch_all(const Launch& launch) {
    for (const Location& place : launch.operands) touch(place.buffer);
    for (const Location& place : launch.results) touch(place.buffer);
  }
  template <class T>
  void touch_all(const T& command) {
    touch(command.from.buffer);
    touch(command.to.buffer);
  }
  void touch_all(const Reduce& reduce) {
    for (const Reduce::Group& group : reduce.groups) {
      touch(group.from.buffer);
      touch(group.to.buffer);
    }
  }
  void touch_all(const Await&) {
    for (const int buffer : running_) touch(buffer);
    running_.clear();
  }
  void touch_all(const Loop& loop) {
    const int begun = position_;
    for (const Loop::Slice& slice : loop.slices) touch_all(slice.copy);
    ++position_;
    visit(loop.body);
    equation_ = loop.equation;
    ++position_;
    for (Lifetime& lifetime : lifetimes_) {
      const bool outside = lifetime.first > 0 && lifetime.first < begun;
      // The copies that initialize the loop's carries stand before the loop, but belong to its equation. So the first
      // access to a carry has the position at which the loop begins, not an earlier one.
      const bool carried = lifetime.first == begun && lifetime.first_equation == loop.equation;
      if ((outside || carried) && lifetime.last >= begun)
        lifetime.last = position_, lifetime.last_equation = loop.equation;
    }
    // A command after the loop gets a new position, even if it belongs to the loop's equation.
    ++position_;
  }

  const Plan& plan_;
  std::vector<Lifetime> lifetimes_;
  std::vector<int> running_;  // buffers of commands on the stream of collectives that no Await has followed yet
  bool is_beside_ = false;    // whether the visited command runs on that stream
  const Equation* equation_ = nullptr;
  int position_ = 0;
};

}  // namespace

std::vector<Lifetime> lifetimes_in(const std::vector<Command>& commands, const Plan& plan) {
  return Walk(plan, commands).take();
}

void place_buffers(Plan& plan) {
  const std::vector<Lifetime> lifetimes = lifetimes_in(plan.commands, plan);
  std::vector<Interval> intervals;
  std::vector<Buffer*> placed;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    Buffer& buffer = plan.buffers[i];
    if (buffer.pool != Pool::transient || buffer.container >= 0 || lifetimes[i].first == 0) continue;
    const auto [first, last] = std::pair{lifetimes[i].first, lifetimes[i].last};
    intervals.push_back({static_cast<std::size_t>(first), static_cast<std::size_t>(last), buffer.bytes()});
    placed.push_back(&buffer);
  }
  const Offsets offsets = place(intervals, alignment);
  for (std::size_t i = 0; i < placed.size(); ++i) placed[i]->offset = offsets.of[i];
  plan.transient_bytes = offsets.end;
  std::vector<Location> roots;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) roots.push_back(plan.root_of(static_cast<int>(i)));
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    Buffer& buffer = plan.buffers[i];
    if (buffer.container < 0) continue;
    const Buffer& root = plan.buffer(roots[i].buffer);
    buffer.pool = root.pool;
    buffer.offset = root.offset + roots[i].offset;
  }
  for (Buffer& buffer : plan.buffers) buffer.container = -1;
}

}  // namespace pmaptrain::gpu
