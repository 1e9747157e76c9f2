// What each member of a group ends with. Sums run in group order, so the bits depend on the mesh alone.
#include <algorithm>
#include <cstring>

#include "core/ops/collective/collective.h"
#include "core/ops/support/arithmetic.h"
#include "core/ops/support/boxes.h"

namespace pmaptrain::ops {
namespace {

template <class T, class F>
void reduce(const CollectiveCall& call, std::size_t i, F&& f) {
  const std::span<const ConstArray> members = call.operands[i];
  T* const result = call.results[i].template as<T>();
  const std::int64_t size = call.results[i].size();
  std::copy_n(members.front().template as<T>(), size, result);
  for (std::size_t m = 1; m < members.size(); ++m) {
    const T* const operand = members[m].template as<T>();
    for (std::int64_t k = 0; k < size; ++k) result[k] = f(result[k], operand[k]);
  }
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
    const std::size_t count = mine.inner_bytes / sizeof(T);
    const std::size_t stride = whole.inner_bytes / sizeof(T);
    const std::size_t offset = static_cast<std::size_t>(call.member) * count;
    for (std::size_t row = 0; row < mine.outer; ++row) {
      T* const out = result.as<T>() + row * count;
      std::copy_n(members.front().as<T>() + row * stride + offset, count, out);
      for (std::size_t m = 1; m < members.size(); ++m) {
        const T* const in = members[m].as<T>() + row * stride + offset;
        for (std::size_t k = 0; k < count; ++k) out[k] = wrapping_add(out[k], in[k]);
      }
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
