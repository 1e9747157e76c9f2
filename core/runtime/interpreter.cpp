#include "core/runtime/interpreter.h"

#include <cstring>
#include <unordered_map>

#include "core/ops/all.h"
#include "core/ops/collective/collective.h"
#include "core/ops/loop/loop.h"

namespace pmaptrain {
namespace {

class Interpreter {
 public:
  explicit Interpreter(const Program& program) : program_(program), devices_(program.mesh.devices()) {}

  Interpreted run(const std::map<std::string, PerDevice>& inputs) {
    for (const Input& input : program_.inputs) {
      const auto found = inputs.find(input.name);
      if (found == inputs.end()) fail_running("the program's input '" + input.name + "' was not given");
      set(input.value, found->second);
    }
    run(program_.equations);
    Interpreted result;
    for (const Output& output : program_.outputs) result.outputs[output.name] = at(output.value);
    for (const Input& input : program_.inputs) {
      if (input.next) result.updates[input.name] = at(*input.next);
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
      // The first device that agrees on every axis over which the type varies must hold the same bits.
      for (std::int64_t other = 0; other < d; ++other) {
        if (program_.mesh.position(other, type.varying) != program_.mesh.position(d, type.varying)) continue;
        if (array != arrays[static_cast<std::size_t>(other)]) {
          fail_running("devices " + std::to_string(other) + " and " + std::to_string(d) +
                       " differ in a value of type " + to_string(type, program_.mesh));
        }
        break;
      }
    }
    values_[value.id] = std::move(arrays);
  }

  void run(const std::vector<Equation>& equations) {
    for (const Equation& equation : equations) run(equation);
  }

  void run(const Equation& equation) {
    const Op& op = equation.op;
    if (op.as<ops::Pvary>() != nullptr) return set(equation.results.front(), at(equation.operands.front()));
    if (const auto* index = op.as<ops::AxisIndex>()) return run_axis_index(*index, equation);
    if (const auto* loop = op.as<ops::Loop>()) return run_loop(*loop, equation);

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
    const AxisSet axes = equation.op.axes();
    const std::vector<std::int64_t> group = program_.mesh.group(device, axes);
    std::vector<std::vector<ConstArray>> members;
    for (Value value : equation.operands) {
      std::vector<ConstArray>& arrays = members.emplace_back();
      for (std::int64_t member : group) arrays.push_back(array(value, member));
    }
    const std::vector<std::span<const ConstArray>> operands(members.begin(), members.end());
    kernels.exchange(equation.op.data(), {operands, program_.mesh.position(device, axes), results});
  }

  void run_axis_index(const ops::AxisIndex& index, const Equation& equation) {
    PerDevice arrays;
    for (std::int64_t d = 0; d < devices_; ++d) {
      const auto coordinate = static_cast<std::int32_t>(program_.mesh.position(d, index.axes));
      std::vector<std::byte>& array = arrays.emplace_back(sizeof coordinate);
      std::memcpy(array.data(), &coordinate, sizeof coordinate);
    }
    set(equation.results.front(), std::move(arrays));
  }

  void run_loop(const ops::Loop& loop, const Equation& equation) {
    const Region& region = equation.regions.front();
    const auto consts = static_cast<std::size_t>(loop.consts), carries = static_cast<std::size_t>(loop.carries);
    std::vector<PerDevice> carried;
    for (std::size_t i = 0; i < carries; ++i) carried.push_back(at(equation.operands[consts + i]));
    for (std::int64_t k = 0; k < loop.iterations; ++k) {
      for (std::size_t i = 0; i < region.params.size(); ++i) {
        const Value param = region.params[i];
        if (i < consts) {
          set(param, at(equation.operands[i]));
        } else if (i < consts + carries) {
          set(param, carried[i - consts]);
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
      run(region.equations);
      for (std::size_t i = 0; i < carries; ++i) carried[i] = at(region.results[i]);
    }
    for (std::size_t i = 0; i < carries; ++i) set(equation.results[i], std::move(carried[i]));
  }

  const Program& program_;
  const std::int64_t devices_;
  std::unordered_map<std::int32_t, PerDevice> values_;
};

}  // namespace

Interpreted interpret(const Program& program, const std::map<std::string, PerDevice>& inputs) {
  return Interpreter(program).run(inputs);
}

}  // namespace pmaptrain
