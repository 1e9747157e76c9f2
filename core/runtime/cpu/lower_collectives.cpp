// Lowering of collectives.
#include <algorithm>
#include <cassert>

#include "core/analysis/row_cut.h"
#include "core/graph/bucket.h"
#include "core/ops/all.h"
#include "core/ops/collective/collective.h"
#include "core/runtime/cpu/lowering.h"

namespace pmaptrain::cpu {

void Lowering::lower_exchange(const Equation& equation) {
  assert(loop_body_ == nullptr);  // the bodies of such loops are stages
  for (std::size_t i = 0; i < equation.operands.size(); ++i) lower_exchange(equation, i, equation.operands[i]);
}

void Lowering::lower_exchange(const Equation& equation, std::size_t index, Value of) {
  const Value result = equation.results[index];
  int operand = root_to_read(of, -1);
  int stage = std::max(first_readable_stage(out_.info(operand), ValueInfo()), earliest_stage(of));
  out_.read_across_pieces.insert(operand);
  const AxisSet axes = type(of).varying;
  const bool joins = joins_instances(equation);
  RankInstances ranks;
  if (!out_.share().is_whole() && (joins || reads_other_devices(equation.op.rules().communication))) {
    ranks = distribution_->instances(equation, index);
  }
  if (joins) {
    ValueInfo how = info_by_size(type(result), stage);
    how.written_by_tasks = true;
    define(result, how);
    if (ranks.all.empty()) return add(Exchange{&equation, index, operand, result.id}, how, stage);
    return communicate(equation, {operand, result.id, ranks.messages, ranks.all, axes}, stage);
  }
  if (!ranks.all.empty()) {
    const int all = add_contributions(operand, ranks.slices, stage);
    communicate(equation, {operand, all, ranks.messages, ranks.all, axes}, stage++);
    operand = all;
  }
  // Rows that are equal on all devices are no work for every worker.
  const bool shares = stored_axes(type(result)).empty() && out_.rows.count > 0 && out_.rows.is_cut_shape(type(result));
  ValueInfo how = shares ? info_by_size(type(result), stage) : info_by_instance(type(result), stage);
  how.written_by_tasks = how.storage == Storage::chunked;
  define(result, how);
  add(Exchange{&equation, index, operand, result.id}, how, how.stage);
}

void Lowering::lower_psum_scatter(const Equation& equation) {
  const CollectiveRule rule = equation.op.collective();
  const Value operand = equation.operands.front(), whole{out_.add_like(operand.id)};
  out_.copied_types.back().varying = type(operand).varying - rule.axes;
  out_.added_equations->push_back({all_ops().psum(rule.axes), {operand}, {whole}, origin_});
  lower_reduction(out_.added_equations->back(), equation);
  out_.added_equations->push_back({ops::AllSlice{rule.axes, rule.dim}, {operand}, equation.results, origin_});
  lower_exchange(out_.added_equations->back(), 0, whole);
}

bool Lowering::joins_instances(const Equation& gather) const {
  const CollectiveRule rule = gather.op.collective();
  const Type &operand = type(gather.operands.front()), &result = type(gather.results.front());
  return rule.kind == Communication::gather && rule.dim == 0 && rule.axes == operand.varying &&
         stored_axes(result).empty() && storage_of({}, numel(result)) == Storage::chunked;
}

bool Lowering::pieces_add_instances(const Equation& equation, const ValueInfo& operand, const Type& of) const {
  return operand.storage == Storage::varying && !operand.complete_before_step && operand.kind == RowKind::whole &&
         operand.axes == of.varying && of.varying == all() && (of.varying - equation.op.axes()).empty();
}

std::vector<Lowering::ReducedArray> Lowering::reduced_arrays_of(const Equation& equation) {
  std::vector<ReducedArray> arrays;
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const Value operand = equation.operands[i], result = equation.results[i];
    const auto packed = packed_sums_.find(operand.id);
    if (packed == packed_sums_.end()) {
      arrays.push_back({i, operand, operand, result, result, {&equation, type(operand).varying, -1, -1, result.id}});
      continue;
    }
    define(result, info_by_size(type(result), first_main_stage_));
    const std::vector<Value>& packed_arrays = packed->second.pack->operands;
    const std::vector<std::int64_t> offsets = offsets_in_bucket(types_of(program_, packed_arrays));
    for (std::size_t k = 0; k < packed_arrays.size(); ++k) {
      const Value sum{out_.add_range(result.id, offsets[k], Shape(type(packed_arrays[k]).shape))};
      // If the bucket has one slice, each sum is an array inside it. Otherwise each sum has memory of its own, and
      // add_packs_of_sums() copies the sums into the bucket.
      const bool is_range = stored_axes(type(result)).empty();
      if (!is_range) define(sum, info_by_size(type(sum), first_main_stage_));
      arrays.push_back({i,
                        packed_arrays[k],
                        packed_arrays[k],
                        sum,
                        is_range ? result : sum,
                        {&equation, type(operand).varying, -1, -1, sum.id}});
    }
  }
  return arrays;
}

