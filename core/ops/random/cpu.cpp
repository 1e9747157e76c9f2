#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/philox.h"
#include "core/kernel/vector_normal.h"
#include "core/kernel/vector_random.h"
#include "core/ops/random/part.h"
#include "core/ops/random/random.h"

namespace pmaptrain::ops {

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> RandomUniform::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> RandomNormal::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> RandomBernoulli::cpu(const CpuRequest&) const { return nullptr; }

#else

namespace {

// from_words(n, first words, second words, out) for the elements of all rows, which are a part of an undivided row.
// Counters of several short rows are collected in blocks that fit the L1 cache, so that vectors are full.
template <class T, class F>
void fill_rows(const ReferenceCall& call, const RowPart& part, F from_words) {
  constexpr std::int64_t block = 512;
  std::array<std::uint32_t, block> low, high, element, first, second;
  const std::uint32_t* const words = call.operands[0].as<std::uint32_t>();
  const std::int64_t* row = call.operands[1].as<std::int64_t>();
  T* out = call.results[0].as<T>();
  const std::int64_t elements = part.elements(), inner = part.inner_size();
  const std::uint32_t offset = offset_of(call, 2);
  const auto step = static_cast<std::uint32_t>(part.inner_stride());
  std::int64_t next = 0;  // next element of *row
  for (std::int64_t left = call.results[0].size(); left > 0;) {
    const std::int64_t count = std::min(block, left);
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t run = std::min(count - i, inner - next % inner);
      const auto number = static_cast<std::uint64_t>(*row);
      std::fill_n(low.begin() + i, run, static_cast<std::uint32_t>(number));
      std::fill_n(high.begin() + i, run, static_cast<std::uint32_t>(number >> 32));
      std::uint32_t index = offset + part.index_of(next);
      for (auto at = element.begin() + i; at != element.begin() + i + run; ++at, index += step) *at = index;
      i += run;
      next += run;
      if (next == elements) {
        next = 0;
        ++row;
      }
    }
    const auto n = static_cast<std::size_t>(count);
    vector_philox({words[0], words[1]}, n, low.data(), high.data(), element.data(), first.data(), second.data());
    from_words(n, first.data(), second.data(), out);
    out += count;
    left -= count;
  }
}

template <class T, class Op, class F>
void fill(const Op& op, const ReferenceCall& call, F from_words) {
  fill_rows<T>(call, RowPart(op.shape, op.strides), from_words);
}

template <class Op>
std::unique_ptr<CpuKernel> kernel_of(const Op& op, const CpuRequest& request, ReferenceFunction function) {
  return make_reference_kernel(std::make_shared<Op>(op), function, request, "Philox by vectors");
}

}  // namespace

std::unique_ptr<CpuKernel> RandomUniform::cpu(const CpuRequest& request) const {
  return kernel_of(*this, request, [](const void* op, const ReferenceCall& call) {
    // Like uniform_from_bits, with a conversion that every instruction set has.
    fill<float>(*static_cast<const RandomUniform*>(op), call,
                [](std::size_t n, const std::uint32_t* a, const std::uint32_t*, float* out) {
                  for (std::size_t i = 0; i < n; ++i) {
                    out[i] = static_cast<float>(static_cast<std::int32_t>(a[i] >> 8)) * 0x1.0p-24F;
                  }
                });
  });
}

std::unique_ptr<CpuKernel> RandomNormal::cpu(const CpuRequest& request) const {
  return kernel_of(*this, request, [](const void* op, const ReferenceCall& call) {
    fill<float>(*static_cast<const RandomNormal*>(op), call, vector_normals);
  });
}

std::unique_ptr<CpuKernel> RandomBernoulli::cpu(const CpuRequest& request) const {
  return kernel_of(*this, request, [](const void* op, const ReferenceCall& call) {
    const auto& self = *static_cast<const RandomBernoulli*>(op);
    // n / 2^24 < p if and only if n < ceil(2^24 p), which is at most 2^24.
    const auto bound = static_cast<std::int32_t>(std::ceil(self.probability * 0x1.0p24));
    fill<bool>(self, call, [bound](std::size_t n, const std::uint32_t* a, const std::uint32_t*, bool* out) {
      for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::int32_t>(a[i] >> 8) < bound;
    });
  });
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain::ops
