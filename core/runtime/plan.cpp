// The second half of planning: where values live.
#include "core/runtime/plan.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <set>

#include "core/base/saturate.h"
#include "core/graph/type_list.h"
#include "core/ops/loop/loop.h"
#include "core/runtime/lifetime.h"
#include "core/runtime/schedule.h"

namespace pmaptrain {
namespace {

std::size_t align(std::size_t bytes) { return round_up(bytes, alignment); }

// First fit over a growing range of memory. Once that has no end that can be counted, places mean nothing any more.
class Arena {
 public:
  std::size_t allocate(std::size_t size) {
    if (end_ == most_bytes) return 0;
    size = align(std::max<std::size_t>(size, 1));
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      if (hole->second < size) continue;
      const std::size_t offset = hole->first;
      const std::size_t rest = hole->second - size;
      holes_.erase(hole);
      if (rest > 0) holes_[offset + size] = rest;
      return offset;
    }
    // A hole at the end grows.
    std::size_t offset = end_;
    if (!holes_.empty() && std::prev(holes_.end())->first + std::prev(holes_.end())->second == end_) {
      offset = std::prev(holes_.end())->first;
      holes_.erase(std::prev(holes_.end()));
    }
    end_ = sum_of(offset, size);
    return offset;
  }

  void release(std::size_t offset, std::size_t size) {
    if (end_ == most_bytes) return;
    size = align(std::max<std::size_t>(size, 1));
    auto [hole, is_new] = holes_.emplace(offset, size);
    assert(is_new);
    const auto next = std::next(hole);
    if (next != holes_.end() && offset + size == next->first) {
      hole->second += next->second;
      holes_.erase(next);
    }
    if (hole != holes_.begin()) {
      const auto previous = std::prev(hole);
      if (previous->first + previous->second == hole->first) {
        previous->second += hole->second;
        holes_.erase(hole);
      }
    }
  }

  std::size_t end() const { return end_; }

 private:
  std::map<std::size_t, std::size_t> holes_;  // offset to size, never adjacent
  std::size_t end_ = 0;
};

// Floating operations and bytes over all devices, loops unrolled: a measure of how much there is to share out.
double work_of(const Program& program, const std::vector<Equation>& equations) {
  double work = 0;
  TypeList operand_types, result_types;
  for (const Equation& equation : equations) {
    const auto* const loop = equation.op.as<ops::Loop>();
    for (const Region& region : equation.regions) {
      work += work_of(program, region.equations) * static_cast<double>(loop != nullptr ? loop->iterations : 1);
    }
    const std::span<const Type> operands = operand_types.of(program, equation.operands);
    const std::span<const Type> results = result_types.of(program, equation.results);
    const Cost cost = equation.op.cost(program.mesh, operands, results);
    const auto differs = [](const Type& type) { return !type.varying.empty(); };
    const bool varies =
        std::any_of(operands.begin(), operands.end(), differs) || std::any_of(results.begin(), results.end(), differs);
    work += (cost.flops + cost.bytes) * static_cast<double>(varies ? program.mesh.devices() : 1);
  }
  return work;
}

// A block should be worth the dispatch of its kernels: about 10 microseconds. At least two, so that two workers have
// something to do.
std::int64_t worthwhile_blocks(const Program& program) {
  constexpr double block_work = 1 << 20;
  const double blocks = work_of(program, program.equations) / block_work;
  return static_cast<std::int64_t>(std::clamp(blocks, 2.0, static_cast<double>(max_blocks)));
}

class Planner {
 public:
  Planner(std::shared_ptr<const Program> program, const PlanOptions& options) {
    plan_.program = std::move(program);
    plan_.options = options;
    plan_.blocks = cut_into_blocks(plan_.program->mesh.devices(),
                                   options.blocks > 0 ? options.blocks : worthwhile_blocks(*plan_.program));
    schedule_ = make_schedule(*plan_.program, options, static_cast<std::int64_t>(plan_.blocks.size()));
    lifetimes_ = find_lifetimes(schedule_);
    if (add_update_copies()) lifetimes_ = find_lifetimes(schedule_);
    homes_.resize(schedule_.values.size());
    buffer_of_.assign(schedule_.values.size(), -1);
  }

