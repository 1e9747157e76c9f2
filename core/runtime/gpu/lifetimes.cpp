#include "core/runtime/gpu/lifetimes.h"

#include <algorithm>

#include "core/base/saturate.h"
#include "core/runtime/arena.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {
namespace {

// Visits the commands of a plan in order and records the accesses to buffers.
class Walk {
 public:
  explicit Walk(const Plan& plan) : plan_(plan), lifetimes_(plan.buffers.size()) { visit(plan.commands); }
  std::vector<Lifetime> take() { return std::move(lifetimes_); }

 private:
  // Records an access to a buffer and to all buffers that contain it.
  void touch(int buffer) {
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
  std::vector<int> running_;  // buffers of collectives that no Await has followed yet
  const Equation* equation_ = nullptr;
  int position_ = 0;
};

}  // namespace

std::vector<Lifetime> lifetimes_of(const Plan& plan) { return Walk(plan).take(); }

void place_buffers(Plan& plan) {
  const std::vector<Lifetime> lifetimes = lifetimes_of(plan);
  std::vector<std::vector<std::size_t>> born, dying;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.pool != Pool::transient || buffer.container >= 0 || lifetimes[i].first == 0) continue;
    const auto last = static_cast<std::size_t>(lifetimes[i].last);
    if (born.size() <= last) born.resize(last + 1), dying.resize(last + 1);
    born[static_cast<std::size_t>(lifetimes[i].first)].push_back(i);
    dying[last].push_back(i);
  }
  Arena arena(alignment);
  for (std::size_t position = 0; position < born.size(); ++position) {
    for (const std::size_t i : born[position]) plan.buffers[i].offset = arena.allocate(plan.buffers[i].bytes());
    for (const std::size_t i : dying[position]) arena.release(plan.buffers[i].offset, plan.buffers[i].bytes());
  }
  plan.transient_bytes = arena.end();
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
