#include "tests/gradients.h"

#include <cmath>
#include <cstring>
#include <map>

#include "core/base/philox.h"
#include "core/graph/check.h"
#include "core/graph/differentiate.h"
#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/runtime/interpreter.h"
#include "tests/catch.h"

namespace pmaptrain::test {
namespace {

using Inputs = std::map<std::string, PerDevice>;

double uniform(std::uint64_t seed, std::uint32_t input, std::int64_t position, std::int64_t element) {
  const PhiloxKey key = stream_key(seed, "tests/gradients");
  const auto words =
      philox4x32(key, {input, static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(element), 0});
  return static_cast<double>(words[0]) * 0x1.0p-32;
}

template <class T>
void store(std::vector<std::byte>& array, std::int64_t element, T value) {
  std::memcpy(array.data() + static_cast<std::size_t>(element) * sizeof value, &value, sizeof value);
}

double load(const std::vector<std::byte>& array, std::int64_t element) {
  double value = 0;
  std::memcpy(&value, array.data() + static_cast<std::size_t>(element) * sizeof value, sizeof value);
  return value;
}

// Equal on the devices that the type does not tell apart.
PerDevice random_value(const Mesh& mesh, const Type& type, const GradientInputs& inputs, std::uint32_t number) {
  PerDevice arrays;
  for (std::int64_t d = 0; d < mesh.devices(); ++d) {
    std::vector<std::byte>& array = arrays.emplace_back(bytes(type));
    for (std::int64_t e = 0; e < numel(type); ++e) {
      const double u = uniform(inputs.seed, number, mesh.position(d, type.varying), e);
      dispatch(type.dtype, [&]<class T>() {
        if constexpr (std::is_floating_point_v<T>) {
          store(array, e, static_cast<T>(inputs.low + u * (inputs.high - inputs.low)));
        } else {
          store(array, e, static_cast<T>(u * static_cast<double>(inputs.below)));
        }
      });
    }
  }
  return arrays;
}

// Calls f(device, position) with the first device of each distinct value of a type with this set.
template <class F>
void for_each_distinct(const Mesh& mesh, AxisSet varying, F f) {
  std::int64_t next = 0;
  for (std::int64_t d = 0; d < mesh.devices(); ++d) {
    if (mesh.position(d, varying) == next) f(d, next++);
  }
}

double weighted_sum(const Program& forward, const Type& type, const Inputs& values, const PerDevice& weights) {
  const PerDevice result = interpret(forward, values).outputs.at("y");
  double sum = 0;
  for_each_distinct(forward.mesh, type.varying, [&](std::int64_t d, std::int64_t) {
    const auto device = static_cast<std::size_t>(d);
    for (std::int64_t e = 0; e < numel(type); ++e) sum += load(weights[device], e) * load(result[device], e);
  });
  return sum;
}

}  // namespace

std::vector<std::string> check_gradient(const Mesh& mesh, const GradientInputs& inputs, const BuildFunction& build) {
  Program program;
  program.name = "gradient";
  program.mesh = mesh;
  Builder b(program, all_ops());
  std::vector<Value> values;
  std::vector<Value> wrt;
  std::vector<std::size_t> numbers;  // of the inputs that are differentiated
  for (const Type& type : inputs.types) {
    values.push_back(b.input(Group::batch, "x" + std::to_string(values.size()), type));
    if (!is_floating(type.dtype)) continue;
    wrt.push_back(values.back());
    numbers.push_back(values.size() - 1);
  }
  const Value y = build(b, values);
  const Type y_type = b.type(y);
  REQUIRE(y_type.dtype == DType::f64);
  std::vector<std::string> names;
  for_each_equation(program.equations, [&](const Equation& e) { names.emplace_back(e.op.name()); });
  b.output("y", y);
  const Program forward = program;

  const Value seed = b.input(Group::batch, "weights", y_type);
  const std::vector<Value> gradients = differentiate(b, y, seed, wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i) b.output(program.inputs[numbers[i]].name, gradients[i]);
  INFO(to_text(program));
  REQUIRE_NOTHROW(check(program));

  Inputs at;
  std::uint32_t number = 0;
  for (const Input& input : program.inputs) {
    at[input.name] = random_value(mesh, program.type(input.value), inputs, number++);
  }
  const PerDevice weights = at.at("weights");
  const auto outputs = interpret(program, at).outputs;
  at.erase("weights");

  constexpr double step = 1e-5, tolerance = 1e-7;
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    const std::string& name = program.inputs[numbers[i]].name;
    const Type& type = program.type(wrt[i]);
    REQUIRE(type == program.type(gradients[i]));
    for_each_distinct(mesh, type.varying, [&](std::int64_t device, std::int64_t position) {
      for (std::int64_t e = 0; e < numel(type); ++e) {
        const double x = load(at[name][static_cast<std::size_t>(device)], e);
        const auto sum_at = [&](double value) {
          for (std::int64_t d = 0; d < mesh.devices(); ++d) {
            if (mesh.position(d, type.varying) == position) store(at[name][static_cast<std::size_t>(d)], e, value);
          }
          return weighted_sum(forward, y_type, at, weights);
        };
        const double expected = (sum_at(x + step) - sum_at(x - step)) / (2 * step);
        sum_at(x);
        const double found = load(outputs.at(name)[static_cast<std::size_t>(device)], e);
        if (std::abs(found - expected) <= tolerance * std::max(1.0, std::abs(expected))) continue;
        INFO("input " << name << ", device " << device << ", element " << e << ", value " << x);
        REQUIRE(found == Approx(expected));
        FAIL("the gradient is off by " << found - expected);
      }
    });
  }
  return names;
}

}  // namespace pmaptrain::test
