// The second half of planning: gives each value a buffer. lower.h has the first half.
#include "core/runtime/cpu/plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/analysis/cost.h"
#include "core/base/saturate.h"
#include "core/mesh/blocks.h"
#include "core/runtime/cpu/lifetime.h"
#include "core/runtime/cpu/lower.h"
#include "core/runtime/cpu/request.h"
#include "core/runtime/cpu/sums_of_rows.h"
#include "core/runtime/cpu/temporaries.h"
#include "core/runtime/plan_count.h"
#include "core/storage/intervals.h"

namespace pmaptrain::cpu {
namespace {

// The bytes of a core's cache that the arenas of pieces may take, and those of a matrix that stays in it.
constexpr std::size_t cached_arenas = std::size_t{1} << 20, cached_matrix = std::size_t{2} << 20;
// The most pieces that a worker runs abreast: with more, it takes work too early that other workers could do.
constexpr std::size_t most_abreast = 4;

class Planner {
 public:
  Planner(std::shared_ptr<const Program> program, const PlanOptions& options, const SharedInputs& inputs)
      : inputs_(inputs) {
    plan_.program = with_sums_of_rows(std::move(program));
    plan_.options = options;
    plan_.persistent = inputs.sizes;
    plan_.work = options.work > 0 ? options.work : work_of(*plan_.program);
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
    find_carries_in_place();
    for (const StageLoop& loop : lowered_.loops) carry_in_place(loop);
    std::vector<int> temporaries;
    std::map<Pool, std::vector<int>> by_stage;
    for (const Lifetime& value : lifetimes_.values) {
      if (buffer_of(value.root) >= 0 || carried_.contains(value.root)) continue;
      if (is_needed_in_some_stages(value)) {
        by_stage[pool_of(value.root)].push_back(value.root);
      } else if (!reused(value)) {
        give_own_buffer(value.root);
      } else if (value.writer != nullptr) {
        temporaries.push_back(value.root);
      }
    }
    place(temporaries);
    for (const auto& [pool, roots] : by_stage) place_by_stages(roots, size_of_pool(plan_.transient, pool));
    for (const auto& [from, carry] : carried_) set_buffer(from, buffer_of(carry));
    finish();
    return std::move(plan_);
  }

 private:
  const ValueInfo& info(int root) const { return lowered_.info(root); }
  const Type& type(int root) const { return lowered_.type(root); }
  Share share() const { return plan_.share(); }

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
    // With the roots of the input and of its new value.
    std::vector<std::pair<const Replacement*, std::pair<int, int>>> copies;
    for (std::size_t i = 0; i < lowered_.updates.size(); ++i) {
      const Replacement& update = lowered_.storage_facts.updates[i];
      const auto& [input, next] = lowered_.updates[i];
      if (update.how == Replacement::How::none) continue;
      const StageLoop step{nullptr, 0, lowered_.stages.size()};
      const bool may = update.how == Replacement::How::overwrite;
      if (may && can_replace_in_place(update, input, lowered_.memory_root(next), step)) {
        in_place_[lowered_.memory_root(next)] = input;
      } else {
        copies.push_back({&update, lowered_.updates[i]});
      }
    }
    if (copies.empty()) return false;
    const auto twice = [](const auto& copy) { return copy.first->how == Replacement::How::copy_twice; };
    const bool aside = std::any_of(copies.begin(), copies.end(), twice);
    const auto first = static_cast<int>(lowered_.stages.size()), replace = first + (aside ? 1 : 0);
    for (const auto& copy : copies) {
      const auto& [input, next] = copy.second;
      const ValueInfo like = info(input);
      const std::int64_t elements = numel(type(input));
      int from = next;
      if (twice(copy)) {
        from = lowered_.add_like(input);
        lowered_.add(Copy{next, from}, like, first, elements);
      }
      lowered_.add(Copy{from, input}, like, replace, elements);
    }
    return true;
  }

