#include "core/kernel/onednn.h"

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/error.h"

namespace pmaptrain::onednn {
namespace {

std::string_view to_string(dnnl_status_t status) {
  switch (status) {
    case dnnl_success: return "success";
    case dnnl_out_of_memory: return "out of memory";
    case dnnl_invalid_arguments: return "invalid arguments";
    case dnnl_unimplemented: return "no implementation";
    case dnnl_last_impl_reached: return "no further implementation";
    case dnnl_runtime_error: return "a failure while running";
    default: return "an unknown failure";
  }
}

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

dnnl_data_type_t data_type(DType dtype) {
  switch (dtype) {
    case DType::bf16: return dnnl_bf16;
    case DType::f32: return dnnl_f32;
    case DType::f64:
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::u32:
    case DType::boolean: break;
  }
  std::abort();  // kernels use the reference for other types
}

Memory make_memory(std::string_view op, const_dnnl_memory_desc_t desc) {
  dnnl_memory_t memory = nullptr;
  expect(dnnl_memory_create(&memory, desc, engine(), DNNL_MEMORY_NONE), op, "a memory object");
  return Memory(memory);
}

}  // namespace

dnnl_engine_t engine() {
  // The engine is never destroyed, because kernels of other threads may outlive static objects.
  static dnnl_engine_t const engine = [] {
    dnnl_engine_t created = nullptr;
    expect(dnnl_engine_create(&created, dnnl_cpu, 0), "the runtime", "a CPU engine");
    return created;
  }();
  return engine;
}

void expect(dnnl_status_t status, std::string_view op, std::string_view what) {
  if (status == dnnl_success) return;
  const auto* version = dnnl_version();
  const std::string message = fmt::format("{}: oneDNN {}.{}.{} answered \"{}\" when asked for {}", op, version->major,
                                          version->minor, version->patch, to_string(status), what);
  if (status == dnnl_out_of_memory) fail_resource(message, "use a smaller batch, or more microbatches");
  fail_running(message);
}

MemoryDesc strided_desc(std::string_view op, DType dtype, const Shape& dims, const Shape& strides) {
  dnnl_memory_desc_t desc = nullptr;
  expect(dnnl_memory_desc_create_with_strides(&desc, static_cast<int>(dims.size()), dims.data(), data_type(dtype),
                                              strides.data()),
         op, "a memory layout");
  return MemoryDesc(desc);
}

MemoryDesc any_layout_desc(std::string_view op, DType dtype, const Shape& dims) {
  dnnl_memory_desc_t desc = nullptr;
  expect(dnnl_memory_desc_create_with_tag(&desc, static_cast<int>(dims.size()), dims.data(), data_type(dtype),
                                          dnnl_format_tag_any),
         op, "a memory layout of its choice");
  return MemoryDesc(desc);
}

MemoryDesc channels_last_desc(std::string_view op, DType dtype, const Shape& shape) {
  Shape dims = shape, strides(shape.size(), 1);
  for (std::size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
  // The channels follow the examples.
  for (Shape* sizes : {&dims, &strides}) std::rotate(sizes->begin() + 1, sizes->end() - 1, sizes->end());
  return strided_desc(op, dtype, dims, strides);
}

Attributes attributes(std::string_view op, bool relu) {
  dnnl_primitive_attr_t created = nullptr;
  expect(dnnl_primitive_attr_create(&created), op, "attributes");
  Attributes attributes(created);
  expect(dnnl_primitive_attr_set_scratchpad_mode(created, dnnl_scratchpad_mode_user), op, "scratch from its caller");
  expect(dnnl_primitive_attr_set_fpmath_mode(created, dnnl_fpmath_mode_strict), op, "arithmetic in f32");
  if (relu) {
    dnnl_post_ops_t post_ops = nullptr;
    expect(dnnl_post_ops_create(&post_ops), op, "a list of post-ops");
    const std::unique_ptr<dnnl_post_ops, Destroy<dnnl_post_ops_destroy>> owner(post_ops);
    expect(dnnl_post_ops_append_prelu(post_ops, 0), op, "relu");
    expect(dnnl_primitive_attr_set_post_ops(created, post_ops), op, "relu");
  }
  return attributes;
}

PrimitiveDesc own_primitive_desc(std::string_view op, dnnl_status_t status, dnnl_primitive_desc_t created) {
  if (status == dnnl_unimplemented) return nullptr;
  expect(status, op, "a primitive");
  return PrimitiveDesc(created);
}

const_dnnl_memory_desc_t chosen_layout(const PrimitiveDesc& desc, int argument) {
  return dnnl_primitive_desc_query_md(desc.get(), dnnl_query_exec_arg_md, argument);
}

Argument relu_slope() {
  static const MemoryDesc scalar = strided_desc("relu", DType::f32, {1}, {1});
  return {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_WEIGHTS, scalar.get(), {Location::In::negative_zero, 0}};
}

std::string implementation_of(const PrimitiveDesc& desc) {
  const char* text = nullptr;
  expect(dnnl_primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0, static_cast<void*>(&text)), "a primitive",
         "its name");
  return text;
}

PrimitiveDesc prefer(std::string_view name, const std::function<PrimitiveDesc()>& make) {
  PrimitiveDesc desc = make();
  while (desc && !name.empty()) {
    if (implementation_of(desc) == name) return desc;
    if (dnnl_primitive_desc_next_impl(desc.get()) != dnnl_success) return make();
  }
  return desc;
}

bool has_slow_post_ops(const PrimitiveDesc& desc) {
  const std::string implementation = implementation_of(desc);
  return implementation.starts_with("ref") || implementation.starts_with("gemm:") ||
         implementation.find(":gemm:") != std::string::npos;
}

namespace {

class Reordering final : public CpuPreparation {
 public:
  Reordering(std::string_view op, const_dnnl_memory_desc_t from, const_dnnl_memory_desc_t to)
      : op_(op), from_(make_memory(op, from)), to_(make_memory(op, to)), bytes_(dnnl_memory_desc_get_size(to)) {
    dnnl_primitive_desc_t created = nullptr;
    expect(dnnl_reorder_primitive_desc_create(&created, from, engine(), to, engine(), attributes(op).get()), op_,
           "a change of layout");
    const PrimitiveDesc desc(created);
    dnnl_primitive_t primitive = nullptr;
    expect(dnnl_primitive_create(&primitive, desc.get()), op_, "a change of layout");
    primitive_.reset(primitive);
    dnnl_stream_t stream = nullptr;
    expect(dnnl_stream_create(&stream, engine(), dnnl_stream_default_flags), op_, "a stream");
    stream_.reset(stream);
    arguments_ = {{DNNL_ARG_FROM, from_.get()}, {DNNL_ARG_TO, to_.get()}};
    const const_dnnl_memory_desc_t pad = pmaptrain::onednn::chosen_layout(desc, DNNL_ARG_SCRATCHPAD);
    if (pad != nullptr && dnnl_memory_desc_get_size(pad) > 0) {
      pad_ = make_memory(op_, pad);
      pad_bytes_ = aligned(dnnl_memory_desc_get_size(pad));
      arguments_.push_back({DNNL_ARG_SCRATCHPAD, pad_.get()});
    }
    layout_ = describe(from) + " as " + describe(to);
  }

