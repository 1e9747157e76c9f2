// Plain loops over examples, positions and features. Sums of products are added in the order of their index, from zero,
// and then to what a cell has besides.
#include <cmath>
#include <vector>

#include "core/ops/matmul/inner.h"
#include "core/ops/recurrent/cell.h"
#include "core/ops/recurrent/recurrent.h"

namespace pmaptrain::ops {
namespace {

// Calls f<T>() for the floating types that references compute in.
template <class F>
void in_type(DType dtype, const F& f) {
  dtype == DType::f64 ? f.template operator()<double>() : f.template operator()<float>();
}

// Column `column` of the product of a row of n elements with a matrix of `columns` columns; 0 without a row.
template <class T>
T product_with_column(std::int64_t n, const T* row, const T* matrix, std::int64_t columns, std::int64_t column) {
  T sum{};
  for (std::int64_t k = 0; row != nullptr && k < n; ++k) sum = multiply_add(sum, row[k], matrix[k * columns + column]);
  return sum;
}

}  // namespace

void Lstm::reference(const ReferenceCall& call) const {
  const RecurrentSizes sizes(call.operands[0].shape(), gates);
  const std::int64_t features = sizes.features, columns = gates * features;
  const Steps steps{sizes.positions, reverse};
  in_type(call.results[0].dtype(), [&]<class T>() {
    const T *const x = call.operands[0].as<T>(), *const kernel = call.operands[1].as<T>();
    for (std::int64_t example = 0; example < sizes.examples; ++example) {
      const T *hidden = nullptr, *cells = nullptr;  // of the step before
      for (std::int64_t step = 0; step < steps.count; ++step) {
        const std::int64_t row = sizes.row(example, steps.at(step));
        T* const out = call.results[0].as<T>() + row * features;
        T* const cells_here = call.results[1].as<T>() + row * features;
        T* const gates_here = call.results[2].as<T>() + row * columns;
        for (std::int64_t f = 0; f < features; ++f) {
          T sums[gates];
          for (std::int64_t gate = 0; gate < gates; ++gate) {
            const std::int64_t column = gate * features + f;
            sums[gate] = x[row * columns + column] + product_with_column(features, hidden, kernel, columns, column);
          }
          const LstmCell<T> cell(sums, cells != nullptr ? cells[f] : T{});
          for (std::int64_t gate = 0; gate < gates; ++gate) gates_here[gate * features + f] = cell.gates[gate];
          cells_here[f] = cell.cell;
          out[f] = cell.out;
        }
        hidden = out, cells = cells_here;
      }
    }
  });
}

void LstmGrad::reference(const ReferenceCall& call) const {
  const RecurrentSizes sizes(call.operands[1].shape(), 1);
  const std::int64_t features = sizes.features, columns = Lstm::gates * features;
  const Steps steps{sizes.positions, reverse};
  in_type(call.results[0].dtype(), [&]<class T>() {
    const T *const kernel = call.operands[0].as<T>(), *const all_cells = call.operands[1].as<T>();
    std::vector<T> carried(static_cast<std::size_t>(features));  // the cotangent of cells from the step behind
    for (std::int64_t example = 0; example < sizes.examples; ++example) {
      carried.assign(carried.size(), T{});
      const T* behind = nullptr;  // dx of the step behind
      for (std::int64_t step = steps.count; step-- > 0;) {
        const std::int64_t row = sizes.row(example, steps.at(step));
        const T* const cells = all_cells + row * features;
        const T* const before = step > 0 ? all_cells + sizes.row(example, steps.at(step - 1)) * features : nullptr;
        const T* const gates = call.operands[2].as<T>() + row * columns;
        const T* const dout = call.operands[3].as<T>() + row * features;
        T* const dx = call.results[0].as<T>() + row * columns;
        for (std::int64_t f = 0; f < features; ++f) {
          const T given[Lstm::gates] = {gates[f], gates[features + f], gates[2 * features + f],
                                        gates[3 * features + f]};
          const LstmCellGradient<T> gradient(given, cells[f], before != nullptr ? before[f] : T{},
                                             dout[f] + product_with_column(columns, behind, kernel, features, f),
                                             carried[static_cast<std::size_t>(f)]);
          for (std::int64_t gate = 0; gate < Lstm::gates; ++gate) dx[gate * features + f] = gradient.gates[gate];
          carried[static_cast<std::size_t>(f)] = gradient.cell;
        }
        behind = dx;
      }
    }
  });
}

void Gru::reference(const ReferenceCall& call) const {
  const RecurrentSizes sizes(call.operands[0].shape(), gates);
  const std::int64_t features = sizes.features, columns = gates * features;
  const Steps steps{sizes.positions, reverse};
  in_type(call.results[0].dtype(), [&]<class T>() {
    const T *const x = call.operands[0].as<T>(), *const kernel = call.operands[1].as<T>();
    const T* const bias = call.operands[2].as<T>();
    for (std::int64_t example = 0; example < sizes.examples; ++example) {
      const T* hidden = nullptr;  // of the step before
      for (std::int64_t step = 0; step < steps.count; ++step) {
        const std::int64_t row = sizes.row(example, steps.at(step));
        T* const out = call.results[0].as<T>() + row * features;
        T* const gates_here = call.results[1].as<T>() + row * 4 * features;
        for (std::int64_t f = 0; f < features; ++f) {
          T products[gates], inputs[gates];
          for (std::int64_t gate = 0; gate < gates; ++gate) {
            const std::int64_t column = gate * features + f;
            inputs[gate] = x[row * columns + column];
            products[gate] = product_with_column(features, hidden, kernel, columns, column);
          }
          const GruCell<T> cell(inputs[0] + products[0], inputs[1] + products[1], inputs[2], bias[f] + products[2],
                                hidden != nullptr ? hidden[f] : T{});
          for (std::int64_t gate = 0; gate < 4; ++gate) gates_here[gate * features + f] = cell.gates[gate];
          out[f] = cell.out;
        }
        hidden = out;
      }
    }
  });
}

void GruGrad::reference(const ReferenceCall& call) const {
  const RecurrentSizes sizes(call.operands[1].shape(), 1);
  const std::int64_t features = sizes.features, columns = Gru::gates * features;
  const Steps steps{sizes.positions, reverse};
  in_type(call.results[0].dtype(), [&]<class T>() {
    const T *const kernel = call.operands[0].as<T>(), *const out = call.operands[1].as<T>();
    std::vector<T> carried(static_cast<std::size_t>(features));  // the cotangent of out from the step behind: z's share
    for (std::int64_t example = 0; example < sizes.examples; ++example) {
      carried.assign(carried.size(), T{});
      const T* behind = nullptr;  // the cotangent of the products of the step behind
      for (std::int64_t step = steps.count; step-- > 0;) {
        const std::int64_t row = sizes.row(example, steps.at(step));
        const T* const before = step > 0 ? out + sizes.row(example, steps.at(step - 1)) * features : nullptr;
        const T* const gates = call.operands[2].as<T>() + row * 4 * features;
        const T* const dout = call.operands[3].as<T>() + row * features;
        T *const dx = call.results[0].as<T>() + row * columns, *const dp = call.results[1].as<T>() + row * columns;
        for (std::int64_t f = 0; f < features; ++f) {
          const T given[4] = {gates[f], gates[features + f], gates[2 * features + f], gates[3 * features + f]};
          T& of_behind = carried[static_cast<std::size_t>(f)];
          const T from_behind = of_behind + product_with_column(columns, behind, kernel, features, f);
          const GruCellGradient<T> gradient(given, before != nullptr ? before[f] : T{}, dout[f] + from_behind);
          for (std::int64_t gate = 0; gate < Gru::gates; ++gate) {
            dx[gate * features + f] = gradient.inputs[gate];
            dp[gate * features + f] = gate < 2 ? gradient.inputs[gate] : gradient.product;
          }
          of_behind = gradient.hidden;
        }
        behind = dp;
      }
    }
  });
}

}  // namespace pmaptrain::ops
