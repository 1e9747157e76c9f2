#include "core/runtime/cpu/lower.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <unordered_map>

#include "core/ops/all.h"

namespace pmaptrain::cpu {
namespace {

class Lowering {
 public:
  Lowering(const Program& program, const PlanOptions& options, std::int64_t target)
      : program_(program), options_(options) {
    out_.program = &program;
    out_.target = target;
    std::set<std::uint32_t> sets;
    for (const Type& type : program.types) {
      if (!type.varying.empty()) sets.insert(type.varying.bits());
    }
    out_.varies_in_parts = sets.size() > 1;
    out_.facts = analyse(program);
    out_.rows = find_rows(program, out_.facts);
    out_.values.resize(program.types.size());
    out_.stages.resize(1);
    inputs_.resize(program.types.size());
    for (const Input& input : program_.inputs) inputs_[static_cast<std::size_t>(input.value.id)] = &input;
    cut_by_rows();
  }

  Lowered run() {
    for (const Input& input : program_.inputs) define_input(input);
    // What is prepared is ready for every other instruction.
    if (!options_.private_copies && prepares_any(program_.equations)) first_ = 1;
    for (const Equation& equation : program_.equations) lower_equation(equation);
    lower_outputs();
    for (const Input& input : program_.inputs) {
      if (input.next) out_.updates.emplace_back(input.value.id, source(*input.next, -1));
    }
    return std::move(out_);
  }

 private:
  ValueInfo& info(Value value) { return out_.info(value.id); }
  const Type& type(Value value) const { return out_.type(value.id); }
  const ValueFacts& facts(Value value) const { return out_.facts.of(value); }
  AxisSet all() const { return program_.mesh.all(); }

  // ---- instances, and where pieces may be cut

  // Over which axes a value of this type is stored: of a value that is equal over an axis there is one.
  AxisSet stored(const Type& type) const { return options_.private_copies ? all() : type.varying; }

  void cut_by_rows() {
    Rows& rows = out_.rows;
    if (rows.count == 0) return;
    const std::int64_t instances = program_.mesh.group_size(rows.axes);
    const std::int64_t span = span_within(program_.mesh, rows.axes, axes_not_to_cross());
    // Pieces within one device are worth their number where there are few devices.
    const bool many = span == 1 && instances > 1 && instances >= out_.target;
    if (many || (options_.private_copies && rows.axes != all())) {
      std::fill(rows.kinds.begin(), rows.kinds.end(), RowKind::whole);
      rows.count = 0;
      return;
    }
    out_.cuts.push_back({rows.axes, rows.count, cut_rows(instances, rows.count, span, out_.target)});
    rows_cut_ = 0;
  }

  // A piece has rows of one instance of what its rows read, and of what their sums become.
  AxisSet axes_not_to_cross() {
    AxisSet axes;
    for (const Equation& equation : program_.equations) axes = axes | axes_not_to_cross(equation);
    for (const Output& output : program_.outputs) axes = axes | axes_of_sum(output.value);
    for (const Input& input : program_.inputs) {
      if (input.next) axes = axes | axes_of_sum(*input.next);
    }
    return axes;
  }
  // Of a value that is read where no piece is: a sum over the rows of each device.
  AxisSet axes_of_sum(Value value) const {
    return out_.rows.of(value) == RowKind::partial ? out_.rows.axes : AxisSet();
  }
  AxisSet axes_not_to_cross(const Equation& equation) {
    AxisSet axes;
    const bool on_rows = out_.rows.runs_on_rows(equation);
    const bool sums = equation.op.rules().communication == Communication::sum;
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const Value operand = equation.operands[i];
      if (on_rows) {
        const Reads how = reads(equation, i);
        if (how == Reads::whole) axes = axes | out_.facts.root_of(operand).domain.axes;
        // There are as many equal rows as a device has.
        if (how == Reads::any_rows) axes = axes | out_.rows.axes;
      } else if (sums && out_.rows.of(operand) == RowKind::partial) {
        axes = axes | (type(operand).varying - equation.op.axes());
      } else {
        axes = axes | axes_of_sum(operand);
      }
    }
    return axes;
  }

