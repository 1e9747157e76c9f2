#include "core/ops/segment_sum/segment_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/ops/support/arithmetic.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

// A sum as a binary tree of its addends, in their order. It keeps one sum for each power of two in the number of
// addends, the largest first.
template <class T>
class Tree {
 public:
  void add(T x) {
    for (std::int64_t bits = added_++; (bits & 1) != 0; bits >>= 1) x = sums_[--size_] + x;
    sums_[size_++] = x;
  }
  T sum() const {
    if (size_ == 0) return T{};
    T sum = sums_[size_ - 1];
    for (std::size_t i = size_ - 1; i > 0; --i) sum = sums_[i - 1] + sum;
    return sum;
  }

 private:
  std::array<T, 64> sums_;
  std::size_t size_ = 0;
  std::int64_t added_ = 0;
};

}  // namespace

std::vector<Type> SegmentSum::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 2);
  const Type &x = context.operands[0], &segments = context.operands[1];
  const bool pairs = segments.dtype == DType::i64 && segments.shape.size() == 2 && segments.shape[1] == 2;
  if (!is_floating(x.dtype) || x.shape.size() != 1 || !pairs) {
    throw TypeError(6, fmt::format("{}: its operands are {}", name, describe(context.operands)),
                    "they are floating [n] and i64[s,2]");
  }
  return one_result(x.dtype, {segments.shape[0]});
}

Cost SegmentSum::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, static_cast<double>(numel(operands[0])));
}

void SegmentSum::reference(const ReferenceCall& call) const {
  const ConstArray &x = call.operands[0], &segments = call.operands[1];
  dispatch_floating_arithmetic(x.dtype(), [&]<class T>() {
    for (std::int64_t s = 0; s < segments.shape()[0]; ++s) {
      const std::int64_t* const bounds = segments.as<std::int64_t>() + 2 * s;
      const std::int64_t end = std::min(bounds[1], x.size());
      Tree<T> tree;
      for (std::int64_t i = std::max(bounds[0], std::int64_t{0}); i < end; ++i) tree.add(x.as<T>()[i]);
      call.results[0].as<T>()[s] = tree.sum();
    }
  });
}

}  // namespace pmaptrain::ops
