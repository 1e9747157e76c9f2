#include "core/ops/conv/geometry.h"
#include "core/ops/support/epilogue.h"

#ifndef PMAPTRAIN_REFERENCE_KERNELS
#include "core/kernel/in_f32.h"
#include "core/kernel/onednn.h"
#include "core/kernel/vector_convert.h"
#include "core/ops/conv/depthwise.h"
#include "core/ops/conv/taps.h"
#include "core/ops/conv/tiled.h"
#include "core/ops/reduce/vector_loops.h"
#endif

namespace pmaptrain::ops {

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> Conv::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> ConvInputGrad::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> ConvKernelGrad::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuPreparation> Conv::prepare(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuPreparation> ConvInputGrad::prepare(const CpuRequest&) const { return nullptr; }

#else

namespace {

// The number of operations of one device below which plain loops are faster than the library (measured).
constexpr double least_operations = 32768;

bool is_f32(const CpuRequest& request) { return request.operands[0].dtype == DType::f32; }

// The element types of the arrays of a call.
struct Elements {
  DType x, kernel, bias, y;
};

// The implementation that is preferred for rows of an image of `width` pixels. The library's first choice multiplies
// one row after the other, and reads the whole kernel for each. Where rows are short and the kernel does not stay in a
// core's cache, another of its implementations is up to 1.6 times as fast (measured).
std::string_view preferred(const ConvGeometry& g, DType dtype, std::int64_t width) {
  constexpr std::int64_t short_row = 6, large_kernel = std::int64_t{1} << 18;  // elements
  const bool rereads = width < short_row && numel(g.kernel_shape()) >= large_kernel;
  return dtype == DType::f32 && rereads ? "jit:avx512_core" : "";
}

// The arrays of one call in plain layouts, and the arguments that all three primitives share.
struct Library {
  onednn::MemoryDesc x, kernel, bias, y;
  onednn::MemoryDesc any_kernel;
  onednn::Attributes attributes;
  std::string_view forward_name;  // of the preferred implementation
  Shape strides, dilations, low, high;

  Library(std::string_view op, const ConvGeometry& g, const Elements& of)
      : x(onednn::channels_last_desc(op, of.x, g.x_shape())),
        kernel(plain_kernel(op, of.kernel, g)),
        bias(onednn::strided_desc(op, of.bias, {g.o}, {1})),
        y(onednn::channels_last_desc(op, of.y, g.y_shape())),
        any_kernel(onednn::any_layout_desc(op, of.kernel, kernel_sizes(g))),
        attributes(onednn::attributes(op)),
        forward_name(preferred(g, of.x, g.w.out)),
        strides(g.each([](const Window& window) { return window.stride; })),
        dilations(g.each([](const Window& window) { return window.dilation - 1; })),
        low(g.each([](const Window& window) { return window.low; })),
        high(g.each(used_padding)) {}

  // oneDNN requires sizes that divide exactly. So padding that no window reaches is dropped, and input that no window
  // reaches is cut off by negative padding.
  static std::int64_t used_padding(const Window& window) {
    return (window.out - 1) * window.stride + window.extent() - window.in - window.low;
  }

  // Kernel sizes in the library's order: out, in, then those of the window, preceded by the groups if there are
  // several.
  static Shape kernel_sizes(const ConvGeometry& g) {
    Shape sizes = g.each([](const Window& window) { return window.window; });
    sizes.insert(sizes.begin(), {g.o_of_group(), g.c_of_group()});
    if (g.groups > 1) sizes.insert(sizes.begin(), g.groups);
    return sizes;
  }
  static onednn::MemoryDesc plain_kernel(std::string_view op, DType dtype, const ConvGeometry& g) {
    const std::int64_t element = g.c_of_group() * g.o;
    Shape strides = {g.h.window * g.w.window * element, g.w.window * element, element};
    if (!g.is_volume) strides.erase(strides.begin());
    strides.insert(strides.begin(), {1, g.o});
    if (g.groups > 1) strides.insert(strides.begin(), g.o_of_group());
    return onednn::strided_desc(op, dtype, kernel_sizes(g), strides);
  }

  onednn::PrimitiveDesc forward(std::string_view op, bool with_bias = false, bool relu = false) const {
    const onednn::Attributes chosen = onednn::attributes(op, relu);
    return onednn::prefer(forward_name, [&] {
      dnnl_primitive_desc_t created = nullptr;
      const dnnl_status_t status = dnnl_convolution_forward_primitive_desc_create(
          &created, onednn::engine(), dnnl_forward_training, dnnl_convolution_direct, x.get(), any_kernel.get(),
          with_bias ? bias.get() : nullptr, y.get(), strides.data(), dilations.data(), low.data(), high.data(),
          chosen.get());
      return onednn::own_primitive_desc(op, status, created);
    });
  }
};

// Whether the library is faster than plain loops. The decision depends on the shapes of one device only, so results do
// not depend on how many devices share a call.
bool worthwhile(const CpuRequest& request, const ConvGeometry& g) {
  const bool known = is_f32(request) || (request.operands[0].dtype == DType::bf16 && multiplies_bf16_faster());
  return known && g.flops() >= least_operations;
}

// Whether tiles are faster because the library has only a reference primitive for this gradient, perhaps because of the
// kernel's size; these take a hundred times as long. Tiles support f32; bf16 is then computed in f32.
bool is_better_in_tiles(const onednn::PrimitiveDesc& desc, const ConvGeometry& g) {
  const bool lacks = !desc || onednn::implementation_of(desc).starts_with("ref");
  return lacks && takes_tiles(g);
}

// Images with fewer channels than this use a primitive that sums the bias's gradient in a slow separate pass (measured:
// it doubles the time with 3 channels; with 32 the sum is free).
constexpr std::int64_t few_channels = 16;

// Computes the kernel's gradient, and then the bias's by our own sum over dy's pixels. For bf16, some hundred pixels at
// a time are converted to f32.
class WithBiasSum final : public CpuKernel {
 public:
  WithBiasSum(std::unique_ptr<CpuKernel> kernel, const CpuRequest& request)
      : kernel_(std::move(kernel)),
        devices_(request.devices),
        features_(static_cast<std::size_t>(numel(request.results[1]))),
        pixels_(static_cast<std::size_t>(numel(request.operands[1])) / features_),
        stacked_(request.stacked[1]),
        of_bf16_(request.operands[1].dtype == DType::bf16),
        to_bf16_(request.results[1].dtype == DType::bf16) {}

  void run(const CpuArguments& arguments) override {
    kernel_->run(arguments);
    for (std::size_t d = 0; d < static_cast<std::size_t>(devices_); ++d) {
      const std::size_t first = stacked_ ? d * pixels_ * features_ : 0;
      auto* const wide = reinterpret_cast<float*>(arguments.scratch);
      auto* const dbias =
          to_bf16_ ? wide + block * features_ : reinterpret_cast<float*>(arguments.results[1]) + d * features_;
      std::fill_n(dbias, features_, 0.0F);
      if (of_bf16_) {
        const auto* const dy = reinterpret_cast<const bf16*>(arguments.operands[1]) + first;
        for (std::size_t p = 0; p < pixels_; p += block) {
          const std::size_t count = std::min(block, pixels_ - p);
          to_f32(count * features_, dy + p * features_, wide);
          reduce_rows<VectorSumReducer>(wide, count, features_, dbias);
        }
      } else {
        const auto* const dy = reinterpret_cast<const float*>(arguments.operands[1]) + first;
        reduce_rows<VectorSumReducer>(dy, pixels_, features_, dbias);
      }
      if (to_bf16_) to_bf16(features_, dbias, reinterpret_cast<bf16*>(arguments.results[1]) + d * features_);
    }
  }
  std::size_t scratch_bytes() const override {
    const std::size_t own = of_bf16_ ? (block + 1) * features_ * sizeof(float) : 0;
    return std::max(kernel_->scratch_bytes(), own);
  }
  std::string implementation() const override { return kernel_->implementation() + ", bias by vectors"; }
  std::vector<LayoutChange> layout_changes() const override { return kernel_->layout_changes(); }
  std::int64_t library_calls() const override { return kernel_->library_calls(); }

 private:
  static constexpr std::size_t block = reduce_block;

  std::unique_ptr<CpuKernel> kernel_;
  std::int64_t devices_;
  std::size_t features_, pixels_;
  bool stacked_, of_bf16_, to_bf16_;
};

// A kernel of the kernel's gradient as it is, or with a sum for the bias's.
std::unique_ptr<CpuKernel> with_bias_sum(bool bias, std::unique_ptr<CpuKernel> kernel, const CpuRequest& request) {
  if (!bias) return kernel;
  return std::make_unique<WithBiasSum>(std::move(kernel), request);
}

ConvGeometry geometry_of(const Conv& op, const CpuRequest& request) {
  return conv_geometry(op.name, request.operands[0].shape, request.operands[1].shape, op.strides, op.padding,
                       op.dilation, op.groups);
}
ConvGeometry geometry_of(const ConvInputGrad& op, const CpuRequest& request) {
  return conv_geometry(op.name, request.results[0].shape, request.operands[0].shape, op.strides, op.padding,
                       op.dilation, op.groups);
}

// The geometry of a call that serves all devices at once, if `merged`.
ConvGeometry merged_geometry(ConvGeometry g, bool merged, const CpuRequest& request) {
  if (merged) g.n *= request.devices;
  return g;
}

// The library's primitive for a request.
struct Forward {
  Forward(const Conv& op, const CpuRequest& request, const ConvGeometry& of_device)
      : with_bias(request.operands.size() == 3),
        merged(request.devices > 1 && request.stacked[0] && !request.stacked[1] && !(with_bias && request.stacked[2])),
        g(merged_geometry(of_device, merged, request)),
        library(op.name, g,
                {request.operands[0].dtype, request.operands[0].dtype, request.operands[with_bias ? 2 : 0].dtype,
                 request.results[0].dtype}),
        desc(library.forward(op.name, with_bias, op.relu)),
        relu_apart(op.relu && (!desc || onednn::has_slow_post_ops(desc))) {
    if (relu_apart) desc = library.forward(op.name, with_bias);
  }

  bool with_bias, merged;
  ConvGeometry g;
  Library library;
  onednn::PrimitiveDesc desc;  // null if the library has no kernel
  bool relu_apart;
};

struct InputGrad {
  InputGrad(const ConvInputGrad& op, const CpuRequest& request, const ConvGeometry& of_device)
      : merged(request.devices > 1 && request.stacked[1] && !request.stacked[0]),
        g(merged_geometry(of_device, merged, request)),
        library(op.name, g,
                {request.results[0].dtype, request.operands[0].dtype, request.operands[0].dtype,
                 request.operands[0].dtype}) {
    const DType dtype = request.operands[0].dtype;
    const onednn::PrimitiveDesc forward = Library(op.name, g, {dtype, dtype, dtype, dtype}).forward(op.name);
    if (!forward) return;
    // A row of dx is divided by the stride: each part of it meets other elements of the kernel.
    const std::int64_t width = (g.w.in + g.w.stride - 1) / g.w.stride;
    desc = onednn::prefer(preferred(g, dtype, width), [&] {
      dnnl_primitive_desc_t created = nullptr;
      const dnnl_status_t status = dnnl_convolution_backward_data_primitive_desc_create(
          &created, onednn::engine(), dnnl_convolution_direct, library.x.get(), library.any_kernel.get(),
          library.y.get(), library.strides.data(), library.dilations.data(), library.low.data(), library.high.data(),
          forward.get(), library.attributes.get());
      return onednn::own_primitive_desc(op.name, status, created);
    });
    in_tiles = is_better_in_tiles(desc, g);
  }

  bool merged;
  ConvGeometry g;
  Library library;
  onednn::PrimitiveDesc desc;  // null if the library has no kernel
  bool in_tiles = false;
};

// The preparation of the convolution's kernel, the operand `kernel`, for a call of the library.
template <class Call>
std::unique_ptr<CpuPreparation> prepare_kernel(std::string_view op, const CpuRequest& request, std::size_t kernel,
                                               const Call& call) {
  const DType from = request.packed_from.value_or(request.operands[kernel].dtype);
  return onednn::make_preparation(op, Library::plain_kernel(op, from, call.g).get(),
                                  onednn::chosen_layout(call.desc, DNNL_ARG_WEIGHTS));
}

}  // namespace

std::unique_ptr<CpuPreparation> Conv::prepare(const CpuRequest& request) const {
  const ConvGeometry g = geometry_of(*this, request);
  if (takes_depthwise(g, false) || !worthwhile(request, g) || request.stacked[1]) return nullptr;
  const Forward call(*this, request, g);
  if (!call.desc) return nullptr;
  return prepare_kernel(name, request, 1, call);
}

std::unique_ptr<CpuKernel> Conv::cpu(const CpuRequest& request) const {
  const ConvGeometry g = geometry_of(*this, request);
  if (takes_depthwise(g, false)) return is_f32(request) ? make_depthwise(request, g, relu) : nullptr;
  if (!worthwhile(request, g)) return nullptr;
  const Forward call(*this, request, g);
  if (!call.desc) return nullptr;

  auto sequence = std::make_unique<onednn::Sequence>(name, request, call.merged);
  const Library& library = call.library;
  const auto weights = onednn::chosen_layout(call.desc, DNNL_ARG_WEIGHTS);
  const auto at = request.packed == 1
                      ? onednn::operand(1)
                      : sequence->reorder(onednn::operand(1), library.kernel.get(), weights, !request.stacked[1]);
  std::vector<onednn::Argument> arguments = {{DNNL_ARG_SRC, library.x.get(), onednn::operand(0)},
                                             {DNNL_ARG_WEIGHTS, weights, at},
                                             {DNNL_ARG_DST, library.y.get(), onednn::result(0)}};
  if (call.with_bias) arguments.push_back({DNNL_ARG_BIAS, library.bias.get(), onednn::operand(2)});
  if (relu && !call.relu_apart) arguments.push_back(onednn::relu_slope());
  if (call.relu_apart) sequence->apply_relu_afterwards(request.results[0].dtype, numel(call.g.y_shape()));
  sequence->add(call.desc, arguments);
  sequence->use_name_of(call.desc);
  return sequence;
}

std::unique_ptr<CpuPreparation> ConvInputGrad::prepare(const CpuRequest& request) const {
  const ConvGeometry g = geometry_of(*this, request);
  if (takes_depthwise(g, true) || !worthwhile(request, g) || request.stacked[0]) return nullptr;
  const InputGrad call(*this, request, g);
  if (!call.desc || call.in_tiles) return nullptr;
  return prepare_kernel(name, request, 0, call);
}

std::unique_ptr<CpuKernel> ConvInputGrad::cpu(const CpuRequest& request) const {
  const ConvGeometry g = geometry_of(*this, request);
  if (takes_depthwise(g, true)) return is_f32(request) ? make_depthwise_input_grad(request, g) : nullptr;
  if (!worthwhile(request, g)) return nullptr;
  const InputGrad call(*this, request, g);
  if (call.in_tiles) return is_f32(request) ? make_tiled_input_grad(request, g) : nullptr;
  if (!call.desc) return nullptr;

  auto sequence = std::make_unique<onednn::Sequence>(name, request, call.merged);
  const Library& library = call.library;
  const auto weights = onednn::chosen_layout(call.desc, DNNL_ARG_WEIGHTS);
  const auto at = request.packed == 0
                      ? onednn::operand(0)
                      : sequence->reorder(onednn::operand(0), library.kernel.get(), weights, !request.stacked[0]);
  sequence->add(call.desc, {{DNNL_ARG_DIFF_DST, library.y.get(), onednn::operand(1)},
                            {DNNL_ARG_WEIGHTS, weights, at},
                            {DNNL_ARG_DIFF_SRC, library.x.get(), onednn::result(0)}});
  sequence->use_name_of(call.desc);
  return sequence;
}

// The result is a sum for each device, so there is one call for each device.
std::unique_ptr<CpuKernel> ConvKernelGrad::cpu(const CpuRequest& request) const {
  const ConvGeometry g =
      conv_geometry(name, request.operands[0].shape, request.results[0].shape, strides, padding, dilation, groups);
  if (takes_depthwise(g, true)) {
    if (!is_f32(request)) return nullptr;
    return with_bias_sum(bias, make_depthwise_kernel_grad(request, g), request);
  }
  if (!worthwhile(request, g)) return nullptr;
  const bool own_sum = bias && g.c < few_channels, library_sum = bias && !own_sum;
  const DType dtype = request.operands[0].dtype, result = request.results[0].dtype;
  const Library library(name, g, {dtype, result, result, dtype});
  const onednn::PrimitiveDesc forward = Library(name, g, {dtype, dtype, dtype, dtype}).forward(name, library_sum);
  if (!forward) return nullptr;
  dnnl_primitive_desc_t created = nullptr;
  const dnnl_status_t status = dnnl_convolution_backward_weights_primitive_desc_create(
      &created, onednn::engine(), dnnl_convolution_direct, library.x.get(), library.any_kernel.get(),
      library_sum ? library.bias.get() : nullptr, library.y.get(), library.strides.data(), library.dilations.data(),
      library.low.data(), library.high.data(), forward.get(), library.attributes.get());
  const onednn::PrimitiveDesc desc = onednn::own_primitive_desc(name, status, created);
  if (is_better_in_tiles(desc, g)) {
    if (!is_f32(request)) return nullptr;
    return with_bias_sum(bias, make_tiled_kernel_grad(request, g), request);
  }
  if (!desc) return nullptr;
  if (onednn::implementation_of(desc).ends_with("amx") && takes_taps(g)) {
    return with_bias_sum(bias, make_kernel_grad_of_taps(request, g), request);
  }

  auto sequence = std::make_unique<onednn::Sequence>(name, request, false);
  const auto weights = onednn::chosen_layout(desc, DNNL_ARG_DIFF_WEIGHTS);
  const bool plain = dnnl_memory_desc_equal(weights, library.kernel.get()) != 0;
  const auto at = plain ? onednn::result(0) : sequence->scratch(weights);
  std::vector<onednn::Argument> arguments = {{DNNL_ARG_SRC, library.x.get(), onednn::operand(0)},
                                             {DNNL_ARG_DIFF_DST, library.y.get(), onednn::operand(1)},
                                             {DNNL_ARG_DIFF_WEIGHTS, weights, at}};
  if (library_sum) arguments.push_back({DNNL_ARG_DIFF_BIAS, library.bias.get(), onednn::result(1)});
  sequence->add(desc, arguments);
  if (!plain) sequence->reorder(at, weights, onednn::result(0), library.kernel.get());
  sequence->use_name_of(desc);
  return with_bias_sum(own_sum, std::move(sequence), request);
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain::ops
