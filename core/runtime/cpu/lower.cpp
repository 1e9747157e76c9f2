#include <algorithm>

#include "core/analysis/row_cut.h"
#include "core/mesh/blocks.h"
#include "core/ops/all.h"
#include "core/runtime/cpu/lowering.h"

namespace pmaptrain::cpu {

Lowering::Lowering(const Program& program, const PlanOptions& options, std::int64_t target)
    : program_(program), options_(options) {
  out_.program = &program;
  out_.options = options;
  out_.target = target;
  out_.facts = analyse(program);
  out_.rows = find_row_facts(program, out_.facts);
  out_.storage_facts = pmaptrain::storage_of(program, options_.private_copies);
  out_.values.resize(program.types.size());
  out_.stages.resize(1);
  inputs_.resize(program.types.size());
  for (const Input& input : program_.inputs) inputs_[static_cast<std::size_t>(input.value.id)] = &input;
  find_mixed(program_.equations);
  cut_by_rows();
}

Lowered Lowering::run() {
  for (const Input& input : program_.inputs) define_input(input);
  packed_sums_ = packed_sums(program_, out_.facts);
  distribution_.emplace(program_, out_.facts, out_.rows, out_.share(), options_.private_copies);
  if (!options_.private_copies) plan_preparations();
  for (const Equation& equation : program_.equations) lower_equation(equation);
  lower_outputs();
  for (const Input& input : program_.inputs) {
    if (input.next) out_.updates.emplace_back(input.value.id, root_to_read(*input.next, -1));
  }
  return std::move(out_);
}

AxisSet Lowering::axes_in_memory(Value value) const {
  const Value root{facts(value).root};
  const Input* const input = input_of(root.id);
  return input != nullptr && input->group == Group::batch ? out_.type(root.id).varying
                                                          : stored_axes(out_.type(root.id));
}

void Lowering::find_mixed(const std::vector<Equation>& equations) {
  for (const Equation& equation : equations) {
    if (equation.op.is_loop() && communicates(equation)) {
      find_mixed(equation.regions.front().equations);
      continue;
    }
    if (equation.op.rules().communication != Communication::none || equation.op.rules().view) continue;
    std::set<std::uint32_t> sets;
    AxisSet together;
    const auto add = [&](Value value) {
      const AxisSet axes = axes_in_memory(value);
      together = together | axes;
      if (!axes.empty()) sets.insert(axes.bits());
    };
    const auto add_all = [&](const Equation& each) {
      std::for_each(each.operands.begin(), each.operands.end(), add);
      std::for_each(each.results.begin(), each.results.end(), add);
    };
    add_all(equation);
    for (const Region& region : equation.regions) for_each_equation(region.equations, add_all);
    if (!together.empty()) sets.insert(together.bits());
    if (sets.size() > 1) out_.mixed.merge(sets);
  }
}

void Lowering::cut_by_rows() {
  for (const AxisSet varying : out_.rows.axis_sets(program_)) cut_by_rows(varying);
}

void Lowering::cut_by_rows(AxisSet varying) {
  RowFacts& rows = out_.rows;
  const std::int64_t instances = program_.mesh.group_size(varying);
  const std::int64_t span =
      contiguous_instances(program_.mesh, varying, axes_that_bound_pieces(program_, out_.facts, rows, varying));
  // One piece for each instance gives enough pieces, so a cut into whole instances is used instead. Where a part of
  // each example's row is on several devices, sums over the examples would then have an addend for each of them.
  if (varying == rows.axes && span == 1 && instances > 1 && instances >= out_.target) {
    return rows.forget(program_, varying);
  }
  const std::vector<IndexRange> runs = Blocks(program_.mesh, options_.blocks).runs(varying, span);
  out_.add_cut({varying, rows.count, cut_rows(runs, rows.count, out_.target), {}});
}

void Lowering::define(Value value, ValueInfo how) {
  how.root = value.id;
  info(value) = how;
}

Storage Lowering::storage_of(AxisSet axes, std::int64_t elements) const {
  const bool large = elements > small_elements;
  if (axes.empty()) return large ? Storage::chunked : Storage::worker;
  // What varies over all axes is computed for the examples of each device, unless all devices have the same examples.
  return large && (axes != all() || !examples_vary(program_)) ? Storage::chunked : Storage::varying;
}

void Lowering::define_input(const Input& input) {
  ValueInfo how;
  how.complete_before_step = true;
  how.axes = input.group == Group::batch ? type(input.value).varying : stored_axes(type(input.value));
  if (input.group != Group::batch) {
    how.storage = storage_of(how.axes, numel(type(input.value)));
  } else if (how.axes.empty()) {
    how.storage = Storage::constant;  // no worker writes it
  }
  define(input.value, how);
}

int Lowering::first_readable_stage(const ValueInfo& read, const ValueInfo& reader) const {
  if (read.complete_before_step) return first_main_stage_;
  bool same = read.storage == Storage::constant || read.storage == Storage::worker;
  if (read.storage == Storage::chunked) {
    same = reader.storage == Storage::chunked && reader.axes == read.axes && read.bucket < 0;
  }
  if (read.storage == Storage::varying) same = reader.storage == Storage::varying && reader.cut == read.cut;
  same = same && !read.written_by_tasks;
  return std::max(first_main_stage_, read.stage + (same ? 0 : 1));
}

int Lowering::first_stage(const Equation& equation, std::span<const int> operands, const ValueInfo& reader) const {
  int stage = first_main_stage_;
  for (const Value operand : equation.operands) stage = std::max(stage, earliest_stage(operand));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ValueInfo& read = out_.info(operands[i]);
    stage = std::max(stage, first_readable_stage(read, reader));
    // A piece may read its own rows in the stage that writes them, but the rows of other pieces only after a barrier.
    const bool needs_all = read.kind == RowKind::rows && read.cut == reader.cut && !read.complete_before_step &&
                           row_access_of(program_, out_.facts, out_.rows, equation, i) != RowAccess::same_rows;
    const bool waits = reader.by_one_task && read.storage != Storage::worker && !read.complete_before_step;
    if (needs_all || waits) stage = std::max(stage, read.stage + 1);
  }
  return stage;
}