  std::size_t bytes() const override { return bytes_; }
  std::size_t scratch_bytes() const override { return pad_bytes_; }
  std::string layout() const override { return layout_; }

  void run(const std::byte* from, std::byte* to, std::byte* scratch) override {
    const auto point = [&](const Memory& memory, const std::byte* data) {
      expect(dnnl_memory_set_data_handle(memory.get(), const_cast<std::byte*>(data)), op_, "an argument's address");
    };
    point(from_, from);
    point(to_, to);
    if (pad_) point(pad_, scratch);
    expect(
        dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data()),
        op_, "an execution");
    expect(dnnl_stream_wait(stream_.get()), op_, "the end of an execution");
  }

 private:
  static std::string describe(const_dnnl_memory_desc_t desc) {
    int dims = 0, blocks = 0;
    const dnnl_dims_t *padded = nullptr, *strides = nullptr, *sizes = nullptr, *indices = nullptr;
    const auto ask = [&](dnnl_query_t what, void* into) {
      expect(dnnl_memory_desc_query(desc, what, into), "a layout", "its description");
    };
    ask(dnnl_query_ndims_s32, &dims);
    ask(dnnl_query_inner_nblks_s32, &blocks);
    ask(dnnl_query_padded_dims, static_cast<void*>(&padded));
    ask(dnnl_query_strides, static_cast<void*>(&strides));
    ask(dnnl_query_inner_blks, static_cast<void*>(&sizes));
    ask(dnnl_query_inner_idxs, static_cast<void*>(&indices));
    dnnl_data_type_t type = dnnl_data_type_undef;
    ask(dnnl_query_data_type, &type);
    std::string text = fmt::format("{}:", static_cast<int>(type));
    for (int d = 0; d < dims; ++d) text += fmt::format("{}/{} ", (*padded)[d], (*strides)[d]);
    for (int i = 0; i < blocks; ++i) text += fmt::format("{}{}", (*sizes)[i], static_cast<char>('a' + (*indices)[i]));
    return text;
  }

