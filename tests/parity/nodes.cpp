#include "tests/parity/nodes.h"

#include <cmath>
#include <sstream>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "tests/runtime/single.h"
#include "tests/session_run.h"

namespace pmaptrain::parity {
namespace {

// What onnx_nodes.py allows too.
constexpr double relative = 1e-5, absolute = 1e-6, bf16_relative = 0x1p-6;

bool is_as_expected(DType dtype, double ours, double expected) {
  if (std::isnan(expected) || std::isinf(expected)) {
    return std::isnan(expected) ? std::isnan(ours) : ours == expected;
  }
  return std::abs(ours - expected) <= absolute + (dtype == DType::bf16 ? bf16_relative : relative) * std::abs(expected);
}

}  // namespace

std::map<std::string, std::shared_ptr<const Program>> node_tests() {
  std::map<std::string, std::string> texts;
  std::istringstream lines(testing::read_text("tests/parity/onnx_nodes.pmt"));
  const std::string mark = "# case ";  // begins a line before each program
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, mark.size(), mark) == 0) {
      name = line.substr(mark.size());
    } else if (!name.empty()) {
      texts[name] += line + "\n";
    }
  }
  std::map<std::string, std::shared_ptr<const Program>> programs;
  for (const auto& [test, text] : texts) {
    programs[test] = std::make_shared<const Program>(parse_program(text, test, all_ops()));
  }
  return programs;
}

run::Tensors node_tensors() { return run::read_safetensors("tests/parity/onnx_nodes.safetensors"); }

std::vector<std::string> mistakes(const std::string& name, const run::Tensors& tensors, Module& module) {
  const Program& program = module.program(0);
  test::NamedValues values(module);
  for (const Input& input : program.inputs) values.set(input.name, tensors.at(name + "/" + input.name).bytes);
  values.run();
  std::vector<std::string> found;
  for (const Output& output : program.outputs) {
    const run::Tensor& expected = tensors.at(name + "/" + output.name);
    const Type& type = program.type(output.value);
    const std::vector<std::byte> bytes = values.output(output.name, 0);
    const run::Tensor ours{type.dtype, type.shape, {bytes.begin(), bytes.end()}};
    bool same = ours.dtype == expected.dtype && ours.shape == expected.shape;
    const std::vector<double> a = testing::to_doubles(ours), b = testing::to_doubles(expected);
    for (std::size_t i = 0; same && i < b.size(); ++i) same = is_as_expected(type.dtype, a[i], b[i]);
    if (!same) found.push_back(name + " " + output.name);
  }
  return found;
}

}  // namespace pmaptrain::parity
