#include "core/runtime/schedule.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>

#include "core/ops/collective/collective.h"
#include "core/ops/loop/loop.h"

namespace pmaptrain {
namespace {

bool is_reduction(const Op& op) {
  return op.as<ops::Psum>() != nullptr || op.as<ops::Pmax>() != nullptr || op.as<ops::Pmin>() != nullptr;
}

class Scheduler {
 public:
  Scheduler(const Program& program, const PlanOptions& options, std::int64_t blocks)
      : program_(program), options_(options), blocks_(blocks) {
    schedule_.program = &program;
    schedule_.values.resize(program.types.size());
    schedule_.stages.resize(1);
  }

  Schedule run() {
    count_uses();
    inputs_.resize(program_.types.size());
    for (const Input& input : program_.inputs) {
      inputs_[static_cast<std::size_t>(input.value.id)] = &input;
      define(input.value, per_device(input.value) ? Class::varying : class_by_size(input.value), 0);
    }
    for (const Equation& equation : program_.equations) schedule_equation(equation);
    schedule_outputs();
    for (const Input& input : program_.inputs) {
      if (!input.next) continue;
      const int root = info(*input.next).root;
      schedule_.updates.emplace_back(input.value.id, root);
    }
    return std::move(schedule_);
  }

 private:
  ValueInfo& info(Value value) { return schedule_.values[static_cast<std::size_t>(value.id)]; }
  ValueInfo& root_info(Value value) { return schedule_.values[static_cast<std::size_t>(info(value).root)]; }
  const Type& type(Value value) const { return schedule_.type(value.id); }

  bool per_device(Value value) const { return options_.private_copies || !type(value).varying.empty(); }
  Class class_by_size(Value value) const { return numel(type(value)) <= small_elements ? Class::worker : Class::split; }

  void define(Value value, Class of, int stage) {
    info(value) = {of, value.id, stage, of == Class::varying && per_device(value), false};
  }

  Stage& stage(int number) {
    if (static_cast<std::size_t>(number) >= schedule_.stages.size()) {
      schedule_.stages.resize(static_cast<std::size_t>(number) + 1);
    }
    return schedule_.stages[static_cast<std::size_t>(number)];
  }

  // The first stage in which a step of class `reader` may read `value`: others' parts need a barrier in between.
  int readable(Value value, Class reader) {
    const ValueInfo& read = info(value);
    return read.stage + (read.of == Class::split && (read.in_parts || reader != Class::split) ? 1 : 0);
  }
  // Inputs are complete when a step begins, whoever wrote them.
  bool is_input(Value value) { return input_of(info(value).root) != nullptr; }
  // The input whose value this is; null for any other value, and for those that are made here.
  const Input* input_of(int root) const {
    const auto at = static_cast<std::size_t>(root);
    return at < inputs_.size() ? inputs_[at] : nullptr;
  }
  int first_stage(std::span<const Value> operands, Class reader) {
    int first = 0;
    for (Value operand : operands) first = std::max(first, is_input(operand) ? 0 : readable(operand, reader));
    return first;
  }

  std::vector<int> roots(std::span<const Value> values) {
    std::vector<int> ids;
    ids.reserve(values.size());
    for (Value value : values) ids.push_back(info(value).root);
    return ids;
  }

  Step step_of(Step::Kind kind, const Equation& equation) {
    Step step;
    step.kind = kind;
    step.equation = &equation;
    step.operand_types = types_of(program_, equation.operands);
    step.result_types = types_of(program_, equation.results);
    step.operands = roots(equation.operands);
    return step;
  }

  Step copy_step(int from, int to) {
    Step step;
    step.kind = Step::Kind::copy;
    step.operand_types = step.result_types = {schedule_.type(to)};
    step.operands = {from};
    step.results = {to};
    return step;
  }

  void schedule_equation(const Equation& equation) {
    const Op& op = equation.op;
    if (make_alias(equation) || make_constant(equation)) return;
    if (op.as<ops::AxisIndex>() != nullptr) {
      define(equation.results.front(), Class::varying, 0);
      schedule_.coordinates.emplace_back(equation.results.front().id, &equation);
    } else if (op.as<ops::Loop>() != nullptr) {
      schedule_loop(equation);
    } else if (!collective_axes(op).empty()) {
      schedule_collective(equation);
    } else {
      schedule_local(equation);
    }
  }

  // A view has its operand's storage.
  bool make_alias(const Equation& equation) {
    if (!equation.op.rules().view) return false;
    const ValueInfo operand = info(equation.operands.front());
    info(equation.results.front()) = operand;
    return true;
  }