void Lowering::add_packs_of_sums(const Equation& equation, std::span<const ReducedArray> arrays) {
  for (std::size_t i = 0, next = 0; i < equation.operands.size(); ++i) {
    const auto packed = packed_sums_.find(equation.operands[i].id);
    const std::size_t count = packed == packed_sums_.end() ? 1 : packed->second.pack->operands.size();
    const std::span<const ReducedArray> own = arrays.subspan(std::exchange(next, next + count), count);
    const Value result = equation.results[i];
    if (packed == packed_sums_.end() || own.front().bucket == result) continue;
    Kernel kernel;
    kernel.equation = packed->second.pack;
    kernel.results = {result.id};
    ValueInfo how = info_by_instance(type(result), 0);
    how.stage = first_main_stage_;
    for (const ReducedArray& array : own) {
      kernel.operands.push_back(array.result.id);
      how.stage = std::max(how.stage, first_readable_stage(info(array.result), how));
    }
    define(result, how);
    add(std::move(kernel), how, how.stage, 0);
  }
}

void Lowering::lower_reduction(const Equation& equation, const Equation& of) {
  assert(loop_body_ == nullptr);
  std::vector<ReducedArray> arrays = reduced_arrays_of(equation);
  int combine_stage = first_main_stage_;
  array_of_.clear();
  accumulated_.clear();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    ReducedArray& array = arrays[i];
    if (sums_of_pieces(array.operand) && is_sum_over_devices(equation.op)) {
      array.of_rows = true;
      array.sum_of_rows = viewed_by(array.operand);
      array_of_.try_emplace(array.sum_of_rows.id, i);
      combine_stage = std::max(combine_stage, info(array.operand).stage + 1);
      continue;
    }
    const int root = root_to_read(array.operand, -1);
    ValueInfo from = out_.info(root);
    if (pieces_add_instances(equation, from, type(array.operand))) {
      array.combine.accumulator = add_accumulator(type(array.operand), from.cut);
      out_.add(ReducePartial{&equation, root, array.combine.accumulator}, from, from.stage, 0);
      combine_stage = std::max(combine_stage, from.stage + 1);
    } else {
      array.combine.operand = root;
      out_.read_across_pieces.insert(root);
      combine_stage = std::max(combine_stage, first_readable_stage(from, ValueInfo()));
    }
  }
  combine_stage = exchange_sums(of, arrays, combine_stage);
  define_results(arrays);
  sum_rows_in_parts(equation, arrays, combine_stage);
  for (ReducedArray& array : arrays) {
    if (array.of_rows) array.combine.accumulator = add_accumulator(type(array.operand), info(array.operand).cut);
  }
  accumulate_rows_of_pieces(arrays);
  for (const ReducedArray& array : arrays) {
    if (!array.in_parts || array.sums >= 0) finish_reduction(equation, array, combine_stage);
  }
  add_packs_of_sums(equation, arrays);
}

int Lowering::add_contributions(int like, std::int64_t contributions, int stage) {
  const int added = out_.add_like(like);
  ValueInfo how;
  how.storage = Storage::chunked;
  how.written_by_tasks = true;
  how.contributions = contributions;
  how.stage = stage;
  define(Value{added}, how);
  out_.read_across_pieces.insert(added);
  return added;
}