  Plan run() {
    choose_homes();
    place_updates();
    for (const Lifetime& value : lifetimes_.values) {
      if (buffer_of(value.root) < 0 && !reused(value)) give_own_buffer(value.root);
    }
    for (const Stage& stage : schedule_.stages) {
      place(stage.invariant);
      place(stage.varying);
    }
    plan_.pools.arena = std::max(arena_.end(), bytes_to_gather());
    finish();
    return std::move(plan_);
  }

 private:
  const ValueInfo& info(int root) const { return schedule_.values[static_cast<std::size_t>(root)]; }
  const Type& type(int root) const { return schedule_.type(root); }

  Home home_of(int root) const { return homes_[static_cast<std::size_t>(root)]; }
  bool is_kept(int root) const { return kept_[static_cast<std::size_t>(root)]; }
  int buffer_of(int root) const { return buffer_of_[static_cast<std::size_t>(root)]; }
  void set_buffer(int root, int buffer) { buffer_of_[static_cast<std::size_t>(root)] = buffer; }

  // ---- updates: each replaces its input's value, in place where no one still reads the old one

  // Adds copies for the other updates, after a barrier of their own. Whether there are any.
  bool add_update_copies() {
    std::vector<Step> copies;
    std::set<int> handed_on;  // what some input becomes
    for (const auto& [input, next] : schedule_.updates) handed_on.insert(next);
    for (const auto& [input, next] : schedule_.updates) {
      if (input == next) continue;
      // Another input takes this one's old value after the step: it must still be there.
      if (!handed_on.contains(input) && can_update_in_place(input, next)) {
        in_place_[next] = input;
        continue;
      }
      Step copy;
      copy.kind = Step::Kind::copy;
      copy.operand_types = copy.result_types = {type(input)};
      copy.operands = {next};
      copy.results = {input};
      copy.split = info(input).of == Class::split;
      copies.push_back(std::move(copy));
    }
    if (copies.empty()) return false;
    std::set<int> inputs;
    for (const auto& [input, next] : schedule_.updates) inputs.insert(input);
    // Two inputs that change places are read before either is written: what an update takes from an input goes
    // through a copy.
    Stage aside, replace;
    for (Step& copy : copies) {
      const int next = copy.operands.front(), input = copy.results.front();
      const bool from_input = inputs.contains(next);
      const bool varying = info(input).of == Class::varying;
      if (from_input) {
        const int temporary = schedule_.add_like(input);
        Step first = copy;
        first.results = {temporary};
        copy.operands = {temporary};
        (varying ? aside.varying : aside.invariant).push_back(std::move(first));
      }
      (varying ? replace.varying : replace.invariant).push_back(std::move(copy));
    }
    if (!aside.invariant.empty() || !aside.varying.empty()) schedule_.stages.push_back(std::move(aside));
    schedule_.stages.push_back(std::move(replace));
    return true;
  }

  bool can_update_in_place(int input, int next) const {
    const Lifetime& written = lifetimes_.of(next);
    const Lifetime& old = lifetimes_.of(input);
    if (written.by == nullptr || written.inside_loop || in_place_.contains(next)) return false;
    if (written.by->kind != Step::Kind::kernel || !written.by->equation->op.rules().elementwise) return false;
    if (info(input).of != info(next).of || info(input).stacked != info(next).stacked) return false;
    if (type(input).dtype != type(next).dtype || type(input).shape != type(next).shape) return false;
    const Class of = info(input).of;
    return std::all_of(old.reads.begin(), old.reads.end(), [&](const Access& read) {
      if (read.stage < written.written.stage) return true;
      if (read.stage > written.written.stage || read.reader == Reader::exchange) return false;
      const bool same_order = (of == Class::varying && read.reader == Reader::varying) ||
                              (of == Class::worker && read.reader != Reader::varying) ||
                              (of == Class::split && read.reader == Reader::range);
      return same_order && read.position <= written.written.position;
    });
  }

  // ---- homes

