#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/saturate.h"
#include "core/ops/recurrent/cell.h"
#include "core/ops/recurrent/recurrent.h"
#include "core/ops/recurrent/simd.h"

namespace pmaptrain::ops {

#ifdef PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuKernel> Lstm::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> LstmGrad::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> Gru::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuKernel> GruGrad::cpu(const CpuRequest&) const { return nullptr; }
std::unique_ptr<CpuPreparation> prepare_recurrent(const CpuRequest&, std::size_t) { return nullptr; }

#else

namespace {

// The most rows that go through all positions together: what they carry stays in the caches.
constexpr std::int64_t most_rows = 64;

std::size_t unsigned_of(std::int64_t size) { return static_cast<std::size_t>(size); }

class PanelPreparation final : public CpuPreparation {
 public:
  explicit PanelPreparation(const Shape& matrix) : depth_(unsigned_of(matrix[0])), columns_(unsigned_of(matrix[1])) {}
  std::size_t bytes() const override { return depth_ * in_panels(columns_) * sizeof(float); }
  std::string layout() const override {
    return "panels of [" + std::to_string(depth_) + "," + std::to_string(columns_) + "]";
  }
  void run(const std::byte* from, std::byte* to, std::byte*) override {
    pack_panels(depth_, columns_, reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to));
  }

 private:
  std::size_t depth_, columns_;
};

// What all kernels share. The examples of all devices are numbered one after another: rows of a batch, which go through
// the positions together, as far as they read one matrix.
class RecurrentKernel : public CpuKernel {
 public:
  // `matrix` is the operand that the rows are multiplied with.
  RecurrentKernel(const CpuRequest& request, const RecurrentSizes& sizes, bool reverse, std::size_t matrix)
      : sizes_(sizes),
        steps_{sizes.positions, reverse},
        features_(unsigned_of(sizes.features)),
        devices_(request.devices),
        matrix_(matrix),
        depth_(unsigned_of(request.operands[matrix].shape[0])),
        columns_(unsigned_of(request.operands[matrix].shape[1])),
        packed_(request.packed == matrix) {
    for (std::size_t i = 0; i < request.operands.size(); ++i) {
      const Shape& shape = request.operands[i].shape;
      operands_.push_back({shape.back(), request.stacked[i] ? numel(shape) : 0});
    }
    for (const Type& result : request.results) results_.push_back(result.shape.back());
    const auto rows = std::min(most_rows, sizes.examples * (operands_[matrix].stride > 0 ? 1 : devices_));
    rows_ = round_up(unsigned_of(rows), recurrent_rows);
    if (!packed_) panels_ = place(depth_ * in_panels(columns_));
  }

  std::size_t scratch_bytes() const override { return scratch_ * sizeof(float); }
  std::string implementation() const override { return "recurrence by panels"; }

  void run(const CpuArguments& arguments) override {
    const std::int64_t apart = operands_[matrix_].stride > 0 ? devices_ : 1;  // the devices with matrices of their own
    const std::int64_t together = sizes_.examples * devices_ / apart;
    for (std::int64_t device = 0; device < apart; ++device) {
      const float* panels =
          reinterpret_cast<const float*>(arguments.operands[matrix_]) + device * operands_[matrix_].stride;
      if (!packed_) {
        pack_panels(depth_, columns_, panels, in(panels_, arguments));
        panels = in(panels_, arguments);
      }
      for (std::int64_t row = 0; row < together; row += most_rows) {
        run_rows(arguments, device * together + row, std::min(most_rows, together - row), panels);
      }
    }
  }

 protected:
  // Takes `count` rows, from the row `first` on, through all positions.
  virtual void run_rows(const CpuArguments& arguments, std::int64_t first, std::int64_t count,
                        const float* panels) const = 0;

  // Rows in scratch memory, `row` elements apart: not a multiple of the distance at which caches put lines in one set.
  struct Place {
    std::size_t at = 0, row = 0;
  };
  Place place(std::size_t floats) { return {std::exchange(scratch_, scratch_ + round_up(floats, 16)), 0}; }
  Place place_rows(std::size_t columns) {
    const std::size_t row = in_panels(columns) + 16;
    return {place(rows_ * row).at, row};
  }
  static float* in(Place place, const CpuArguments& arguments, std::int64_t row = 0) {
    return reinterpret_cast<float*>(arguments.scratch) + place.at + unsigned_of(row) * place.row;
  }
  void clear(Place place, const CpuArguments& arguments) const {
    std::fill_n(in(place, arguments), rows_ * place.row, 0.0F);
  }

