#include "tests/emulated_gpu/arithmetic.h"

#include "core/base/error.h"
#include "core/ops/collective/collective.h"

namespace pmaptrain::emulation {

std::vector<std::byte> reduce_arrays(const std::string& what, gpu::Device::Reduction reduce, DType dtype,
                                     std::size_t bytes, std::span<const std::byte* const> arrays,
                                     std::span<const TreeNode> tree) {
  using Reduction = gpu::Device::Reduction;
  if (dtype == DType::boolean || (dtype == DType::bf16 && reduce == Reduction::sum)) {
    fail_running(what + ": no sum of " + std::string(to_string(dtype)),
                 "bool has no sums and no order, and sums of bf16 are rounded from f32 once, at their end");
  }
  if (arrays.empty() || bytes % size_of(dtype) != 0) {
    fail_running(what + ": " + std::to_string(arrays.size()) + " arrays of " + std::to_string(bytes) +
                 " bytes are no arrays of " + std::string(to_string(dtype)));
  }
  const Type type{dtype, {static_cast<std::int64_t>(bytes / size_of(dtype))}, {}};
  std::vector<ConstArray> members;
  for (const std::byte* const array : arrays) members.push_back({&type, array});
  std::vector<std::byte> reduced(bytes);
  const std::span<const ConstArray> operand(members);
  const Array result{&type, reduced.data()};
  const CollectiveCall call{{&operand, 1}, 0, {&result, 1}, tree};
  switch (reduce) {
    case Reduction::sum: ops::Psum{}.exchange(call); break;
    case Reduction::max: ops::Pmax{}.exchange(call); break;
    case Reduction::min: ops::Pmin{}.exchange(call); break;
  }
  return reduced;
}

}  // namespace pmaptrain::emulation
