// The second half of planning: gives each value a buffer. lower.h has the first half.
#include "core/runtime/cpu/plan.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/analysis/cost.h"
#include "core/base/saturate.h"
#include "core/passes/unroll.h"
#include "core/runtime/arena.h"
#include "core/runtime/cpu/lifetime.h"
#include "core/runtime/cpu/lower.h"

namespace pmaptrain::cpu {
namespace {

std::size_t align(std::size_t bytes) { return round_up(bytes, alignment); }

class Planner {
 public:
  Planner(std::shared_ptr<const Program> program, const PlanOptions& options, const SharedInputs& inputs)
      : inputs_(inputs) {
    plan_.program = unroll_communication(std::move(program));
    plan_.options = options;
    plan_.persistent = inputs.sizes;
    const Cost cost = cost_of(*plan_.program);
    plan_.work = cost.flops + cost.bytes;
    lowered_ =
        lower(*plan_.program, options, options.pieces > 0 ? options.pieces : pieces_for(*plan_.program, plan_.work));
    lifetimes_ = find_lifetimes(lowered_);
    if (add_update_copies()) lifetimes_ = find_lifetimes(lowered_);
    for (std::size_t i = 0; i < lowered_.values.size(); ++i) {
      const ValueInfo& value = lowered_.values[i];
      if (value.bucket >= 0 && value.root == static_cast<int>(i)) ranges_[value.bucket].push_back(value.root);
    }
    pools_.resize(lowered_.values.size());
    buffer_of_.assign(lowered_.values.size(), -1);
  }

  Plan run() {
    choose_pools();
    place_inputs();
    place_updates();
    for (const Lifetime& value : lifetimes_.values) {
      if (buffer_of(value.root) < 0 && !reused(value)) give_own_buffer(value.root);
    }
    for (Stage& stage : lowered_.stages) {
      for_each_instruction(stage,
                           [&](const Instruction& instruction, Reader reader, int) { place(instruction, reader); });
    }
    plan_.transient.arena = std::max(arena_.size(), bytes_to_gather());
    finish();
    return std::move(plan_);
  }

 private:
  const ValueInfo& info(int root) const { return lowered_.info(root); }
  const Type& type(int root) const { return lowered_.type(root); }
  const Mesh& mesh() const { return plan_.program->mesh; }
  std::size_t instances(AxisSet axes) const { return static_cast<std::size_t>(mesh().group_size(axes)); }

  Pool pool_of(int root) const { return pools_[static_cast<std::size_t>(root)]; }
  bool is_kept(int root) const { return kept_[static_cast<std::size_t>(root)]; }
  int buffer_of(int root) const { return buffer_of_[static_cast<std::size_t>(root)]; }
  // Also gives the arrays inside a bucket buffers inside the buffer of the bucket.
  void set_buffer(int root, int buffer) {
    buffer_of_[static_cast<std::size_t>(root)] = buffer;
    const auto ranges = ranges_.find(root);
    if (ranges == ranges_.end()) return;
    for (const int range : ranges->second) {
      Buffer within = plan_.buffers[static_cast<std::size_t>(buffer)];
      within.bucket_elements = within.elements;
      within.bucket_begin = info(range).bucket_begin;
      within.elements = numel(type(range));
      within.offset += size_of(within.dtype) * static_cast<std::size_t>(within.bucket_begin);
      plan_.buffers.push_back(within);
      buffer_of_[static_cast<std::size_t>(range)] = static_cast<int>(plan_.buffers.size()) - 1;
    }
  }

  // ---- updates: at the end of a step, the buffer of an input must have the input's new value

  // For inputs whose new values cannot be written directly into their buffers, adds copies in stages of their own at
  // the end. Returns whether it added any.
  bool add_update_copies() {
    std::vector<std::pair<int, int>> copies;  // new value and input
    std::set<int> handed_on;                  // the roots that are new values
    for (const auto& [input, next] : lowered_.updates) handed_on.insert(lowered_.memory_root(next));
    for (const auto& [input, next] : lowered_.updates) {
      if (input == next) continue;
      // If the input is the new value of another input, its old value is needed until the end of the step.
      if (!handed_on.contains(input) && can_update_in_place(input, next)) {
        in_place_[next] = input;
      } else {
        copies.emplace_back(next, input);
      }
    }
    if (copies.empty()) return false;
    std::set<int> inputs;
    for (const auto& [input, next] : lowered_.updates) inputs.insert(input);
    // If inputs swap their values, all are read before any is written: a new value that is itself an input is first
    // copied to a temporary.
    const auto is_input = [&](int value) { return inputs.contains(lowered_.memory_root(value)); };
    const bool aside = std::any_of(copies.begin(), copies.end(), [&](auto& copy) { return is_input(copy.first); });
    const auto first = static_cast<int>(lowered_.stages.size()), replace = first + (aside ? 1 : 0);
    for (const auto& [next, input] : copies) {
      ValueInfo like = info(input);
      const std::int64_t elements = numel(type(input));
      int from = next;
      if (is_input(next)) {
        from = lowered_.add_like(input);
        lowered_.add(Copy{next, from}, like, first, elements);
      }
      lowered_.add(Copy{from, input}, like, replace, elements);
    }
    return true;
  }

