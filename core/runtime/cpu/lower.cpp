#include "core/runtime/cpu/lower.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <unordered_map>

namespace pmaptrain::cpu {
namespace {

class Lowering {
 public:
  Lowering(const Program& program, const PlanOptions& options, std::int64_t pieces)
      : program_(program), options_(options), pieces_(pieces) {
    out_.program = &program;
    out_.facts = analyse(program);
    out_.values.resize(program.types.size());
    out_.stages.resize(1);
    inputs_.resize(program.types.size());
    for (const Input& input : program_.inputs) inputs_[static_cast<std::size_t>(input.value.id)] = &input;
  }

  Lowered run() {
    for (const Input& input : program_.inputs) define(input.value, class_of_input(input), 0);
    // What is prepared is ready for every other instruction.
    if (!options_.private_copies && prepares_any(program_.equations)) first_ = 1;
    for (const Equation& equation : program_.equations) lower_equation(equation);
    lower_outputs();
    for (const Input& input : program_.inputs) {
      if (input.next) out_.updates.emplace_back(input.value.id, info(*input.next).root);
    }
    return std::move(out_);
  }

 private:
  ValueInfo& info(Value value) { return out_.info(value.id); }
  const Type& type(Value value) const { return out_.type(value.id); }
  const ValueFacts& facts(Value value) const { return out_.facts.of(value); }

  bool per_device(Value value) const { return options_.private_copies || !facts(value).domain.axes.empty(); }
  Class class_by_size(Value value) const {
    return numel(type(value)) <= small_elements ? Class::worker : Class::chunked;
  }
  // There is one copy of a replicated batch input, which no worker writes.
  Class class_of_input(const Input& input) const {
    if (input.group == Group::batch) return facts(input.value).domain.axes.empty() ? Class::constant : Class::varying;
    return per_device(input.value) ? Class::varying : class_by_size(input.value);
  }

  void define(Value value, Class of, int stage) {
    assert(stage >= facts(value).stage || of == Class::constant);
    info(value) = {of, value.id, stage, of == Class::varying && per_device(value), false};
  }

  // The first stage in which an instruction of class `reader` may read `value`: what other workers write needs a
  // barrier in between.
  int readable(Value value, Class reader) {
    const ValueInfo& read = info(value);
    return read.stage + (read.of == Class::chunked && (read.by_task || reader != Class::chunked) ? 1 : 0);
  }
  // The input whose value this is; null for any other value, and for those that are made here. Inputs are complete when
  // a step begins, whichever worker wrote them.
  const Input* input_of(int root) const {
    const auto at = static_cast<std::size_t>(root);
    return at < inputs_.size() ? inputs_[at] : nullptr;
  }
  int first_stage(std::span<const Value> operands, Class reader) {
    int first = first_;
    for (Value operand : operands) {
      if (input_of(info(operand).root) == nullptr) first = std::max(first, readable(operand, reader));
    }
    return first;
  }

  std::vector<int> roots(std::span<const Value> values) {
    std::vector<int> ids;
    ids.reserve(values.size());
    for (Value value : values) ids.push_back(info(value).root);
    return ids;
  }

  // Appends to the loop at hand, or to a stage.
  void add(Instruction instruction, Class of, int stage, std::int64_t elements = 0) {
    if (loop_ != nullptr) {
      loop_->push_back(std::move(instruction));
    } else {
      out_.add(std::move(instruction), of, stage, elements);
    }
  }

  void lower_equation(const Equation& equation) {
    if (make_alias(equation) || make_constant(equation)) return;
    switch (equation.op.rules().communication) {
      case Communication::coordinate:
        define(equation.results.front(), Class::varying, 0);
        out_.coordinates.emplace_back(equation.results.front().id, &equation);
        return;
      case Communication::none: break;
      default: return lower_collective(equation);
    }
    if (equation.op.is_loop()) return lower_loop(equation);
    lower_local(equation);
  }

  // A view has its operand's memory.
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
      out_.constants.emplace_back(result.id, &equation);
    }
    return true;
  }

  void lower_local(const Equation& equation) {
    const Class of = loop_ != nullptr ? loop_class_ : class_of_result(equation);
    const int stage = loop_ != nullptr ? loop_stage_ : first_stage(equation.operands, of);
    for (Value result : equation.results) define(result, of, stage);
    Kernel kernel{&equation, roots(equation.operands), roots(equation.results)};
    if (of == Class::varying) prepare_operands(kernel);
    add(std::move(kernel), of, stage, numel(type(equation.results.front())));
  }

