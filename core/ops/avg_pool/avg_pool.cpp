#include "core/ops/avg_pool/avg_pool.h"

#include <algorithm>
#include <limits>

#include "core/graph/builder.h"
#include "core/ops/max_pool/geometry.h"
#include "core/ops/support/rules.h"

#ifndef PMAPTRAIN_REFERENCE_KERNELS
#include "core/kernel/onednn.h"
#endif

namespace pmaptrain::ops {
namespace {

// Calls f(y's pixel, divisor, for_each_tap) for every window. for_each_tap(g) calls g(x's pixel) for each element of
// the window that is not padding. Offsets are those of channel 0.
template <class F>
void for_each_window(const PoolGeometry& g, bool count_include_pad, F&& f) {
  for (std::int64_t n = 0; n < g.n; ++n) {
    for (std::int64_t oh = 0; oh < g.h.out; ++oh) {
      for (std::int64_t ow = 0; ow < g.w.out; ++ow) {
        const std::int64_t rows = g.h.last(oh) - g.h.first(oh), columns = g.w.last(ow) - g.w.first(ow);
        const std::int64_t divisor = count_include_pad ? g.h.window * g.w.window : rows * columns;
        const auto for_each_tap = [&](auto&& tap) {
          for (std::int64_t kh = g.h.first(oh); kh < g.h.last(oh); ++kh) {
            for (std::int64_t kw = g.w.first(ow); kw < g.w.last(ow); ++kw) {
              tap(((n * g.h.in + g.h.start(oh) + kh) * g.w.in + g.w.start(ow) + kw) * g.c);
            }
          }
        };
        f(((n * g.h.out + oh) * g.w.out + ow) * g.c, divisor, for_each_tap);
      }
    }
  }
}

}  // namespace

std::vector<Type> AvgPool::infer(const InferContext& context) const {
  static constexpr std::string_view names[] = {"x"};
  expect_floating(name, context.operands, names);
  const Type& x = context.operands[0];
  return {{x.dtype, pool_geometry(name, x.shape, window, strides, padding).y_shape(), {}}};
}

std::vector<Type> AvgPoolGrad::infer(const InferContext& context) const {
  static constexpr std::string_view names[] = {"dy"};
  expect_floating(name, context.operands, names);
  const Type& dy = context.operands[0];
  expect_pooled(name, pool_geometry(name, input_shape, window, strides, padding), dy.shape);
  return {{dy.dtype, input_shape, {}}};
}

Cost AvgPool::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return pool_cost(pool_geometry(name, operands[0].shape, window, strides, padding), operands, results);
}

Cost AvgPoolGrad::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return pool_cost(pool_geometry(name, input_shape, window, strides, padding), operands, results);
}

Cotangents AvgPool::derivative(VjpContext& context) const {
  const AvgPoolGrad gradient{window, strides, padding, count_include_pad, context.b.type(context.operands[0]).shape};
  return {context.b.emit(gradient, {*context.cotangents[0]})};
}

Cotangents AvgPoolGrad::derivative(VjpContext& context) const {
  return {context.b.emit(AvgPool{window, strides, padding, count_include_pad}, {*context.cotangents[0]})};
}

void AvgPool::reference(const ReferenceCall& call) const {
  const PoolGeometry g = pool_geometry(name, call.operands[0].shape(), window, strides, padding);
  dispatch_floating_arithmetic(call.results[0].dtype(), [&]<class T>() {
    const T* x = call.operands[0].as<T>();
    T* y = call.results[0].as<T>();
    std::fill_n(y, call.results[0].size(), T{});
    // The sum comes before the division, as in the library, so overflow does not depend on the size of the image.
    for_each_window(g, count_include_pad, [&](std::int64_t at_y, std::int64_t divisor, const auto& for_each_tap) {
      for_each_tap([&](std::int64_t at_x) {
        for (std::int64_t c = 0; c < g.c; ++c) y[at_y + c] += x[at_x + c];
      });
      for (std::int64_t c = 0; c < g.c; ++c) y[at_y + c] /= static_cast<T>(divisor);
    });
  });
}

void AvgPoolGrad::reference(const ReferenceCall& call) const {
  const PoolGeometry g = pool_geometry(name, call.results[0].shape(), window, strides, padding);
  dispatch_floating_arithmetic(call.results[0].dtype(), [&]<class T>() {
    const T* dy = call.operands[0].as<T>();
    T* dx = call.results[0].as<T>();
    std::fill_n(dx, call.results[0].size(), T{});
    for_each_window(g, count_include_pad, [&](std::int64_t at_y, std::int64_t divisor, const auto& for_each_tap) {
      for_each_tap([&](std::int64_t at_x) {
        for (std::int64_t c = 0; c < g.c; ++c) dx[at_x + c] += dy[at_y + c] / static_cast<T>(divisor);
      });
    });
  });
}

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> AvgPool::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> AvgPoolGrad::cpu(const CpuRequest&) const { return nullptr; }