void Lowering::communicate(const Equation& equation, Communicate::Values values, int stage) {
  const auto at = static_cast<std::size_t>(stage);
  if (at < out_.stages.size()) {
    for (Instruction& task : out_.stages[at].tasks) {
      Communicate* const known = task.as<Communicate>();
      if (known != nullptr) return known->values.push_back(values);
    }
  }
  out_.add(Communicate{&equation, {values}}, out_.info(values.to), stage, 0);
}

int Lowering::exchange_sums(const Equation& of, std::vector<ReducedArray>& arrays, int combine_stage) {
  for (ReducedArray& array : arrays) array.last_stage = combine_stage;
  // Along no axis, each process has all pieces of the instances that it has.
  if (out_.share().is_whole() || of.op.axes().empty()) return combine_stage;
  const auto begins_bucket = [&](std::size_t i) { return i == 0 || arrays[i - 1].bucket != arrays[i].bucket; };
  bool is_any_sent = false, is_any_in_parts = false;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    ReducedArray& array = arrays[i];
    array.ranks = begins_bucket(i)
                      ? std::make_shared<const RankSum>(distribution_->sum(of, array.index, numel(type(array.bucket))))
                      : arrays[i - 1].ranks;
    is_any_sent = is_any_sent || any_is_sent(array.ranks->sums);
    is_any_in_parts = is_any_in_parts || array.ranks->in_parts;
  }
  // Large sums follow one another: while one is exchanged the next one is computed, in the memory of those before.
  if (is_any_sent && is_any_in_parts) {
    combine_stage = std::max(combine_stage, stage_after_large_sum_);
    stage_after_large_sum_ = combine_stage + 1;
  }
  int sums = -1, received = -1;  // of the bucket
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    ReducedArray& array = arrays[i];
    if (!is_any_sent) {
      array.ranks = nullptr;
      continue;
    }
    const RankSum& ranks = *array.ranks;
    const int bucket = array.bucket.id;
    if (begins_bucket(i)) {
      sums = add_contributions(bucket, ranks.slices, combine_stage);
      received = ranks.in_parts ? add_contributions(bucket, ranks.received, combine_stage + 1) : -1;
      if (ranks.in_parts) out_.copied_types.back().shape = {ranks.own.count};
      communicate(of, {sums, ranks.in_parts ? received : sums, ranks.exchange}, combine_stage + 1);
      if (ranks.is_gathered) communicate(of, {bucket, bucket, ranks.gather}, combine_stage + 3);
    }
    const bool is_range = array.result != array.bucket;
    const std::int64_t begin = out_.info(array.result.id).bucket_begin;
    array.sums = is_range ? out_.add_range(sums, begin, Shape(type(array.result).shape)) : sums;
    array.received = received;
    array.last_stage = combine_stage + 2;
  }
  return combine_stage;
}

void Lowering::define_results(std::span<const ReducedArray> arrays) {
  const auto stored_alone = [&](Value result, const ReducedArray& array) {
    if (adds_on_rows(array)) return define(result, info_on_rows(type(result), array.last_stage));
    define(result, info_by_size(type(result), array.last_stage));
    if (array.ranks == nullptr || !array.ranks->is_gathered || result != array.bucket) return;
    info(result).stage = array.last_stage + 1;  // the processes gather their ranges
    info(result).written_by_tasks = true;
  };
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const ReducedArray& array = arrays[i];
    if (i == 0 || arrays[i - 1].bucket != array.bucket) stored_alone(array.bucket, array);
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const ReducedArray& array = arrays[i];
    if (array.result == array.bucket) continue;
    const ValueInfo& bucket = info(array.bucket);
    ValueInfo& range = out_.info(array.result.id);
    range.storage = bucket.storage;
    range.stage = bucket.stage;
    range.written_by_tasks = bucket.written_by_tasks;
    const bool is_last = i + 1 == arrays.size() || arrays[i + 1].bucket != array.bucket;
    const std::int64_t end = range.bucket_begin + numel(type(array.result));
    const std::int64_t next = is_last ? numel(type(array.bucket)) : out_.info(arrays[i + 1].result.id).bucket_begin;
    if (next == end) continue;
    const ValueInfo like = bucket;  // adding a value may move the others
    const int gap = out_.add_range(array.bucket.id, end, {next - end});
    add(Copy{zeros(type(array.bucket).dtype, next - end), gap}, like, array.last_stage, numel(type(array.bucket)));
  }
}

