#include "core/ops/broadcast/broadcast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/ops/reduce/reduce.h"
#include "core/ops/support/boxes.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

// The result's dimensions, grouped: groups of the operand's dimensions alternate with groups of new dimensions.
struct BroadcastGroups {
  Dims sizes;
  std::array<bool, max_rank> is_new{};
};

BroadcastGroups broadcast_groups(const Shape& result, std::span<const std::int64_t> dims) {
  BroadcastGroups groups;
  std::size_t next = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const bool is_new = next >= dims.size() || dims[next] != static_cast<std::int64_t>(i);
    if (!is_new) ++next;
    if (result[i] == 1) continue;
    if (groups.sizes.rank > 0 && groups.is_new[groups.sizes.rank - 1] == is_new) {
      groups.sizes[groups.sizes.rank - 1] *= result[i];
    } else {
      groups.is_new[groups.sizes.rank] = is_new;
      groups.sizes.push(result[i]);
    }
  }
  return groups;
}

// Fills `count` copies of the block of `size` elements at `to`, by copying the copies made so far.
template <class T>
void repeat_block(T* to, std::size_t size, std::size_t count) {
  constexpr std::size_t longest = std::size_t{16} << 10;
  const std::size_t total = size * count;
  std::size_t done = size;
  std::size_t chunk = size;
  while (done < total) {
    const std::size_t length = std::min(chunk, total - done);
    std::memcpy(to + done, to, length * sizeof(T));
    done += length;
    if (2 * chunk * sizeof(T) <= longest) chunk = std::min(2 * chunk, done);
  }
}

// Writes the result group by group, the outermost first, and reads the operand sequentially from `from`.
template <class T>
struct Writer {
  const BroadcastGroups& groups;
  const T* from;

  // Returns the end of the written range.
  T* write(std::size_t group, T* to) {
    const std::size_t rank = groups.sizes.rank;
    if (group == rank) {
      *to = *from++;
      return to + 1;
    }
    const auto size = static_cast<std::size_t>(groups.sizes[group]);
    const bool last = group + 1 == rank;
    if (groups.is_new[group]) {
      if (last) return std::fill_n(to, size, *from++);
      T* const end = write(group + 1, to);
      const auto block = static_cast<std::size_t>(end - to);
      repeat_block(to, block, size);
      return to + block * size;
    }
    if (last) {
      to = std::copy_n(from, size, to);
      from += size;
      return to;
    }
    for (std::size_t i = 0; i < size; ++i) to = write(group + 1, to);
    return to;
  }
};

}  // namespace

std::vector<Type> Broadcast::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  expect_sizes(name, shape);
  expect_rank(name, shape);
  expect_rising_dims(name, dims, shape.size(), "transpose the operand first: broadcast keeps its dimensions in order");
  const Type& x = context.operands[0];
  if (dims.size() != x.shape.size()) {
    throw TypeError(6,
                    fmt::format("{}: dims={} names {} dimensions for {}, which has {}", name, to_string(dims),
                                dims.size(), describe(x), x.shape.size()),
                    "dims[i] is the result's dimension that the operand's dimension i becomes");
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t size = shape[static_cast<std::size_t>(dims[i])];
    if (size == x.shape[i]) continue;
    throw TypeError(6,
                    fmt::format("{}: dimension {} of {} has size {} and would become dimension {} of {}, of size {}",
                                name, i, describe(x), x.shape[i], dims[i], to_string(shape), size),
                    "the two sizes are equal; reshape a dimension of size 1 away to repeat along it");
  }
  return one_result(x.dtype, shape);
}

Cost Broadcast::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

Cotangents Broadcast::derivative(VjpContext& context) const {
  std::vector<std::int64_t> repeated;
  for (std::int64_t d : all_dims(shape)) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) repeated.push_back(d);
  }
  return {context.b.emit(ReduceSum{repeated}, {*context.cotangents[0]})};
}

void Broadcast::reference(const ReferenceCall& call) const {
  if (call.results[0].size() == 0) return;
  const BroadcastGroups groups = broadcast_groups(call.results[0].shape(), dims);
  dispatch(call.results[0].dtype(), [&]<class T>() {
    Writer<T>{groups, call.operands[0].as<T>()}.write(0, call.results[0].as<T>());
  });
}

}  // namespace pmaptrain::ops
