// What each member of a group ends with. Reductions run in the order that core/mesh/blocks.h describes, so the bits
// depend on the mesh and the number of blocks alone.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <numeric>

#include "core/mesh/blocks.h"
#include "core/ops/collective/collective.h"
#include "core/ops/support/arithmetic.h"
#include "core/ops/support/boxes.h"

namespace pmaptrain::ops {
namespace {

// Reduces the elements `begin` ... `begin + size` of the members, in order. Of arrays that are long enough, four
// members at a time: their reads overlap, and the sum is read and written once for all four. The result may lie where
// the first member does, and overlaps no other one.
template <class T, class F>
void reduce_in_order(std::span<const ConstArray> members, std::int64_t begin, std::int64_t size, T* result, F& f) {
  const auto elements = [&](std::size_t member) { return members[member].template as<T>() + begin; };
  const T* sum = elements(0);
  if (members.size() == 1 && sum != result) std::copy_n(sum, size, result);
  std::size_t m = 1;
  for (; size >= 64 && m + 4 <= members.size(); m += 4) {
    const T *const a = elements(m), *const b = elements(m + 1), *const c = elements(m + 2), *const d = elements(m + 3);
#pragma GCC ivdep
    for (std::int64_t k = 0; k < size; ++k) result[k] = f(f(f(f(sum[k], a[k]), b[k]), c[k]), d[k]);
    sum = result;
  }
  for (; m < members.size(); ++m) {
    const T* const operand = elements(m);
    for (std::int64_t k = 0; k < size; ++k) result[k] = f(sum[k], operand[k]);
    sum = result;
  }
}

// The elements that are reduced at a time by a tree, so that the sums of its inner nodes stay in the first cache.
constexpr std::int64_t tile = 512;
constexpr int most_depth = 20;

std::int64_t leaves_below(std::span<const TreeNode> nodes) {
  return std::accumulate(nodes.begin(), nodes.end(), std::int64_t{0},
                         [](std::int64_t sum, const TreeNode& node) { return sum + node.leaves; });
}

// Reduces the members of neighbouring nodes that form a subtree. `right_sums` has a tile for each level of the tree.
template <class T, class F>
void reduce_tree(std::span<const ConstArray> members, std::span<const TreeNode> nodes, std::int64_t begin,
                 std::int64_t size, T* result, T* right_sums, F& f) {
  if (nodes.size() == 1) return reduce_in_order(members, begin, size, result, f);
  std::size_t left = 0, of_left = 0;
  for (std::int64_t below = left_leaves(leaves_below(nodes)); below > 0; below -= nodes[left++].leaves) {
    of_left += static_cast<std::size_t>(nodes[left].operands);
  }
  reduce_tree(members.first(of_left), nodes.first(left), begin, size, result, right_sums, f);
  reduce_tree(members.subspan(of_left), nodes.subspan(left), begin, size, right_sums, right_sums + tile, f);
  for (std::int64_t k = 0; k < size; ++k) result[k] = f(result[k], right_sums[k]);
}

// Reduces the elements `begin` ... `begin + size` of the members.
template <class T, class F>
void reduce(std::span<const ConstArray> members, std::span<const TreeNode> tree, std::int64_t begin, std::int64_t size,
            T* result, F&& f) {
  if (tree.size() <= 1) return reduce_in_order(members, begin, size, result, f);
  assert(tree_depth(leaves_below(tree)) <= most_depth);
  std::array<T, static_cast<std::size_t>(tile * most_depth)> right_sums;
  for (std::int64_t done = 0; done < size; done += tile) {
    reduce_tree(members, tree, begin + done, std::min(tile, size - done), result + done, right_sums.data(), f);
  }
}

template <class T, class F>
void reduce(const CollectiveCall& call, std::size_t i, F&& f) {
  reduce(call.operands[i], call.tree, 0, call.results[i].size(), call.results[i].template as<T>(), f);
}

// Of the smallest or largest, which is one of the values.
template <class F>
void choose_all(const CollectiveCall& call, F&& f) {
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    dispatch(call.results[i].dtype(), [&]<class T>() {
      if constexpr (!std::is_same_v<T, bool>) reduce<T>(call, i, f);
    });
  }
}

// A row-major array seen as [outer][dim · inner bytes].
struct Split {
  std::size_t outer, inner_bytes;
};
Split rows_of(const Type& type, std::int64_t dim) {
  Split rows{1, size_of(type.dtype)};
  for (std::size_t i = 0; i < type.shape.size(); ++i) {
    const auto size = static_cast<std::size_t>(type.shape[i]);
    if (static_cast<std::int64_t>(i) < dim) {
      rows.outer *= size;
    } else {
      rows.inner_bytes *= size;
    }
  }
  return rows;
}

void gather(const CollectiveCall& call, std::int64_t dim) {
  const std::span<const ConstArray> members = call.operands.front();
  const Split rows = rows_of(*members.front().type, dim);
  std::byte* out = call.results.front().data;
  for (std::size_t row = 0; row < rows.outer; ++row) {
    for (const ConstArray& member : members) {
      std::memcpy(out, member.data + row * rows.inner_bytes, rows.inner_bytes);
      out += rows.inner_bytes;
    }
  }
}

}  // namespace