int Lowering::earliest_stage(Value value) const {
  const auto found = earliest_stages_.find(value.id);
  return found == earliest_stages_.end() ? 0 : found->second;
}

const Input* Lowering::input_of(int root) const {
  const auto at = static_cast<std::size_t>(out_.memory_root(root));
  return at < inputs_.size() ? inputs_[at] : nullptr;
}

int Lowering::root_to_read(Value value, int cut) {
  const ValueInfo& from = info(value);
  if (from.kind != RowKind::partial || from.cut == cut) return from.root;
  const auto known = complete_sums_.find(from.root);
  return known != complete_sums_.end() ? known->second : complete_sum(from.root);
}

int Lowering::root_to_read(Value value, const ValueInfo& how) {
  const int root = root_to_read(value, how.cut);
  const ValueInfo from = out_.info(root);
  const AxisSet axes = how.axes;
  if (!options_.private_copies || !is_on_rows(how) || axes.empty() || loop_body_ != nullptr) return root;
  if (from.kind != RowKind::whole || axes.contains(from.axes) || type(value).varying != axes) return root;
  const int by_instance = out_.add_like(root);
  ValueInfo& copy = out_.info(by_instance);
  copy.storage = Storage::varying;
  copy.axes = axes;
  copy.cut = out_.cut_of(axes);
  copy.complete_before_step = copy.written_by_tasks = false;
  copy.stage = first_readable_stage(from, copy);
  out_.add(Copy{root, by_instance}, copy, copy.stage, 0);
  return by_instance;
}

int Lowering::complete_sum(int root) {
  const ValueInfo partial = out_.info(root);
  const Value value{root};
  out_.added_equations->push_back({all_ops().psum(AxisSet()), {value}, {value}, origin_});
  const Equation* const sum = &out_.added_equations->back();
  const int whole = out_.add_like(root);
  const ValueInfo how = info_by_size(out_.type(root), partial.stage + 1);
  define(Value{whole}, how);
  const int accumulator = add_accumulator(out_.type(root), partial.cut);
  out_.add(ReducePartial{sum, root, accumulator}, partial, partial.stage, 0);
  out_.add(ReduceCombine{sum, type(value).varying, accumulator, -1, whole}, how, how.stage, numel(out_.type(root)));
  complete_sums_[root] = whole;
  return whole;
}

ValueInfo Lowering::make_info(Storage storage, const Type& type, int stage) {
  ValueInfo how;
  how.storage = storage;
  how.axes = stored_axes(type);
  how.cut = cut_for(how);
  how.stage = stage;
  return how;
}

ValueInfo Lowering::info_by_instance(const Type& type, int stage) {
  return make_info(stored_axes(type).empty() ? Storage::worker : Storage::varying, type, stage);
}

ValueInfo Lowering::info_by_size(const Type& type, int stage) {
  return make_info(storage_of(stored_axes(type), numel(type)), type, stage);
}

ValueInfo Lowering::info_on_rows(const Type& type, int stage) const {
  ValueInfo how;
  how.axes = type.varying;
  how.cut = out_.rows_cut_of(how.axes);
  how.kind = RowKind::rows;
  how.stage = stage;
  return how;
}

