#include "core/ops/reduce/reduce.h"

#include <fmt/format.h>

#include <array>
#include <type_traits>

#include "core/ops/broadcast/broadcast.h"
#include "core/ops/cast/cast.h"
#include "core/ops/elementwise/binary.h"
#include "core/ops/elementwise/compare.h"
#include "core/ops/reduce/groups.h"
#include "core/ops/reduce/loops.h"
#include "core/ops/reduce/vector_loops.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

bool contains(std::span<const std::int64_t> dims, std::size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) != dims.end();
}

std::vector<std::int64_t> kept_dims(const Shape& shape, std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> kept;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!contains(dims, d)) kept.push_back(static_cast<std::int64_t>(d));
  }
  return kept;
}

std::vector<Type> infer_reduce(std::string_view name, const InferContext& context, std::span<const std::int64_t> dims) {
  expect_operands(name, context.operands, 1);
  const Type& x = context.operands[0];
  expect_numeric(name, x.dtype);
  expect_rank(name, x.shape);
  expect_rising_dims(name, dims, x.shape.size());
  Shape shape;
  for (std::int64_t d : kept_dims(x.shape, dims)) shape.push_back(x.shape[static_cast<std::size_t>(d)]);
  return one_result(x.dtype, std::move(shape));
}

}  // namespace

ReduceGroups reduce_groups(const Shape& shape, std::span<const std::int64_t> dims) {
  Dims sizes;
  std::array<bool, max_rank> reduced{};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    const bool is_reduced = contains(dims, d);
    if (sizes.rank > 0 && reduced[sizes.rank - 1] == is_reduced) {
      sizes[sizes.rank - 1] *= shape[d];
    } else {
      reduced[sizes.rank] = is_reduced;
      sizes.push(shape[d]);
    }
  }
  const Dims strides = row_major(sizes.span());
  ReduceGroups groups;
  std::size_t rank = sizes.rank;
  if (rank > 0 && !reduced[rank - 1]) groups.columns = sizes[--rank];
  if (rank > 0 && reduced[rank - 1]) groups.rows = sizes[--rank];
  for (std::size_t i = 0; i < rank; ++i) {
    (reduced[i] ? groups.reduced_sizes : groups.kept_sizes).push(sizes[i]);
    (reduced[i] ? groups.reduced_strides : groups.kept_strides).push(strides[i]);
  }
  groups.kept_result_strides = row_major(groups.kept_sizes.span());
  for (std::size_t i = 0; i < groups.kept_sizes.rank; ++i) groups.kept_result_strides[i] *= groups.columns;
  return groups;
}

namespace {

template <class Reducer, class T>
void reduce(const ReferenceCall& call, std::span<const std::int64_t> dims) {
  T* out = call.results[0].as<T>();
  if (call.operands[0].size() == 0) {
    // Reductions over nothing are sums here; a maximum over nothing was refused.
    std::fill_n(out, call.results[0].size(), T{0});
    return;
  }
  std::fill_n(out, call.results[0].size(), Reducer::template identity<T>());
  const T* x = call.operands[0].as<T>();
  const ReduceGroups groups = reduce_groups(call.operands[0].shape(), dims);
  const auto rows = static_cast<std::size_t>(groups.rows), columns = static_cast<std::size_t>(groups.columns);
  walk(groups.kept_sizes.span(), groups.kept_strides.span(), groups.kept_result_strides.span(),
       [&](std::int64_t from, std::int64_t to) {
         walk(groups.reduced_sizes.span(), groups.reduced_strides.span(), groups.reduced_strides.span(),
              [&](std::int64_t offset, std::int64_t) {
                const T* block = x + from + offset;
                if (columns == 1) {
                  out[to] = Reducer::combine(out[to], reduce_contiguous<Reducer>(block, rows));
                } else {
                  reduce_rows<Reducer>(block, rows, columns, out + to);
                }
              });
       });
}

template <class Reducer>
void run_reduce(const ReferenceCall& call, std::span<const std::int64_t> dims) {
  dispatch_arithmetic(call.operands[0].dtype(), [&]<class T>() { reduce<Reducer, T>(call, dims); });
}

}  // namespace

std::vector<Type> ReduceSum::infer(const InferContext& context) const {
  std::vector<Type> results = infer_reduce(name, context, dims);
  results[0].dtype = result_dtype(name, results[0].dtype, preferred_element_type);
  return results;
}

Cost ReduceSum::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, static_cast<double>(numel(operands[0])));
}

Cotangents ReduceSum::derivative(VjpContext& context) const {
  const Type x = context.b.type(context.operands[0]);
  const Value dy = as_dtype(context.b, x.dtype, *context.cotangents[0]);
  return {context.b.emit(Broadcast{x.shape, kept_dims(x.shape, dims)}, {dy})};
}

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> ReduceSum::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> ReduceMax::cpu(const CpuRequest&) const { return nullptr; }

#else

