// The node tests of ONNX that onnx_nodes.py translated and wrote down: what NumPy says that the ops give.
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/train/safetensors.h"
#include "tests/catch.h"
#include "tests/runtime/single.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// What onnx_nodes.py allows too.
constexpr double relative = 1e-5, absolute = 1e-6, bf16_relative = 0x1p-6;

// Programs by the name of their test, which a line "# case NAME" begins.
std::map<std::string, std::string> node_tests() {
  std::map<std::string, std::string> programs;
  std::istringstream lines(read_text("tests/parity/onnx_nodes.pmt"));
  const std::string mark = "# case ";
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, mark.size(), mark) == 0) {
      name = line.substr(mark.size());
    } else if (!name.empty()) {
      programs[name] += line + "\n";
    }
  }
  return programs;
}

bool near(DType dtype, double ours, double expected) {
  if (std::isnan(expected) || std::isinf(expected)) {
    return std::isnan(expected) ? std::isnan(ours) : ours == expected;
  }
  return std::abs(ours - expected) <= absolute + (dtype == DType::bf16 ? bf16_relative : relative) * std::abs(expected);
}

// What is not as the test says, with the kernels of this choice.
std::vector<std::string> mistakes(const std::string& name, const std::string& text, const train::Tensors& tensors,
                                  KernelChoice kernels) {
  const auto program = std::make_shared<const Program>(parse_program(text, name, all_ops()));
  test::Single single(program, {1, kernels});
  for (const Input& input : program->inputs) single.set(input.name, tensors.at(name + "/" + input.name).bytes);
  single.run();
  std::vector<std::string> found;
  for (const Output& output : program->outputs) {
    const train::Tensor& expected = tensors.at(name + "/" + output.name);
    const Type& type = program->type(output.value);
    const std::vector<std::byte> bytes = single.output(output.name, 0);
    const train::Tensor ours{type.dtype, type.shape, {bytes.begin(), bytes.end()}};
    bool same = ours.dtype == expected.dtype && ours.shape == expected.shape;
    const std::vector<double> a = numbers(ours), b = numbers(expected);
    for (std::size_t i = 0; same && i < b.size(); ++i) same = near(type.dtype, a[i], b[i]);
    if (!same) found.push_back(name + " " + output.name);
  }
  return found;
}

}  // namespace

TEST_CASE("ops give what the node tests of ONNX expect, with the library's kernels and with references", "[parity]") {
  const std::map<std::string, std::string> programs = node_tests();
  const train::Tensors tensors = train::read_safetensors("tests/parity/onnx_nodes.safetensors");
  CHECK(programs.size() >= 230);
  std::set<std::string> named;
  for (const auto& [name, tensor] : tensors) named.insert(name.substr(0, name.find('/')));
  for (const auto& [name, text] : programs) {
    INFO(name << "\n" << text);
    named.erase(name);
    for (const KernelChoice kernels : {KernelChoice::best, KernelChoice::reference}) {
      CHECK(mistakes(name, text, tensors, kernels) == std::vector<std::string>{});
    }
  }
  CHECK(named == std::set<std::string>{});
}

TEST_CASE("a node test of ONNX fails where an element is wrong", "[parity]") {
  const std::map<std::string, std::string> programs = node_tests();
  train::Tensors tensors = train::read_safetensors("tests/parity/onnx_nodes.safetensors");
  const std::string name = "test_cos_example";
  REQUIRE(programs.contains(name));
  train::Tensor& expected = tensors.at(name + "/out0");
  REQUIRE(expected.dtype == DType::f32);
  float last = 0;
  std::byte* const place = expected.bytes.data() + expected.bytes.size() - sizeof last;
  std::memcpy(&last, place, sizeof last);
  last *= 1.0001f;
  std::memcpy(place, &last, sizeof last);
  CHECK(mistakes(name, programs.at(name), tensors, KernelChoice::best) == std::vector{name + " out0"});
}
