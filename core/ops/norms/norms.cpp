#include "core/ops/norms/norms.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/ops/norms/simd.h"
#include "core/ops/support/arithmetic.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

template <class T>
struct Found {
  double squares;
  T largest;
};

// The norms of n elements. `add(n, x, sums, largest)` processes a multiple of norm_sums elements.
template <class T, class Add>
Found<T> norms_of(std::size_t n, const T* x, Add&& add) {
  std::array<double, norm_sums> sums{};
  std::array<T, norm_sums> largest{};
  const std::size_t whole = n / norm_sums * norm_sums;
  add(whole, x, sums.data(), largest.data());
  for (std::size_t i = whole; i < n; ++i) {
    const double wide = x[i];
    sums[i - whole] += wide * wide;
    largest[i - whole] = larger(largest[i - whole], std::abs(x[i]));
  }
  for (std::size_t half = norm_sums / 2; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) {
      sums[j] += sums[j + half];
      largest[j] = larger(largest[j], largest[j + half]);
    }
  }
  // The sum is NaN if and only if an element is.
  return {sums[0], std::isnan(sums[0]) ? static_cast<T>(sums[0]) : largest[0]};
}

template <class T>
void add_plainly(std::size_t n, const T* x, double* sums, T* largest) {
  for (std::size_t i = 0; i < n; ++i) {
    const double wide = x[i];
    sums[i % norm_sums] += wide * wide;
    largest[i % norm_sums] = larger(largest[i % norm_sums], std::abs(x[i]));
  }
}

}  // namespace

std::vector<Type> Norms::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  const Type& x = context.operands[0];
  if (!is_floating(x.dtype)) {
    throw TypeError(6, fmt::format("{}: {} is not floating", name, describe(x)), "cast it to f32 or f64 first");
  }
  if (x.shape.empty()) {
    throw TypeError(6, fmt::format("{}: {} has no dimension", name, describe(x)), "reshape it to [1] first");
  }
  const Shape rows(x.shape.begin(), x.shape.end() - 1);
  return {{DType::f64, rows, {}}, {x.dtype, rows, {}}};
}

Cost Norms::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, 2 * static_cast<double>(numel(operands[0])));
}

void Norms::reference(const ReferenceCall& call) const {
  dispatch_floating_arithmetic(call.operands[0].dtype(), [&]<class T>() {
    const auto n = static_cast<std::size_t>(call.operands[0].shape().back());
    for (std::int64_t row = 0; row < call.results[0].size(); ++row) {
      const T* const x = call.operands[0].as<T>() + static_cast<std::size_t>(row) * n;
      const auto [squares, largest] = norms_of(n, x, add_plainly<T>);
      call.results[0].as<double>()[row] = squares;
      call.results[1].as<T>()[row] = largest;
    }
  });
}

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> Norms::cpu(const CpuRequest&) const { return nullptr; }

#else

namespace {

class VectorNorms final : public CpuKernel {
 public:
  explicit VectorNorms(const CpuRequest& request)
      : row_(static_cast<std::size_t>(request.operands[0].shape.back())),
        rows_(static_cast<std::size_t>(numel(request.results[0]))),
        stride_(request.stacked[0] ? rows_ * row_ : 0),
        devices_(static_cast<std::size_t>(request.devices)) {}

  void run(const CpuArguments& arguments) override {
    const float* const x = reinterpret_cast<const float*>(arguments.operands[0]);
    double* const squares = reinterpret_cast<double*>(arguments.results[0]);
    float* const largest = reinterpret_cast<float*>(arguments.results[1]);
    for (std::size_t d = 0; d < devices_; ++d) {
      if (row_ % norm_sums == 0) {
        norms_of_rows(rows_, row_, x + d * stride_, squares + d * rows_, largest + d * rows_);
        continue;
      }
      for (std::size_t row = 0; row < rows_; ++row) {
        const Found<float> found = norms_of(row_, x + d * stride_ + row * row_, add_norms);
        squares[d * rows_ + row] = found.squares;
        largest[d * rows_ + row] = found.largest;
      }
    }
  }
  std::string implementation() const override { return "vectors"; }

 private:
  std::size_t row_, rows_, stride_, devices_;
};

}  // namespace

std::unique_ptr<CpuKernel> Norms::cpu(const CpuRequest& request) const {
  if (request.operands[0].dtype != DType::f32) return nullptr;
  return std::make_unique<VectorNorms>(request);
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

}  // namespace pmaptrain::ops