  bool can_update_in_place(int input, int next) const {
    const Lifetime& written = lifetimes_.of(next);
    const Lifetime& old = lifetimes_.of(input);
    if (written.writer == nullptr || written.loop != nullptr || in_place_.contains(next)) return false;
    const Kernel* const kernel = written.writer->as<Kernel>();
    if (kernel == nullptr || !kernel->equation->op.rules().elementwise) return false;
    if (info(input).storage != info(next).storage || info(input).axes != info(next).axes) return false;
    if (info(next).kind != RowKind::whole || info(next).bucket >= 0) return false;
    if (type(input).dtype != type(next).dtype || type(input).shape != type(next).shape) return false;
    const Storage of = info(input).storage;
    return std::all_of(old.reads.begin(), old.reads.end(), [&](const Access& read) {
      if (read.stage < written.first_write.stage) return true;
      if (read.stage > written.first_write.stage || read.reader == Reader::exchange) return false;
      const bool same_order = (of == Storage::varying && read.reader == Reader::piece && read.cut == info(next).cut) ||
                              (of == Storage::worker && read.reader == Reader::every_worker) ||
                              (of == Storage::chunked && read.reader == Reader::chunk);
      // If the kernel itself reads an array inside the bucket, it may overwrite elements before it reads them.
      const bool at_once = read.position == written.first_write.position;
      return same_order && read.position <= written.first_write.position && !(at_once && read.of_range);
    });
  }

  // ---- pools

  void choose_pools() {
    kept_.resize(lowered_.values.size());
    const auto keep = [&](int root) { kept_[static_cast<std::size_t>(lowered_.memory_root(root))] = true; };
    for (int root : lowered_.read_across_pieces) keep(root);
    for (const Input& input : plan_.program->inputs) keep(input.value.id);
    for (int root : lowered_.outputs) keep(root);
    for (const auto& [root, equation] : lowered_.coordinates) keep(root);
    for (const auto& [input, next] : lowered_.updates) keep(next);
    for (const Lifetime& value : lifetimes_.values) pools_[static_cast<std::size_t>(value.root)] = choose_pool(value);
    for (const Input& input : plan_.program->inputs) {
      if (input.group == Group::batch) pools_[static_cast<std::size_t>(input.value.id)] = Pool::batch;
    }
  }

  Pool choose_pool(const Lifetime& value) const {
    if (lowered_.packed.contains(value.root)) return Pool::packed;
    switch (info(value.root).storage) {
      case Storage::constant: return Pool::constant;
      case Storage::worker: return Pool::worker;
      case Storage::chunked: return Pool::shared;
      case Storage::varying: break;
    }
    const bool crosses = std::any_of(value.reads.begin(), value.reads.end(),
                                     [&](const Access& read) { return read.stage != value.first_write.stage; });
    if (crosses || is_kept(value.root)) return Pool::device;
    return info(value.root).axes.empty() ? Pool::piece : Pool::arena;
  }

  // Whether place() allocates the value's memory, so that it can be reused: in the arena, and of shared temporaries.
  bool reused(const Lifetime& value) const {
    const Pool pool = pool_of(value.root);
    if (pool == Pool::arena || pool == Pool::piece) return true;
    if (pool != Pool::shared || is_kept(value.root)) return false;
    // The memory of a value without readers would be reused in the stage in which tasks still write the value.
    if (info(value.root).written_by_tasks && value.reads.empty()) return false;
    return std::all_of(value.reads.begin(), value.reads.end(),
                       [](const Access& read) { return read.reader == Reader::chunk; });
  }

  Buffer make_buffer(int root) const {
    Buffer buffer;
    buffer.dtype = type(root).dtype;
    buffer.axes = info(root).axes;
    buffer.pool = pool_of(root);
    buffer.elements = numel(type(root));
    if (buffer.pool == Pool::device && info(root).kind == RowKind::partial) {
      buffer.pieces = static_cast<std::int64_t>(lowered_.cuts[static_cast<std::size_t>(info(root).cut)].pieces.size());
    }
    return buffer;
  }

