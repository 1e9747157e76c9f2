#include "core/runtime/interpreter.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core/analysis/facts.h"
#include "core/base/clock.h"
#include "core/base/saturate.h"
#include "core/mesh/blocks.h"
#include "core/ops/all.h"
#include "core/ops/collective/collective.h"
#include "core/ops/loop/loop.h"

namespace pmaptrain {
namespace {

// Determines when the interpreter frees each value. The interpreter copies the results of views and the values that a
// loop reads. Each copy lives as long as the value that it was copied from.
class Lifetimes {
 public:
  explicit Lifetimes(const Program& program) : program_(program), facts_(analyse(program)) {
    depths_.resize(program.types.size());
    for (const Input& input : program.inputs) add(input.value, 0);
    add(program.equations, 0);
  }

  // Calls f(value) for each value that was defined inside `depth` loops and whose last use is in equation number
  // `number`, counted as analyse() counts.
  template <class F>
  void for_each_dying(int number, int depth, F&& f) const {
    if (static_cast<std::size_t>(number) >= dying_.size()) return;
    for (const Value value : dying_[static_cast<std::size_t>(number)]) {
      if (depths_[static_cast<std::size_t>(facts_.of(value).root)] == depth) f(value);
    }
  }

  // The largest number of bytes of values that are live at one equation.
  std::size_t peak_bytes() const {
    std::vector<std::size_t> born(dying_.size());
    for (const std::vector<Value>& values : dying_) {
      for (const Value value : values) {
        std::size_t& sum = born[static_cast<std::size_t>(facts_.of(value).defined_at)];
        sum = sum_of(sum, bytes_of(value));
      }
    }
    std::size_t live = 0, most = 0;
    for (std::size_t number = 0; number < dying_.size(); ++number) {
      live = sum_of(live, born[number]);
      most = std::max(most, live);
      for (const Value value : dying_[number]) live -= std::min(live, bytes_of(value));
    }
    return most;
  }

 private:
  std::size_t bytes_of(Value value) const {
    return product_of(static_cast<std::size_t>(program_.mesh.devices()), bytes(program_.type(value)));
  }

  void add(Value value, int depth) {
    depths_[static_cast<std::size_t>(value.id)] = depth;
    const ValueFacts& facts = facts_.of(value);
    const auto last = static_cast<std::size_t>(std::max(facts.defined_at, facts_.root_of(value).last_use));
    if (dying_.size() <= last) dying_.resize(last + 1);
    dying_[last].push_back(value);
  }

  void add(const std::vector<Equation>& equations, int depth) {
    for (const Equation& equation : equations) {
      for (Value result : equation.results) add(result, depth);
      if (!equation.op.is_loop()) continue;
      const Region& region = equation.regions.front();
      for (Value param : region.params) add(param, depth + 1);
      add(region.equations, depth + 1);
    }
  }

  const Program& program_;
  const Facts facts_;
  std::vector<int> depths_;                // by value: number of enclosing loops
  std::vector<std::vector<Value>> dying_;  // by the number of an equation: the values that it is the last to use
};

class Interpreter {
 public:
  Interpreter(const Program& program, const InterpretOptions& options)
      : program_(program),
        options_(options),
        devices_(program.mesh.devices()),
        blocks_(program.mesh, options.blocks),
        lifetimes_(program) {}

  InterpreterResult run(std::map<std::string, PerDevice> inputs) {
    for (const Input& input : program_.inputs) {
      const auto found = inputs.find(input.name);
      if (found == inputs.end()) fail_running("the program's input '" + input.name + "' was not given");
      set(input.value, std::move(found->second));
    }
    free_dying(0);
    run(program_.equations);
    InterpreterResult result;
    result.peak_bytes = peak_bytes_;
    for (const Output& output : program_.outputs) result.outputs[output.name] = at(output.value);
    std::unordered_map<std::int32_t, int> left;  // by value: how many inputs it still has to be moved or copied to
    for (const Input& input : program_.inputs) {
      if (input.next) ++left[input.next->id];
    }
    for (const Input& input : program_.inputs) {
      if (!input.next) continue;
      const bool last = --left[input.next->id] == 0;
      result.updates[input.name] = last ? std::move(at(*input.next)) : at(*input.next);
    }
    return result;
  }

