#include "tests/runtime/programs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/philox.h"
#include "core/graph/text.h"
#include "core/ops/all.h"
#include "tests/catch.h"
#include "tests/slice.h"

namespace pmaptrain::test {
std::shared_ptr<const Program> program_of(const std::string& text, const std::vector<Axis>& mesh) {
  return std::make_shared<const Program>(parse_program(text, "test.pmt", all_ops(), mesh));
}

Values random_inputs(const Program& program, std::uint64_t seed) {
  Values values;
  for (const Input& input : program.inputs) {
    const Type& type = program.type(input.value);
    const PhiloxKey key = stream_key(seed, input.name);
    PerDevice& arrays = values[input.name];
    for (std::int64_t d = 0; d < program.mesh.devices(); ++d) {
      const auto position = static_cast<std::uint32_t>(program.mesh.position(d, type.varying));
      std::vector<std::byte>& array = arrays.emplace_back(bytes(type));
      dispatch(type.dtype, [&]<class T>() {
        for (std::int64_t e = 0; e < numel(type); ++e) {
          const std::uint32_t word = philox4x32(key, {static_cast<std::uint32_t>(e), position, 0, 0})[0];
          const T value = static_cast<T>(word % 5);
          std::memcpy(array.data() + static_cast<std::size_t>(e) * sizeof value, &value, sizeof value);
        }
      });
    }
  }
  return values;
}

Values uneven_inputs(const Program& program, std::uint64_t seed) {
  Values values = random_inputs(program, seed);
  for (const Input& input : program.inputs) {
    const Type& type = program.type(input.value);
    if (type.dtype != DType::f32) continue;
    PerDevice& arrays = values.at(input.name);
    for (std::size_t d = 0; d < arrays.size(); ++d) {
      const std::int64_t position = program.mesh.position(static_cast<std::int64_t>(d), type.varying);
      const PhiloxKey key = stream_key(seed, input.name + std::to_string(position));
      for (std::int64_t e = 0; e < numel(type); ++e) {
        const float value =
            1.0F + static_cast<float>(philox4x32(key, {static_cast<std::uint32_t>(e), 0, 0, 0})[0]) / 3e9F;
        std::memcpy(arrays[d].data() + static_cast<std::size_t>(e) * sizeof value, &value, sizeof value);
      }
    }
  }
  return values;
}

Values run_module(Module& module, const Values& inputs, std::int64_t steps, bool step_by_step) {
  NamedValues named(module);
  const Program& program = module.program(0);
  for (const Input& input : program.inputs) named.set_each(input.name, inputs.at(input.name));
  if (step_by_step) {
    for (std::int64_t i = 0; i < steps; ++i) named.run();
  } else {
    named.run(steps);
  }
  Values results;
  for (std::int64_t d = 0; d < program.mesh.devices(); ++d) {
    for (const Output& output : program.outputs)
      results["output " + output.name].push_back(named.output(output.name, d));
    for (const Input& input : program.inputs) {
      results[(input.next ? "update " : "input ") + input.name].push_back(named.input(input.name, d));
    }
  }
  return results;
}

Values run_program(std::shared_ptr<const Program> program, const Values& inputs, const Run& how) {
  Single single(std::move(program), {how.workers, how.kernels, {}, how.pieces}, how.private_copies, how.blocks);
  return run_module(single.module(), inputs, how.steps, how.step_by_step);
}

Values interpreted(const Program& program, const Values& inputs, std::int64_t steps) {
  Values present = inputs;
  InterpreterResult last;
  for (std::int64_t i = 0; i < steps; ++i) {
    last = interpret(program, present);
    for (const auto& [name, value] : last.updates) present[name] = value;
  }
  Values results;
  for (const auto& [name, value] : last.outputs) results["output " + name] = value;
  for (const Input& input : program.inputs) {
    results[(input.next ? "update " : "input ") + input.name] = present.at(input.name);
  }
  return results;
}

std::vector<CheckProgram>& other_backends() {
  static std::vector<CheckProgram> all;
  return all;
}

bool close(DType dtype, const PerDevice& found, const PerDevice& expected) {
  if (dtype != DType::f32 && dtype != DType::f64) return found == expected;
  return dispatch_floating_arithmetic(dtype, [&]<class T>() {
    for (std::size_t d = 0; d < expected.size(); ++d) {
      if (found[d].size() != expected[d].size()) return false;
      for (std::size_t i = 0; i < expected[d].size(); i += sizeof(T)) {
        T a{}, b{};
        std::memcpy(&a, found[d].data() + i, sizeof a);
        std::memcpy(&b, expected[d].data() + i, sizeof b);
        const bool same = std::memcmp(&a, &b, sizeof a) == 0;
        if (!same && !(std::abs(a - b) <= T(1e-5) * (1 + std::abs(b)))) return false;
      }
    }
    return true;
  });
}

DType dtype_of(const Program& program, const std::string& result) {
  const std::string name = result.substr(result.find(' ') + 1);
  const bool is_output = result.starts_with("output ");
  return program.type(is_output ? program.find_output(name)->value : program.find_input(name)->value).dtype;
}

Values same_for_all_workers(std::shared_ptr<const Program> program, const Values& inputs, std::int64_t pieces,
                            std::int64_t blocks) {
  const auto values = [&](int workers, bool private_copies) {
    return run_program(program, inputs, {workers, private_copies, 3, workers == 2, KernelChoice::best, pieces, blocks});
  };
  Values expected = values(1, false);
  for (const int workers : {1, 2, 3, 5}) {
    for (const bool private_copies : {false, true}) {
      INFO("workers " << workers << ", private copies " << private_copies);
      const bool same = values(workers, private_copies) == expected;
      CHECK(same);
    }
  }
  return expected;
}

void check_runtime(const std::string& text, const std::vector<Axis>& mesh) {
  const auto program = program_of(text, mesh);
  const Values inputs = random_inputs(*program, 7);
  INFO(to_text(*program));
  for (const CheckProgram check : other_backends()) check(program);
  INFO(to_text(cpu::make_plan(program, {false, 8})));
  static Turns turns;
  turns.next(2);  // so that an odd number of turns is taken, and the next program has the other pairs
  for (const std::int64_t steps : {1, 3}) {
    const Values oracle = interpreted(*program, inputs, steps);
    const Values expected = run_program(program, inputs, {1, false, steps, false, KernelChoice::reference});
    for (const auto& [name, value] : oracle) {
      INFO(name << ", steps " << steps);
      const bool same = close(dtype_of(*program, name), expected.at(name), value);
      REQUIRE(same);
    }
    for (const int workers : {1, 2, 3, 5}) {
      const std::vector<std::size_t> in_turn = turns.next(2);
      for (const bool private_copies : {false, true}) {
        for (const bool step_by_step : {false, true}) {
          if (step_by_step && steps == 1) continue;
          // Three steps in one run are taken with and without private copies; the others with one of the two in turn.
          const bool has_turn = std::count(in_turn.begin(), in_turn.end(), private_copies ? 1U : 0U) > 0;
          if ((step_by_step || steps == 1) && !has_turn) continue;
          const Run how{workers, private_copies, steps, step_by_step, KernelChoice::reference};
          const Values found = run_program(program, inputs, how);
          for (const auto& [name, value] : expected) {
            INFO(name << ", workers " << workers << ", private " << private_copies << ", steps " << steps);
            const bool same = found.at(name) == value;
            REQUIRE(same);
          }
        }
      }
    }
  }
}

void check_on_all_meshes(const std::string& body) {
  for (const std::int64_t devices : device_counts) check_runtime("mesh a=1\n" + body, {{"a", devices}});
}

}  // namespace pmaptrain::test