  // What an equation on rows reads of an operand.
  Reads reads(const Equation& equation, std::size_t operand) const {
    if (!reads_rows(equation, operand)) return Reads::whole;
    const Value value = equation.operands[operand];
    if (equation.op.is_loop()) return Reads::rows;
    return out_.rows.has_rows(program_, out_.facts, value) ? Reads::rows : Reads::any_rows;
  }
  bool reads_rows(const Equation& equation, std::size_t operand) const {
    const Rows& rows = out_.rows;
    if (equation.op.is_loop()) {
      const LoopRule loop = equation.op.loop();
      return operand >= static_cast<std::size_t>(loop.consts + loop.carries);
    }
    if (!equation.regions.empty()) return rows.of(equation.regions.front().params[operand]) == RowKind::rows;
    const RowKind result = rows.of(equation.results.front());
    if (result == RowKind::uniform || rows.of(equation.operands[operand]) == RowKind::partial) return false;
    const RowRule rule = equation.op.rows(types_of(program_, equation.operands), types_of(program_, equation.results));
    if (result == RowKind::rows) return !rule.reads_all_of(operand);
    return rule.kind == RowRule::Kind::sums;
  }

  // ---- values

  void define(Value value, ValueInfo how) {
    how.root = value.id;
    info(value) = how;
  }

  Class class_of(AxisSet axes, std::int64_t elements) const {
    const bool large = elements > small_elements;
    if (axes.empty()) return large ? Class::chunked : Class::worker;
    return large && axes != all() ? Class::chunked : Class::varying;
  }

  // There is one copy of a replicated batch input, which no worker writes.
  void define_input(const Input& input) {
    ValueInfo how;
    how.complete = true;
    how.axes = input.group == Group::batch ? type(input.value).varying : stored(type(input.value));
    if (input.group != Group::batch) {
      how.of = class_of(how.axes, numel(type(input.value)));
    } else if (how.axes.empty()) {
      how.of = Class::constant;
    }
    define(input.value, how);
  }

  // The first stage in which an instruction like `reader` may read the value of a root: what other workers write needs
  // a barrier in between.
  int readable(const ValueInfo& read, const ValueInfo& reader) const {
    if (read.complete) return first_;
    bool same = read.of == Class::constant || read.of == Class::worker;
    if (read.of == Class::chunked) same = reader.of == Class::chunked && reader.axes == read.axes && !read.by_task;
    if (read.of == Class::varying) same = reader.of == Class::varying && reader.cut == read.cut;
    return std::max(first_, read.stage + (same ? 0 : 1));
  }
  const Input* input_of(int root) const {
    const auto at = static_cast<std::size_t>(root);
    return at < inputs_.size() ? inputs_[at] : nullptr;
  }

  // The root to read where instructions run on the pieces of `cut` (-1: on none). A sum over rows is complete after a
  // barrier.
  int source(Value value, int cut) {
    const ValueInfo& from = info(value);
    if (from.kind != RowKind::partial || from.cut == cut) return from.root;
    const auto known = completed_.find(from.root);
    return known != completed_.end() ? known->second : complete(from.root);
  }

  int complete(int root) {
    const ValueInfo partial = out_.info(root);
    const Value value{root};
    out_.sums->push_back({all_ops().psum(AxisSet()), {value}, {value}, origin_});
    const Equation* const sum = &out_.sums->back();
    const int whole = out_.add_like(root);
    ValueInfo how;
    how.root = whole;
    how.axes = stored(out_.type(root));
    how.of = class_of(how.axes, numel(out_.type(root)));
    how.cut = cut_for(how);
    how.stage = partial.stage + 1;
    out_.info(whole) = how;
    const int accumulator = add_accumulator(out_.type(root), rows_cut_);
    out_.add(Start{sum, root, accumulator}, partial, partial.stage, 0);
    out_.add(Done{sum, accumulator, -1, whole}, how, how.stage, numel(out_.type(root)));
    completed_[root] = whole;
    return whole;
  }

  int add_accumulator(const Type& of, int cut) {
    out_.accumulators.push_back({of.dtype, numel(of), cut, 0});
    return static_cast<int>(out_.accumulators.size()) - 1;
  }

  int cut_for(const ValueInfo& how) { return how.of == Class::varying ? out_.cut_of(how.axes) : -1; }

  // ---- equations

  // Appends to the loop at hand, or to a stage.
  void add(Instruction instruction, const ValueInfo& like, int stage, std::int64_t elements = 0) {
    if (loop_ != nullptr) {
      loop_->push_back(std::move(instruction));
    } else {
      out_.add(std::move(instruction), like, stage, elements);
    }
  }