  // Whether the value `next` can be computed in the memory of `old`, an input or the carry of a loop over stages.
  // `step` are the stages after which it replaces the old value.
  bool can_replace_in_place(const Replacement& replacement, int old, int next, const StageLoop& step) const {
    const Lifetime& written = lifetimes_.of(next);
    if (!replacement.by_element || written.writer == nullptr || written.writer->as<Kernel>() == nullptr) return false;
    if (info(old).storage != info(next).storage || info(old).axes != info(next).axes) return false;
    if (info(next).kind != RowKind::whole) return false;
    const Storage kind = info(old).storage;
    const bool by_task = info(next).by_one_task;
    const std::vector<Access>& reads = lifetimes_.of(old).reads;
    return std::all_of(reads.begin(), reads.end(), [&](const Access& read) {
      const auto stage = static_cast<std::size_t>(read.stage);
      if (read.stage < written.first_write.stage || stage >= step.end) return true;
      if (read.stage > written.first_write.stage || read.reader == Reader::exchange) return false;
      if (by_task) return read.reader == Reader::task && read.position == written.first_write.position;
      const bool same_order =
          (kind == Storage::varying && read.reader == Reader::piece && read.cut == info(next).cut) ||
          (kind == Storage::worker && read.reader == Reader::every_worker) ||
          (kind == Storage::chunked && read.reader == Reader::chunk);
      return same_order && read.position <= written.first_write.position;
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
    if (crosses || is_kept(value.root) || info(value.root).written_by_tasks) return Pool::device;
    const bool has_slices = info(value.root).kind == RowKind::rows || !info(value.root).axes.empty();
    return has_slices ? Pool::arena : Pool::piece;
  }

  // Whether place() allocates the value's memory, so that it can be reused: in the arena, and of shared temporaries.
  bool reused(const Lifetime& value) const {
    const Pool pool = pool_of(value.root);
    if (pool == Pool::arena || pool == Pool::piece) return true;
    if (pool != Pool::shared || is_kept(value.root)) return false;
    // A value may be written outside of a loop over stages and read inside. Then every iteration reads it, so its
    // memory is not reused.
    const bool crosses = std::any_of(value.reads.begin(), value.reads.end(), [&](const Access& read) {
      return lowered_.loop_of(read.stage) != lowered_.loop_of(value.first_write.stage);
    });
    if (crosses) return false;
    // The memory of a value without readers would be reused in the stage in which tasks still write the value.
    if (info(value.root).written_by_tasks && value.reads.empty()) return false;
    return std::all_of(value.reads.begin(), value.reads.end(),
                       [](const Access& read) { return read.reader == Reader::chunk; });
  }

  // Whether place_by_stages() allocates the value's memory, which values of other stages may then use.
  bool is_needed_in_some_stages(const Lifetime& value) const {
    const Pool pool = pool_of(value.root);
    const bool may_share = pool == Pool::device || pool == Pool::worker || (pool == Pool::shared && !reused(value));
    return may_share && value.writer != nullptr && !outlives_.contains(value.root);
  }

  Buffer make_buffer(int root) const {
    Buffer buffer;
    buffer.dtype = type(root).dtype;
    buffer.axes = info(root).axes;
    buffer.pool = pool_of(root);
    buffer.elements = numel(type(root));
    buffer.contributions = info(root).contributions;
    if (buffer.pool == Pool::device && info(root).kind == RowKind::partial) {
      buffer.pieces = lowered_.cuts[static_cast<std::size_t>(info(root).cut)].own.count;
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
      allocate_in_pool(buffer, share(), buffer.persistent ? plan_.persistent : plan_.transient);
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
        allocate_in_pool(buffer, share(), plan_.persistent);
        add_buffer(root, buffer);
      } else {
        add_buffer(root, inputs_.buffers.find(input.name)->second);
      }
    }
  }

  void place_updates() {
    for (const auto& [next, input] : in_place_) set_buffer(next, buffer_of(input));
  }

  // ---- carries and temporaries

  // Finds the values that are written directly into the carry that they are yielded to. So gradients accumulate in
  // place.
  void find_carries_in_place() {
    for (Stage& stage : lowered_.stages) {
      for_each_instruction(stage, [&](const Instruction& instruction, Reader, int) { carry_in_place(instruction); });
    }
  }

  void carry_in_place(const Instruction& instruction) {
    const Loop* const loop = instruction.as<Loop>();
    if (loop == nullptr) return;
    const int end = lifetimes_.loop_end.at(&instruction);
    for (const Replacement& yield : lowered_.storage_facts.yields.at(loop->equation)) {
      if (yield.how != Replacement::How::overwrite || !yield.by_element) continue;
      const int from = info(yield.from.id).root, carry = info(yield.to.id).root;
      const Lifetime& written = lifetimes_.of(from);
      if (written.writer == nullptr || written.writer->as<Kernel>() == nullptr || buffer_of(from) >= 0) continue;
      if (pool_of(from) != pool_of(carry) || type(from) != type(carry)) continue;
      const std::vector<Access>& reads = lifetimes_.of(carry).reads;
      const bool read_later = std::any_of(reads.begin(), reads.end(), [&](const Access& read) {
        return read.position > written.first_write.position && read.position < end;
      });
      if (!read_later) carried_[from] = carry;
    }
    for (const Instruction& inner : loop->body) carry_in_place(inner);
  }

  void carry_in_place(const StageLoop& loop) {
    for (const Replacement& yield : lowered_.storage_facts.yields.at(loop.equation)) {
      if (yield.how != Replacement::How::overwrite) continue;
      const int from = lowered_.memory_root(info(yield.from.id).root), carry = info(yield.to.id).root;
      // A carry that nothing reads is in the arena of a piece; other pieces may read the new value.
      if (pool_of(from) != pool_of(carry)) continue;
      if (can_replace_in_place(yield, carry, from, loop)) carried_[from] = carry;
    }
  }

  void place(const std::vector<int>& temporaries) {
    const Temporaries placed = place_temporaries(lowered_, lifetimes_, pools_, temporaries, plan_.transient.shared);
    for (const Temporary& temporary : placed.values) {
      Buffer buffer = make_buffer(temporary.root);
      buffer.offset = temporary.offset;
      add_buffer(temporary.root, buffer);
    }
    plan_.transient.shared = placed.shared_bytes;
    plan_.arena_bytes = round_up(placed.arena_bytes, alignment);
    plan_.abreast = pieces_abreast();
    plan_.transient.arena = std::max(product_of(plan_.abreast, plan_.arena_bytes), bytes_of_parts());
  }

  // Several where each matrix that the pieces of a stage read stays in a core's cache, but not all of them together.
  std::size_t pieces_abreast() const {
    std::size_t most = 0;
    for (const Stage& stage : lowered_.stages) {
      for (const PieceList& list : stage.piece_lists) most = std::max(most, bytes_of_matrices(list.instructions));
    }
    if (most <= cached_matrix || plan_.arena_bytes > cached_arenas) return 1;
    return std::clamp<std::size_t>(cached_arenas / std::max<std::size_t>(1, plan_.arena_bytes), 1, most_abreast);
  }

  // Of the matrices of at most `cached_matrix` bytes. Those in loops do not count: a loop runs for one piece at a time.
  std::size_t bytes_of_matrices(const std::vector<Instruction>& instructions) const {
    std::set<int> matrices;
    for (const Instruction& instruction : instructions) {
      const Kernel* const kernel = instruction.as<Kernel>();
      const auto index = kernel == nullptr ? std::nullopt : packable_operand(*lowered_.program, *kernel->equation);
      if (!index || kernel->operand_reads.empty() || kernel->operand_reads[*index] != RowAccess::whole) continue;
      matrices.insert(kernel->packed_from >= 0 ? kernel->packed_from : kernel->operands[*index]);
    }
    std::size_t sum = 0;
    for (const int matrix : matrices) {
      const std::size_t size = bytes(lowered_.type(matrix));
      if (size <= cached_matrix) sum = sum_of(sum, size);
    }
    return sum;
  }

  // Places values of one pool that cross barriers, behind the `bytes` that the pool has. Two of them may share memory
  // if no stage needs both.
  void place_by_stages(const std::vector<int>& roots, std::size_t& bytes) {
    std::vector<Buffer> buffers;
    std::vector<Interval> intervals;
    for (const int root : roots) {
      const auto [first, last] = stages_of(lowered_, lifetimes_.of(root));
      buffers.push_back(make_buffer(root));
      const auto slices = static_cast<std::size_t>(slices_of(buffers.back(), share()));
      intervals.push_back({static_cast<std::size_t>(first), static_cast<std::size_t>(last),
                           product_of(buffers.back().slice_bytes(), slices)});
    }
    const Offsets offsets = pmaptrain::place(intervals, alignment);
    for (std::size_t i = 0; i < roots.size(); ++i) {
      buffers[i].offset = sum_of(bytes, offsets.of[i]);
      add_buffer(roots[i], buffers[i]);
    }
    bytes = sum_of(bytes, offsets.end);
  }

  // The bytes of the arena that the tasks of all ProductInParts need: the sums of inner nodes of the tree of blocks,
  // and columns of the result. The arena is free then, because the worker runs no piece at the same time.
  std::size_t bytes_of_parts() const {
    std::size_t most = 0;
    for (const Stage& stage : lowered_.stages) {
      for (const Instruction& instruction : stage.tasks) {
        const ProductInParts* const parts = instruction.as<ProductInParts>();
        if (parts == nullptr) continue;
        const std::size_t sums = sums_in_arena(plan_, *parts);
        for (const Extent& part : extents_of(plan_, instruction)) {
          const std::size_t own = round_up(bytes(type_of_part(plan_, *parts, part.count)), alignment);
          most = std::max(most, product_of(sums, own));
        }
      }
    }
    return most;
  }

  // ---- the finished plan: buffers in place of values, and no copies from a buffer to itself

  void finish() {
    plan_.transient.accumulators = place_accumulators(lowered_);
    plan_.cuts = std::move(lowered_.cuts);
    plan_.added_equations = lowered_.added_equations;
    plan_.accumulators = std::move(lowered_.accumulators);
    plan_.stages = std::move(lowered_.stages);
    for (Stage& stage : plan_.stages) use_buffers(stage);
    plan_.loops = std::move(lowered_.loops);
    erase_empty_stages(plan_);
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
  std::map<int, int> carried_;              // by new value: the carry whose buffer it is written to
  std::set<int> outlives_;                  // roots that are read after the step
  std::size_t packed_ = 0;                  // the number of buffers in the packed pool so far
  std::vector<Pool> pools_;                 // by root, like the two following members
  std::vector<bool> kept_;                  // whether no other value may use its memory in the step
  std::vector<int> buffer_of_;              // -1: none yet
};

}  // namespace

std::int64_t Plan::stage_runs_per_step() const {
  std::int64_t runs = 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) runs += runs_per_step(stage);
  return runs;
}

std::int64_t Plan::runs_per_step(std::size_t stage) const {
  std::int64_t runs = 1;
  for (const StageLoop& loop : loops) {
    if (loop.first <= stage && stage < loop.end) runs *= loop.iterations();
  }
  return runs;
}

void erase_empty_stages(Plan& plan) {
  const auto is_empty = [](const Stage& stage) { return !stage.has_tasks() && stage.every_worker.empty(); };
  for (StageLoop& loop : plan.loops) {
    const auto empty_before = [&](std::size_t stage) {
      return static_cast<std::size_t>(
          std::count_if(plan.stages.begin(), plan.stages.begin() + static_cast<std::ptrdiff_t>(stage), is_empty));
    };
    loop.first -= empty_before(loop.first);
    loop.end -= empty_before(loop.end);
  }
  std::erase_if(plan.loops, [](const StageLoop& loop) { return loop.first == loop.end; });
  std::erase_if(plan.stages, is_empty);
  if (plan.stages.empty()) plan.stages.resize(1);
}

Plan make_plan(std::shared_ptr<const Program> program, const PlanOptions& options, const SharedInputs& inputs) {
  count_plan();
  return Planner(std::move(program), options, inputs).run();
}

Plan make_plan(std::shared_ptr<const Program> program, const PlanOptions& options) {
  SharedInputs inputs;
  add_inputs(*program, options, inputs);
  return make_plan(std::move(program), options, inputs);
}

}  // namespace pmaptrain::cpu