  void choose_homes() {
    kept_.resize(schedule_.values.size());
    const auto keep = [&](int root) { kept_[static_cast<std::size_t>(root)] = true; };
    for (int root : schedule_.exchanged) keep(root);
    for (const Input& input : plan_.program->inputs) keep(input.value.id);
    for (int root : schedule_.outputs) keep(root);
    for (const auto& [root, equation] : schedule_.coordinates) keep(root);
    for (const auto& [input, next] : schedule_.updates) keep(next);
    for (const Lifetime& value : lifetimes_.values) homes_[static_cast<std::size_t>(value.root)] = choose_home(value);
  }

  Home choose_home(const Lifetime& value) const {
    switch (info(value.root).of) {
      case Class::constant: return Home::constant;
      case Class::worker: return Home::worker;
      case Class::split: return Home::shared;
      case Class::varying: break;
    }
    const bool crosses = std::any_of(value.reads.begin(), value.reads.end(),
                                     [&](const Access& read) { return read.stage != value.written.stage; });
    if (crosses || is_kept(value.root)) return Home::device;
    return info(value.root).stacked ? Home::arena : Home::scratch;
  }

  // Values whose memory is found while walking the steps: the arena's, and shared temporaries.
  bool reused(const Lifetime& value) const {
    const Home home = home_of(value.root);
    if (home == Home::arena || home == Home::scratch) return true;
    if (home != Home::shared || is_kept(value.root)) return false;
    // What nobody reads would be free again in the very stage in which its parts are written.
    if (info(value.root).in_parts && value.reads.empty()) return false;
    return std::all_of(value.reads.begin(), value.reads.end(),
                       [](const Access& read) { return read.reader == Reader::range; });
  }

  int add_buffer(int root, std::size_t offset) {
    plan_.buffers.push_back({home_of(root), type(root).dtype, numel(type(root)), offset});
    const int buffer = static_cast<int>(plan_.buffers.size() - 1);
    set_buffer(root, buffer);
    return buffer;
  }

  void give_own_buffer(int root) {
    const auto devices = static_cast<std::size_t>(plan_.program->mesh.devices());
    const std::size_t size = bytes(type(root));
    const Home home = home_of(root);
    std::size_t& pool = home == Home::constant ? plan_.pools.constants
                        : home == Home::worker ? plan_.pools.worker
                        : home == Home::shared ? plan_.pools.shared
                                               : plan_.pools.devices;
    const std::size_t offset = pool;
    pool = sum_of(pool, align(home == Home::device ? product_of(size, devices) : size));
    add_buffer(root, offset);
  }

  void place_updates() {
    for (const auto& [next, input] : in_place_) {
      if (buffer_of(input) < 0) give_own_buffer(input);
      set_buffer(next, buffer_of(input));
    }
  }

  // ---- the arena and shared temporaries, in the order of the steps

  std::size_t arena_bytes(int root) const {
    return product_of(bytes(type(root)),
                      static_cast<std::size_t>(home_of(root) == Home::arena ? plan_.blocks.front().count : 1));
  }

  // Of the columns of its first operand that the widest part of a step reads: a worker gathers them in its arena, where
  // nothing lies while there is no block at hand.
  std::size_t bytes_to_gather() const {
    std::size_t most = 0;
    for (const Stage& stage : schedule_.stages) {
      for (const Step& step : stage.invariant) {
        for (std::int64_t part = 0; part < step.parts; ++part) {
          Type columns = step.operand_types.front();
          const std::int64_t width = columns.shape[1];
          columns.shape[1] = part_begin(width, step.parts, part + 1) - part_begin(width, step.parts, part);
          most = std::max(most, product_of(bytes(columns), static_cast<std::size_t>(plan_.program->mesh.devices())));
        }
      }
    }
    return most;
  }

  void place(const std::vector<Step>& steps) {
    for (const Step& step : steps) place(step);
  }