int Lowering::zeros(DType dtype, std::int64_t gap) {
  const std::int64_t elements = (gap + bucket_unit - 1) / bucket_unit * bucket_unit;
  const auto [known, is_new] = zeros_.try_emplace({dtype, elements}, -1);
  if (!is_new) return known->second;
  out_.added_equations->push_back({all_ops().constant(dtype, {elements}, 0.0), {}, {}, origin_});
  known->second = static_cast<int>(out_.values.size());
  ValueInfo how;
  how.storage = Storage::constant;
  how.root = known->second;
  out_.values.push_back(how);
  out_.copied_types.push_back({dtype, {elements}, {}});
  out_.constants.emplace_back(known->second, &out_.added_equations->back());
  return known->second;
}

void Lowering::finish_reduction(const Equation& equation, const ReducedArray& array, int combine_stage) {
  if (array.of_rows && !accumulated_.contains(array.sum_of_rows.id)) {
    const ValueInfo from = info(array.operand);
    out_.add(ReducePartial{&equation, from.root, array.combine.accumulator}, from, from.stage, 0);
  }
  const ValueInfo how = info(array.bucket);
  ReduceCombine last = array.combine;
  if (array.sums >= 0) {
    if (!array.in_parts) {
      ReduceCombine own = array.combine;
      own.step = ReduceCombine::Step::own_sums;
      own.result = array.sums;
      own.ranks = array.ranks;
      const ValueInfo like = out_.info(array.sums);
      add(own, like, combine_stage, numel(out_.type(out_.memory_root(array.sums))));
    }
    last.step = ReduceCombine::Step::tree;
    last.accumulator = -1;
    last.operand = array.sums;
    last.received = array.received;
    last.ranks = array.ranks;
  }
  add(last, how, array.last_stage, numel(type(array.bucket)));
}

bool Lowering::sums_of_pieces(Value value) const {
  const ValueInfo& how = out_.info(value.id);
  return how.kind == RowKind::partial && out_.cuts[static_cast<std::size_t>(how.cut)].axes == type(value).varying;
}

bool Lowering::adds_on_rows(const ReducedArray& array) const {
  const auto result = static_cast<std::size_t>(array.result.id);
  return result < program_.types.size() && out_.rows.of(array.result) == RowKind::rows;
}

Value Lowering::viewed_by(Value value) const {
  Value viewed = value;
  for (auto view = viewed_.find(value.id); view != viewed_.end() && facts(viewed).uses == 1;
       view = viewed_.find(viewed.id)) {
    viewed = view->second;
  }
  return type(viewed).varying == type(value).varying ? viewed : value;
}

bool Lowering::sums_rows_for_reduction(const Instruction& instruction) const {
  const Kernel* const kernel = instruction.as<Kernel>();
  if (kernel == nullptr || kernel->operand_reads.empty()) return false;
  const Equation& equation = *kernel->equation;
  const RowRule rule = equation.op.rows(types_of(program_, equation.operands), types_of(program_, equation.results));
  return rule.kind == RowRule::Kind::sums &&
         std::all_of(equation.results.begin(), equation.results.end(), [&](Value result) {
           return out_.rows.of(result) == RowKind::partial && array_of_.contains(result.id) && facts(result).uses == 1;
         });
}

template <class F>
void Lowering::for_each_list_on_rows(F&& f) {
  for (Stage& stage : out_.stages) {
    for (PieceList& list : stage.piece_lists) {
      if (out_.is_by_rows(list.cut)) f(list.instructions);
    }
  }
}