  Class class_of_result(const Equation& equation) {
    const Value result = equation.results.front();
    if (per_device(result)) return Class::varying;
    if (!equation.op.rules().elementwise || numel(type(result)) <= small_elements) return Class::worker;
    // What a chain repeats along a dimension is neither a scalar nor of the result's size, and has no chunks.
    const bool chunks = std::all_of(equation.operands.begin(), equation.operands.end(), [&](Value operand) {
      return numel(type(operand)) == 1 || numel(type(operand)) == numel(type(result));
    });
    return chunks ? Class::chunked : Class::worker;
  }

  // ---- operands in the layout of the kernels that read them

  // The operand that this op's kernel would rather have in a layout of its own: a parameter, which stays the same for
  // all pieces, microbatches and devices.
  std::optional<std::size_t> prepared_operand(const Equation& equation) {
    if (options_.private_copies) return std::nullopt;
    const std::optional<std::size_t> index = packable_operand(program_, equation);
    if (!index || !per_device(equation.results.front())) return std::nullopt;
    const Value value = equation.operands[*index];
    const Input* const input = input_of(facts(value).root);
    const bool fits = input != nullptr && input->group == Group::params && facts(input->value).domain.axes.empty() &&
                      type(value).dtype == DType::f32;
    return fits ? index : std::nullopt;
  }

  bool prepares_any(const std::vector<Equation>& equations) {
    bool any = false;
    for_each_equation(equations, [&](const Equation& equation) { any = any || prepared_operand(equation); });
    return any;
  }

  void prepare_operands(Kernel& kernel) {
    const auto index = prepared_operand(*kernel.equation);
    if (!index) return;
    int& operand = kernel.operands[*index];
    const int packed = out_.add_like(operand);
    out_.info(packed).by_task = true;
    out_.info(packed).stage = 0;
    out_.packed.insert(packed);
    out_.add(Prepare{kernel.equation, *index, operand, packed}, Class::chunked, 0, 0);
    kernel.unpacked = std::exchange(operand, packed);
  }

  // ---- collectives

