// Owning handles for oneDNN's C API, and kernels that consist of its primitives. With the C API, the argument array of
// an execution is built once; oneDNN's C++ API builds a hash map for each execution.
//
// Arrays are f32 or bf16. Operands and results have plain (row-major) layouts, except packed operands. Scratch memory
// comes from the caller.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <oneapi/dnnl/dnnl.h>

#include <functional>
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
using MemoryDesc = std::unique_ptr<dnnl_memory_desc, Destroy<dnnl_memory_desc_destroy>>;
using Attributes = std::unique_ptr<dnnl_primitive_attr, Destroy<dnnl_primitive_attr_destroy>>;
using PrimitiveDesc = std::unique_ptr<dnnl_primitive_desc, Destroy<dnnl_primitive_desc_destroy>>;
using Primitive = std::unique_ptr<dnnl_primitive, Destroy<dnnl_primitive_destroy>>;
using Memory = std::unique_ptr<dnnl_memory, Destroy<dnnl_memory_destroy>>;
using Stream = std::unique_ptr<dnnl_stream, Destroy<dnnl_stream_destroy>>;

// The CPU engine of the process; any thread may use it.
dnnl_engine_t engine();

// Throws Error (failed) if `status` is not success. The message contains the op and `what` was requested.
void expect(dnnl_status_t status, std::string_view op, std::string_view what);

// Describes an array with sizes `dims`, in oneDNN's order (channels before height), and `strides` in elements.
MemoryDesc strided_desc(std::string_view op, DType dtype, const Shape& dims, const Shape& strides);
// Describes an array whose layout the primitive chooses.
MemoryDesc any_layout_desc(std::string_view op, DType dtype, const Shape& dims);
// Describes row-major images of this shape, NHWC, or volumes NDHWC, with the sizes in oneDNN's order, NCHW or NCDHW.
MemoryDesc channels_last_desc(std::string_view op, DType dtype, const Shape& shape);

// Attributes of a primitive: the caller provides scratch memory, and f32 arrays are computed in f32, whatever
// environment variables of the library say. With `relu`, the primitive applies relu to its result, and needs the
// argument relu_slope().
//
// This relu is the library's prelu (x < 0 ? slope * x : x) with a slope of -0. It keeps NaNs, so that the guard against
// non-finite values finds them; the library's relu turns a NaN into 0. It returns +0 for negative values, and NaN for
// -inf.
Attributes attributes(std::string_view op, bool relu = false);

// Owns the primitive descriptor that a ..._primitive_desc_create() call has created. Returns null if its status says
// that the library has no implementation; throws as expect() for other errors.
PrimitiveDesc own_primitive_desc(std::string_view op, dnnl_status_t status, dnnl_primitive_desc_t created);

// The layout that a primitive chose for an argument. It is valid as long as `desc`.
const_dnnl_memory_desc_t chosen_layout(const PrimitiveDesc& desc, int argument);

// The memory of a primitive's argument: the operand or result `index` of the kernel, the scratch memory from the offset
// `index` on, or a constant -0.
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

// Whether the library executes the post-ops of a primitive (here relu) in slow scalar loops. It does so for its
// reference primitives, and for primitives based on GEMM but not on brgemm, which it uses on CPUs without AVX2. For
// these, relu was measured to take 100 times as long as the convolution.
bool has_slow_post_ops(const PrimitiveDesc& desc);

// The library's name for the implementation of a primitive, for example "brg:avx512_core", "gemm:jit:f32".
std::string implementation_of(const PrimitiveDesc& desc);

// Of the library's implementations the one with this name. The first, which make() creates, if there is no such one, or
// if the name is empty.
PrimitiveDesc prefer(std::string_view name, const std::function<PrimitiveDesc()>& make);

// Packs an operand by a reorder from one layout to another. Returns null if the layouts are equal. The caller may
// destroy `from` and `to` afterwards.
std::unique_ptr<CpuPreparation> make_preparation(std::string_view op, const_dnnl_memory_desc_t from,
                                                 const_dnnl_memory_desc_t to);

// A kernel that runs primitives one after another. If `merged` is true, they process all devices of the request as one
// batch; otherwise they run for each device in turn.
class Sequence : public CpuKernel {
 public:
  Sequence(std::string_view op, const CpuRequest& request, bool merged);

  // Reserves scratch memory for an array that one primitive writes and a later one reads.
  Location scratch(const_dnnl_memory_desc_t desc);

  // Appends a primitive. With `once`, it runs for the first device only, and all devices use its result; its operands
  // must not be stacked.
  void add(const PrimitiveDesc& desc, const std::vector<Argument>& arguments, bool once = false);
  // Appends a reorder to scratch memory, unless the layouts are equal. Returns the location of the result.
  Location reorder(Location from, const_dnnl_memory_desc_t from_desc, const_dnnl_memory_desc_t to_desc,
                   bool once = false);
  // Appends a reorder whose result is `to`. The layouts must differ.
  void reorder(Location from, const_dnnl_memory_desc_t from_desc, Location to, const_dnnl_memory_desc_t to_desc,
               bool once = false);

  // Makes run() apply relu to the first result, of `elements` elements, in a loop after the primitives. This replaces
  // the attribute `relu` of a primitive for which has_slow_post_ops() is true.
  void apply_relu_afterwards(DType dtype, std::int64_t elements) {
    relu_dtype_ = dtype;
    relu_elements_ = static_cast<std::size_t>(elements);
  }

  // Makes implementation() return the name of this primitive. Callers pass the one that takes most of the time.
  void use_name_of(const PrimitiveDesc& desc);

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