  // What needs no operand is computed once, when the plan is loaded.
  bool make_constant(const Equation& equation) {
    if (!equation.op.local() || !equation.operands.empty()) return false;
    for (Value result : equation.results) {
      define(result, Class::constant, 0);
      schedule_.constants.emplace_back(result.id, &equation);
    }
    return true;
  }

  void schedule_local(const Equation& equation) {
    Step step = step_of(Step::Kind::kernel, equation);
    const Class of = class_of_result(equation);
    const int first = first_stage(equation.operands, of);
    for (Value result : equation.results) define(result, of, first);
    step.results = roots(equation.results);
    step.split = of == Class::split;
    add(std::move(step), of, first);
  }

  Class class_of_result(const Equation& equation) {
    const Value result = equation.results.front();
    if (per_device(result)) return Class::varying;
    if (!equation.op.rules().elementwise || numel(type(result)) <= small_elements) return Class::worker;
    // What a chain repeats along a dimension is neither a scalar nor of the result's size, and has no ranges.
    const bool ranges = std::all_of(equation.operands.begin(), equation.operands.end(), [&](Value operand) {
      return numel(type(operand)) == 1 || numel(type(operand)) == numel(type(result));
    });
    return ranges ? Class::split : Class::worker;
  }

  void add(Step step, Class of, int number) {
    if (loop_ != nullptr) {
      loop_->push_back(std::move(step));
    } else if (of == Class::varying) {
      stage(number).varying.push_back(std::move(step));
    } else {
      stage(number).invariant.push_back(std::move(step));
    }
  }

  // Whether the group of a collective is the whole mesh, so that blocks can be summed without looking at coordinates.
  bool over_whole_mesh(const Equation& equation) const { return collective_axes(equation.op) == program_.mesh.all(); }

  void schedule_collective(const Equation& equation) {
    if (loop_ != nullptr) {
      throw Error(ExitStatus::usage,
                  Diagnostic{"program",
                             equation.origin->place,
                             std::string(equation.op.name()) + " stands inside a loop, which this version cannot run",
                             "reduce after the loop: its carries may vary over the axis (rule 7)",
                             {}});
    }
    const int published = first_stage(equation.operands, Class::varying);
    if (is_reduction(equation.op) && over_whole_mesh(equation)) return schedule_reduction(equation, published);

    // One step for each operand: their sets may differ, and with them who computes which result.
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const Value operand = equation.operands[i], result = equation.results[i];
      schedule_.exchanged.insert(info(operand).root);
      const Class of = per_device(result) ? Class::varying : Class::worker;
      define(result, of, published + 1);
      Step step;
      step.kind = Step::Kind::exchange;
      step.equation = &equation;
      step.operand_types = {type(operand)};
      step.result_types = {type(result)};
      step.operands = {info(operand).root};
      step.results = {result.id};
      add(std::move(step), of, published + 1);
    }
  }

  // Each block adds up its devices, then the blocks are combined in index order by whoever needs the result.
  void schedule_reduction(const Equation& equation, int published) {
    const bool sum = equation.op.as<ops::Psum>() != nullptr;
    operand_number_.clear();
    for (std::size_t i = 0; i < equation.operands.size(); ++i) operand_number_.try_emplace(equation.operands[i].id, i);
    if (sum) sum_rows_of_all_devices(equation, published);
    std::vector<int> accumulators(equation.operands.size(), -1);
    for (std::size_t i = 0; i < accumulators.size(); ++i) {
      const Value operand = equation.operands[i];
      if (summed_.contains(operand.id)) continue;
      accumulators[i] = static_cast<int>(schedule_.accumulators.size());
      schedule_.accumulators.push_back({type(operand).dtype, numel(type(operand)), 0});
    }
    if (sum) sum_rows_of_blocks(accumulators);
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      if (accumulators[i] < 0) continue;
      const Value operand = equation.operands[i], result = equation.results[i];
      const Class of = per_device(result) ? Class::varying : class_by_size(result);
      define(result, of, published + 1);
      Step combine;
      combine.kind = Step::Kind::combine;
      combine.equation = &equation;
      combine.operand_types = combine.result_types = {type(result)};
      combine.results = {result.id};
      combine.accumulator = accumulators[i];
      combine.split = of == Class::split;
      add(std::move(combine), of, published + 1);
      if (summed_.contains(operand.id)) continue;

      Step accumulate;
      accumulate.kind = Step::Kind::accumulate;
      accumulate.equation = &equation;
      accumulate.operand_types = accumulate.result_types = {type(operand)};
      accumulate.operands = roots(std::span(&operand, 1));
      accumulate.accumulator = accumulators[i];
      stage(published).varying.push_back(std::move(accumulate));
    }
  }