  void lower_collective(const Equation& equation) {
    if (loop_ != nullptr) {
      throw Error(ExitStatus::usage,
                  Diagnostic{"program",
                             equation.origin->place,
                             std::string(equation.op.name()) + " stands inside a loop, which this version cannot run",
                             "reduce after the loop: its carries may vary over the axis (rule 7)",
                             {}});
    }
    const int published = first_stage(equation.operands, Class::varying);
    const bool reduces = equation.op.rules().communication != Communication::exchange;
    // A group that is the whole mesh is reduced piece by piece, without looking at coordinates.
    if (reduces && equation.op.axes() == program_.mesh.all()) return lower_reduction(equation, published);

    // One instruction for each operand: their sets may differ, and with them which devices have which result.
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const Value operand = equation.operands[i], result = equation.results[i];
      out_.exchanged.insert(info(operand).root);
      const Class of = per_device(result) ? Class::varying : Class::worker;
      define(result, of, published + 1);
      add(Exchange{&equation, i, info(operand).root, result.id}, of, published + 1);
    }
  }

  // Each piece adds up its devices, then the pieces are combined in index order.
  void lower_reduction(const Equation& equation, int published) {
    const bool sum = equation.op.rules().communication == Communication::sum;
    operand_number_.clear();
    for (std::size_t i = 0; i < equation.operands.size(); ++i) operand_number_.try_emplace(equation.operands[i].id, i);
    if (sum) sum_rows_of_all_devices(equation, published);
    std::vector<int> accumulators(equation.operands.size(), -1);
    for (std::size_t i = 0; i < accumulators.size(); ++i) {
      const Value operand = equation.operands[i];
      if (summed_.contains(operand.id)) continue;
      accumulators[i] = static_cast<int>(out_.accumulators.size());
      out_.accumulators.push_back({type(operand).dtype, numel(type(operand)), 0});
    }
    if (sum) sum_rows_of_pieces(accumulators);
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      if (accumulators[i] < 0) continue;
      const Value operand = equation.operands[i], result = equation.results[i];
      const Class of = per_device(result) ? Class::varying : class_by_size(result);
      define(result, of, published + 1);
      add(Done{&equation, accumulators[i], result.id}, of, published + 1, numel(type(result)));
      if (summed_.contains(operand.id)) continue;
      out_.add(Start{&equation, info(operand).root, accumulators[i]}, Class::varying, published, 0);
    }
  }

  // Whether every result is a sum over rows that only this reduction reads.
  bool sums_rows_for(const Instruction& instruction) const {
    const Kernel* const kernel = instruction.as<Kernel>();
    if (kernel == nullptr || kernel->operands.empty()) return false;
    const Equation& equation = *kernel->equation;
    if (equation.op.rules().rows == nullptr) return false;
    const RowRule rule = equation.op.rows(types_of(program_, equation.operands), types_of(program_, equation.results));
    if (rule.kind != RowRule::Kind::sums) return false;
    const bool stacked = std::all_of(kernel->operands.begin(), kernel->operands.end(),
                                     [&](int root) { return out_.info(root).stacked; });
    return stacked && std::all_of(equation.results.begin(), equation.results.end(), [&](Value result) {
             return operand_number_.contains(result.id) && facts(result).uses == 1;
           });
  }

  // An operand that is itself a sum over rows, and that nothing else reads, is summed over the rows of the whole piece
  // at once: a weight gradient is then one call a piece, however many devices that has.
  void sum_rows_of_pieces(const std::vector<int>& accumulators) {
    for (Stage& stage : out_.stages) {
      for (Instruction& instruction : stage.pieces) {
        if (!sums_rows_for(instruction)) continue;
        Kernel& kernel = *instruction.as<Kernel>();
        RowSums sums{kernel.equation, std::move(kernel.operands), {}};
        for (Value result : sums.equation->results) {
          sums.accumulators.push_back(accumulators[operand_number_.at(result.id)]);
          summed_.insert(result.id);
        }
        instruction = std::move(sums);
      }
    }
  }

  // Where the sum is so large that accumulators would move more memory than the rows that it sums up, there are none:
  // the rows of all devices are kept, and summed after the barrier, in parts of the result.
  void sum_rows_of_all_devices(const Equation& psum, int published) {
    std::vector<Kernel> sums;
    for (Stage& stage : out_.stages) {
      std::erase_if(stage.pieces, [&](Instruction& instruction) {
        if (!sums_rows_for(instruction) || !is_better_in_parts(*instruction.as<Kernel>()->equation)) return false;
        sums.push_back(std::move(*instruction.as<Kernel>()));
        return true;
      });
    }
    for (Kernel& kernel : sums) lower_parts(psum, published, std::move(kernel));
  }

  // Bytes that the pieces' sums would write, all of which the combination would read again, against those of the rows.
  // Parts of fewer rows would leave the product's inner loops short.
  bool is_better_in_parts(const Equation& equation) const {
    const std::vector<Type> operands = types_of(program_, equation.operands);
    const Type& sum = type(equation.results.front());
    if (!equation.op.rows(operands, std::span(&sum, 1)).columns_make_rows) return false;
    if (numel(sum) <= small_elements || sum.shape.front() < most_parts * part_alignment) return false;
    double rows = 0;
    for (const Type& operand : operands) rows += static_cast<double>(bytes(operand));
    return static_cast<double>(pieces_) * static_cast<double>(bytes(sum)) >
           static_cast<double>(program_.mesh.devices()) * rows;
  }

  // One sum for all; with private copies, each device then copies it.
  void lower_parts(const Equation& psum, int published, Kernel kernel) {
    const Value summed = kernel.equation->results.front();
    const Value result = psum.results[operand_number_.at(summed.id)];
    summed_.insert(summed.id);
    define(result, Class::chunked, published + 1);
    info(result).by_task = true;
    Parts parts{kernel.equation, std::move(kernel.operands), result.id, most_parts};
    if (options_.private_copies) {
      parts.result = out_.add_like(result.id);
      define(result, Class::varying, published + 2);
      out_.add(Copy{parts.result, result.id}, Class::varying, published + 2, 0);
    }
    out_.add(std::move(parts), Class::chunked, published + 1, 0);
  }

  // ---- loops

  // A loop varies when anything that goes into it does; then all its carries must.
  void lower_loop(const Equation& equation) {
    const LoopRule loop = equation.op.loop();
    const Region& region = equation.regions.front();
    bool varies = options_.private_copies;
    for (Value operand : equation.operands) varies |= !type(operand).varying.empty();
    for_each_equation(region.equations, [&](const Equation& inner) {
      for (Value result : inner.results) varies |= !type(result).varying.empty();
    });
    const Class of = loop_ != nullptr ? loop_class_ : varies ? Class::varying : Class::worker;
    const int stage = loop_ != nullptr ? loop_stage_ : first_stage(equation.operands, of);

    Loop out;
    out.equation = &equation;
    out.iterations = loop.iterations;
    const auto consts = static_cast<std::size_t>(loop.consts), carries = static_cast<std::size_t>(loop.carries);
    for (std::size_t i = 0; i < region.params.size(); ++i) {
      const Value param = region.params[i], operand = equation.operands[i];
      if (i < consts) {
        info(param) = info(operand);
      } else if (i < consts + carries) {
        const Value result = equation.results[i - consts];
        if (varies && !per_device(result)) refuse_mixed_carries(equation, result);
        define(result, of, stage);
        info(param) = info(result);
        out.before.push_back({info(operand).root, result.id});
      } else {
        define(param, of, stage);
        out.slices.push_back({info(operand).root, param.id});
      }
    }
    std::vector<Instruction>* const outer = std::exchange(loop_, &out.body);
    const int outer_stage = std::exchange(loop_stage_, stage);
    const Class outer_class = std::exchange(loop_class_, of);
    for (const Equation& inner : region.equations) lower_equation(inner);
    loop_ = outer;
    loop_stage_ = outer_stage;
    loop_class_ = outer_class;
    append_yields(equation, region, out);
    add(std::move(out), of, stage);
  }

  // After the body, what it yields becomes the carries. A yield that is itself a carry is copied aside first, so that
  // carries may change places.
  void append_yields(const Equation& equation, const Region& region, Loop& loop) {
    std::vector<Copy> last;
    for (std::size_t i = 0; i < region.results.size(); ++i) {
      const int carry = equation.results[i].id;
      int from = info(region.results[i]).root;
      if (from == carry) continue;
      const bool is_carry =
          std::any_of(equation.results.begin(), equation.results.end(), [&](Value other) { return other.id == from; });
      if (is_carry) {
        const int aside = out_.add_like(carry);
        loop.body.emplace_back(Copy{from, aside});
        from = aside;
      }
      last.push_back({from, carry});
    }
    for (const Copy& copy : last) loop.body.emplace_back(copy);
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
  void lower_outputs() {
    for (const Output& output : program_.outputs) {
      int root = info(output.value).root;
      const Input* const input = input_of(root);
      if (input != nullptr && input->next) {
        const int copy = out_.add_like(root);
        const auto prepend = [&](std::vector<Instruction>& list) { list.insert(list.begin(), Copy{root, copy}); };
        switch (out_.info(root).of) {
          case Class::varying: prepend(out_.stages.front().pieces); break;
          case Class::chunked: prepend(out_.chunked(0, numel(out_.type(root))).instructions); break;
          default: prepend(out_.stages.front().once);
        }
        root = copy;
      }
      out_.outputs.push_back(root);
    }
  }

  const Program& program_;
  const PlanOptions options_;
  const std::int64_t pieces_;
  Lowered out_;
  std::vector<const Input*> inputs_;                     // by value
  std::unordered_map<int, std::size_t> operand_number_;  // of the reduction at hand, by value: the first such operand
  std::set<int> summed_;                                 // values that exist only as pieces' sums
  int first_ = 0;                                        // the stage before which only preparations run
  std::vector<Instruction>* loop_ = nullptr;
  int loop_stage_ = 0;
  Class loop_class_ = Class::varying;
};

}  // namespace