int Lowering::add_accumulator(const Type& of, int cut) {
  out_.accumulators.push_back({of.dtype, numel(of), cut});
  return static_cast<int>(out_.accumulators.size()) - 1;
}

void Lowering::add(Instruction instruction, const ValueInfo& like, int stage, std::int64_t elements) {
  if (loop_body_ != nullptr) {
    loop_body_->push_back(std::move(instruction));
  } else {
    out_.add(std::move(instruction), like, stage, elements);
  }
}

void Lowering::lower_equation(const Equation& equation) {
  origin_ = equation.origin;
  if (equation.op.rules().packs && packed_sums_.contains(equation.results.front().id)) return;
  if (try_make_alias(equation) || try_make_constant(equation)) return;
  switch (equation.op.rules().communication) {
    case Communication::coordinate: {
      ValueInfo how;
      how.complete_before_step = true;
      how.axes = stored_axes(type(equation.results.front()));
      define(equation.results.front(), how);
      out_.coordinates.emplace_back(equation.results.front().id, &equation);
      return;
    }
    case Communication::sum:
    case Communication::max:
    case Communication::min: return lower_reduction(equation, equation);
    case Communication::scatter: return lower_psum_scatter(equation);
    case Communication::gather:
    case Communication::slice:
    case Communication::all_to_all:
    case Communication::permute: return lower_exchange(equation);
    case Communication::none: break;
  }
  if (equation.op.is_loop()) return communicates(equation) ? lower_stage_loop(equation) : lower_loop(equation);
  lower_local(equation);
}

bool Lowering::try_make_alias(const Equation& equation) {
  const StorageFacts& storage = out_.storage_facts;
  if (equation.results.empty() || storage.is_root(equation.results.front())) return false;
  const ValueInfo operand = info(equation.operands.front());
  const std::int64_t begin = storage.home(equation.operands.front()).begin;
  for (const Value result : equation.results) {
    if (equation.op.rules().view) {
      info(result) = operand;
      viewed_.emplace(result.id, equation.operands.front());
      int earliest = earliest_stage(equation.operands.front());
      for (const Value awaited : std::span(equation.operands).subspan(1)) {
        earliest = std::max({earliest, earliest_stage(awaited), out_.info(info(awaited).root).stage});
      }
      if (earliest > 0) earliest_stages_[result.id] = earliest;
      continue;
    }
    ValueInfo range = operand;
    range.bucket = out_.memory_root(operand.root);
    range.bucket_begin += storage.home(result).begin - begin;
    define(result, range);
  }
  return true;
}

bool Lowering::try_make_constant(const Equation& equation) {
  if (!equation.op.local() || !equation.operands.empty()) return false;
  for (Value result : equation.results) {
    ValueInfo how;
    how.storage = Storage::constant;
    define(result, how);
    out_.constants.emplace_back(result.id, &equation);
  }
  return true;
}

void Lowering::lower_local(const Equation& equation) {
  ValueInfo how = loop_body_ != nullptr ? loop_info_ : info_of_results(equation);
  Kernel kernel;
  kernel.equation = &equation;
  for (Value operand : equation.operands) kernel.operands.push_back(root_to_read(operand, how));
  const bool before = early_casts_.contains(equation.results.front().id);
  if (loop_body_ == nullptr) how.stage = before ? 0 : first_stage(equation, kernel.operands, how);
  const bool on_rows = is_on_rows(how);
  for (Value result : equation.results) {
    ValueInfo own = how;
    if (on_rows) {
      own.kind = out_.rows.of(result);
      if (own.kind == RowKind::whole) own.kind = RowKind::uniform;  // replicated, in a loop
      if (own.kind != RowKind::rows) own.axes = {};
      kernel.result_has_rows.push_back(own.kind == RowKind::rows);
    } else if (type(result).varying.empty() && !options_.private_copies) {
      own.axes = {};
    }
    define(result, own);
    kernel.results.push_back(result.id);
  }
  for (std::size_t i = 0; on_rows && i < equation.operands.size(); ++i) {
    kernel.operand_reads.push_back(row_access_of(program_, out_.facts, out_.rows, equation, i));
  }
  if (how.storage == Storage::varying) pack_operands(kernel);
  add(std::move(kernel), how, how.stage, numel(type(chunked_value(program_, equation))));
}

