#include <algorithm>
#include <cmath>
#include <optional>
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

// What both kernels share: the heads of the examples of all devices in turn, with the rows of a head as f32 in scratch
// memory, whose places are handed out once.
template <class T>
class AttentionKernel : public CpuKernel {
 public:
  // `dropout` is the first operand of dropout, or 0.
  AttentionKernel(const CpuRequest& request, bool causal, std::size_t dropout)
      : sizes_(request.operands[0].shape, request.operands[1].shape), devices_(request.devices), dropout_(dropout) {
    const auto width = static_cast<std::size_t>(sizes_.width);
    head_ = {static_cast<std::size_t>(sizes_.queries),
             static_cast<std::size_t>(sizes_.keys),
             width,
             round_up(width, 16),
             causal,
             1 / std::sqrt(static_cast<float>(sizes_.width))};
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
  Place place_rows(std::size_t count) { return place(round_up(count, attention_block) * head_.row); }
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
  HeadRows<const T> query_rows(const CpuArguments& arguments, std::size_t i, std::int64_t device, std::int64_t example,
                               std::int64_t head) const {
    return {operand<T>(arguments, i, device) + sizes_.query_row(example, 0, head) * sizes_.width, head_.queries,
            static_cast<std::size_t>(sizes_.heads * sizes_.width)};
  }
  HeadRows<const T> key_rows(const CpuArguments& arguments, std::size_t i, std::int64_t device, std::int64_t example,
                             std::int64_t kv_head) const {
    return {operand<T>(arguments, i, device) + sizes_.key_row(example, 0, kv_head) * sizes_.width, head_.keys,
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

  void load(HeadRows<const T> rows, float* to) const {
    if (head_.width < head_.row) std::fill_n(to, rows.count * head_.row, 0.0F);
    copy_rows(rows.count, head_.width, rows.at, rows.stride, to, head_.row);
  }
  void store(const float* from, HeadRows<T> rows) const {
    copy_rows(rows.count, head_.width, from, head_.row, rows.at, rows.stride);
  }
  // Blocks of keys as columns, from all rows.
  void transpose(const float* rows, float* columns) const {
    for (std::size_t key = 0; key < head_.keys; key += attention_block) {
      attention_transpose(std::min(attention_block, head_.keys - key), head_.row, rows + key * head_.row,
                          columns + key * head_.row);
    }
  }
  AttentionSizes sizes_;
  AttentionHead head_;
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
    q_ = this->place_rows(head_.queries), out_ = this->place_rows(head_.queries);
    k_ = this->place_rows(head_.keys), v_ = this->place_rows(head_.keys), columns_ = this->place_rows(head_.keys);
    lse_ = this->place(head_.queries), scores_ = this->place_blocks(1);
  }

  void run(const CpuArguments& a) override {
    float *const q = this->in(q_, a), *const out = this->in(out_, a), *const k = this->in(k_, a);
    float *const v = this->in(v_, a), *const columns = this->in(columns_, a), *const lse = this->in(lse_, a);
    for (std::int64_t unit = 0; unit < this->devices_ * sizes_.examples * sizes_.kv_heads; ++unit) {
      const std::int64_t kv_head = unit % sizes_.kv_heads, example = unit / sizes_.kv_heads % sizes_.examples;
      const std::int64_t device = unit / sizes_.kv_heads / sizes_.examples;
      this->load(this->key_rows(a, 1, device, example, kv_head), k);
      this->load(this->key_rows(a, 2, device, example, kv_head), v);
      this->transpose(k, columns);
      for (std::int64_t head = kv_head * sizes_.group(); head < (kv_head + 1) * sizes_.group(); ++head) {
        const HeadRows<const T> rows = this->query_rows(a, 0, device, example, head);
        this->load(rows, q);
        const std::optional<AttentionDropout> dropout = this->dropout(a, device, example, head);
        attention_of_head(head_, dropout ? &*dropout : nullptr, q, columns, v, out, lse, this->in(scores_, a));
        const std::int64_t first = sizes_.query_row(example, 0, head);
        this->store(out, {this->template result<T>(a, 0, device) + first * sizes_.width, rows.count, rows.stride});
        float* const to = this->template result<float>(a, 1, device) + first;
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
    for (auto* const of_queries : {&q_, &dout_, &dq_}) *of_queries = this->place_rows(head_.queries);
    for (auto* const of_keys : {&k_, &v_, &k_columns_, &v_columns_, &dk_, &dv_}) {
      *of_keys = this->place_rows(head_.keys);
    }
    for (auto* const row : {&lse_, &delta_}) *row = this->place(head_.queries);
    scores_ = this->place_blocks(2);
  }

  void run(const CpuArguments& a) override {
    for (std::int64_t unit = 0; unit < this->devices_ * sizes_.examples * sizes_.kv_heads; ++unit) {
      const std::int64_t kv_head = unit % sizes_.kv_heads, example = unit / sizes_.kv_heads % sizes_.examples;
      run_group(a, unit / sizes_.kv_heads / sizes_.examples, example, kv_head);
    }
  }

 private:
  // The heads that read one head of k and v.
  void run_group(const CpuArguments& a, std::int64_t device, std::int64_t example, std::int64_t kv_head) const {
    float *const q = this->in(q_, a), *const dout = this->in(dout_, a), *const dq = this->in(dq_, a);
    float *const k = this->in(k_, a), *const v = this->in(v_, a), *const dk = this->in(dk_, a);
    float *const dv = this->in(dv_, a), *const lse = this->in(lse_, a), *const delta = this->in(delta_, a);
    const HeadRows<const T> keys = this->key_rows(a, 1, device, example, kv_head);
    this->load(keys, k);
    this->load(this->key_rows(a, 2, device, example, kv_head), v);
    this->transpose(k, this->in(k_columns_, a));
    this->transpose(v, this->in(v_columns_, a));
    const std::size_t key_floats = head_.keys * head_.row, query_floats = head_.queries * head_.row;
    std::fill_n(dk, key_floats, 0.0F);
    std::fill_n(dv, key_floats, 0.0F);
    for (std::int64_t head = kv_head * sizes_.group(); head < (kv_head + 1) * sizes_.group(); ++head) {
      const HeadRows<const T> queries = this->query_rows(a, 0, device, example, head);
      this->load(queries, q);
      this->load(this->query_rows(a, 5, device, example, head), dout);
      this->load(this->query_rows(a, 3, device, example, head), dq);  // out, until delta is known
      attention_delta(head_, dout, dq, delta);
      const std::int64_t first = sizes_.query_row(example, 0, head);
      for (std::int64_t i = 0; i < sizes_.queries; ++i) {
        lse[i] = this->template operand<float>(a, 4, device)[first + i * sizes_.heads];
        if (has_dlse_) delta[i] -= this->template operand<float>(a, 6, device)[first + i * sizes_.heads];
      }
      std::fill_n(dq, query_floats, 0.0F);
      const std::optional<AttentionDropout> dropout = this->dropout(a, device, example, head);
      attention_gradients_of_head(
          head_, dropout ? &*dropout : nullptr,
          {q, dout, k, this->in(k_columns_, a), this->in(v_columns_, a), lse, delta, dq, dk, dv, this->in(scores_, a)});
      for (std::size_t i = 0; i < query_floats; ++i) dq[i] *= head_.scale;
      this->store(dq, {this->template result<T>(a, 0, device) + first * sizes_.width, queries.count, queries.stride});
    }
    for (std::size_t i = 0; i < key_floats; ++i) dk[i] *= head_.scale;
    const std::int64_t first = sizes_.key_row(example, 0, kv_head) * sizes_.width;
    this->store(dk, {this->template result<T>(a, 1, device) + first, keys.count, keys.stride});
    this->store(dv, {this->template result<T>(a, 2, device) + first, keys.count, keys.stride});
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