  void lower_equation(const Equation& equation) {
    origin_ = equation.origin;
    if (make_alias(equation) || make_constant(equation)) return;
    switch (equation.op.rules().communication) {
      case Communication::coordinate: {
        ValueInfo how;
        how.complete = true;
        how.axes = stored(type(equation.results.front()));
        define(equation.results.front(), how);
        out_.coordinates.emplace_back(equation.results.front().id, &equation);
        return;
      }
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
      ValueInfo how;
      how.of = Class::constant;
      define(result, how);
      out_.constants.emplace_back(result.id, &equation);
    }
    return true;
  }

  void lower_local(const Equation& equation) {
    ValueInfo how = loop_ != nullptr ? loop_like_ : how_to_compute(equation);
    Kernel kernel;
    kernel.equation = &equation;
    for (Value operand : equation.operands) kernel.operands.push_back(source(operand, how.cut));
    if (loop_ == nullptr) {
      how.stage = first_;
      for (int root : kernel.operands) how.stage = std::max(how.stage, readable(out_.info(root), how));
    }
    const bool on_rows = rows_cut_ >= 0 && how.cut == rows_cut_;
    for (Value result : equation.results) {
      ValueInfo own = how;
      if (on_rows) {
        own.kind = out_.rows.of(result);
        if (own.kind == RowKind::whole) own.kind = RowKind::uniform;  // replicated, inside a loop
        if (own.kind != RowKind::rows) own.axes = {};
        kernel.result_rows.push_back(own.kind == RowKind::rows);
      } else if (type(result).varying.empty() && !options_.private_copies) {
        own.axes = {};
      }
      define(result, own);
      kernel.results.push_back(result.id);
    }
    for (std::size_t i = 0; on_rows && i < equation.operands.size(); ++i) {
      kernel.operand_rows.push_back(reads(equation, i));
    }
    if (how.of == Class::varying) prepare_operands(kernel);
    add(std::move(kernel), how, how.stage, numel(type(equation.results.front())));
  }

  ValueInfo how_to_compute(const Equation& equation) {
    const Value result = equation.results.front();
    ValueInfo how;
    if (out_.rows.runs_on_rows(equation)) {
      how.axes = out_.rows.axes;
      how.cut = rows_cut_;
      return how;
    }
    how.axes = stored(type(result));
    how.of = how.axes.empty() ? Class::worker : Class::varying;
    // What a chain repeats along a dimension is neither a scalar nor of the result's size, and has no chunks.
    const bool chunks = equation.op.rules().elementwise &&
                        std::all_of(equation.operands.begin(), equation.operands.end(), [&](Value operand) {
                          return numel(type(operand)) == 1 || numel(type(operand)) == numel(type(result));
                        });
    if (chunks) how.of = class_of(how.axes, numel(type(result)));
    how.cut = cut_for(how);
    return how;
  }

  // ---- operands in the layout of the kernels that read them

  // The operand that this op's kernel would rather have in a layout of its own: a parameter, which stays the same for
  // all pieces, microbatches and devices.
  std::optional<std::size_t> prepared_operand(const Equation& equation) {
    if (options_.private_copies) return std::nullopt;
    const std::optional<std::size_t> index = packable_operand(program_, equation);
    if (!index || type(equation.results.front()).varying.empty()) return std::nullopt;
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
    ValueInfo& how = out_.info(packed);
    how.of = Class::chunked;
    how.by_task = true;
    how.complete = false;
    how.stage = 0;
    out_.packed.insert(packed);
    out_.add(Prepare{kernel.equation, *index, operand, packed}, how, 0, 0);
    kernel.unpacked = std::exchange(operand, packed);
  }

  // ---- collectives

  void lower_collective(const Equation& equation) {
    assert(loop_ == nullptr);  // such loops are unrolled
    if (equation.op.rules().communication != Communication::exchange) return lower_reduction(equation);
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const Value result = equation.results[i];
      const int operand = source(equation.operands[i], -1);
      ValueInfo how;
      how.axes = stored(type(result));
      how.of = how.axes.empty() ? Class::worker : Class::varying;
      how.cut = cut_for(how);
      how.stage = readable(out_.info(operand), ValueInfo());
      out_.exchanged.insert(operand);
      define(result, how);
      add(Exchange{&equation, i, operand, result.id}, how, how.stage);
    }
  }

  // One operand of a reduction.
  struct Half {
    Done done;
    bool of_rows = false;   // the addends are sums over rows
    bool in_parts = false;  // nothing is left to combine
  };