  int add_buffer(int root, Buffer buffer) {
    plan_.buffers.push_back(buffer);
    const int index = static_cast<int>(plan_.buffers.size() - 1);
    set_buffer(root, index);
    return index;
  }

  void give_own_buffer(int root) {
    Buffer buffer = make_buffer(root);
    if (buffer.pool == Pool::packed) {
      buffer.layout = Layout::packed;
      buffer.offset = packed_++;
    } else {
      // Outputs are read after the step. Constants are computed only once, when the plan is loaded.
      buffer.persistent = outlives_.contains(root) || buffer.pool == Pool::constant;
      allocate_in_pool(buffer, mesh(), buffer.persistent ? plan_.persistent : plan_.transient);
    }
    add_buffer(root, buffer);
  }

  void place_inputs() {
    for (const int root : lowered_.outputs) outlives_.insert(lowered_.memory_root(root));
    for (const auto& [root, equation] : lowered_.coordinates) outlives_.insert(root);
    for (const Input& input : plan_.program->inputs) {
      const int root = input.value.id;
      if (input.group == Group::batch) {
        Buffer buffer = make_buffer(root);
        buffer.persistent = true;
        allocate_in_pool(buffer, mesh(), plan_.persistent);
        add_buffer(root, buffer);
      } else {
        add_buffer(root, inputs_.buffers.find(input.name)->second);
      }
    }
  }

  void place_updates() {
    for (const auto& [next, input] : in_place_) set_buffer(next, buffer_of(input));
  }

  // ---- the arena and shared temporaries, in instruction order

  std::size_t arena_bytes(int root) const {
    if (pool_of(root) != Pool::arena) return bytes(type(root));
    const Cut& cut = lowered_.cuts[static_cast<std::size_t>(info(root).cut)];
    const auto most = static_cast<std::size_t>(cut.largest());
    if (info(root).kind != RowKind::rows) return product_of(bytes(type(root)), most);
    return product_of(bytes(type(root)) / static_cast<std::size_t>(type(root).shape.front()), most);
  }

  // The bytes of the columns that a task of a ProductInParts copies to the arena, for the task that copies most. The
  // arena is free then, because the worker runs no piece at the same time.
  std::size_t bytes_to_gather() const {
    std::size_t most = 0;
    for (const Stage& stage : lowered_.stages) {
      for (const Instruction& instruction : stage.tasks) {
        const ProductInParts* const sum = instruction.as<ProductInParts>();
        if (sum == nullptr) continue;
        for (std::int64_t part = 0; part < sum->parts; ++part) {
          Type columns = plan_.program->type(sum->equation->operands.front());
          const std::int64_t width = columns.shape[1];
          columns.shape[1] = part_begin(width, sum->parts, part + 1) - part_begin(width, sum->parts, part);
          most = std::max(most, product_of(bytes(columns), instances(lowered_.rows.axes)));
        }
      }
    }
    return most;
  }

  void place(const Instruction& instruction, Reader reader) {
    const int position = ++position_;
    if (const Loop* const loop = instruction.as<Loop>()) return place_loop(instruction, *loop, reader);
    const Kernel* const kernel = instruction.as<Kernel>();
    const bool elementwise = kernel != nullptr && kernel->equation->op.rules().elementwise;
    const auto nothing = [](int) {};
    for_each_value(instruction, nothing, [&](int value) {
      const int root = lowered_.memory_root(value);
      if (buffer_of(root) >= 0) return;
      if (elementwise && take_over(*kernel, root, position)) return;
      if (reader == Reader::chunk || reader == Reader::task) release_shared(position);
      allocate(root);
    });
    release(position);
  }

  void place_loop(const Instruction& instruction, const Loop& loop, Reader reader) {
    const int begin = position_;
    for (const Copy& copy : loop.carry_copies) {
      ++position_;
      if (buffer_of(copy.to) < 0) allocate(copy.to);
      release(position_);
    }
    for (const Copy& slice : loop.slice_copies) allocate(slice.to);
    carry_in_place(instruction, loop, begin);
    for (const Instruction& inner : loop.body) place(inner, reader);
    release(++position_);
    assert(position_ == lifetimes_.loop_end.at(&instruction));
  }

