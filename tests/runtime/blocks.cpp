// The order of sums over devices: within each block in order, then the blocks in a tree.
#include "core/mesh/blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/graph/text.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {
namespace {

using Floats = std::vector<float>;

Floats floats_of(const std::vector<std::byte>& bytes) {
  Floats floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

Floats sum(Floats a, const Floats& b) {
  std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::plus<>());
  return a;
}

Floats sum_in_order(const std::vector<Floats>& addends) {
  Floats total = addends.front();
  for (std::size_t i = 1; i < addends.size(); ++i) total = sum(std::move(total), addends[i]);
  return total;
}

Floats sum_of_tree(std::vector<Floats> blocks) {
  if (blocks.size() == 1) return blocks.front();
  const auto middle = blocks.begin() + left_leaves(static_cast<std::int64_t>(blocks.size()));
  return sum(sum_of_tree({blocks.begin(), middle}), sum_of_tree({middle, blocks.end()}));
}

TEST_CASE("a psum adds the devices of each block in order, and then the blocks in a tree", "[runtime]") {
  for (const std::int64_t devices : {6, 8, 20}) {
    for (const std::string size : {"3", "5000"}) {
      const auto program = test::program_of(
          "mesh a=1\nbatch %x:f32[" + size + "]{a}\n%s = psum[axes={a}] %x\nreturn s = %s\n", {{"a", devices}});
      const test::Values inputs = test::uneven_inputs(*program, 3);
      for (std::int64_t blocks = 1; blocks <= devices; ++blocks) {
        if (devices % blocks != 0) continue;
        INFO(devices << " devices, " << blocks << " blocks, f32[" << size << "]");
        std::vector<Floats> of_blocks;
        for (std::int64_t b = 0; b < blocks; ++b) {
          std::vector<Floats> addends;
          for (std::int64_t d = b * devices / blocks; d < (b + 1) * devices / blocks; ++d) {
            addends.push_back(floats_of(inputs.at("x")[static_cast<std::size_t>(d)]));
          }
          of_blocks.push_back(sum_in_order(addends));
        }
        const test::Values found = test::same_for_all_workers(program, inputs, 8, blocks);
        CHECK(floats_of(found.at("output s").front()) == sum_of_tree(of_blocks));
        const InterpreterResult oracle = interpret(*program, inputs, {.blocks = blocks});
        CHECK(floats_of(oracle.outputs.at("s").back()) == sum_of_tree(of_blocks));
      }
    }
  }
}

// A small gradient, which pieces sum over their rows, and two large ones, which are computed in parts.
constexpr const char* gradients = R"(mesh a=1
batch %x:f32[6,160]{a}
batch %y:f32[6,40]{a}
%w = matmul[transpose_a=true] %x, %y
%u = matmul[transpose_a=true] %y, %y
%b = reduce_sum[dims=[0]] %y
%sw, %su, %sb = psum[axes={a}] %w, %u, %b
return w = %sw
return u = %su
return b = %sb
)";

TEST_CASE("the sum of a block is what a run of its devices alone computes", "[runtime]") {
  constexpr std::int64_t devices = 8, pieces = 8;
  const auto program = test::program_of(gradients, {{"a", devices}});
  const test::Values inputs = test::uneven_inputs(*program, 4);
  for (const std::int64_t blocks : {1, 2, 4}) {
    const std::int64_t each = devices / blocks;
    const auto of_block = test::program_of(gradients, {{"a", each}});
    std::map<std::string, std::vector<Floats>> sums;
    for (std::int64_t b = 0; b < blocks; ++b) {
      test::Values own;
      for (const auto& [name, values] : inputs)
        own[name] = {values.begin() + b * each, values.begin() + (b + 1) * each};
      for (const auto& [name, values] : test::same_for_all_workers(of_block, own, pieces / blocks)) {
        sums[name].push_back(floats_of(values.front()));
      }
    }
    const test::Values found = test::same_for_all_workers(program, inputs, pieces, blocks);
    for (const std::string name : {"output w", "output u", "output b"}) {
      INFO(name << ", " << blocks << " blocks");
      CHECK(floats_of(found.at(name).front()) == sum_of_tree(sums.at(name)));
    }
  }
}