  // Whether the slices of a value are added up piece by piece: where they are computed, and the sum over all of them is
  // wanted.
  bool starts_on_instances(const Equation& equation, const ValueInfo& operand, const Type& of) const {
    return operand.of == Class::varying && !operand.complete && operand.kind == RowKind::whole &&
           operand.axes == of.varying && (of.varying - equation.op.axes()).empty();
  }

  // Pieces have their addends, in accumulators or as they are; after a barrier these are combined in order.
  void lower_reduction(const Equation& equation) {
    const bool sum = equation.op.rules().communication == Communication::sum;
    std::vector<Half> halves;
    int published = first_;
    operand_number_.clear();
    summed_.clear();
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const Value operand = equation.operands[i];
      Half& half = halves.emplace_back(Half{{&equation, -1, -1, equation.results[i].id}});
      if (info(operand).kind == RowKind::partial && sum) {
        half.of_rows = true;
        operand_number_.try_emplace(operand.id, i);
        published = std::max(published, info(operand).stage + 1);
        continue;
      }
      const int root = source(operand, -1);
      ValueInfo from = out_.info(root);
      if (starts_on_instances(equation, from, type(operand))) {
        half.done.accumulator = add_accumulator(type(operand), from.cut);
        out_.add(Start{&equation, root, half.done.accumulator}, from, from.stage, 0);
        published = std::max(published, from.stage + 1);
      } else {
        half.done.operand = root;
        out_.exchanged.insert(root);
        published = std::max(published, readable(from, ValueInfo()));
      }
    }
    sum_rows_in_parts(equation, halves, published);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      if (halves[i].of_rows) halves[i].done.accumulator = add_accumulator(type(equation.operands[i]), rows_cut_);
    }
    sum_rows_of_pieces(halves);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      if (!halves[i].in_parts) finish_reduction(equation, i, halves[i], published);
    }
  }

  void finish_reduction(const Equation& equation, std::size_t i, const Half& half, int published) {
    const Value operand = equation.operands[i], result = equation.results[i];
    if (half.of_rows && !summed_.contains(operand.id)) {
      const ValueInfo from = info(operand);
      out_.add(Start{&equation, from.root, half.done.accumulator}, from, from.stage, 0);
    }
    ValueInfo how;
    how.axes = stored(type(result));
    how.of = class_of(how.axes, numel(type(result)));
    how.cut = cut_for(how);
    how.stage = published;
    define(result, how);
    add(half.done, how, published, numel(type(result)));
  }

  // Whether an instruction's results are sums over rows that only the reduction at hand reads.
  bool sums_rows_for(const Instruction& instruction) const {
    const Kernel* const kernel = instruction.as<Kernel>();
    if (kernel == nullptr || kernel->operand_rows.empty()) return false;
    const Equation& equation = *kernel->equation;
    const RowRule rule = equation.op.rows(types_of(program_, equation.operands), types_of(program_, equation.results));
    return rule.kind == RowRule::Kind::sums &&
           std::all_of(equation.results.begin(), equation.results.end(), [&](Value result) {
             return out_.rows.of(result) == RowKind::partial && operand_number_.contains(result.id) &&
                    facts(result).uses == 1;
           });
  }

  // These are written straight into the piece's accumulators.
  void sum_rows_of_pieces(const std::vector<Half>& halves) {
    for (Stage& stage : out_.stages) {
      for (PieceList& list : stage.pieces) {
        if (list.cut != rows_cut_) continue;
        for (Instruction& instruction : list.instructions) {
          if (!sums_rows_for(instruction)) continue;
          Kernel& kernel = *instruction.as<Kernel>();
          RowSums sums{kernel.equation, std::move(kernel.operands), {}};
          for (Value result : sums.equation->results) {
            sums.accumulators.push_back(halves[operand_number_.at(result.id)].done.accumulator);
            summed_.insert(result.id);
          }
          instruction = std::move(sums);
        }
      }
    }
  }

  // Where the sum is so large that accumulators would move more memory than the rows that it sums up, there are none:
  // all rows are kept, and summed after the barrier, in parts of the result.
  void sum_rows_in_parts(const Equation& psum, std::vector<Half>& halves, int published) {
    if (rows_cut_ < 0 || !(out_.rows.axes - psum.op.axes()).empty()) return;
    std::vector<Kernel> sums;
    for (Stage& stage : out_.stages) {
      for (PieceList& list : stage.pieces) {
        if (list.cut != rows_cut_) continue;
        std::erase_if(list.instructions, [&](Instruction& instruction) {
          if (!sums_rows_for(instruction) || !is_better_in_parts(*instruction.as<Kernel>()->equation)) return false;
          sums.push_back(std::move(*instruction.as<Kernel>()));
          return true;
        });
      }
    }
    for (Kernel& kernel : sums) lower_parts(psum, halves, published, std::move(kernel));
  }

  // Bytes that the pieces' sums would write, all of which the combination would read again, against those of the rows.
  // Parts of fewer rows would leave the product's inner loops short.
  bool is_better_in_parts(const Equation& equation) const {
    const std::vector<Type> operands = types_of(program_, equation.operands);
    const Type& sum = type(equation.results.front());
    if (!equation.op.rows(operands, std::span(&sum, 1)).columns_make_rows) return false;
    if (numel(sum) <= small_elements || sum.shape.front() < least_parts * part_alignment) return false;
    double rows = 0;
    for (const Type& operand : operands) rows += static_cast<double>(bytes(operand));
    const auto pieces = static_cast<double>(out_.cuts[static_cast<std::size_t>(rows_cut_)].pieces.size());
    return pieces * static_cast<double>(bytes(sum)) >
           static_cast<double>(program_.mesh.group_size(out_.rows.axes)) * rows;
  }

  // One sum for all; with private copies, each device then copies it.
  void lower_parts(const Equation& psum, std::vector<Half>& halves, int published, Kernel kernel) {
    const Value summed = kernel.equation->results.front();
    const std::size_t number = operand_number_.at(summed.id);
    halves[number].in_parts = true;
    halves[number].of_rows = false;
    const Value result = psum.results[number];
    Parts parts{kernel.equation, std::move(kernel.operands), result.id, parts_of(type(summed).shape.front())};
    ValueInfo how;
    how.of = Class::chunked;
    how.by_task = true;
    how.stage = published;
    define(result, how);
    if (options_.private_copies) {
      parts.result = out_.add_like(result.id);
      ValueInfo copy;
      copy.axes = all();
      copy.cut = cut_for(copy);
      copy.stage = published + 1;
      define(result, copy);
      out_.add(Copy{parts.result, result.id}, copy, copy.stage, 0);
    }
    out_.add(std::move(parts), how, published, 0);
  }

  // ---- loops

  // A loop varies when anything that goes into it does; then all its carries must.
  void lower_loop(const Equation& equation) {
    const LoopRule loop = equation.op.loop();
    const Region& region = equation.regions.front();
    AxisSet axes = options_.private_copies ? all() : AxisSet();
    for (Value operand : equation.operands) axes = axes | type(operand).varying;
    for_each_equation(region.equations, [&](const Equation& inner) {
      for (Value result : inner.results) axes = axes | type(result).varying;
    });
    const bool on_rows =
        loop_ != nullptr ? loop_like_.cut == rows_cut_ && rows_cut_ >= 0 : out_.rows.runs_on_rows(equation);
    ValueInfo how;
    if (loop_ != nullptr) {
      how = loop_like_;
    } else {
      how.axes = axes;
      how.of = axes.empty() ? Class::worker : Class::varying;
      how.cut = on_rows ? rows_cut_ : cut_for(how);
    }
    std::vector<int> operands;
    for (Value operand : equation.operands) operands.push_back(source(operand, how.cut));
    if (loop_ == nullptr) {
      how.stage = first_;
      for (int root : operands) how.stage = std::max(how.stage, readable(out_.info(root), how));
    }

    Loop out;
    out.equation = &equation;
    out.iterations = loop.iterations;
    const auto consts = static_cast<std::size_t>(loop.consts), carries = static_cast<std::size_t>(loop.carries);
    for (std::size_t i = 0; i < region.params.size(); ++i) {
      const Value param = region.params[i];
      ValueInfo own = how;
      if (i < consts) {
        info(param) = out_.info(operands[i]);
      } else if (i < consts + carries) {
        const Value result = equation.results[i - consts];
        if (!axes.empty() && type(result).varying.empty() && !options_.private_copies) {
          refuse_mixed_carries(equation, result);
        }
        if (on_rows) own.kind = out_.rows.of(result), own.axes = {};
        define(result, own);
        info(param) = info(result);
        out.before.push_back({operands[i], result.id});
      } else {
        if (on_rows) own.kind = RowKind::rows;
        if (type(param).varying.empty() && !options_.private_copies) own.axes = {};
        define(param, own);
        out.slices.push_back({operands[i], param.id});
      }
    }
    std::vector<Instruction>* const outer = std::exchange(loop_, &out.body);
    const ValueInfo outer_like = std::exchange(loop_like_, how);
    for (const Equation& inner : region.equations) lower_equation(inner);
    loop_ = outer;
    loop_like_ = outer_like;
    append_yields(equation, region, out);
    add(std::move(out), how, how.stage);
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
      int root = source(output.value, -1);
      const Input* const input = input_of(root);
      if (input != nullptr && input->next) {
        const int copy = out_.add_like(root);
        ValueInfo& how = out_.info(copy);
        how.complete = false;
        how.stage = 0;
        how.cut = cut_for(how);
        const auto prepend = [&](std::vector<Instruction>& list) { list.insert(list.begin(), Copy{root, copy}); };
        switch (how.of) {
          case Class::varying: prepend(out_.pieces(0, how.cut)); break;
          case Class::chunked: prepend(out_.chunked(0, numel(out_.type(root)), how.axes).instructions); break;
          default: prepend(out_.stages.front().once);
        }
        root = copy;
      }
      out_.outputs.push_back(root);
    }
  }

  const Program& program_;
  const PlanOptions options_;
  Lowered out_;
  std::vector<const Input*> inputs_;                     // by value
  int rows_cut_ = -1;                                    // the cut by rows, where there is one
  std::map<int, int> completed_;                         // sums over rows that other work reads, by their addends
  std::unordered_map<int, std::size_t> operand_number_;  // of the reduction at hand, by value: the first such operand
  std::set<int> summed_;                                 // values that exist only as pieces' sums
  std::shared_ptr<const Origin> origin_;                 // of the equation at hand
  int first_ = 0;                                        // the stage before which only preparations run
  std::vector<Instruction>* loop_ = nullptr;
  ValueInfo loop_like_;
};

}  // namespace