void Lowering::accumulate_rows_of_pieces(const std::vector<ReducedArray>& arrays) {
  for_each_list_on_rows([&](std::vector<Instruction>& instructions) {
    for (Instruction& instruction : instructions) {
      if (!sums_rows_for_reduction(instruction)) continue;
      Kernel& kernel = *instruction.as<Kernel>();
      RowSums sums{kernel.equation, std::move(kernel.operands), {}};
      for (Value result : sums.equation->results) {
        sums.accumulators.push_back(arrays[array_of_.at(result.id)].combine.accumulator);
        accumulated_.insert(result.id);
      }
      instruction = std::move(sums);
    }
  });
}

void Lowering::sum_rows_in_parts(const Equation& psum, std::vector<ReducedArray>& arrays, int combine_stage) {
  if (!psum.op.axes().contains(out_.rows.axes)) return;
  std::vector<Kernel> sums;
  for_each_list_on_rows([&](std::vector<Instruction>& instructions) {
    std::erase_if(instructions, [&](Instruction& instruction) {
      if (!sums_rows_for_reduction(instruction) || !is_better_in_parts(*instruction.as<Kernel>()->equation))
        return false;
      sums.push_back(std::move(*instruction.as<Kernel>()));
      return true;
    });
  });
  // Where activations are computed again, each product runs as early as it can, by itself.
  const std::int64_t products = computes_again() ? 1 : std::ssize(sums);
  for (Kernel& kernel : sums) lower_parts(psum, arrays, combine_stage, products, std::move(kernel));
}

bool Lowering::is_better_in_parts(const Equation& equation) const {
  const std::vector<Type> operands = types_of(program_, equation.operands);
  const Type& sum = type(equation.results.front());
  const std::int64_t size = size_in_parts(program_, equation);
  if (numel(sum) <= small_elements || size < least_parts * part_alignment) return false;
  double rows = 0;
  for (const Type& operand : operands) rows += static_cast<double>(bytes(operand));
  const Cut& cut = out_.cuts[static_cast<std::size_t>(out_.rows_cut_of(sum.varying))];
  return static_cast<double>(cut.pieces.size()) * static_cast<double>(bytes(sum)) >
         static_cast<double>(program_.mesh.group_size(cut.axes)) * rows;
}

void Lowering::lower_parts(const Equation& psum, std::vector<ReducedArray>& arrays, int combine_stage,
                           std::int64_t products, Kernel kernel) {
  const Value summed = kernel.equation->results.front();
  ReducedArray& array = arrays[array_of_.at(summed.id)];
  array.in_parts = true;
  array.of_rows = false;
  const std::int64_t size = size_in_parts(program_, *kernel.equation);
  const bool of_columns = parts_of(program_, *kernel.equation) == RowRule::Parts::columns;
  ProductInParts parts{
      kernel.equation, &psum, std::move(kernel.operands), array.result.id, part_count(size, of_columns, products),
      of_columns};
  const AxisSet varying = type(summed).varying;
  parts.apart = varying - psum.op.axes();
  for (const Value operand : kernel.equation->operands) {
    parts.apart = parts.apart | (varying - out_.facts.root_of(operand).axes);
  }
  ValueInfo how;
  how.storage = Storage::chunked;
  how.axes = type(array.result).varying;
  how.written_by_tasks = true;
  how.stage = combine_stage;
  int stage = combine_stage;
  if (array.sums >= 0) {
    parts.result = array.sums;
    parts.ranks = array.ranks;
  } else if (options_.private_copies) {
    parts.result = out_.add_like(array.result.id);
    define(Value{parts.result}, how);
    const ValueInfo copy = info_by_instance(type(array.result), combine_stage + 1);
    define(array.result, copy);
    out_.add(Copy{parts.result, array.result.id}, copy, copy.stage, 0);
  } else {
    info(array.bucket).written_by_tasks = true;
    out_.info(array.result.id).written_by_tasks = true;
    if (computes_again()) {
      stage = first_main_stage_;
      for (const int operand : parts.operands) {
        stage = std::max(stage, first_readable_stage(out_.info(operand), how));
      }
      stage = std::min(stage, combine_stage);
    }
  }
  out_.add(std::move(parts), how, stage, 0);
}

}  // namespace pmaptrain::cpu
