#include "core/ops/matmul/matmul.h"
#include "core/ops/matmul/multiply.h"
#include "core/ops/support/epilogue.h"

namespace pmaptrain::ops {
void Matmul::reference(const ReferenceCall& call) const {
  dispatch_arithmetic(call.results[0].dtype(), [&]<class T>() {
    const Shape& shape = call.results[0].shape();
    const std::int64_t k = call.operands[0].shape()[transpose_a ? 0 : 1];
    multiply(shape[0], shape[1], k, call.operands[0].as<T>(), transpose_a, call.operands[1].as<T>(), transpose_b,
             call.results[0].as<T>());
    const T* bias = call.operands.size() == 3 ? call.operands[2].as<T>() : nullptr;
    add_bias_and_relu(shape[0], shape[1], bias, relu, call.results[0].as<T>());
  });
}

}  // namespace pmaptrain::ops