int Lowered::add_like(int like) {
  ValueInfo copy = info(like);
  copy.root = static_cast<int>(values.size());
  copied_types.push_back(Type(type(like)));
  values.push_back(copy);
  return copy.root;
}

int Lowered::cut_of(AxisSet axes) {
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    if (cuts[i].axes == axes && cuts[i].rows == 0) return static_cast<int>(i);
  }
  // Neighbouring instances along the innermost axis alone: what a piece reads of fewer axes is one slice, or follows.
  const Mesh& mesh = program->mesh;
  int innermost = -1, used = 0;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
    if (axes.contains(axis) && mesh.size(axis) > 1) innermost = axis, ++used;
  }
  const std::int64_t instances = mesh.group_size(axes);
  const std::int64_t run = used > 1 && varies_in_parts ? mesh.size(innermost) : instances;
  cuts.push_back({axes, 0, cut_instances(instances, run, target)});
  return static_cast<int>(cuts.size()) - 1;
}

Chunked& Lowered::chunked(int stage, std::int64_t elements, AxisSet axes) {
  std::vector<Chunked>& all = stages[static_cast<std::size_t>(stage)].chunked;
  const auto same = std::find_if(
      all.begin(), all.end(), [&](const Chunked& known) { return known.elements == elements && known.axes == axes; });
  if (same != all.end()) return *same;
  return all.emplace_back(Chunked{elements, chunks_of(elements), axes, {}});
}