namespace {

// The reduction of all elements of each device, without the loops over dimensions of a general reduction, which take
// longer than a step's few scalars.
template <class Reducer, class T>
class WholeReduction final : public CpuKernel {
 public:
  explicit WholeReduction(const CpuRequest& request)
      : elements_(static_cast<std::size_t>(numel(request.operands[0]))),
        stride_(request.stacked[0] ? elements_ : 0),
        devices_(static_cast<std::size_t>(request.devices)) {}

  void run(const CpuArguments& arguments) override {
    const T* const x = reinterpret_cast<const T*>(arguments.operands[0]);
    T* const results = reinterpret_cast<T*>(arguments.results[0]);
    for (std::size_t d = 0; d < devices_; ++d) results[d] = reduction_of(x + d * stride_);
  }
  std::string implementation() const override { return "vectors"; }

 private:
  T reduction_of(const T* x) const {
    if constexpr (std::is_integral_v<T> && std::is_same_v<Reducer, MaxReducer>) {
      // In any order the largest integer is the same, and the compiler finds it with vectors.
      T largest = *x;
      for (std::size_t i = 1; i < elements_; ++i) largest = std::max(largest, x[i]);
      return largest;
    } else {
      return Reducer::combine(Reducer::template identity<T>(), reduce_contiguous<Reducer>(x, elements_));
    }
  }

  std::size_t elements_, stride_, devices_;
};

// Whether a call reduces all elements of each device. A sum of no elements is not what WholeReduction computes: it is
// 0.
bool reduces_all(const CpuRequest& request) {
  return numel(request.results[0]) == 1 && numel(request.operands[0]) > 0 &&
         request.results[0].dtype == request.operands[0].dtype;
}

template <class Reducer>
std::unique_ptr<CpuKernel> make_whole_reduction(const CpuRequest& request) {
  return dispatch_arithmetic(request.operands[0].dtype, [&]<class T>() -> std::unique_ptr<CpuKernel> {
    return std::make_unique<WholeReduction<Reducer, T>>(request);
  });
}

}  // namespace

// Like the reference, with vectors for rows of f32. The order is the same, so results are equal bit for bit.
std::unique_ptr<CpuKernel> ReduceSum::cpu(const CpuRequest& request) const {
  const bool is_f32 = request.results[0].dtype == DType::f32;
  if (reduces_all(request)) {
    if (is_f32) return std::make_unique<WholeReduction<VectorSumReducer, float>>(request);
    return make_whole_reduction<SumReducer>(request);
  }
  if (!is_f32) return nullptr;
  const auto function = [](const void* op, const ReferenceCall& call) {
    reduce<VectorSumReducer, float>(call, static_cast<const ReduceSum*>(op)->dims);
  };
  return make_reference_kernel(std::make_shared<ReduceSum>(*this), function, request, "vectors");
}

// The plain loops of the reference are vectorised for leading and for trailing dimensions.
std::unique_ptr<CpuKernel> ReduceMax::cpu(const CpuRequest& request) const {
  return reduces_all(request) ? make_whole_reduction<MaxReducer>(request) : nullptr;
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

void ReduceSum::reference(const ReferenceCall& call) const { run_reduce<SumReducer>(call, dims); }

Value sum_as(Builder& b, DType dtype, Value x, const std::vector<std::int64_t>& dims) {
  const bool widens = b.type(x).dtype == DType::bf16 && dtype == DType::f32;
  return as_dtype(b, dtype, b.emit(ReduceSum{dims, widens ? std::optional(dtype) : std::nullopt}, {x}));
}

std::vector<Type> ReduceMax::infer(const InferContext& context) const {
  std::vector<Type> results = infer_reduce(name, context, dims);
  const Type& x = context.operands[0];
  for (std::int64_t d : dims) {
    if (x.shape[static_cast<std::size_t>(d)] > 0) continue;
    throw TypeError(6, fmt::format("{}: {} has no elements along dimension {}", name, describe(x), d),
                    "the maximum of no elements is undefined");
  }
  return results;
}

Cost ReduceMax::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, static_cast<double>(numel(operands[0])));
}

// Each element that equals the maximum gets dy divided by the number of such elements.
Cotangents ReduceMax::derivative(VjpContext& context) const {
  Builder& b = context.b;
  const Value x = context.operands[0];
  const Value dy = *context.cotangents[0];
  const DType dtype = b.type(x).dtype;
  const Broadcast back{b.type(x).shape, kept_dims(b.type(x).shape, dims)};
  const Value is_max = b.emit(Eq{}, {x, b.emit(back, {context.results[0]})});
  const Value count = b.emit(ReduceSum{dims}, {b.emit(Cast{dtype}, {is_max})});
  const Value share = b.emit(back, {b.emit(Div{}, {dy, count})});
  return {b.emit(Select{}, {is_max, share, b.constant(dtype, 0)})};
}

void ReduceMax::reference(const ReferenceCall& call) const { run_reduce<MaxReducer>(call, dims); }

}  // namespace pmaptrain::ops
