#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/base/saturate.h"
#include "core/kernel/vector_convert.h"
#include "core/ops/attention/attention.h"
#include "core/ops/attention/simd.h"
#include "core/ops/random/part.h"

namespace pmaptrain::ops {

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> Attention::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> AttentionGrad::cpu(const CpuRequest&) const { return nullptr; }

#else

namespace {

// The rows of one head in an array [B,positions,heads,D], from the first one on.
template <class T>
struct HeadRows {
  T* at;
  std::size_t count, stride;
};

// Rows that are a multiple of so many bytes apart share few places of the first cache: copies are faster.
constexpr std::size_t page = 4096;

// What both kernels share: the heads of the examples of all devices in turn. Rows of f32 that fill whole groups of rows
// and whole vectors are read and written where they are, unless they are a multiple of `page` apart. Others are copied
// to scratch memory, as f32; its places are handed out once. No result shares memory with an operand.
template <class T>
class AttentionKernel : public CpuKernel {
 public:
  // `dropout` is the first operand of dropout, or 0.
  AttentionKernel(const CpuRequest& request, bool causal, std::size_t dropout)
      : sizes_(request.operands[0].shape, request.operands[1].shape), devices_(request.devices), dropout_(dropout) {
    const auto width = static_cast<std::size_t>(sizes_.width), row = round_up(width, 16);
    const auto queries = static_cast<std::size_t>(sizes_.queries), keys = static_cast<std::size_t>(sizes_.keys);
    in_place_ = std::is_same_v<T, float> && width == row && queries % attention_rows == 0 &&
                keys % attention_rows == 0 && row_bytes(sizes_.heads) % page != 0 &&
                row_bytes(sizes_.kv_heads) % page != 0;
    head_ = {queries,
             keys,
             width,
             row,
             causal,
             1 / std::sqrt(static_cast<float>(sizes_.width)),
             in_place_ ? static_cast<std::size_t>(sizes_.heads) * width : row,
             in_place_ ? static_cast<std::size_t>(sizes_.kv_heads) * width : row};
    for (std::size_t i = 0; i < request.operands.size(); ++i) {
      strides_.push_back(request.stacked[i] ? numel(request.operands[i]) : 0);
    }
    if (dropout > 0 && dropout + 4 < request.operands.size()) offset_ = request.operands[dropout + 4].dtype;
    for (const Type& result : request.results) result_strides_.push_back(numel(result));
  }

  std::size_t scratch_bytes() const override { return scratch_ * sizeof(float); }
  std::string implementation() const override { return "attention by blocks"; }

 protected:
  struct Place {
    std::size_t at = 0;
  };
  Place place(std::size_t floats) { return {std::exchange(scratch_, scratch_ + round_up(floats, 16))}; }
  // Blocks of scores, and one of factors of dropout.
  Place place_blocks(std::size_t count) {
    return place((count + (dropout_ > 0 ? 1 : 0)) * attention_block * attention_block);
  }
  Place place_columns() { return place(round_up(head_.keys, attention_block) * head_.row); }
  Place place_copy(std::size_t count) { return place(in_place_ ? 0 : round_up(count, attention_block) * head_.row); }
  static float* in(Place place, const CpuArguments& arguments) {
    return reinterpret_cast<float*>(arguments.scratch) + place.at;
  }

  template <class E>
  const E* operand(const CpuArguments& arguments, std::size_t i, std::int64_t device) const {
    return reinterpret_cast<const E*>(arguments.operands[i]) + device * strides_[i];
  }
  template <class E>
  E* result(const CpuArguments& arguments, std::size_t i, std::int64_t device) const {
    return reinterpret_cast<E*>(arguments.results[i]) + device * result_strides_[i];
  }
  // Of an array as q, and of one as k.
  template <class E>
  HeadRows<E> query_rows(E* array, std::int64_t example, std::int64_t head) const {
    return {array + sizes_.query_row(example, 0, head) * sizes_.width, head_.queries,
            static_cast<std::size_t>(sizes_.heads * sizes_.width)};
  }
  template <class E>
  HeadRows<E> key_rows(E* array, std::int64_t example, std::int64_t kv_head) const {
    return {array + sizes_.key_row(example, 0, kv_head) * sizes_.width, head_.keys,
            static_cast<std::size_t>(sizes_.kv_heads * sizes_.width)};
  }

  std::optional<AttentionDropout> dropout(const CpuArguments& arguments, std::int64_t device, std::int64_t example,
                                          std::int64_t head) const {
    if (dropout_ == 0) return {};
    const auto* const key = operand<std::uint32_t>(arguments, dropout_, device);
    return AttentionDropout{
        .key = {key[0], key[1]},
        .row = static_cast<std::uint64_t>(operand<std::int64_t>(arguments, dropout_ + 1, device)[example]),
        .first = offset(arguments, device) + static_cast<std::uint32_t>(sizes_.draw_of(head, 0)),
        .rate = *operand<float>(arguments, dropout_ + 2, device),
        .scale = *operand<float>(arguments, dropout_ + 3, device)};
  }

