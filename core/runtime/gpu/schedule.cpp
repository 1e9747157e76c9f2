// Moves collectives to earlier places in the plan, so that they run at the same time as independent commands.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/analysis/row_cut.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {
namespace {

// An access to a range of bytes of an outermost buffer.
struct Access {
  int buffer = -1;
  std::size_t begin = 0, end = 0;
  bool writes = false;
};

bool conflict(const Access& a, const Access& b) {
  return a.buffer == b.buffer && a.begin < b.end && b.begin < a.end && (a.writes || b.writes);
}

bool any_conflict(const std::vector<Access>& some, const std::vector<Access>& others) {
  return std::any_of(some.begin(), some.end(), [&](const Access& access) {
    return std::any_of(others.begin(), others.end(), [&](const Access& other) { return conflict(access, other); });
  });
}

class AccessFinder {
 public:
  explicit AccessFinder(const Plan& plan) : plan_(plan) {}

  std::vector<Access> of(const Command& command) {
    found_.clear();
    std::visit([&](const auto& known) { add(known); }, static_cast<const Command::variant&>(command));
    return std::move(found_);
  }

 private:
  // The first function adds an access to the whole buffer of `place`, the second one to some bytes of a buffer.
  void add(Location place, bool writes) { add(place.buffer, 0, plan_.buffer(place.buffer).bytes(), writes); }
  void add(int buffer, std::size_t offset, std::size_t bytes, bool writes) {
    const Location root = plan_.root_of(buffer);
    found_.push_back({root.buffer, root.offset + offset, root.offset + offset + bytes, writes});
  }
  void add(const Launch& launch) {
    for (const Location& place : launch.operands) add(place, false);
    for (const Location& place : launch.results) add(place, true);
  }
  void add(const Copy& copy) {
    add(copy.from, false);
    add(copy.to, true);
  }
  void add(const Reduce& reduce) {
    for (const Reduce::Group& group : reduce.groups) {
      const std::size_t bytes = static_cast<std::size_t>(group.elements) * size_of(reduce.dtype);
      add(group.from.buffer, group.from.offset, group.arrays.end() + bytes, false);
      add(group.to.buffer, group.to.offset, bytes, true);
    }
  }
  void add(const Collect& collect) {
    const auto ranks = static_cast<std::size_t>(plan_.division.grid.group_size(collect.axes));
    add(collect.from.buffer, collect.from.offset, bytes_read(collect.kind, collect.bytes, ranks), false);
    add(collect.to.buffer, collect.to.offset, bytes_written(collect.kind, collect.bytes, ranks), true);
  }
  void add(const Await&) {}
  void add(const Loop& loop) {
    for (const Loop::Slice& slice : loop.slices) add(slice.copy);
    for (const Command& command : loop.body) {
      std::visit([&](const auto& known) { add(known); }, static_cast<const Command::variant&>(command));
    }
  }

  const Plan& plan_;
  std::vector<Access> found_;
};

// Moves launches without operands, such as those that fill buckets with zeros, before the first command that uses their
// result. Until then other arrays can use its memory.
void sink_constants(const Plan& plan, std::vector<Command>& commands) {
  AccessFinder accesses(plan);
  std::vector<std::pair<Access, Command>> constants;
  std::vector<Command> sunk;
  for (Command& command : commands) {
    const std::vector<Access> used = accesses.of(command);
    const Launch* const launch = std::get_if<Launch>(&command);
    if (launch != nullptr && launch->operands.empty() && launch->results.size() == 1) {
      constants.emplace_back(used.front(), std::move(command));
      continue;
    }
    // Those which are used, and before them those whose memory they overwrite in part.
    std::vector<Access> needed = used;
    const auto is_needed = [&](const auto& constant) {
      return std::any_of(needed.begin(), needed.end(),
                         [&](const Access& access) { return conflict(access, constant.first); });
    };
    std::vector<bool> leaves(constants.size());
    for (std::size_t i = constants.size(); i-- > 0;) {
      leaves[i] = is_needed(constants[i]);
      if (leaves[i]) needed.push_back(constants[i].first);
    }
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i]) sunk.push_back(std::move(constants[i].second));
    }
    std::size_t i = 0;
    std::erase_if(constants, [&](const auto&) { return leaves[i++]; });
    sunk.push_back(std::move(command));
  }
  for (auto& [written, constant] : constants) sunk.push_back(std::move(constant));
  commands = std::move(sunk);
}