  std::string op_, layout_;
  Memory from_, to_, pad_;
  std::size_t bytes_ = 0, pad_bytes_ = 0;
  Primitive primitive_;
  Stream stream_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace

std::unique_ptr<CpuPreparation> make_preparation(std::string_view op, const_dnnl_memory_desc_t from,
                                                 const_dnnl_memory_desc_t to) {
  if (dnnl_memory_desc_equal(from, to) != 0) return nullptr;
  return std::make_unique<Reordering>(op, from, to);
}

Sequence::Sequence(std::string_view op, const CpuRequest& request, bool merged)
    : op_(op), calls_(merged ? 1 : request.devices) {
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    operand_stride_.push_back(request.stacked[i] ? bytes(request.operands[i]) : 0);
  }
  for (const Type& type : request.results) result_stride_.push_back(bytes(type));
  dnnl_stream_t stream = nullptr;
  expect(dnnl_stream_create(&stream, engine(), dnnl_stream_default_flags), op_, "a stream");
  stream_.reset(stream);
}

Location Sequence::scratch(const_dnnl_memory_desc_t desc) {
  const Location at{Location::In::scratch, reserved_};
  reserved_ += aligned(dnnl_memory_desc_get_size(desc));
  return at;
}

void Sequence::add(const PrimitiveDesc& desc, const std::vector<Argument>& arguments, bool once) {
  Execution execution;
  execution.once = once;
  dnnl_primitive_t primitive = nullptr;
  expect(dnnl_primitive_create(&primitive, desc.get()), op_, "a primitive's code");
  execution.primitive.reset(primitive);
  for (const Argument& argument : arguments) {
    execution.bound.push_back({make_memory(op_, argument.desc), argument.at});
    execution.arguments.push_back({argument.argument, execution.bound.back().memory.get()});
  }
  const const_dnnl_memory_desc_t pad = chosen_layout(desc, DNNL_ARG_SCRATCHPAD);
  if (pad != nullptr && dnnl_memory_desc_get_size(pad) > 0) {
    execution.pad = make_memory(op_, pad);
    execution.arguments.push_back({DNNL_ARG_SCRATCHPAD, execution.pad.get()});
    largest_pad_ = std::max(largest_pad_, aligned(dnnl_memory_desc_get_size(pad)));
  }
  executions_.push_back(std::move(execution));
}

Location Sequence::reorder(Location from, const_dnnl_memory_desc_t from_desc, const_dnnl_memory_desc_t to_desc,
                           bool once) {
  if (dnnl_memory_desc_equal(from_desc, to_desc) != 0) return from;
  const Location to = scratch(to_desc);
  reorder(from, from_desc, to, to_desc, once);
  return to;
}

void Sequence::reorder(Location from, const_dnnl_memory_desc_t from_desc, Location to, const_dnnl_memory_desc_t to_desc,
                       bool once) {
  dnnl_primitive_desc_t created = nullptr;
  expect(dnnl_reorder_primitive_desc_create(&created, from_desc, engine(), to_desc, engine(), attributes(op_).get()),
         op_, "a change of layout");
  const PrimitiveDesc desc(created);
  add(desc, {{DNNL_ARG_FROM, from_desc, from}, {DNNL_ARG_TO, to_desc, to}}, once);
  const auto name = [](Location at) {
    return (at.in == Location::In::operand ? "operand " : "result ") + std::to_string(at.index);
  };
  layout_changes_.push_back({name(from.in == Location::In::operand ? from : to),
                             (dnnl_memory_desc_get_size(from_desc) + dnnl_memory_desc_get_size(to_desc)) *
                                 static_cast<std::size_t>(once ? 1 : calls_)});
}

void Sequence::use_name_of(const PrimitiveDesc& desc) { implementation_ = implementation_of(desc); }

std::int64_t Sequence::library_calls() const {
  std::int64_t calls = 0;
  for (const Execution& execution : executions_) calls += execution.once ? 1 : calls_;
  return calls;
}

void Sequence::run(const CpuArguments& arguments) {
  alignas(64) static constexpr float negative_zero = -0.0F;
  const auto address = [&](Location at, std::size_t call) -> const std::byte* {
    switch (at.in) {
      case Location::In::operand: return arguments.operands[at.index] + call * operand_stride_[at.index];
      case Location::In::result: return arguments.results[at.index] + call * result_stride_[at.index];
      case Location::In::negative_zero: return reinterpret_cast<const std::byte*>(&negative_zero);
      default: return arguments.scratch + at.index;
    }
  };
  // The C API takes mutable pointers for all arguments, but writes only to results and scratch memory.
  const auto point = [&](const Memory& memory, const std::byte* data) {
    expect(dnnl_memory_set_data_handle(memory.get(), const_cast<std::byte*>(data)), op_, "an argument's address");
  };
  for (std::size_t call = 0; call < static_cast<std::size_t>(calls_); ++call) {
    for (const Execution& execution : executions_) {
      if (execution.once && call > 0) continue;
      for (const Bound& bound : execution.bound) point(bound.memory, address(bound.at, call));
      if (execution.pad) point(execution.pad, arguments.scratch + reserved_);
      expect(dnnl_primitive_execute(execution.primitive.get(), stream_.get(),
                                    static_cast<int>(execution.arguments.size()), execution.arguments.data()),
             op_, "an execution");
    }
  }
  expect(dnnl_stream_wait(stream_.get()), op_, "the end of an execution");
  for (std::size_t call = 0; relu_elements_ > 0 && call < static_cast<std::size_t>(calls_); ++call) {
    dispatch_floating(relu_dtype_, [&]<class T>() {
      auto* const y = reinterpret_cast<T*>(arguments.results[0] + call * result_stride_[0]);
      for (std::size_t i = 0; i < relu_elements_; ++i) y[i] = 0 > y[i] ? T{0} : y[i];
    });
  }
}

}  // namespace pmaptrain::onednn

#endif  // PMAPTRAIN_REFERENCE_KERNELS