int Lowered::add_like(int like) {
  ValueInfo copy = info(like);
  copy.root = static_cast<int>(values.size());
  copied_types.push_back(Type(type(like)));
  values.push_back(copy);
  return copy.root;
}

Chunked& Lowered::chunked(int stage, std::int64_t elements) {
  std::vector<Chunked>& all = stages[static_cast<std::size_t>(stage)].chunked;
  const auto same =
      std::find_if(all.begin(), all.end(), [&](const Chunked& known) { return known.elements == elements; });
  if (same != all.end()) return *same;
  return all.emplace_back(Chunked{elements, chunks_of(elements), {}});
}

void Lowered::add(Instruction instruction, Class of, int stage, std::int64_t elements) {
  if (static_cast<std::size_t>(stage) >= stages.size()) stages.resize(static_cast<std::size_t>(stage) + 1);
  Stage& into = stages[static_cast<std::size_t>(stage)];
  if (of == Class::varying) {
    into.pieces.push_back(std::move(instruction));
  } else if (of != Class::chunked) {
    into.once.push_back(std::move(instruction));
  } else if (instruction.as<Parts>() != nullptr || instruction.as<Prepare>() != nullptr) {
    into.tasks.push_back(std::move(instruction));
  } else {
    chunked(stage, elements).instructions.push_back(std::move(instruction));
  }
}

Lowered lower(const Program& program, const PlanOptions& options, std::int64_t pieces) {
  return Lowering(program, options, pieces).run();
}

}  // namespace pmaptrain::cpu