  // A row of an operand at a position, and of a result.
  const float* operand(const CpuArguments& arguments, std::size_t i, std::int64_t row, std::int64_t position) const {
    const std::int64_t device = row / sizes_.examples, example = row % sizes_.examples;
    return reinterpret_cast<const float*>(arguments.operands[i]) + device * operands_[i].stride +
           sizes_.row(example, position) * operands_[i].columns;
  }
  float* result(const CpuArguments& arguments, std::size_t i, std::int64_t row, std::int64_t position) const {
    return reinterpret_cast<float*>(arguments.results[i]) + sizes_.row(row, position) * results_[i];
  }
  // A vector operand, for a row.
  const float* vector(const CpuArguments& arguments, std::size_t i, std::int64_t row) const {
    return reinterpret_cast<const float*>(arguments.operands[i]) + row / sizes_.examples * operands_[i].stride;
  }

  // to = the product of the rows, or to + the product.
  void multiply(const CpuArguments& arguments, std::int64_t count, Place rows, const float* panels, Place to,
                bool add) const {
    multiply_panels(unsigned_of(count), depth_, columns_, in(rows, arguments), rows.row, panels, in(to, arguments),
                    to.row, add);
  }

  RecurrentSizes sizes_;
  Steps steps_;
  std::size_t features_;

 private:
  struct Operand {
    std::int64_t columns, stride;  // of the last dimension; from one device to the next
  };
  std::int64_t devices_;
  std::size_t matrix_, depth_, columns_;
  bool packed_;
  std::vector<Operand> operands_;
  std::vector<std::int64_t> results_;   // their columns
  std::size_t rows_ = 0, scratch_ = 0;  // the most rows that run together; floats
  Place panels_;
};

class LstmForward final : public RecurrentKernel {
 public:
  LstmForward(const CpuRequest& request, bool reverse)
      : RecurrentKernel(request, {request.operands[0].shape, Lstm::gates}, reverse, 1),
        sums_(place_rows(Lstm::gates * features_)),
        hidden_(place_rows(features_)),
        cells_(place_rows(features_)) {}

 private:
  void run_rows(const CpuArguments& a, std::int64_t first, std::int64_t count, const float* panels) const override {
    for (const Place each : {sums_, hidden_, cells_}) clear(each, a);
    for (std::int64_t step = 0; step < steps_.count; ++step) {
      const std::int64_t position = steps_.at(step);
      for (std::int64_t r = 0; r < count; ++r) {
        std::copy_n(operand(a, 0, first + r, position), Lstm::gates * features_, in(sums_, a, r));
      }
      if (step > 0) multiply(a, count, hidden_, panels, sums_, true);
      for (std::int64_t r = 0; r < count; ++r) {
        float *const hidden = in(hidden_, a, r), *const cell = in(cells_, a, r);
        lstm_cell(features_, in(sums_, a, r), cell, hidden, result(a, 2, first + r, position));
        std::copy_n(hidden, features_, result(a, 0, first + r, position));
        std::copy_n(cell, features_, result(a, 1, first + r, position));
      }
    }
  }

  Place sums_, hidden_, cells_;
};

class LstmBackward final : public RecurrentKernel {
 public:
  LstmBackward(const CpuRequest& request, bool reverse)
      : RecurrentKernel(request, {request.operands[1].shape, 1}, reverse, 0),
        dsums_(place_rows(Lstm::gates * features_)),
        dhidden_(place_rows(features_)),
        dcells_(place_rows(features_)),
        zeros_(place_rows(features_)) {}

 private:
  void run_rows(const CpuArguments& a, std::int64_t first, std::int64_t count, const float* panels) const override {
    for (const Place each : {dsums_, dhidden_, dcells_, zeros_}) clear(each, a);
    for (std::int64_t step = steps_.count; step-- > 0;) {
      const std::int64_t position = steps_.at(step);
      for (std::int64_t r = 0; r < count; ++r) {
        const std::int64_t row = first + r;
        const float* const before = step > 0 ? operand(a, 1, row, steps_.at(step - 1)) : in(zeros_, a);
        lstm_cell_gradient(features_, operand(a, 2, row, position), operand(a, 1, row, position), before,
                           operand(a, 3, row, position), in(dhidden_, a, r), in(dcells_, a, r), in(dsums_, a, r));
        std::copy_n(in(dsums_, a, r), Lstm::gates * features_, result(a, 0, row, position));
      }
      if (step > 0) multiply(a, count, dsums_, panels, dhidden_, false);
    }
  }