  // Whether every result of a step is a sum over rows that only this reduction reads.
  bool sums_rows_for(const Step& step) const {
    if (step.kind != Step::Kind::kernel || !step.row_sums.empty() || step.operands.empty()) return false;
    const OpRules& rules = step.equation->op.rules();
    if (rules.sums_rows == nullptr || !rules.sums_rows(step.equation->op.data(), step.operands.size())) return false;
    const bool stacked = std::all_of(step.operands.begin(), step.operands.end(), [&](int root) {
      return schedule_.values[static_cast<std::size_t>(root)].stacked;
    });
    return stacked && std::all_of(step.equation->results.begin(), step.equation->results.end(), [&](Value result) {
             return operand_number_.contains(result.id) && uses_[static_cast<std::size_t>(result.id)] == 1;
           });
  }

  // An operand that is itself a sum over rows, and that nobody else wants, is summed over the rows of the whole block
  // at once: a weight gradient is then one call a block, however many devices that has.
  void sum_rows_of_blocks(const std::vector<int>& accumulators) {
    for (Stage& stage : schedule_.stages) {
      for (Step& step : stage.varying) {
        if (!sums_rows_for(step)) continue;
        for (Value result : step.equation->results) {
          step.row_sums.push_back(accumulators[operand_number_.at(result.id)]);
          summed_.insert(result.id);
        }
        step.results.clear();
      }
    }
  }

  // Where the sum is so large that one for each block would move more memory than the rows that it sums up, there is
  // none for any block: the rows of all devices are kept, and summed after the barrier, in parts of the result.
  void sum_rows_of_all_devices(const Equation& psum, int published) {
    std::vector<Step> sums;
    for (Stage& stage : schedule_.stages) {
      for (Step& step : stage.varying) {
        if (!sums_rows_for(step) || !is_better_in_parts(step)) continue;
        step.parts = most_parts;
        sums.push_back(step);
      }
      std::erase_if(stage.varying, [](const Step& step) { return step.parts > 0; });
    }
    for (Step& step : sums) schedule_parts(psum, published, std::move(step));
  }

  // Bytes that the blocks' sums would write, all of which the combination would read again, against those of the rows.
  // Parts of fewer rows would leave the product's inner loops short.
  bool is_better_in_parts(const Step& step) const {
    const OpRules& rules = step.equation->op.rules();
    if (rules.rows_from_columns == nullptr || !rules.rows_from_columns(step.equation->op.data())) return false;
    const Type& sum = step.result_types.front();
    if (numel(sum) <= small_elements || sum.shape.front() < most_parts * part_alignment) return false;
    double rows = 0;
    for (const Type& operand : step.operand_types) rows += static_cast<double>(bytes(operand));
    return static_cast<double>(blocks_) * static_cast<double>(bytes(sum)) >
           static_cast<double>(program_.mesh.devices()) * rows;
  }

  // One sum for all; with private copies, each device then copies it.
  void schedule_parts(const Equation& psum, int published, Step step) {
    const Value result = psum.results[operand_number_.at(step.equation->results.front().id)];
    summed_.insert(step.equation->results.front().id);
    define(result, Class::split, published + 1);
    info(result).in_parts = true;
    step.split = true;
    step.results = {result.id};
    if (options_.private_copies) {
      step.results = {schedule_.add_like(result.id)};
      define(result, Class::varying, published + 2);
      add(copy_step(step.results.front(), result.id), Class::varying, published + 2);
    }
    add(std::move(step), Class::split, published + 1);
  }

  void count_uses() {
    uses_.resize(program_.types.size());
    const auto use = [&](Value value) { ++uses_[static_cast<std::size_t>(value.id)]; };
    for_each_equation(program_.equations, [&](const Equation& equation) {
      for (Value operand : equation.operands) use(operand);
      for (const Region& region : equation.regions) {
        for (Value result : region.results) use(result);
      }
    });
    for (const Output& output : program_.outputs) use(output.value);
    for (const Input& input : program_.inputs) {
      if (input.next) use(*input.next);
    }
  }