  std::uint32_t offset(const CpuArguments& arguments, std::int64_t device) const {
    if (!offset_) return 0;
    const std::int64_t place = device * strides_[dropout_ + 4] * static_cast<std::int64_t>(size_of(*offset_));
    return offset_in(*offset_, arguments.operands[dropout_ + 4] + place);
  }

  // The rows as f32, at `copy` unless they are read in place.
  const float* load(HeadRows<const T> rows, float* copy) const {
    if constexpr (std::is_same_v<T, float>) {
      if (in_place_) return rows.at;
    }
    if (head_.width < head_.row) std::fill_n(copy, rows.count * head_.row, 0.0F);
    copy_rows(rows.count, head_.width, rows.at, rows.stride, copy, head_.row);
    return copy;
  }
  // Where to compute rows that store() then takes.
  float* computed(HeadRows<T> rows, float* copy) const {
    if constexpr (std::is_same_v<T, float>) {
      if (in_place_) return rows.at;
    }
    return copy;
  }
  void store(const float* from, HeadRows<T> rows) const {
    if (!in_place_) copy_rows(rows.count, head_.width, from, head_.row, rows.at, rows.stride);
  }
  void clear_result(const CpuArguments& arguments, std::size_t i) const {
    std::fill_n(result<T>(arguments, i, 0), devices_ * result_strides_[i], T{});
  }

  // From one position to the next.
  std::size_t row_bytes(std::int64_t heads) const {
    return static_cast<std::size_t>(heads * sizes_.width) * sizeof(float);
  }

  AttentionSizes sizes_;
  AttentionHead head_;
  bool in_place_ = false;
  std::int64_t devices_;
  std::size_t dropout_;
  std::optional<DType> offset_;  // of dropout, where it has one

 private:
  std::vector<std::int64_t> strides_, result_strides_;
  std::size_t scratch_ = 0;  // floats
};

template <class T>
class AttentionForward final : public AttentionKernel<T> {
  using Base = AttentionKernel<T>;
  using Base::head_, Base::sizes_;

 public:
  AttentionForward(const CpuRequest& request, const Attention& op)
      : Base(request, op.causal, op.dropout_of(request.operands.size())) {
    q_ = this->place_copy(head_.queries), out_ = this->place_copy(head_.queries);
    k_ = this->place_copy(head_.keys), v_ = this->place_copy(head_.keys), columns_ = this->place_columns();
    lse_ = this->place(head_.queries), scores_ = this->place_blocks(1);
  }

  void run(const CpuArguments& a) override {
    float *const columns = this->in(columns_, a), *const lse = this->in(lse_, a);
    for (std::int64_t unit = 0; unit < this->devices_ * sizes_.examples * sizes_.kv_heads; ++unit) {
      const std::int64_t kv_head = unit % sizes_.kv_heads, example = unit / sizes_.kv_heads % sizes_.examples;
      const std::int64_t device = unit / sizes_.kv_heads / sizes_.examples;
      const auto keys = [&](std::size_t i) {
        return this->key_rows(this->template operand<T>(a, i, device), example, kv_head);
      };
      attention_transpose(head_, this->load(keys(1), this->in(k_, a)), columns);
      const float* const v = this->load(keys(2), this->in(v_, a));
      for (std::int64_t head = kv_head * sizes_.group(); head < (kv_head + 1) * sizes_.group(); ++head) {
        const float* const q =
            this->load(this->query_rows(this->template operand<T>(a, 0, device), example, head), this->in(q_, a));
        const HeadRows<T> rows = this->query_rows(this->template result<T>(a, 0, device), example, head);
        float* const out = this->computed(rows, this->in(out_, a));
        const std::optional<AttentionDropout> dropout = this->dropout(a, device, example, head);
        attention_of_head(head_, dropout ? &*dropout : nullptr, q, columns, v, out, lse, this->in(scores_, a));
        this->store(out, rows);
        float* const to = this->template result<float>(a, 1, device) + sizes_.query_row(example, 0, head);
        for (std::int64_t i = 0; i < sizes_.queries; ++i) to[i * sizes_.heads] = lse[i];
      }
    }
  }

 private:
  typename Base::Place q_, out_, k_, v_, columns_, lse_, scores_;
};

template <class T>
class AttentionBackward final : public AttentionKernel<T> {
  using Base = AttentionKernel<T>;
  using Base::head_, Base::sizes_;