  Place dsums_, dhidden_, dcells_, zeros_;
};

class GruForward final : public RecurrentKernel {
 public:
  GruForward(const CpuRequest& request, bool reverse)
      : RecurrentKernel(request, {request.operands[0].shape, Gru::gates}, reverse, 1),
        sums_(place_rows(Gru::gates * features_)),
        hidden_(place_rows(features_)) {}

 private:
  void run_rows(const CpuArguments& a, std::int64_t first, std::int64_t count, const float* panels) const override {
    for (const Place each : {sums_, hidden_}) clear(each, a);
    for (std::int64_t step = 0; step < steps_.count; ++step) {
      const std::int64_t position = steps_.at(step);
      for (std::int64_t r = 0; r < count; ++r) {
        std::copy_n(operand(a, 0, first + r, position), 2 * features_, in(sums_, a, r));
        std::copy_n(vector(a, 2, first + r), features_, in(sums_, a, r) + 2 * features_);
      }
      if (step > 0) multiply(a, count, hidden_, panels, sums_, true);
      for (std::int64_t r = 0; r < count; ++r) {
        float* const hidden = in(hidden_, a, r);
        gru_cell(features_, in(sums_, a, r), operand(a, 0, first + r, position) + 2 * features_, hidden,
                 result(a, 1, first + r, position));
        std::copy_n(hidden, features_, result(a, 0, first + r, position));
      }
    }
  }

  Place sums_, hidden_;
};

class GruBackward final : public RecurrentKernel {
 public:
  GruBackward(const CpuRequest& request, bool reverse)
      : RecurrentKernel(request, {request.operands[1].shape, 1}, reverse, 0),
        dproducts_(place_rows(Gru::gates * features_)),
        dhidden_(place_rows(features_)),
        zeros_(place_rows(features_)) {}

 private:
  void run_rows(const CpuArguments& a, std::int64_t first, std::int64_t count, const float* panels) const override {
    for (const Place each : {dproducts_, dhidden_, zeros_}) clear(each, a);
    for (std::int64_t step = steps_.count; step-- > 0;) {
      const std::int64_t position = steps_.at(step);
      for (std::int64_t r = 0; r < count; ++r) {
        const std::int64_t row = first + r;
        const float* const before = step > 0 ? operand(a, 1, row, steps_.at(step - 1)) : in(zeros_, a);
        float *const dx = result(a, 0, row, position), *const dproducts = in(dproducts_, a, r);
        gru_cell_gradient(features_, operand(a, 2, row, position), before, operand(a, 3, row, position),
                          in(dhidden_, a, r), dx, dproducts + 2 * features_);
        std::copy_n(dx, 2 * features_, dproducts);
        std::copy_n(dproducts, Gru::gates * features_, result(a, 1, row, position));
      }
      if (step > 0) multiply(a, count, dproducts_, panels, dhidden_, true);
    }
  }

  Place dproducts_, dhidden_, zeros_;
};

template <class Kernel>
std::unique_ptr<CpuKernel> make_recurrent(const CpuRequest& request, bool reverse) {
  if (request.results[0].dtype != DType::f32) return nullptr;
  return std::make_unique<Kernel>(request, reverse);
}

}  // namespace

std::unique_ptr<CpuKernel> Lstm::cpu(const CpuRequest& request) const {
  return make_recurrent<LstmForward>(request, reverse);
}
std::unique_ptr<CpuKernel> LstmGrad::cpu(const CpuRequest& request) const {
  return make_recurrent<LstmBackward>(request, reverse);
}
std::unique_ptr<CpuKernel> Gru::cpu(const CpuRequest& request) const {
  return make_recurrent<GruForward>(request, reverse);
}
std::unique_ptr<CpuKernel> GruGrad::cpu(const CpuRequest& request) const {
  return make_recurrent<GruBackward>(request, reverse);
}

std::unique_ptr<CpuPreparation> prepare_recurrent(const CpuRequest& request, std::size_t matrix) {
  if (request.results[0].dtype != DType::f32 || request.stacked[matrix]) return nullptr;
  return std::make_unique<PanelPreparation>(request.operands[matrix].shape);
}

#endif  // PMAPTRAIN_REFERENCE_KERNELS

std::unique_ptr<CpuPreparation> Lstm::prepare(const CpuRequest& request) const { return prepare_recurrent(request, 1); }
std::unique_ptr<CpuPreparation> LstmGrad::prepare(const CpuRequest& request) const {
  return prepare_recurrent(request, 0);
}
std::unique_ptr<CpuPreparation> Gru::prepare(const CpuRequest& request) const { return prepare_recurrent(request, 1); }
std::unique_ptr<CpuPreparation> GruGrad::prepare(const CpuRequest& request) const {
  return prepare_recurrent(request, 0);
}

}  // namespace pmaptrain::ops
