// Owning handles for oneDNN's C API. The C API lets us build the argument array of an execution once; the C++ wrapper
// builds a hash map for each execution.
//
// Arrays are f32 or bf16, in plain layouts at the boundary. Callers provide scratch memory.
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

// The CPU engine of the process; any thread may use it.
dnnl_engine_t engine();

// Throws Error (failed) if `status` is not success. The message contains the op and `what` was requested.
void expect(dnnl_status_t status, std::string_view op, std::string_view what);

// A layout with logical sizes `dims` (in oneDNN's order, channels before height) and `strides`, in elements.
Desc strided(std::string_view op, DType dtype, const Shape& dims, const Shape& strides);
// An unspecified layout, which the primitive chooses.
Desc any_layout(std::string_view op, DType dtype, const Shape& dims);
// A row-major NHWC image or a row-major HWIO kernel, with oneDNN's logical sizes NCHW and OIHW.
Desc image(std::string_view op, DType dtype, std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c);
Desc conv_kernel(std::string_view op, DType dtype, std::int64_t h, std::int64_t w, std::int64_t c, std::int64_t o);

// Attributes that let the caller provide scratch memory, and that compute f32 in f32, whatever environment variables of
// the library say. With `relu`, the primitive applies relu to its result and needs the argument relu_slope().
//
// The relu is the library's prelu with a slope of -0. The library's own relu turns a NaN into 0, which would hide it
// from the guard against non-finite values. This one keeps a NaN, returns +0 for negative values, and NaN for -inf.
Attributes attributes(std::string_view op, bool relu = false);

// Takes the results of a ..._primitive_desc_create call. Returns null if the library has no implementation.
PrimitiveDesc take(std::string_view op, dnnl_status_t status, dnnl_primitive_desc_t created);

// The layout that a primitive chose for an argument. It is valid as long as `desc`.
const_dnnl_memory_desc_t layout(const PrimitiveDesc& desc, int argument);

// The memory of a primitive's argument: the i-th operand or result of the call, or an offset into the scratch memory.
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

// Whether the library executes the post-ops (relu) of a primitive in slow scalar loops. This is true of its reference
// primitives, and of GEMM-based primitives outside brgemm, which are used without AVX2. There, relu was measured to
// take 100 times as long as the convolution.
bool is_slow_to_follow(const PrimitiveDesc& desc);

// The library's name for the implementation of a primitive, for example "brg:avx512_core", "gemm:jit:f32".
std::string implementation_of(const PrimitiveDesc& desc);

// A change of layout (a reorder); null if the layouts are equal. The caller may destroy `to` afterwards.
std::unique_ptr<CpuPreparation> make_preparation(std::string_view op, const_dnnl_memory_desc_t from,
                                                 const_dnnl_memory_desc_t to);

// A kernel that runs primitives one after another: once for all devices of a request if they are `merged` into one
// batch, else for each device in turn.
class Sequence : public CpuKernel {
 public:
  Sequence(std::string_view op, const CpuRequest& request, bool merged);

  // Reserves scratch memory for an array that one primitive writes and a later one reads.
  Location scratch(const_dnnl_memory_desc_t desc);

  // Appends a primitive. With `once`, it runs for the first device only, and all devices use its result; its operands
  // must not be stacked.
  void add(const PrimitiveDesc& desc, const std::vector<Argument>& arguments, bool once = false);
  // Appends a change of layout, unless the layouts are equal. Returns the location of the result.
  Location reorder(Location from, const_dnnl_memory_desc_t from_desc, const_dnnl_memory_desc_t to_desc,
                   bool once = false);
  // The same with a given location of the result. The layouts must differ.
  void reorder(Location from, const_dnnl_memory_desc_t from_desc, Location to, const_dnnl_memory_desc_t to_desc,
               bool once = false);

  // Applies relu to the first result, of type `dtype`, by a loop of ours after the primitives. Used if
  // is_slow_to_follow().
  void relu_after(DType dtype, std::int64_t elements) {
    relu_dtype_ = dtype;
    relu_elements_ = static_cast<std::size_t>(elements);
  }

  // Makes implementation() return the name of this primitive, which should be the one that takes most of the time.
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
    Memory pad;  // scratch memory of the primitive itself; null if it needs none
    bool once = false;
  };

  std::string op_;
  std::int64_t calls_;
  // Distances in bytes between the arrays of successive calls.
  std::vector<std::size_t> operand_stride_, result_stride_;
  std::vector<Execution> executions_;
  std::vector<LayoutChange> layout_changes_;
  std::size_t reserved_ = 0;
  std::size_t largest_pad_ = 0;    // scratch memory that all primitives share; it follows the reserved memory
  std::size_t relu_elements_ = 0;  // elements of the first result in one call
  DType relu_dtype_ = DType::f32;
  std::string implementation_;
  Stream stream_;
};

}  // namespace pmaptrain::onednn

#endif  // PMAPTRAIN_REFERENCE_KERNELS