 private:
  PerDevice& at(Value value) { return values_.at(value.id); }

  void set(Value value, PerDevice arrays) {
    const Type& type = program_.type(value);
    for (std::int64_t d = 0; d < devices_; ++d) {
      const std::vector<std::byte>& array = arrays.at(static_cast<std::size_t>(d));
      if (array.size() != bytes(type)) fail_running("a value has the wrong size for " + to_string(type, program_.mesh));
      if (options_.check_replicated) check_replicated(type, arrays, d);
    }
    values_[value.id] = std::move(arrays);
    bytes_ += static_cast<std::size_t>(devices_) * bytes(type);
    peak_bytes_ = std::max(peak_bytes_, bytes_);
  }

  // Compares `device` with the first device at the same position along all axes that the type varies over. Throws if
  // their bits differ.
  void check_replicated(const Type& type, const PerDevice& arrays, std::int64_t device) const {
    for (std::int64_t other = 0; other < device; ++other) {
      if (program_.mesh.position(other, type.varying) != program_.mesh.position(device, type.varying)) continue;
      if (arrays[static_cast<std::size_t>(device)] != arrays[static_cast<std::size_t>(other)]) {
        fail_running("devices " + std::to_string(other) + " and " + std::to_string(device) +
                     " differ in a value of type " + to_string(type, program_.mesh));
      }
      return;
    }
  }

  void free_dying(int depth) {
    lifetimes_.for_each_dying(number_, depth, [&](Value value) {
      if (values_.erase(value.id) > 0) bytes_ -= static_cast<std::size_t>(devices_) * bytes(program_.type(value));
    });
  }

  // Runs equations, and frees values after their last use. Values that the last equation of the list uses are not freed
  // here: run_loop() frees those of its body, and those of the program are freed with the interpreter.
  void run(const std::vector<Equation>& equations, int depth = 0) {
    for (const Equation& equation : equations) {
      ++number_;
      const Clock::time_point begin = options_.time_observer ? Clock::now() : Clock::time_point{};
      if (equation.op.is_loop()) {
        run_loop(*equation.op.as<ops::Loop>(), equation, depth);
      } else {
        run(equation);
        if (options_.observer) {
          options_.observer(equation, [this](Value value) -> const PerDevice& { return at(value); });
        }
      }
      if (options_.time_observer) options_.time_observer(equation, begin, Clock::now());
      if (&equation != &equations.back()) free_dying(depth);
    }
  }

  void run(const Equation& equation) {
    const Op& op = equation.op;
    if (op.as<ops::Pvary>() != nullptr) return set(equation.results.front(), at(equation.operands.front()));
    if (op.rules().communication == Communication::coordinate) return run_coordinate(equation);

    std::vector<PerDevice> results;
    for (Value value : equation.results) {
      results.emplace_back(static_cast<std::size_t>(devices_), std::vector<std::byte>(bytes(program_.type(value))));
    }
    for (std::int64_t d = 0; d < devices_; ++d) {
      std::vector<Array> arrays;
      for (std::size_t i = 0; i < results.size(); ++i) {
        arrays.push_back({&program_.type(equation.results[i]), results[i][static_cast<std::size_t>(d)].data()});
      }
      const KernelRules& kernels = kernels_of(op);
      if (kernels.exchange != nullptr) {
        exchange(equation, kernels, d, arrays);
      } else {
        std::vector<ConstArray> operands;
        for (Value value : equation.operands) operands.push_back(array(value, d));
        kernels.reference(op.data(), {operands, arrays, equation.regions.empty() ? nullptr : &equation.regions.front(),
                                      program_.types});
      }
    }
    for (std::size_t i = 0; i < results.size(); ++i) set(equation.results[i], std::move(results[i]));
  }

