// The node tests of ONNX on the CPU backend.
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/runtime/cpu/module.h"
#include "tests/catch.h"
#include "tests/parity/nodes.h"

using namespace pmaptrain;

namespace {

// With the kernels of this choice.
std::vector<std::string> mistakes(const std::string& name, const std::shared_ptr<const Program>& program,
                                  const run::Tensors& tensors, KernelChoice kernels) {
  CpuModule module({{{"test", program, 1}}}, {1, kernels});
  return parity::mistakes(name, tensors, module);
}

}  // namespace

TEST_CASE("ops give what the node tests of ONNX expect, with the library's kernels and with references", "[parity]") {
  const auto programs = parity::node_tests();
  const run::Tensors tensors = parity::node_tensors();
  CHECK(programs.size() >= 230);
  std::set<std::string> named;
  for (const auto& [name, tensor] : tensors) named.insert(name.substr(0, name.find('/')));
  for (const auto& [name, program] : programs) {
    INFO(name << "\n" << to_text(*program));
    named.erase(name);
    for (const KernelChoice kernels : {KernelChoice::best, KernelChoice::reference}) {
      CHECK(mistakes(name, program, tensors, kernels) == std::vector<std::string>{});
    }
  }
  CHECK(named == std::set<std::string>{});
}

TEST_CASE("a node test of ONNX fails where an element is wrong", "[parity]") {
  const auto programs = parity::node_tests();
  run::Tensors tensors = parity::node_tensors();
  const std::string name = "test_cos_example";
  REQUIRE(programs.contains(name));
  run::Tensor& expected = tensors.at(name + "/out0");
  REQUIRE(expected.dtype == DType::f32);
  float last = 0;
  std::byte* const place = expected.bytes.data() + expected.bytes.size() - sizeof last;
  std::memcpy(&last, place, sizeof last);
  last *= 1.0001f;
  std::memcpy(place, &last, sizeof last);
  CHECK(mistakes(name, programs.at(name), tensors, KernelChoice::best) == std::vector{name + " out0"});
}
