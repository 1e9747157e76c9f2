// Plain loops over queries and keys. Every sum is added in the order of its index: scores and dout·v over the elements
// of a head, sums over keys in their order, and dk and dv over the heads of a group, then over queries.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/philox.h"
#include "core/ops/attention/attention.h"
#include "core/ops/matmul/inner.h"
#include "core/ops/random/part.h"
#include "core/ops/support/arithmetic.h"

namespace pmaptrain::ops {
namespace {

template <class T>
T sum_of_products(std::int64_t n, const T* a, const T* b) {
  T sum{};
  for (std::int64_t i = 0; i < n; ++i) sum = multiply_add(sum, a[i], b[i]);
  return sum;
}

template <class T>
T scale_of(std::int64_t width) {
  return T{1} / std::sqrt(static_cast<T>(width));
}

// What dropout multiplies weights by; 1 without it.
template <class T>
class Dropout {
 public:
  Dropout(const ReferenceCall& call, std::size_t first, const AttentionSizes& sizes) : sizes_(sizes) {
    if (first == 0) return;
    const std::uint32_t* const key = call.operands[first].as<std::uint32_t>();
    key_ = {key[0], key[1]};
    rows_ = call.operands[first + 1].as<std::int64_t>();
    rate_ = *call.operands[first + 2].as<float>();
    scale_ = *call.operands[first + 3].as<T>();
    offset_ = offset_of(call, first + 4);
  }

  T factor(std::int64_t example, std::int64_t head, std::int64_t query, std::int64_t key) const {
    if (rows_ == nullptr) return T{1};
    const auto row = static_cast<std::uint64_t>(rows_[example]);
    const std::uint32_t draw = offset_ + static_cast<std::uint32_t>(sizes_.draw_of(head, query) + key);
    const auto words = philox4x32(key_, {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(row >> 32), draw});
    return uniform_from_bits(words[0]) >= rate_ ? scale_ : T{};
  }

 private:
  AttentionSizes sizes_;
  PhiloxKey key_{};
  const std::int64_t* rows_ = nullptr;
  std::uint32_t offset_ = 0;
  float rate_ = 0;
  T scale_{};
};

}  // namespace

void Attention::reference(const ReferenceCall& call) const {
  const AttentionSizes s(call.operands[0].shape(), call.operands[1].shape());
  dispatch_floating_arithmetic(call.operands[0].dtype(), [&]<class T>() {
    const T scale = scale_of<T>(s.width);
    const Dropout<T> dropout(call, dropout_of(call.operands.size()), s);
    std::vector<T> p(static_cast<std::size_t>(s.keys));
    for (std::int64_t unit = 0; unit < s.examples * s.queries * s.heads; ++unit) {
      const std::int64_t example = unit / s.heads / s.queries, query = unit / s.heads % s.queries;
      const std::int64_t head = unit % s.heads, kv_head = head / s.group(), end = s.end_of(query, causal);
      const auto key_row = [&](std::size_t operand, std::int64_t key) {
        return call.operands[operand].as<T>() + s.key_row(example, key, kv_head) * s.width;
      };
      const T* const q = call.operands[0].as<T>() + unit * s.width;
      T most = -std::numeric_limits<T>::infinity(), sum{};
      for (std::int64_t key = 0; key < end; ++key) {
        T& score = p[static_cast<std::size_t>(key)];
        score = sum_of_products(s.width, q, key_row(1, key)) * scale;
        most = larger(most, score);
      }
      T* const out = call.results[0].as<T>() + unit * s.width;
      std::fill_n(out, s.width, T{});
      for (std::int64_t key = 0; key < end; ++key) {
        const T weight = std::exp(p[static_cast<std::size_t>(key)] - most);
        sum += weight;
        const T* const v = key_row(2, key);
        const T kept = weight * dropout.factor(example, head, query, key);
        for (std::int64_t i = 0; i < s.width; ++i) out[i] = multiply_add(out[i], kept, v[i]);
      }
      for (std::int64_t i = 0; i < s.width; ++i) out[i] /= sum;
      call.results[1].as<T>()[unit] = most + std::log(sum);
    }
  });
}

void AttentionGrad::reference(const ReferenceCall& call) const {
  const AttentionSizes s(call.operands[0].shape(), call.operands[1].shape());
  dispatch_floating_arithmetic(call.operands[0].dtype(), [&]<class T>() {
    const T scale = scale_of<T>(s.width);
    const Dropout<T> dropout(call, dropout_of(call.operands.size()), s);
    for (const Array& result : call.results) std::fill_n(result.as<T>(), result.size(), T{});
    // Of a key's row, the elements in k, v, dk and dv are at the same place; so are a query's in q, out, dout and dq.
    for (std::int64_t unit = 0; unit < s.examples * s.heads * s.queries; ++unit) {
      const std::int64_t example = unit / s.queries / s.heads, head = unit / s.queries % s.heads;
      const std::int64_t query = unit % s.queries;
      const std::int64_t row = s.query_row(example, query, head);
      const T* const q = call.operands[0].as<T>() + row * s.width;
      const T* const dout = call.operands[5].as<T>() + row * s.width;
      const T lse = call.operands[4].as<T>()[row];
      T delta = sum_of_products(s.width, dout, call.operands[3].as<T>() + row * s.width);
      if (has_dlse(call.operands.size())) delta -= call.operands[6].as<T>()[row];
      T* const dq = call.results[0].as<T>() + row * s.width;
      for (std::int64_t key = 0; key < s.end_of(query, causal); ++key) {
        const std::int64_t at = s.key_row(example, key, head / s.group()) * s.width;
        const T *const k = call.operands[1].as<T>() + at, *const v = call.operands[2].as<T>() + at;
        T *const dk = call.results[1].as<T>() + at, *const dv = call.results[2].as<T>() + at;
        const T p = std::exp(sum_of_products(s.width, q, k) * scale - lse);
        const T factor = dropout.factor(example, head, query, key), kept = p * factor;
        const T ds = p * (sum_of_products(s.width, dout, v) * factor - delta);
        for (std::int64_t i = 0; i < s.width; ++i) {
          dq[i] = multiply_add(dq[i], ds, k[i]);
          dk[i] = multiply_add(dk[i], ds, q[i]);
          dv[i] = multiply_add(dv[i], kept, dout[i]);
        }
      }
    }
    for (std::size_t result = 0; result < 2; ++result) {
      T* const scaled = call.results[result].as<T>();
      for (std::int64_t i = 0; i < call.results[result].size(); ++i) scaled[i] *= scale;
    }
  });
}

}  // namespace pmaptrain::ops