  void place(const Step& step) {
    const int position = ++position_;
    if (step.kind == Step::Kind::loop) {
      for (const Step& copy : step.before) place(copy);
      for (int root : step.slices) allocate(root);
      carry_in_place(step, position);
      place(step.body);
      release(++position_);
      assert(position_ == lifetimes_.end.at(&step));
      return;
    }
    const bool elementwise = step.kind == Step::Kind::kernel && step.equation->op.rules().elementwise;
    for (int root : step.results) {
      if (buffer_of(root) >= 0) continue;
      if (elementwise && take_over(step, root, position)) continue;
      if (step.split) release_shared(position);
      allocate(root);
    }
    release(position);
  }

  // What an elementwise step yields may be written straight into its carry, where nobody reads the old one afterwards:
  // so a gradient accumulates in place.
  void carry_in_place(const Step& loop, int begin) {
    const int end = lifetimes_.end.at(&loop);
    std::set<int> taken;
    for (const Step& yield : loop.body) {
      if (yield.kind != Step::Kind::copy) continue;
      const int from = yield.operands.front(), carry = yield.results.front();
      const Lifetime& written = lifetimes_.of(from);
      const bool here = written.by != nullptr && written.by >= &loop.body.front() && written.by <= &loop.body.back();
      if (!here || written.by->kind != Step::Kind::kernel || !written.by->equation->op.rules().elementwise) continue;
      if (buffer_of(from) >= 0 || !taken.insert(from).second) continue;
      if (info(from).stacked != info(carry).stacked || type(from) != type(carry)) continue;
      const std::vector<Access>& reads = lifetimes_.of(carry).reads;
      const bool read_later = std::any_of(reads.begin(), reads.end(), [&](const Access& read) {
        return read.position > written.written.position && read.position > begin && read.position < end;
      });
      if (!read_later) set_buffer(from, buffer_of(carry));
    }
  }

  // An elementwise result may have the memory of an operand that nobody reads afterwards.
  bool take_over(const Step& step, int result, int position) {
    for (int operand : step.operands) {
      const auto live = live_.find(operand);
      if (live == live_.end() || lifetimes_.of(operand).last != position) continue;
      if (home_of(operand) != home_of(result) || bytes(type(operand)) != bytes(type(result)) ||
          size_of(type(operand).dtype) != size_of(type(result).dtype)) {
        continue;
      }
      const std::size_t offset = live->second;
      forget(operand);
      hold(result, offset);
      add_buffer(result, offset);
      return true;
    }
    return false;
  }

  void allocate(int root) {
    if (buffer_of(root) >= 0) return;
    const Home home = home_of(root);
    if (home == Home::shared) {
      // Only a temporary of as many elements has its ranges cut in the same places, so that no worker writes what
      // another still reads; parts are cut elsewhere.
      auto& free = free_shared_[{numel(type(root)), size_of(type(root).dtype)}];
      std::size_t offset = plan_.pools.shared;
      if (free.empty() || info(root).in_parts) {
        plan_.pools.shared = sum_of(plan_.pools.shared, align(bytes(type(root))));
      } else {
        offset = free.back();
        free.pop_back();
      }
      hold(root, offset);
      add_buffer(root, offset);
      return;
    }
    assert(home == Home::arena || home == Home::scratch);
    const std::size_t offset = arena_.allocate(arena_bytes(root));
    hold(root, offset);
    add_buffer(root, offset);
  }

  void release(int position) {
    release_if(position, [](Home) { return true; });
  }
  void release_shared(int position) {
    release_if(position, [](Home home) { return home == Home::shared; });
  }

  // In the order of roots, in which memory is taken again.
  template <class Predicate>
  void release_if(int position, Predicate&& predicate) {
    std::vector<int> ended;
    for (const auto& [last, root] : ends_) {
      if (last > position) break;
      if (predicate(home_of(root))) ended.push_back(root);
    }
    std::sort(ended.begin(), ended.end());
    for (int root : ended) {
      const std::size_t offset = live_.at(root);
      if (home_of(root) == Home::shared) {
        free_shared_[{numel(type(root)), size_of(type(root).dtype)}].push_back(offset);
      } else {
        arena_.release(offset, arena_bytes(root));
      }
      forget(root);
    }
  }

