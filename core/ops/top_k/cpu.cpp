#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include "core/ops/top_k/top_k.h"

namespace pmaptrain::ops {

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> TopK::cpu(const CpuRequest&) const { return nullptr; }

#else

namespace {

// A sort key for an element of a row. Larger elements have larger keys; of equal elements, the first has the largest
// key. The upper half is the element, the lower half its inverted index.
using RankKey = std::uint64_t;

std::uint32_t rank_of(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x + 0.0F);  // maps -0 to 0
  const std::uint32_t ordered = bits ^ ((bits >> 31) != 0 ? 0xFFFFFFFFu : 0x80000000u);
  return x != x ? 0xFFFFFFFFu : ordered;  // every NaN counts as largest
}
std::uint32_t rank_of(std::int32_t x) { return static_cast<std::uint32_t>(x) ^ 0x80000000u; }
std::uint32_t rank_of(std::uint32_t x) { return x; }

template <class T>
RankKey key_of(const T* x, std::size_t i) {
  return RankKey{rank_of(x[i])} << 32 | ~static_cast<std::uint32_t>(i);
}
std::uint32_t index_of(RankKey key) { return ~static_cast<std::uint32_t>(key); }

// Keeps the k largest of `count` distinct keys, in their order. Returns the smallest of them.
RankKey keep_largest(RankKey* keys, std::size_t count, std::size_t k, RankKey* scratch) {
  std::copy_n(keys, count, scratch);
  std::nth_element(scratch, scratch + k - 1, scratch + count, std::greater<>());
  const RankKey least = scratch[k - 1];
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    keys[kept] = keys[i];
    kept += keys[i] >= least ? 1 : 0;
  }
  return least;
}

// Sorts keys, whose indices ascend, in descending order, by a radix sort over the bytes of the elements. It has no
// unpredictable branches, and keeps the order of equal elements.
void sort_falling(RankKey* keys, std::size_t count, RankKey* scratch) {
  for (int shift = 32; shift < 64; shift += 8) {
    const auto byte = [shift](RankKey key) { return static_cast<std::uint8_t>(~key >> shift); };
    std::array<std::uint32_t, 257> start{};
    for (std::size_t i = 0; i < count; ++i) ++start[byte(keys[i]) + std::size_t{1}];
    for (std::size_t b = 1; b < 256; ++b) start[b] += start[b - 1];
    for (std::size_t i = 0; i < count; ++i) scratch[start[byte(keys[i])]++] = keys[i];
    std::swap(keys, scratch);
  }
}

// Selects the k largest elements of a row of n. Candidates are collected in a buffer; when it is full, all but the k
// largest are dropped.
struct Selection {
  std::size_t n, k;

  std::size_t room() const { return std::min(n, 2 * k + 256); }

  // Writes the keys of the k largest elements in descending order to the front of `keys`. `keys` and `scratch` must
  // have room() elements.
  template <class T>
  void operator()(const T* x, RankKey* keys, RankKey* scratch) const {
    std::size_t count = 0;
    RankKey least = 0;
    for (std::size_t i = 0; i < n;) {
      for (const std::size_t end = std::min(n, i + room() - count); i < end; ++i) {
        keys[count] = key_of(x, i);
        count += keys[count] > least ? 1 : 0;
      }
      if ((count < room() && i < n) || count == k) continue;
      least = keep_largest(keys, count, k, scratch);
      count = k;
    }
    sort_falling(keys, k, scratch);
  }
};

template <class T>
class TopKKernel final : public CpuKernel {
 public:
  TopKKernel(const CpuRequest& request, std::int64_t k)
      : select_{static_cast<std::size_t>(request.operands[0].shape.back()), static_cast<std::size_t>(k)},
        rows_(static_cast<std::size_t>(numel(request.results[0])) / select_.k),
        devices_(static_cast<std::size_t>(request.devices)),
        stacked_(request.stacked[0]) {}

  void run(const CpuArguments& arguments) override {
    RankKey* const keys = reinterpret_cast<RankKey*>(arguments.scratch);
    T* values = reinterpret_cast<T*>(arguments.results[0]);
    auto* indices = reinterpret_cast<std::int32_t*>(arguments.results[1]);
    for (std::size_t row = 0; row < devices_ * rows_; ++row) {
      const T* const x = reinterpret_cast<const T*>(arguments.operands[0]) + (stacked_ ? row : row % rows_) * select_.n;
      select_(x, keys, keys + select_.room());
      for (std::size_t i = 0; i < select_.k; ++i) {
        const std::uint32_t index = index_of(keys[i]);
        *indices++ = static_cast<std::int32_t>(index);
        *values++ = x[index];
      }
    }
  }
  std::size_t scratch_bytes() const override { return 2 * select_.room() * sizeof(RankKey); }
  std::string implementation() const override { return "selection by keys"; }

 private:
  Selection select_;
  std::size_t rows_, devices_;
  bool stacked_;
};

}  // namespace

std::unique_ptr<CpuKernel> TopK::cpu(const CpuRequest& request) const {
  constexpr std::int64_t many = 64;  // for smaller k the reference's heap is as fast (measured)
  if (k < many) return nullptr;
  switch (request.operands[0].dtype) {
    case DType::bf16: return std::make_unique<TopKKernel<bf16>>(request, k);
    case DType::f32: return std::make_unique<TopKKernel<float>>(request, k);
    case DType::i32: return std::make_unique<TopKKernel<std::int32_t>>(request, k);
    case DType::u32: return std::make_unique<TopKKernel<std::uint32_t>>(request, k);
    case DType::f64:
    case DType::i64:
    case DType::u8:
    case DType::boolean: break;
  }
  return nullptr;
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain::ops