TEST_CASE("copies of a sum are equal where blocks cut the groups of a collective differently", "[runtime]") {
  for (const std::int64_t blocks : {1, 2, 3, 4, 6, 12}) {
    INFO(blocks << " blocks");
    const auto program = test::program_of(R"(mesh a=2 b=6
batch %x:f32[4,3]{b}
batch %y:f32[4,3]{a, b}
%r = reduce_sum[dims=[0]] %x
%s = psum[axes={b}] %r
%t = psum[axes={b}] %y
%u = psum[axes={a}] %y
%v = psum[axes={a, b}] %y
%p = psum_scatter[axes={a}, dim=0] %y
%m = pmax[axes={b}] %y
return s = %s
return t = %t
return u = %u
return v = %v
return p = %p
return m = %m
)");
    const test::Values inputs = test::uneven_inputs(*program, 5);
    const test::Values found = test::same_for_all_workers(program, inputs, 8, blocks);
    const InterpreterResult oracle = interpret(*program, inputs, {.blocks = blocks});
    for (const std::string name : {"t", "u", "v", "p", "m"}) {
      INFO(name);
      CHECK(found.at("output " + name) == oracle.outputs.at(name));
    }
  }
}

TEST_CASE("pmax and pmin of many devices are those of each element, and NaN where a device has one", "[runtime]") {
  constexpr std::size_t size = 100;
  for (const std::int64_t devices : {4, 5, 11}) {
    const auto program = test::program_of(
        "mesh a=1\nbatch %x:f32[100]{a}\n%m = pmax[axes={a}] %x\n%n = pmin[axes={a}] %x\nreturn m = %m\nreturn n = "
        "%n\n",
        {{"a", devices}});
    test::Values inputs = test::uneven_inputs(*program, 6);
    Floats most(size, -std::numeric_limits<float>::infinity()), least(size, std::numeric_limits<float>::infinity());
    for (std::size_t d = 0; d < inputs.at("x").size(); ++d) {
      std::vector<std::byte>& bytes = inputs.at("x")[d];
      const float nan = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(bytes.data() + 7 * d * sizeof(float), &nan, sizeof(float));  // of another element on each device
      const Floats own = floats_of(bytes);
      for (std::size_t k = 0; k < size; ++k) {
        most[k] = std::isnan(own[k]) || own[k] > most[k] ? own[k] : most[k];
        least[k] = std::isnan(own[k]) || own[k] < least[k] ? own[k] : least[k];
      }
    }
    const auto same = [](const Floats& found, const Floats& expected) {
      return std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                        [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); });
    };
    const test::Values found = test::same_for_all_workers(program, inputs);
    CHECK(same(floats_of(found.at("output m").front()), most));
    CHECK(same(floats_of(found.at("output n").front()), least));
  }
}

TEST_CASE("no piece has rows or instances of two blocks", "[runtime]") {
  const auto program = test::program_of(gradients, {{"a", 12}});
  for (const std::int64_t blocks : {1, 2, 3, 4, 6, 12}) {
    cpu::PlanOptions options;
    options.pieces = 5;
    options.blocks = blocks;
    const cpu::Plan plan = cpu::make_plan(program, options);
    for (const cpu::Cut& cut : plan.cuts) {
      const std::int64_t each = 12 / blocks * std::max<std::int64_t>(1, cut.rows_per_instance);
      for (const IndexRange& piece : cut.pieces) {
        CHECK(piece.first / each == (piece.first + piece.count - 1) / each);
      }
    }
  }
}

}  // namespace
}  // namespace pmaptrain