  void hold(int root, std::size_t offset) {
    live_[root] = offset;
    ends_.emplace(lifetimes_.of(root).last, root);
  }
  void forget(int root) {
    live_.erase(root);
    ends_.erase({lifetimes_.of(root).last, root});
  }

  // ---- from values to buffers

  void finish() {
    for (Accumulator& accumulator : schedule_.accumulators) {
      accumulator.offset = plan_.pools.accumulators;
      const std::size_t size = product_of(size_of(accumulator.dtype), static_cast<std::size_t>(accumulator.elements));
      plan_.pools.accumulators = sum_of(plan_.pools.accumulators, align(size));
    }
    plan_.accumulators = std::move(schedule_.accumulators);
    plan_.boundary_barrier = !schedule_.exchanged.empty();
    plan_.stages = std::move(schedule_.stages);
    for (Stage& stage : plan_.stages) {
      rename(stage.invariant);
      rename(stage.varying);
      for (const Step& step : stage.invariant) plan_.boundary_barrier |= step.split;
    }
    for (const auto& [root, equation] : schedule_.constants) {
      plan_.constants.emplace_back(buffer_of(root), equation);
    }
    for (const auto& [root, equation] : schedule_.coordinates) {
      plan_.coordinates.emplace_back(buffer_of(root), equation);
    }
    for (const Input& input : plan_.program->inputs) plan_.inputs.push_back(buffer_of(input.value.id));
    for (int root : schedule_.outputs) plan_.outputs.push_back(buffer_of(root));
  }

  void rename(std::vector<Step>& steps) {
    for (Step& step : steps) {
      for (std::vector<int>* ids : {&step.operands, &step.results, &step.slices}) {
        for (int& id : *ids) id = buffer_of(id);
      }
      rename(step.before);
      rename(step.body);
    }
    std::erase_if(steps, [](const Step& step) {
      return step.kind == Step::Kind::copy && step.operands.front() == step.results.front();
    });
  }

  Plan plan_;
  Schedule schedule_;
  Lifetimes lifetimes_;
  std::map<int, int> in_place_;  // the value that replaces, to the input that it replaces
  std::vector<Home> homes_;      // this and what follows: by root
  std::vector<bool> kept_;       // through the step
  std::vector<int> buffer_of_;   // -1: none yet
  Arena arena_;
  int position_ = 0;                    // of the step that is being placed, as in lifetimes
  std::map<int, std::size_t> live_;     // reused memory that is taken: root to offset
  std::set<std::pair<int, int>> ends_;  // position of the last read, and root, of the same
  std::map<std::pair<std::int64_t, std::size_t>, std::vector<std::size_t>> free_shared_;
};

}  // namespace

std::string_view to_string(Home home) {
  switch (home) {
    case Home::constant: return "constant";
    case Home::worker: return "worker";
    case Home::shared: return "shared";
    case Home::device: return "device";
    case Home::arena: return "arena";
    case Home::scratch: break;
  }
  return "scratch";
}

std::int64_t PoolSizes::blocks_at_once(std::int64_t workers, std::int64_t blocks) const {
  const auto near = static_cast<std::int64_t>(near_bytes / std::max<std::size_t>(arena, 1));
  return std::max<std::int64_t>(1, std::min((blocks + workers - 1) / workers, near));
}

std::size_t PoolSizes::total(std::int64_t workers, std::int64_t blocks) const {
  const auto at_once = static_cast<std::size_t>(blocks_at_once(workers, blocks));
  const std::size_t of_a_worker = sum_of(worker, product_of(at_once, arena));
  return sum_of(constants, shared, devices, product_of(static_cast<std::size_t>(workers), of_a_worker),
                product_of(2 * static_cast<std::size_t>(blocks), accumulators));
}

std::int64_t part_begin(std::int64_t rows, std::int64_t parts, std::int64_t part) {
  return part == parts ? rows : rows * part / parts / part_alignment * part_alignment;
}

Plan make_plan(std::shared_ptr<const Program> program, const PlanOptions& options) {
  return Planner(std::move(program), options).run();
}

}  // namespace pmaptrain