// Moves each collective, the commands that prepare its operand, and the others on its stream right after the last
// command that they depend on, so that other GPUs wait less. All other commands keep their order.
//
// A collective whose operand waits for a value (optimization_barrier) fills memory that nothing reads before. So it
// runs one such wait ahead: while the value is computed, but not before the value that the last one like it waits for.
//
// The parts that devices take of a sum are copied when the next sum begins. So the sum runs beside the work up to
// there, and then leaves its memory.
class HoistCollectives {
 public:
  HoistCollectives(const Plan& plan, const AwaitedBuffers& awaited) : plan_(plan), accesses_(plan), awaited_(awaited) {}

  void run(std::vector<Command>& commands) {
    const std::vector<bool> moves = leading_to_collectives(commands);
    std::vector<Key> keys;
    std::vector<std::size_t> sums;                           // the places of those of sums
    std::vector<std::pair<std::size_t, std::size_t>> parts;  // the copies of parts, and the places that they need
    for (std::size_t i = 0; i < commands.size(); ++i) {
      const std::vector<Access> accesses = accesses_.of(commands[i]);
      const std::size_t needed = last_needed(accesses);
      Key key{i + 1, Key::stays, i};
      if (moves[i]) key = {std::max(needed, earliest(commands[i])), Key::moves, i};
      if (moves[i] && is_sum_over_devices(equation_of(commands[i])->op)) sums.push_back(key.place);
      if (!moves[i] && needed > 0 && takes_part(commands[i])) parts.emplace_back(i, needed);
      keys.push_back(key);
      for (const Access& access : accesses) placed_[access.buffer].push_back({access, key.place});
    }
    std::sort(sums.begin(), sums.end());
    for (const auto& [i, needed] : parts) {
      const auto next = std::upper_bound(sums.begin(), sums.end(), needed);
      if (next != sums.end() && *next < keys[i].place) keys[i] = {*next, Key::takes_part, i};
    }
    std::vector<std::size_t> order(commands.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
    std::vector<Command> sorted;
    sorted.reserve(commands.size());
    for (const std::size_t i : order) sorted.push_back(std::move(commands[i]));
    commands = std::move(sorted);
  }

 private:
  struct PlacedAccess {
    Access access;
    std::size_t place;
  };

  // By which commands are sorted. A command that stays at index i has the place i + 1. One that moves has the place of
  // the command that it must follow, so it comes right after that one.
  struct Key {
    enum Kind : std::uint8_t { stays, takes_part, moves };
    std::size_t place = 0;
    Kind kind = stays;
    std::size_t index = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  static bool takes_part(const Command& command) {
    const Equation* const equation = equation_of(command);
    return equation != nullptr && equation->op.rules().communication == Communication::slice;
  }

  // The place before which a command may not run because it waits.
  std::size_t earliest(const Command& command) {
    const auto found = awaited_.find(equation_of(command));
    if (found == awaited_.end()) return 0;
    if (std::exchange(waits_, found->second) != found->second) {
      const Location value = plan_.root_of(found->second);
      const std::size_t bytes = plan_.buffer(found->second).bytes();
      before_ = std::exchange(ahead_, last_needed({{value.buffer, value.offset, value.offset + bytes, false}}));
    }
    return before_;
  }

  // By command: whether it runs on the stream of collectives, or precedes such a command of the same equation.
  static std::vector<bool> leading_to_collectives(const std::vector<Command>& commands) {
    std::vector<bool> lead(commands.size());
    for (std::size_t i = commands.size(); i-- > 0;) {
      const Equation* const equation = equation_of(commands[i]);
      if (equation == nullptr || equation->op.rules().communication == Communication::none) continue;
      const bool is_last = i + 1 == commands.size() || equation_of(commands[i + 1]) != equation;
      lead[i] = stream_of(commands[i]) == Stream::communicate || (!is_last && lead[i + 1]);
    }
    return lead;
  }

  // The place of the last command that conflicts with these accesses; 0 if there is none.
  std::size_t last_needed(const std::vector<Access>& accesses) const {
    std::size_t last = 0;
    for (const Access& access : accesses) {
      const auto found = placed_.find(access.buffer);
      if (found == placed_.end()) continue;
      for (const PlacedAccess& earlier : found->second) {
        if (conflict(access, earlier.access)) last = std::max(last, earlier.place);
      }
    }
    return last;
  }

  const Plan& plan_;
  AccessFinder accesses_;
  const AwaitedBuffers& awaited_;
  std::map<int, std::vector<PlacedAccess>> placed_;  // by buffer
  int waits_ = -1;                                   // the buffer that the last one waits for
  std::size_t ahead_ = 0, before_ = 0;  // where the value is computed that it waits for, and the one before
};

// Inserts an Await before the first command that uses memory of a running collective. A loop also waits for all running
// collectives, because its body may be captured as a separate graph. A collective that runs a wait ahead begins after
// an Await for those of the wait before it, whose results are read next: else that read would wait for both.
class AddAwaits {
 public:
  AddAwaits(const Plan& plan, const AwaitedBuffers& awaited) : plan_(plan), accesses_(plan), awaited_(awaited) {}

  void run(std::vector<Command>& commands) {
    std::vector<Command> all;
    for (Command& command : commands) {
      Loop* const loop = std::get_if<Loop>(&command);
      // An iteration waits for the collectives that it begins.
      if (loop != nullptr) AddAwaits(plan_, awaited_).run(loop->body);
      const std::vector<Access> accesses = accesses_.of(command);
      if (stream_of(command) == Stream::communicate) {
        const auto awaited = awaited_.find(equation_of(command));
        if (awaited != awaited_.end()) {
          if (ahead_ && *ahead_ != awaited->second) await(all);
          ahead_ = awaited->second;
        }
        running_.insert(running_.end(), accesses.begin(), accesses.end());
        last_ = equation_of(command);
      } else if (!running_.empty() && (loop != nullptr || any_conflict(accesses, running_))) {
        await(all);
      }
      all.push_back(std::move(command));
    }
    if (!running_.empty()) await(all);
    commands = std::move(all);
  }

 private:
  void await(std::vector<Command>& commands) {
    commands.push_back(Await{last_});
    running_.clear();
    ahead_.reset();
  }

  const Plan& plan_;
  AccessFinder accesses_;
  const AwaitedBuffers& awaited_;
  std::optional<int> ahead_;     // if one that runs a wait ahead is running: the buffer that it waits for
  std::vector<Access> running_;  // accesses on the stream of collectives that no Await has followed yet
  const Equation* last_ = nullptr;
};

// Whether one call can do both reductions: the calls for large arrays stay apart, because the threads of a call are
// those that its largest arrays need.
bool can_join(const Reduce& a, const Reduce& b) {
  constexpr std::int64_t most_elements = 1 << 16;
  const auto is_small = [](const Reduce& reduce) { return reduce.groups.front().elements <= most_elements; };
  return a.equation == b.equation && a.kind == b.kind && a.dtype == b.dtype && a.stream == b.stream &&
         a.tree == b.tree && is_small(a) && is_small(b) && a.groups.size() + b.groups.size() <= Device::most_reduced;
}

// Joins successive reductions for the same equation that do not depend on each other.
void join_reductions(const Plan& plan, std::vector<Command>& commands) {
  AccessFinder accesses(plan);
  std::vector<Command> joined;
  for (Command& command : commands) {
    if (Loop* const loop = std::get_if<Loop>(&command)) join_reductions(plan, loop->body);
    Reduce* const reduce = std::get_if<Reduce>(&command);
    Reduce* const before = joined.empty() ? nullptr : std::get_if<Reduce>(&joined.back());
    if (reduce != nullptr && before != nullptr && can_join(*before, *reduce) &&
        !any_conflict(accesses.of(joined.back()), accesses.of(command))) {
      before->groups.insert(before->groups.end(), reduce->groups.begin(), reduce->groups.end());
    } else {
      joined.push_back(std::move(command));
    }
  }
  commands = std::move(joined);
}

}  // namespace

void schedule_collectives(Plan& plan, const AwaitedBuffers& awaited) {
  HoistCollectives(plan, awaited).run(plan.commands);
  sink_constants(plan, plan.commands);
  AddAwaits(plan, awaited).run(plan.commands);
  join_reductions(plan, plan.commands);
}

}  // namespace pmaptrain::gpu