  // If the body computes the new value of a carry by an elementwise op, and nothing reads the old value afterwards,
  // lets the op write into the carry's buffer. So gradients accumulate in place.
  void carry_in_place(const Instruction& instruction, const Loop& loop, int begin) {
    const int end = lifetimes_.loop_end.at(&instruction);
    std::set<int> taken;
    for (const Instruction& inner : loop.body) {
      const Copy* const yield = inner.as<Copy>();
      if (yield == nullptr) continue;
      const Lifetime& written = lifetimes_.of(yield->from);
      if (written.writer == nullptr || written.loop != &loop) continue;
      const Kernel* const kernel = written.writer->as<Kernel>();
      if (kernel == nullptr || !kernel->equation->op.rules().elementwise) continue;
      if (buffer_of(yield->from) >= 0 || !taken.insert(yield->from).second) continue;
      if (pool_of(yield->from) != pool_of(yield->to) || type(yield->from) != type(yield->to)) continue;
      const std::vector<Access>& reads = lifetimes_.of(yield->to).reads;
      const bool read_later = std::any_of(reads.begin(), reads.end(), [&](const Access& read) {
        const bool later = read.position > written.first_write.position ||
                           (read.position == written.first_write.position && read.of_range);
        return later && read.position > begin && read.position < end;
      });
      if (!read_later) set_buffer(yield->from, buffer_of(yield->to));
    }
  }

  // Gives an elementwise result the memory of an operand that is not read afterwards. Returns false if there is none.
  bool take_over(const Kernel& kernel, int result, int position) {
    for (int operand : kernel.operands) {
      const bool reads_range = std::any_of(kernel.operands.begin(), kernel.operands.end(), [&](int other) {
        return other != operand && lowered_.memory_root(other) == operand;
      });
      if (reads_range) continue;
      const auto live = live_.find(operand);
      if (live == live_.end() || lifetimes_.of(operand).last_position != position) continue;
      if (pool_of(operand) != pool_of(result) || info(operand).axes != info(result).axes ||
          info(operand).kind != info(result).kind || bytes(type(operand)) != bytes(type(result)) ||
          size_of(type(operand).dtype) != size_of(type(result).dtype)) {
        continue;
      }
      const std::size_t offset = live->second;
      forget(operand);
      hold(result, offset);
      return true;
    }
    return false;
  }

  void allocate(int root) {
    if (buffer_of(root) >= 0) return;
    if (pool_of(root) == Pool::shared) {
      // Values share memory only if they are cut into the same chunks (shape_of_chunks). Then, within a stage, the task
      // that overwrites a chunk is the one that has read it. A value that tasks write in other units gets new memory.
      auto& free = free_shared_[shape_of_chunks(root)];
      std::size_t offset = plan_.transient.shared;
      if (free.empty() || info(root).written_by_tasks) {
        const std::size_t size = product_of(bytes(type(root)), instances(info(root).axes));
        plan_.transient.shared = sum_of(plan_.transient.shared, align(size));
      } else {
        offset = free.back();
        free.pop_back();
      }
      return hold(root, offset);
    }
    assert(pool_of(root) == Pool::arena || pool_of(root) == Pool::piece);
    hold(root, arena_.allocate(arena_bytes(root)));
  }

  using ChunkShape = std::tuple<std::int64_t, std::size_t, std::uint32_t>;
  ChunkShape shape_of_chunks(int root) const {
    return {numel(type(root)), size_of(type(root).dtype), info(root).axes.bits()};
  }

  void release(int position) {
    release_if(position, [](Pool) { return true; });
  }
  void release_shared(int position) {
    release_if(position, [](Pool pool) { return pool == Pool::shared; });
  }

  // Releases values that are not read after `position`. The order of roots makes the reuse of memory deterministic.
  template <class Predicate>
  void release_if(int position, Predicate&& predicate) {
    std::vector<int> ended;
    for (const auto& [last, root] : ends_) {
      if (last > position) break;
      if (predicate(pool_of(root))) ended.push_back(root);
    }
    std::sort(ended.begin(), ended.end());
    for (int root : ended) {
      const std::size_t offset = live_.at(root);
      if (pool_of(root) == Pool::shared) {
        free_shared_[shape_of_chunks(root)].push_back(offset);
      } else {
        arena_.release(offset, arena_bytes(root));
      }
      forget(root);
    }
  }

  void hold(int root, std::size_t offset) {
    live_[root] = offset;
    ends_.emplace(lifetimes_.of(root).last_position, root);
    Buffer buffer = make_buffer(root);
    buffer.offset = offset;
    add_buffer(root, buffer);
  }
  void forget(int root) {
    live_.erase(root);
    ends_.erase({lifetimes_.of(root).last_position, root});
  }

  // ---- the finished plan: buffers in place of values, and no copies from a buffer to itself