 public:
  AttentionBackward(const CpuRequest& request, const AttentionGrad& op)
      : Base(request, op.causal, op.dropout_of(request.operands.size())),
        has_dlse_(op.has_dlse(request.operands.size())) {
    for (auto* const of_queries : {&q_, &dout_, &dq_}) *of_queries = this->place_copy(head_.queries);
    for (auto* const of_keys : {&k_, &v_, &dk_, &dv_}) *of_keys = this->place_copy(head_.keys);
    k_columns_ = this->place_columns(), v_columns_ = this->place_columns();
    for (auto* const row : {&lse_, &delta_}) *row = this->place(head_.queries);
    scores_ = this->place_blocks(2);
  }

  void run(const CpuArguments& a) override {
    if (sizes_.queries == 0) {
      this->clear_result(a, 1);
      this->clear_result(a, 2);
      return;
    }
    for (std::int64_t unit = 0; unit < this->devices_ * sizes_.examples * sizes_.kv_heads; ++unit) {
      const std::int64_t kv_head = unit % sizes_.kv_heads, example = unit / sizes_.kv_heads % sizes_.examples;
      run_group(a, unit / sizes_.kv_heads / sizes_.examples, example, kv_head);
    }
  }

 private:
  // The heads that read one head of k and v.
  void run_group(const CpuArguments& a, std::int64_t device, std::int64_t example, std::int64_t kv_head) const {
    const auto keys = [&](std::size_t i) {
      return this->key_rows(this->template operand<T>(a, i, device), example, kv_head);
    };
    const auto results_of_keys = [&](std::size_t i) {
      return this->key_rows(this->template result<T>(a, i, device), example, kv_head);
    };
    const float* const k = this->load(keys(1), this->in(k_, a));
    float *const k_columns = this->in(k_columns_, a), *const v_columns = this->in(v_columns_, a);
    attention_transpose(head_, k, k_columns);
    attention_transpose(head_, this->load(keys(2), this->in(v_, a)), v_columns);
    float* const dk = this->computed(results_of_keys(1), this->in(dk_, a));
    float* const dv = this->computed(results_of_keys(2), this->in(dv_, a));
    const std::int64_t begin = kv_head * sizes_.group(), end = begin + sizes_.group();
    for (std::int64_t head = begin; head < end; ++head) {
      const auto queries = [&](std::size_t i, typename Base::Place copy) {
        return this->load(this->query_rows(this->template operand<T>(a, i, device), example, head), this->in(copy, a));
      };
      float *const lse = this->in(lse_, a), *const delta = this->in(delta_, a);
      const float *const q = queries(0, q_), *const dout = queries(5, dout_);
      attention_delta(head_, dout, queries(3, dq_), delta);  // a copy of out is where that of dq will be
      const std::int64_t first = sizes_.query_row(example, 0, head);
      for (std::int64_t i = 0; i < sizes_.queries; ++i) {
        lse[i] = this->template operand<float>(a, 4, device)[first + i * sizes_.heads];
        if (has_dlse_) delta[i] -= this->template operand<float>(a, 6, device)[first + i * sizes_.heads];
      }
      const HeadRows<T> of_dq = this->query_rows(this->template result<T>(a, 0, device), example, head);
      float* const dq = this->computed(of_dq, this->in(dq_, a));
      const std::optional<AttentionDropout> dropout = this->dropout(a, device, example, head);
      attention_gradients_of_head(head_, dropout ? &*dropout : nullptr,
                                  {q, dout, k, k_columns, v_columns, lse, delta, dq, dk, dv, this->in(scores_, a),
                                   head > begin, head + 1 == end});
      this->store(dq, of_dq);
    }
    this->store(dk, results_of_keys(1));
    this->store(dv, results_of_keys(2));
  }

  bool has_dlse_;
  typename Base::Place q_, dout_, dq_, k_, v_, k_columns_, v_columns_, dk_, dv_, lse_, delta_, scores_;
};

template <template <class> class Kernel, class Op>
std::unique_ptr<CpuKernel> make_attention(const CpuRequest& request, const Op& op) {
  if (request.operands[0].dtype == DType::bf16) return std::make_unique<Kernel<bf16>>(request, op);
  if (request.operands[0].dtype == DType::f32) return std::make_unique<Kernel<float>>(request, op);
  return nullptr;
}

}  // namespace

std::unique_ptr<CpuKernel> Attention::cpu(const CpuRequest& request) const {
  return make_attention<AttentionForward>(request, *this);
}

std::unique_ptr<CpuKernel> AttentionGrad::cpu(const CpuRequest& request) const {
  return make_attention<AttentionBackward>(request, *this);
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain::ops
