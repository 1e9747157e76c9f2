#include <algorithm>

#include "core/ops/conv/geometry.h"
#include "core/ops/matmul/inner.h"
#include "core/ops/reduce/loops.h"
#include "core/ops/support/epilogue.h"

namespace pmaptrain::ops {
namespace {

// Calls f(x offset, kernel offset) for every tap on the image of a pixel of y.
template <class F>
void for_each_tap_of(const ConvGeometry& g, std::int64_t n, std::int64_t od, std::int64_t oh, std::int64_t ow, F&& f) {
  for (std::int64_t kd = g.d.first(od); kd < g.d.last(od); ++kd) {
    const std::int64_t slice = (n * g.d.in + g.d.start(od) + kd * g.d.dilation) * g.h.in;
    for (std::int64_t kh = g.h.first(oh); kh < g.h.last(oh); ++kh) {
      const std::int64_t row = (slice + g.h.start(oh) + kh * g.h.dilation) * g.w.in;
      for (std::int64_t kw = g.w.first(ow); kw < g.w.last(ow); ++kw) {
        f((row + g.w.start(ow) + kw * g.w.dilation) * g.c,
          ((kd * g.h.window + kh) * g.w.window + kw) * g.c_of_group() * g.o);
      }
    }
  }
}

// Calls f(x offset, kernel offset, y offset) for every tap on the image and every group. The offsets are those of the
// group's first channels in x, in the kernel and in y. The taps of an output element come one after another.
template <class F>
void for_each_tap(const ConvGeometry& g, F&& f) {
  const std::int64_t cs = g.c_of_group(), os = g.o_of_group();
  for (std::int64_t n = 0; n < g.n; ++n) {
    for (std::int64_t od = 0; od < g.d.out; ++od) {
      for (std::int64_t oh = 0; oh < g.h.out; ++oh) {
        for (std::int64_t ow = 0; ow < g.w.out; ++ow) {
          const std::int64_t y = (((n * g.d.out + od) * g.h.out + oh) * g.w.out + ow) * g.o;
          for_each_tap_of(g, n, od, oh, ow, [&](std::int64_t x, std::int64_t kernel) {
            for (std::int64_t i = 0; i < g.groups; ++i) f(x + i * cs, kernel + i * os, y + i * os);
          });
        }
      }
    }
  }
}

template <class T>
void zero(const Array& array) {
  std::fill(array.as<T>(), array.as<T>() + array.size(), T{});
}

}  // namespace

void Conv::reference(const ReferenceCall& call) const {
  const ConvGeometry g =
      conv_geometry(name, call.operands[0].shape(), call.operands[1].shape(), strides, padding, dilation, groups);
  dispatch_floating_arithmetic(call.results[0].dtype(), [&]<class T>() {
    const T* x = call.operands[0].as<T>();
    const T* kernel = call.operands[1].as<T>();
    T* y = call.results[0].as<T>();
    zero<T>(call.results[0]);
    for_each_tap(g, [&](std::int64_t at_x, std::int64_t at_kernel, std::int64_t at_y) {
      for (std::int64_t c = 0; c < g.c_of_group(); ++c)
        axpy(g.o_of_group(), x[at_x + c], kernel + at_kernel + c * g.o, y + at_y);
    });
    const T* bias = call.operands.size() == 3 ? call.operands[2].as<T>() : nullptr;
    add_bias_and_relu(g.pixels(), g.o, bias, relu, y);
  });
}

void ConvInputGrad::reference(const ReferenceCall& call) const {
  const ConvGeometry g =
      conv_geometry(name, call.results[0].shape(), call.operands[0].shape(), strides, padding, dilation, groups);
  dispatch_floating_arithmetic(call.results[0].dtype(), [&]<class T>() {
    const T* kernel = call.operands[0].as<T>();
    const T* dy = call.operands[1].as<T>();
    T* dx = call.results[0].as<T>();
    zero<T>(call.results[0]);
    for_each_tap(g, [&](std::int64_t at_x, std::int64_t at_kernel, std::int64_t at_y) {
      for (std::int64_t c = 0; c < g.c_of_group(); ++c)
        dx[at_x + c] += dot(g.o_of_group(), dy + at_y, kernel + at_kernel + c * g.o);
    });
  });
}

void ConvKernelGrad::reference(const ReferenceCall& call) const {
  const ConvGeometry g =
      conv_geometry(name, call.operands[0].shape(), call.results[0].shape(), strides, padding, dilation, groups);
  dispatch_floating_arithmetic(call.results[0].dtype(), [&]<class T>() {
    const T* x = call.operands[0].as<T>();
    const T* dy = call.operands[1].as<T>();
    T* dkernel = call.results[0].as<T>();
    zero<T>(call.results[0]);
    for_each_tap(g, [&](std::int64_t at_x, std::int64_t at_kernel, std::int64_t at_y) {
      for (std::int64_t c = 0; c < g.c_of_group(); ++c)
        axpy(g.o_of_group(), x[at_x + c], dy + at_y, dkernel + at_kernel + c * g.o);
    });
    if (!bias) return;
    zero<T>(call.results[1]);
    reduce_rows<SumReducer>(dy, static_cast<std::size_t>(g.pixels()), static_cast<std::size_t>(g.o),
                            call.results[1].as<T>());
  });
}

}  // namespace pmaptrain::ops
