// Owning handles for oneDNN's C API. The C API, because with it the argument arrays of an execution
// are built once; its C++ wrapper builds a hash map for each.
//
// Arrays are f32 or bf16, in plain layouts at the boundary; scratch memory is the caller's.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/cpu.h"

namespace pmaptrain::onednn {

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* object) const {
    destroy(object);
  }
};
using Desc = std::unique_ptr<dnnl_memory_desc, Destroy<dnnl_memory_desc_destroy>>;
using Attributes = std::unique_ptr<dnnl_primitive_attr, Destroy<dnnl_primitive_attr_destroy>>;
using PrimitiveDesc = std::unique_ptr<dnnl_primitive_desc, Destroy<dnnl_primitive_desc_destroy>>;
using Primitive = std::unique_ptr<dnnl_primitive, Destroy<dnnl_primitive_destroy>>;
using Memory = std::unique_ptr<dnnl_memory, Destroy<dnnl_memory_destroy>>;
using Stream = std::unique_ptr<dnnl_stream, Destroy<dnnl_stream_destroy>>;

// The process's one CPU engine; any thread may use it.
dnnl_engine_t engine();

// Throws Error (failed) that names the op and what was asked of the library.
void expect(dnnl_status_t status, std::string_view op, std::string_view what);

// Elements of logical sizes `dims` (in oneDNN's order, channels before height), `strides` elements between neighbours.
Desc strided(std::string_view op, DType dtype, const Shape& dims, const Shape& strides);
// In any layout: the primitive chooses.
Desc any_layout(std::string_view op, DType dtype, const Shape& dims);
// A row-major NHWC image and a row-major HWIO kernel, with oneDNN's logical sizes NCHW and OIHW.
Desc image(std::string_view op, DType dtype, std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c);
Desc conv_kernel(std::string_view op, DType dtype, std::int64_t h, std::int64_t w, std::int64_t c, std::int64_t o);

// Attributes for scratch memory from the caller and f32 computed in f32, whatever the environment variables of the
// library say. With `relu`, the primitive passes its result through relu and needs the argument relu_slope.
//
// The relu is the library's prelu with a slope of -0: its relu would turn a NaN into 0, and the guard against values
// that are not finite would miss it. This one keeps a NaN, gives +0 for what is below 0, and NaN for -inf.
Attributes attributes(std::string_view op, bool relu = false);

// Takes the status and the handle that a ..._primitive_desc_create gave. Null where the library has no implementation.
PrimitiveDesc take(std::string_view op, dnnl_status_t status, dnnl_primitive_desc_t created);

// The layout that a primitive chose for one of its arguments; lives as long as `desc`.
const_dnnl_memory_desc_t layout(const PrimitiveDesc& desc, int argument);

// Where an argument of a primitive lies: the i-th operand or result of the call, or an offset into the scratch memory.
struct Location {
  enum class In { operand, result, scratch, negative_zero } in;
  std::size_t index;
};
inline Location operand(std::size_t i) { return {Location::In::operand, i}; }
inline Location result(std::size_t i) { return {Location::In::result, i}; }

struct Argument {
  int argument;  // DNNL_ARG_...
  const_dnnl_memory_desc_t desc;
  Location at;
};

// The additional argument of a primitive with the attribute `relu`.
Argument relu_slope();

// Whether the library executes the post-ops of a primitive (relu) in plain, slow loops: its references do, and outside
// brgemm its GEMM-based primitives, which machines without AVX2 use (measured there: relu takes 100 times as long as
// the convolution).
bool is_slow_to_follow(const PrimitiveDesc& desc);

// The library's name of the primitive's implementation: "brg:avx512_core", "gemm:jit:f32".
std::string implementation_of(const PrimitiveDesc& desc);

// A change of layout (a reorder); null where the two are equal. The caller may destroy `to` afterwards.
std::unique_ptr<CpuPreparation> make_preparation(std::string_view op, const_dnnl_memory_desc_t from,
                                                 const_dnnl_memory_desc_t to);

// A kernel that runs primitives one after another: once for all devices of a request where they are `merged` into one
// batch, else for each device in turn.
class Sequence : public CpuKernel {
 public:
  Sequence(std::string_view op, const CpuRequest& request, bool merged);

  // Reserves scratch memory for an array that one primitive writes and a later one reads.
  Location scratch(const_dnnl_memory_desc_t desc);

  // Appends a primitive. With `once` it runs for the first device only: its result, computed from operands that are not
  // stacked, serves all devices.
  void add(const PrimitiveDesc& desc, const std::vector<Argument>& arguments, bool once = false);
  // Appends a change of layout, or nothing where the layouts are equal. Returns where `to` is then found.
  Location reorder(Location from, const_dnnl_memory_desc_t from_desc, const_dnnl_memory_desc_t to_desc,
                   bool once = false);
  // The same towards a given place; the layouts differ.
  void reorder(Location from, const_dnnl_memory_desc_t from_desc, Location to, const_dnnl_memory_desc_t to_desc,
               bool once = false);

  // After the primitives, relu is applied to the first result, of `dtype`, by a loop of ours, for primitives that are
  // slow to follow.
  void relu_after(DType dtype, std::int64_t elements) {
    relu_dtype_ = dtype;
    relu_elements_ = static_cast<std::size_t>(elements);
  }

  // Sets implementation() to the library's name of this primitive, the one that takes most of the time.
  void named(const PrimitiveDesc& desc);

  std::int64_t library_calls() const override;

  void run(const CpuArguments& arguments) override;
  std::size_t scratch_bytes() const override { return reserved_ + largest_pad_; }
  std::string implementation() const override { return implementation_; }
  std::vector<LayoutChange> layout_changes() const override { return layout_changes_; }

 private:
  struct Bound {
    Memory memory;
    Location at;
  };
  struct Execution {
    Primitive primitive;
    std::vector<Bound> bound;
    std::vector<dnnl_exec_arg_t> arguments;
    Memory pad;  // the primitive's own scratch memory; null where it needs none
    bool once = false;
  };

  std::string op_;
  std::int64_t calls_;
  std::vector<std::size_t> operand_stride_, result_stride_;  // bytes from one call's array to the next one's
  std::vector<Execution> executions_;
  std::vector<LayoutChange> layout_changes_;
  std::size_t reserved_ = 0;
  std::size_t largest_pad_ = 0;    // shared by all primitives: it follows the reserved memory
  std::size_t relu_elements_ = 0;  // of the first result in one call
  DType relu_dtype_ = DType::f32;
  std::string implementation_;
  Stream stream_;
};

}  // namespace pmaptrain::onednn

#endif  // PMAPTRAIN_REFERENCE_KERNELS
