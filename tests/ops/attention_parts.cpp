// Attention of some of the heads of a model, as a device has them where an axis of the mesh divides the heads.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ops/list.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/ops/kernels.h"

namespace pmaptrain {
namespace {

using namespace ops;
using namespace test;

using Arrays = std::vector<HostArray>;

struct Heads {
  std::int64_t examples, positions, heads, kv_heads, width;
  bool causal;

  HostArray random(std::int64_t count, std::uint32_t seed) const {
    const Shape shape{examples, positions, count, width};
    return f32(shape, noise(numel(shape), seed));
  }
  std::int64_t weights() const { return positions * positions; }  // of a head
};

// The heads of part `part` of `parts`, in arrays that have them in dimension 2.
HostArray some_heads(const HostArray& whole, std::int64_t part, std::int64_t parts) {
  Shape starts(whole.type.shape.size(), 0), limits = whole.type.shape;
  const std::int64_t heads = limits[2] / parts;
  starts[2] = part * heads;
  limits[2] = starts[2] + heads;
  return apply(Slice{starts, limits}, {whole});
}

void add_bytes(const HostArray& from, HostArray& to) {
  to.bytes.insert(to.bytes.end(), from.bytes.begin(), from.bytes.end());
}

// Of `operands` the first `heads` have heads, and the others are those of dropout.
void check_parts(const Op& undivided, const Op& divided, const Arrays& operands, std::size_t heads, const Heads& s) {
  const std::int64_t parts = s.kv_heads, weights = s.heads / parts * s.weights();
  const std::vector<bool> one(operands.size(), true), one_with_offset(operands.size() + 1, true);
  const Arrays by_reference = apply_all(undivided, operands);
  const Arrays by_kernel = apply_all_stacked(undivided, operands, 1, one);
  const auto check = [&](const Arrays& found, const Arrays& expected, std::int64_t part) {
    for (std::size_t r = 0; r < found.size(); ++r) CHECK(found[r].bytes == some_heads(expected[r], part, parts).bytes);
  };
  Arrays together, expected_together;  // of all parts as the devices of one call
  for (std::int64_t part = 0; part < parts; ++part) {
    INFO("part " << part << " of " << parts);
    Arrays own = operands;
    for (std::size_t i = 0; i < heads; ++i) own[i] = some_heads(operands[i], part, parts);
    own.push_back(i32({}, {static_cast<std::int32_t>(part * weights)}));
    check(apply_all(divided, own), by_reference, part);
    check(apply_all_stacked(divided, own, 1, one_with_offset), by_kernel, part);
    own.back() = i64({}, {part * weights});
    check(apply_all(divided, own), by_reference, part);
    Arrays expected;
    for (const HostArray& result : by_kernel) expected.push_back(some_heads(result, part, parts));
    if (part == 0) {
      together = own;
      expected_together = expected;
      continue;
    }
    for (std::size_t i = 0; i < heads; ++i) add_bytes(own[i], together[i]);
    add_bytes(own.back(), together.back());
    for (std::size_t r = 0; r < expected.size(); ++r) add_bytes(expected[r], expected_together[r]);
  }
  std::vector<bool> stacked(together.size(), false);
  for (std::size_t i = 0; i < heads; ++i) stacked[i] = true;
  stacked.back() = true;
  const Arrays found = apply_all_stacked(divided, together, parts, stacked);
  for (std::size_t r = 0; r < found.size(); ++r) CHECK(found[r].bytes == expected_together[r].bytes);
}

TEST_CASE("attention of some of the heads drops what attention of all heads drops, in kernels and references",
          "[ops]") {
  for (const Heads& s : {Heads{2, 5, 6, 3, 4, false}, Heads{1, 70, 4, 4, 8, true}}) {
    Arrays dropout{u32({2}, {5, 9})};
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < s.examples; ++i) rows.push_back((std::int64_t{1} << 33) + 7 * i);
    dropout.push_back(i64({s.examples}, rows));
    dropout.insert(dropout.end(), {f32({}, {0.3F}), f32({}, {1 / 0.7F})});
    const auto dropping = [&](Arrays operands) {
      operands.insert(operands.end(), dropout.begin(), dropout.end());
      return operands;
    };
    const Arrays heads{s.random(s.heads, 1), s.random(s.kv_heads, 2), s.random(s.kv_heads, 3)};
    check_parts(Attention{s.causal}, Attention{s.causal, true}, dropping(heads), 3, s);

    Arrays of_gradient = heads;
    const Arrays results = apply_all(Attention{s.causal}, dropping(heads));
    of_gradient.insert(of_gradient.end(), {results[0], results[1], s.random(s.heads, 4)});
    const AttentionGrad undivided{s.causal}, divided{s.causal, true};
    check_parts(undivided, divided, dropping(of_gradient), 6, s);
    const Shape lse = results[1].type.shape;
    of_gradient.push_back(f32(lse, noise(numel(lse), 5)));
    check_parts(undivided, divided, dropping(of_gradient), 7, s);
  }
}

}  // namespace
}  // namespace pmaptrain
