#include "core/ops/matmul/matmul.h"
#include "core/ops/matmul/multiply.h"
#include "core/ops/support/epilogue.h"

namespace pmaptrain::ops {
void Matmul::reference(const ReferenceCall& call) const {
  dispatch_arithmetic(call.results[0].dtype(), [&]<class T>() {
    const Shape& shape = call.results[0].shape();
    const Shape& a = call.operands[0].shape();
    const std::int64_t columns = shape.back(), rows = matrix_rows(shape);
    const std::int64_t k = transpose_a ? matrix_rows(a) : a.back();
    multiply(rows, columns, k, call.operands[0].as<T>(), transpose_a, call.operands[1].as<T>(), transpose_b,
             call.results[0].as<T>());
    const T* bias = call.operands.size() == 3 ? call.operands[2].as<T>() : nullptr;
    add_bias_and_relu(rows, columns, bias, relu, call.results[0].as<T>());
  });
}

}  // namespace pmaptrain::ops