ValueInfo Lowering::info_of_results(const Equation& equation) {
  const Value result = equation.results.front();
  if (out_.rows.runs_on_rows(equation)) return info_on_rows(type(result));
  // An elementwise equation may be computed in chunks, unless an operand is broadcast along some dimensions only: it
  // then is neither a scalar nor as large as the result.
  const bool chunks = equation.op.rules().elementwise &&
                      std::all_of(equation.operands.begin(), equation.operands.end(), [&](Value operand) {
                        return numel(type(operand)) == 1 || numel(type(operand)) == numel(type(result));
                      });
  if (chunks) return info_by_size(type(result), 0);
  // Workers share a large array, and one that an op writes in place.
  const bool shares = stored_axes(type(result)).empty() &&
                      (equation.op.rules().in_place || numel(type(result)) > least_shared_elements);
  const bool by_rows = is_chunked_by_rows(program_, equation);
  if (!shares && !by_rows) return info_by_instance(type(result), 0);
  ValueInfo how = info_by_size(type(by_rows ? equation.operands.front() : result), 0);
  // A chunk of the operand determines fewer elements of the result, which are no chunk of it.
  how.written_by_tasks = how.storage == Storage::chunked;
  how.by_one_task = how.written_by_tasks && !by_rows;
  return how;
}

std::optional<std::size_t> Lowering::operand_to_pack(const Equation& equation) {
  if (options_.private_copies) return std::nullopt;
  const std::optional<std::size_t> index = packable_operand(program_, equation);
  const bool on_pieces = !type(equation.results.front()).varying.empty() || out_.rows.runs_on_rows(equation);
  if (!index || !on_pieces) return std::nullopt;
  const int root = facts(equation.operands[*index]).root;
  return is_parameter(root) || early_casts_.contains(root) ? index : std::nullopt;
}

bool Lowering::is_parameter(int root) const {
  const Input* const input = input_of(root);
  return input != nullptr && is_of_model(input->group) && facts(input->value).axes.empty();
}

void Lowering::plan_preparations() {
  std::set<int> casts;  // casts of parameters
  for (const Equation& equation : program_.equations) {
    // A preparation has one result for all devices. So a cast whose result varies, such as the cast of a pvary, is
    // none.
    const bool is_cast = equation.op.rules().elementwise && equation.regions.empty() && equation.operands.size() == 1 &&
                         type(equation.results.front()).varying.empty();
    if (is_cast && is_parameter(facts(equation.operands.front()).root)) casts.insert(equation.results.front().id);
  }
  for_each_equation(program_.equations, [&](const Equation& equation) {
    if (!out_.rows.runs_on_rows(equation)) return;
    for (Value operand : equation.operands) {
      if (casts.contains(facts(operand).root)) early_casts_.insert(facts(operand).root);
    }
  });
  // All other instructions may read what preparations compute, so they run in later stages.
  first_main_stage_ = early_casts_.empty() ? 0 : 1;
  for_each_equation(program_.equations, [&](const Equation& equation) {
    const auto index = operand_to_pack(equation);
    if (index)
      first_main_stage_ = std::max(first_main_stage_, preparation_stage(facts(equation.operands[*index]).root) + 1);
  });
}

void Lowering::pack_operands(Kernel& kernel) {
  const auto index = operand_to_pack(*kernel.equation);
  if (!index) return;
  int& operand = kernel.operands[*index];
  const int packed = out_.add_like(operand);
  ValueInfo& how = out_.info(packed);
  how.storage = Storage::chunked;
  how.written_by_tasks = true;
  how.complete_before_step = false;
  how.stage = preparation_stage(out_.memory_root(operand));
  out_.packed.insert(packed);
  out_.add(PackOperand{kernel.equation, *index, operand, packed}, how, how.stage, 0);
  kernel.packed_from = std::exchange(operand, packed);
}

void Lowering::lower_outputs() {
  for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
    int root = root_to_read(program_.outputs[i].value, -1);
    if (out_.storage_facts.copied_first[i]) {
      const int copy = out_.add_like(root);
      ValueInfo& how = out_.info(copy);
      how.storage = storage_of(how.axes, numel(out_.type(copy)));  // `root` may be an array inside a bucket
      how.complete_before_step = false;
      how.stage = 0;
      how.cut = cut_for(how);
      const auto prepend = [&](std::vector<Instruction>& list) { list.insert(list.begin(), Copy{root, copy}); };
      switch (how.storage) {
        case Storage::varying: prepend(out_.piece_instructions(0, how.cut)); break;
        case Storage::chunked: prepend(out_.chunk_list(0, numel(out_.type(root)), how.axes).instructions); break;
        default: prepend(out_.stages.front().every_worker);
      }
      root = copy;
    }
    out_.outputs.push_back(root);
  }
}

Lowered lower(const Program& program, const PlanOptions& options, std::int64_t target) {
  return Lowering(program, options, target).run();
}

}  // namespace pmaptrain::cpu