void Psum::exchange(const CollectiveCall& call) const {
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    dispatch_arithmetic(call.results[i].dtype(), [&]<class T>() { reduce<T>(call, i, wrapping_add<T>); });
  }
}
void Pmax::exchange(const CollectiveCall& call) const {
  // A NaN anywhere is the result, as in JAX.
  choose_all(call, [](auto a, auto b) { return a != a || a > b ? a : b; });
}
void Pmin::exchange(const CollectiveCall& call) const {
  choose_all(call, [](auto a, auto b) { return a != a || a < b ? a : b; });
}

void AllGather::exchange(const CollectiveCall& call) const { gather(call, dim); }
void AllGatherInvariant::exchange(const CollectiveCall& call) const { gather(call, dim); }

void AllSlice::exchange(const CollectiveCall& call) const {
  const Array& result = call.results.front();
  const Split mine = rows_of(*result.type, dim);
  const ConstArray& whole = call.operands.front()[static_cast<std::size_t>(call.member)];
  const std::size_t stride = rows_of(*whole.type, dim).inner_bytes;
  const std::byte* const first = whole.data + static_cast<std::size_t>(call.member) * mine.inner_bytes;
  for (std::size_t row = 0; row < mine.outer; ++row) {
    std::memcpy(result.data + row * mine.inner_bytes, first + row * stride, mine.inner_bytes);
  }
}

void AllToAll::exchange(const CollectiveCall& call) const {
  const std::span<const ConstArray> members = call.operands.front();
  const Array& result = call.results.front();
  const auto count = static_cast<std::int64_t>(members.size());
  const std::size_t element = size_of(result.dtype());
  Shape part = members.front().shape();
  part[static_cast<std::size_t>(split)] /= count;
  const Dims from = row_major(members.front().shape()), to = row_major(result.shape());
  const auto s = static_cast<std::size_t>(split), c = static_cast<std::size_t>(concat);
  const std::int64_t mine = call.member * part[s] * from[s];
  for (std::int64_t m = 0; m < count; ++m) {
    const std::int64_t place = m * part[c] * to[c];
    copy_box(part, members[static_cast<std::size_t>(m)].data + static_cast<std::size_t>(mine) * element, from,
             result.data + static_cast<std::size_t>(place) * element, to, element);
  }
}

void PsumScatter::exchange(const CollectiveCall& call) const {
  const std::span<const ConstArray> members = call.operands.front();
  const Array& result = call.results.front();
  const Split mine = rows_of(*result.type, dim);
  const Split whole = rows_of(*members.front().type, dim);
  dispatch_arithmetic(result.dtype(), [&]<class T>() {
    const auto count = static_cast<std::int64_t>(mine.inner_bytes / sizeof(T));
    const auto stride = static_cast<std::int64_t>(whole.inner_bytes / sizeof(T));
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(mine.outer); ++row) {
      reduce(members, call.tree, row * stride + call.member * count, count, result.as<T>() + row * count,
             wrapping_add<T>);
    }
  });
}

void Ppermute::exchange(const CollectiveCall& call) const {
  const Array& result = call.results.front();
  for (const auto& [from, to] : pairs) {
    if (to != call.member) continue;
    std::memcpy(result.data, call.operands.front()[static_cast<std::size_t>(from)].data, bytes(*result.type));
    return;
  }
  std::memset(result.data, 0, bytes(*result.type));
}

}  // namespace pmaptrain::ops
