#include "core/runtime/gpu/lifetimes.h"

#include <utility>

#include "core/base/saturate.h"
#include "core/runtime/gpu/lowering.h"
#include "core/storage/intervals.h"

namespace pmaptrain::gpu {
namespace {

class Walk {
 public:
  Walk(const Plan& plan, const std::vector<Command>& commands) : plan_(plan), lifetimes_(plan.buffers.size()) {
    visit(commands);
  }
  std::vector<Lifetime> take() { return std::move(lifetimes_); }

 private:
  // Records an access to a buffer and to all buffers that contain it.
  void touch(int buffer) {
    for (int each = buffer; each >= 0; each = plan_.buffer(each).within) {
      Lifetime& lifetime = lifetimes_[static_cast<std::size_t>(each)];
      if (lifetime.first == 0) lifetime.first = position_, lifetime.first_by = equation_;
      lifetime.last = position_, lifetime.last_by = equation_;
    }
  }

  void begin(const Equation* equation) {
    if (position_ == 0 || equation != equation_) ++position_;
    equation_ = equation;
  }

  void visit(const std::vector<Command>& commands) {
    for (const Command& command : commands) {
      begin(equation_of(command));
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
  void touch_all(const Collect& collect) {
    for (const Location& place : {collect.from, collect.to}) {
      touch(place.buffer);
      running_.push_back(place.buffer);
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
      // Commands at the loop's own position write a carry before the loop begins.
      const bool carried = lifetime.first == begun && lifetime.first_by == loop.equation;
      if ((outside || carried) && lifetime.last >= begun) lifetime.last = position_, lifetime.last_by = loop.equation;
    }
    // Commands after the loop get a new position, even if they belong to the same equation.
    ++position_;
  }

  const Plan& plan_;
  std::vector<Lifetime> lifetimes_;
  std::vector<int> running_;  // buffers used by collectives that have not been awaited
  const Equation* equation_ = nullptr;
  int position_ = 0;
};

}  // namespace

std::vector<Lifetime> lifetimes_of(const Plan& plan) { return Walk(plan, plan.commands).take(); }

std::vector<Lifetime> lifetimes_in(const std::vector<Command>& commands, const Plan& plan) {
  return Walk(plan, commands).take();
}

void place_buffers(Plan& plan) {
  const std::vector<Lifetime> lifetimes = lifetimes_of(plan);
  std::vector<Interval> intervals;
  std::vector<Buffer*> placed;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    Buffer& buffer = plan.buffers[i];
    if (buffer.pool != Pool::transient || buffer.within >= 0 || lifetimes[i].first == 0) continue;
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
    if (buffer.within < 0) continue;
    const Buffer& root = plan.buffer(roots[i].buffer);
    buffer.pool = root.pool;
    buffer.offset = root.offset + roots[i].offset;
  }
  for (Buffer& buffer : plan.buffers) buffer.within = -1;
}

}  // namespace pmaptrain::gpu