  ConstArray array(Value value, std::int64_t device) {
    return {&program_.type(value), at(value)[static_cast<std::size_t>(device)].data()};
  }

  void exchange(const Equation& equation, const KernelRules& kernels, std::int64_t device,
                std::span<const Array> results) {
    const Mesh& mesh = program_.mesh;
    const AxisSet axes = equation.op.axes();
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const Value operand = equation.operands[i];
      const AxisSet varying = program_.type(operand).varying;
      std::vector<ConstArray> arrays;
      std::vector<std::int64_t> blocks;
      for (std::int64_t member : mesh.group(device, axes)) {
        arrays.push_back(array(operand, member));
        blocks.push_back(blocks_.of_instance(mesh.position(member, varying), varying));
      }
      const std::span<const ConstArray> operands = arrays;
      const std::vector<TreeNode> tree = leaves_of(blocks);
      kernels.exchange(equation.op.data(), {{&operands, 1}, mesh.position(device, axes), results.subspan(i, 1), tree});
    }
  }

  void run_coordinate(const Equation& equation) {
    PerDevice arrays;
    for (std::int64_t d = 0; d < devices_; ++d) {
      const auto coordinate = static_cast<std::int32_t>(program_.mesh.position(d, equation.op.axes()));
      std::vector<std::byte>& array = arrays.emplace_back(sizeof coordinate);
      std::memcpy(array.data(), &coordinate, sizeof coordinate);
    }
    set(equation.results.front(), std::move(arrays));
  }

  void run_loop(const ops::Loop& loop, const Equation& equation, int depth) {
    const Region& region = equation.regions.front();
    const auto consts = static_cast<std::size_t>(loop.consts), carries = static_cast<std::size_t>(loop.carries);
    const int number = number_;
    for (std::size_t i = 0; i < consts; ++i) set(region.params[i], at(equation.operands[i]));
    std::vector<PerDevice> carried;
    for (std::size_t i = 0; i < carries; ++i) carried.push_back(at(equation.operands[consts + i]));
    for (std::int64_t k = 0; k < loop.iterations; ++k) {
      number_ = number;
      for (std::size_t i = consts; i < region.params.size(); ++i) {
        const Value param = region.params[i];
        if (i < consts + carries) {
          set(param, std::move(carried[i - consts]));
        } else {
          const std::size_t size = bytes(program_.type(param));
          PerDevice slices;
          for (const std::vector<std::byte>& whole : at(equation.operands[i])) {
            const std::byte* const begin = whole.data() + static_cast<std::size_t>(k) * size;
            slices.emplace_back(begin, begin + size);
          }
          set(param, std::move(slices));
        }
      }
      run(region.equations, depth + 1);
      for (std::size_t i = 0; i < carries; ++i) carried[i] = at(region.results[i]);
      free_dying(depth + 1);
    }
    for (std::size_t i = 0; i < carries; ++i) set(equation.results[i], std::move(carried[i]));
  }

  const Program& program_;
  const InterpretOptions options_;
  const std::int64_t devices_;
  const Blocks blocks_;
  const Lifetimes lifetimes_;
  std::unordered_map<std::int32_t, PerDevice> values_;
  std::size_t bytes_ = 0, peak_bytes_ = 0;  // bytes of values_, now and at the peak
  int number_ = 0;                          // number of the equation, as analyse() counts
};

}  // namespace

InterpreterResult interpret(const Program& program, std::map<std::string, PerDevice> inputs,
                            const InterpretOptions& options) {
  return Interpreter(program, options).run(std::move(inputs));
}

std::size_t interpreter_peak_bytes(const Program& program) { return Lifetimes(program).peak_bytes(); }

}  // namespace pmaptrain