  // A loop varies when anything that goes into it does; then all its carries must.
  void schedule_loop(const Equation& equation) {
    const ops::Loop& loop = *equation.op.as<ops::Loop>();
    const Region& region = equation.regions.front();
    bool varies = options_.private_copies;
    for (Value operand : equation.operands) varies |= !type(operand).varying.empty();
    for_each_equation(region.equations, [&](const Equation& inner) {
      for (Value result : inner.results) varies |= !type(result).varying.empty();
    });
    const Class of = varies ? Class::varying : Class::worker;
    const int first = first_stage(equation.operands, of);

    Step step;
    step.kind = Step::Kind::loop;
    step.equation = &equation;
    step.iterations = loop.iterations;
    const auto consts = static_cast<std::size_t>(loop.consts), carries = static_cast<std::size_t>(loop.carries);
    for (std::size_t i = 0; i < region.params.size(); ++i) {
      const Value param = region.params[i], operand = equation.operands[i];
      if (i < consts) {
        info(param) = info(operand);
      } else if (i < consts + carries) {
        const Value result = equation.results[i - consts];
        if (varies && !per_device(result)) refuse_mixed_carries(equation, result);
        define(result, of, first);
        info(param) = info(result);
        step.before.push_back(copy_step(info(operand).root, result.id));
      } else {
        define(param, of, first);
        step.operands.push_back(info(operand).root);
        step.slices.push_back(param.id);
        step.operand_types.push_back(type(operand));
        step.result_types.push_back(type(param));
      }
    }
    std::vector<Step>* const outer = std::exchange(loop_, &step.body);
    const int outer_stage = std::exchange(loop_stage_, first);
    const Class outer_class = std::exchange(loop_class_, of);
    for (const Equation& inner : region.equations) schedule_inner(inner);
    loop_ = outer;
    loop_stage_ = outer_stage;
    loop_class_ = outer_class;
    append_yields(equation, region, step);
    add(std::move(step), of, first);
  }

  // Inside a loop everything is of the loop's class, and in its stage.
  void schedule_inner(const Equation& equation) {
    if (make_alias(equation) || make_constant(equation)) return;
    if (equation.op.as<ops::Loop>() != nullptr || !collective_axes(equation.op).empty()) {
      return schedule_equation(equation);
    }
    Step step = step_of(Step::Kind::kernel, equation);
    for (Value result : equation.results) define(result, loop_class_, loop_stage_);
    step.results = roots(equation.results);
    loop_->push_back(std::move(step));
  }

  // After the body, what it yields becomes the carries. A yield that is itself a carry is copied aside first, so that
  // carries may change places.
  void append_yields(const Equation& equation, const Region& region, Step& step) {
    std::vector<Step> last;
    for (std::size_t i = 0; i < region.results.size(); ++i) {
      const int carry = equation.results[i].id;
      int from = info(region.results[i]).root;
      if (from == carry) continue;
      const bool is_carry =
          std::any_of(equation.results.begin(), equation.results.end(), [&](Value other) { return other.id == from; });
      if (is_carry) {
        const int aside = schedule_.add_like(carry);
        step.body.push_back(copy_step(from, aside));
        from = aside;
      }
      last.push_back(copy_step(from, carry));
    }
    step.body.insert(step.body.end(), std::make_move_iterator(last.begin()), std::make_move_iterator(last.end()));
  }

  [[noreturn]] void refuse_mixed_carries(const Equation& equation, Value carry) const {
    throw Error(ExitStatus::usage, Diagnostic{"program",
                                              equation.origin->place,
                                              "loop: a carry of type " + to_string(type(carry), program_.mesh) +
                                                  " is the same on every device, in a loop over values that vary",
                                              "pvary the carry before the loop (rule 7)",
                                              {}});
  }

  // An output that is an input which this step replaces is copied before it changes.
  void schedule_outputs() {
    for (const Output& output : program_.outputs) {
      int root = info(output.value).root;
      const Input* const input = input_of(root);
      if (input != nullptr && input->next) {
        const int copy = schedule_.add_like(root);
        const ValueInfo& source = schedule_.values[static_cast<std::size_t>(root)];
        Step step = copy_step(root, copy);
        step.split = source.of == Class::split;
        Stage& begin = schedule_.stages.front();
        auto& steps = source.of == Class::varying ? begin.varying : begin.invariant;
        steps.insert(steps.begin(), std::move(step));
        root = copy;
      }
      schedule_.outputs.push_back(root);
    }
  }

  const Program& program_;
  const PlanOptions options_;
  const std::int64_t blocks_;
  Schedule schedule_;
  std::vector<const Input*> inputs_;                     // by value
  std::vector<int> uses_;                                // of each value, by equations, outputs and updates
  std::unordered_map<int, std::size_t> operand_number_;  // of the reduction at hand, by value: the first such operand
  std::set<int> summed_;                                 // values that exist only as blocks' sums
  std::vector<Step>* loop_ = nullptr;
  int loop_stage_ = 0;
  Class loop_class_ = Class::varying;
};

}  // namespace

int Schedule::add_like(int like) {
  ValueInfo copy = values[static_cast<std::size_t>(like)];
  copy.root = static_cast<int>(values.size());
  copied_types.push_back(Type(type(like)));
  values.push_back(copy);
  return copy.root;
}

Schedule make_schedule(const Program& program, const PlanOptions& options, std::int64_t blocks) {
  return Scheduler(program, options, blocks).run();
}

}  // namespace pmaptrain