  void finish() {
    for (Accumulator& accumulator : lowered_.accumulators) {
      accumulator.offset = plan_.transient.accumulators;
      const std::size_t pieces = lowered_.cuts[static_cast<std::size_t>(accumulator.cut)].pieces.size();
      plan_.transient.accumulators =
          sum_of(plan_.transient.accumulators, product_of(accumulator.piece_bytes(), pieces));
    }
    plan_.cuts = std::move(lowered_.cuts);
    plan_.added_equations = lowered_.added_equations;
    plan_.accumulators = std::move(lowered_.accumulators);
    plan_.stages = std::move(lowered_.stages);
    for (Stage& stage : plan_.stages) use_buffers(stage);
    plan_.barrier_after_step = shares_memory(plan_.stages.back());
    for (const auto& [root, equation] : lowered_.constants) plan_.constants.emplace_back(buffer_of(root), equation);
    for (const auto& [root, equation] : lowered_.coordinates) plan_.coordinates.emplace_back(buffer_of(root), equation);
    for (const Input& input : plan_.program->inputs) plan_.inputs.push_back(buffer_of(input.value.id));
    for (int root : lowered_.outputs) plan_.outputs.push_back(buffer_of(root));
  }

  // Whether the workers read shared memory in a stage. Without a barrier after it, a worker could overwrite this
  // memory.
  bool shares_memory(const Stage& stage) const { return stage.has_tasks() || reads_shared(stage.every_worker); }

  bool reads_shared(const std::vector<Instruction>& instructions) const {
    bool shared = false;
    const auto look = [&](int index) {
      const Pool pool = plan_.buffers[static_cast<std::size_t>(index)].pool;
      shared = shared || pool == Pool::shared || pool == Pool::device;
    };
    for (const Instruction& instruction : instructions) {
      for_each_value(instruction, look, [](int) {});
      const Loop* const loop = instruction.as<Loop>();
      shared = shared || (loop != nullptr && reads_shared(loop->body));
    }
    return shared;
  }

  void use_buffers(Stage& stage) {
    use_buffers(stage.every_worker);
    for (ChunkList& chunked : stage.chunk_lists) use_buffers(chunked.instructions);
    std::erase_if(stage.chunk_lists, [](const ChunkList& chunked) { return chunked.instructions.empty(); });
    use_buffers(stage.tasks);
    for (PieceList& list : stage.piece_lists) use_buffers(list.instructions);
    std::erase_if(stage.piece_lists, [](const PieceList& list) { return list.instructions.empty(); });
  }

  void use_buffers(std::vector<Instruction>& instructions) {
    for (Instruction& instruction : instructions) {
      const auto to_buffer = [&](int& id) { id = buffer_of(id); };
      for_each_value(instruction, to_buffer, to_buffer);
      if (Loop* const loop = instruction.as<Loop>()) {
        std::erase_if(loop->carry_copies, [](const Copy& copy) { return copy.from == copy.to; });
        use_buffers(loop->body);
      }
    }
    std::erase_if(instructions, [](const Instruction& instruction) {
      const Copy* const copy = instruction.as<Copy>();
      return copy != nullptr && copy->from == copy->to;
    });
  }

  const SharedInputs& inputs_;
  Plan plan_;
  Lowered lowered_;
  Lifetimes lifetimes_;
  std::map<int, std::vector<int>> ranges_;  // by bucket: the arrays inside it
  std::map<int, int> in_place_;             // by new value: the input whose buffer it is written to
  std::set<int> outlives_;                  // roots that are read after the step
  std::size_t packed_ = 0;                  // the number of buffers in the packed pool so far
  std::vector<Pool> pools_;                 // by root, like the two following members
  std::vector<bool> kept_;                  // whether no other value may use its memory in the step
  std::vector<int> buffer_of_;              // -1: none yet
  Arena arena_{alignment};
  int position_ = 0;                    // of the current instruction, counted as in find_lifetimes()
  std::map<int, std::size_t> live_;     // by root: the offset of memory that place() has allocated and not released yet
  std::set<std::pair<int, int>> ends_;  // the last position and root of each entry of `live_`
  std::map<ChunkShape, std::vector<std::size_t>> free_shared_;  // offsets of released memory in the shared pool
};

}  // namespace

Plan make_plan(std::shared_ptr<const Program> program, const PlanOptions& options, const SharedInputs& inputs) {
  return Planner(std::move(program), options, inputs).run();
}

Plan make_plan(std::shared_ptr<const Program> program, const PlanOptions& options) {
  SharedInputs inputs;
  add_inputs(*program, options, inputs);
  return make_plan(std::move(program), options, inputs);
}

}  // namespace pmaptrain::cpu