#else

namespace {

// The number of additions of one device below which plain loops are faster than the library, as for conv.
constexpr std::int64_t least_additions = 16384;

// The library's descriptors. The backward primitive needs the forward one as a hint.
struct PoolDescs {
  onednn::MemoryDesc x, y;
  onednn::Attributes attributes;
  dnnl_alg_kind_t algorithm;
  dnnl_dims_t strides, window, dilations{0, 0}, low, high;
  onednn::PrimitiveDesc forward;

  PoolDescs(std::string_view op, const PoolGeometry& g, bool count_include_pad)
      : x(onednn::channels_last_desc(op, DType::f32, g.x_shape())),
        y(onednn::channels_last_desc(op, DType::f32, g.y_shape())),
        attributes(onednn::attributes(op)),
        algorithm(count_include_pad ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding),
        strides{g.h.stride, g.w.stride},
        window{g.h.window, g.w.window},
        low{g.h.low, g.w.low},
        high{used(g.h), used(g.w)} {
    dnnl_primitive_desc_t created = nullptr;
    const dnnl_status_t status = dnnl_pooling_forward_primitive_desc_create(
        &created, onednn::engine(), dnnl_forward_training, algorithm, x.get(), y.get(), strides, window, dilations, low,
        high, attributes.get());
    forward = onednn::own_primitive_desc(op, status, created);
  }

  // Padding or input that no window reaches is dropped, because oneDNN requires sizes that divide exactly.
  static std::int64_t used(const Window& w) { return (w.out - 1) * w.stride + w.window - w.in - w.low; }
};

// Whether 32 bits suffice for the library's counters of window elements, sizes and bytes of an image. It does not
// report an overflow.
bool counts_in_32_bits(const PoolGeometry& g) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const auto fits = [](const Window& w) {
    return w.window <= most && w.stride <= most && w.low <= most && PoolDescs::used(w) <= most && w.in + w.low <= most;
  };
  constexpr std::int64_t most_elements = most / static_cast<std::int64_t>(sizeof(float));
  const auto image = [&](std::int64_t h, std::int64_t w) { return h <= most_elements / w / g.c; };
  return fits(g.h) && fits(g.w) && g.h.window <= most / g.w.window && image(g.h.in, g.w.in) && image(g.h.out, g.w.out);
}

bool worthwhile(const CpuRequest& request, const PoolGeometry& g) {
  if (!counts_in_32_bits(g)) return false;
  return request.results[0].dtype == DType::f32 && numel(g.y_shape()) * g.h.window * g.w.window >= least_additions;
}

}  // namespace

std::unique_ptr<CpuKernel> AvgPool::cpu(const CpuRequest& request) const {
  PoolGeometry g = pool_geometry(name, request.operands[0].shape, window, strides, padding);
  if (!worthwhile(request, g)) return nullptr;
  const bool merged = request.devices > 1 && request.stacked[0];
  if (merged) g.n *= request.devices;
  const PoolDescs library(name, g, count_include_pad);
  if (!library.forward) return nullptr;
  auto sequence = std::make_unique<onednn::Sequence>(name, request, merged);
  sequence->add(library.forward, {{DNNL_ARG_SRC, library.x.get(), onednn::operand(0)},
                                  {DNNL_ARG_DST, library.y.get(), onednn::result(0)}});
  sequence->use_name_of(library.forward);
  return sequence;
}

std::unique_ptr<CpuKernel> AvgPoolGrad::cpu(const CpuRequest& request) const {
  PoolGeometry g = pool_geometry(name, request.results[0].shape, window, strides, padding);
  if (!worthwhile(request, g)) return nullptr;
  const bool merged = request.devices > 1 && request.stacked[0];
  if (merged) g.n *= request.devices;
  const PoolDescs library(name, g, count_include_pad);
  if (!library.forward) return nullptr;
  dnnl_primitive_desc_t created = nullptr;
  const dnnl_status_t status = dnnl_pooling_backward_primitive_desc_create(
      &created, onednn::engine(), library.algorithm, library.x.get(), library.y.get(), library.strides, library.window,
      library.dilations, library.low, library.high, library.forward.get(), library.attributes.get());
  const onednn::PrimitiveDesc desc = onednn::own_primitive_desc(name, status, created);
  if (!desc) return nullptr;
  auto sequence = std::make_unique<onednn::Sequence>(name, request, merged);
  sequence->add(desc, {{DNNL_ARG_DIFF_DST, library.y.get(), onednn::operand(0)},
                       {DNNL_ARG_DIFF_SRC, library.x.get(), onednn::result(0)}});
  sequence->use_name_of(desc);
  return sequence;
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain::ops