std::vector<Instruction>& Lowered::pieces(int stage, int cut) {
  std::vector<PieceList>& all = stages[static_cast<std::size_t>(stage)].pieces;
  const auto same = std::find_if(all.begin(), all.end(), [&](const PieceList& known) { return known.cut == cut; });
  return (same != all.end() ? *same : all.emplace_back(PieceList{cut, {}})).instructions;
}

void Lowered::add(Instruction instruction, const ValueInfo& like, int stage, std::int64_t elements) {
  if (static_cast<std::size_t>(stage) >= stages.size()) stages.resize(static_cast<std::size_t>(stage) + 1);
  Stage& into = stages[static_cast<std::size_t>(stage)];
  if (like.of == Class::varying) {
    pieces(stage, like.cut >= 0 ? like.cut : cut_of(like.axes)).push_back(std::move(instruction));
  } else if (like.of != Class::chunked) {
    into.once.push_back(std::move(instruction));
  } else if (instruction.as<Parts>() != nullptr || instruction.as<Prepare>() != nullptr) {
    into.tasks.push_back(std::move(instruction));
  } else {
    chunked(stage, elements, like.axes).instructions.push_back(std::move(instruction));
  }
}

Lowered lower(const Program& program, const PlanOptions& options, std::int64_t target) {
  return Lowering(program, options, target).run();
}

}  // namespace pmaptrain::cpu
