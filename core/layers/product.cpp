#include "core/layers/product.h"

#include <cassert>

#include "core/layers/dropout.h"
#include "core/layers/rows.h"

namespace pmaptrain::layers {
namespace {

// x as it enters an adapter: in training, each element is kept with probability 1 - rate and divided by it. Devices
// along `divided` have some features of x each.
Value dropped_for(const Adapter& adapter, const LayerCall& call, Value x, AxisSet divided) {
  if (!call.training || !adapter.drops) return x;
  assert(call.rows);
  Builder& b = call.b;
  const Value scale = call.numbers["lora/dropout/scale"];
  const DType dtype = b.type(x).dtype;
  const Value key = call.forward.dropout_keys[adapter.key];
  const Value rate = call.numbers["lora/dropout/rate"];
  return cast(b, dropped(b, cast(b, x, b.type(scale).dtype), key, *call.rows, rate, scale, divided), dtype);
}

}  // namespace

bool divides_rows(const Parameter& kernel) {
  std::int64_t before = 1;
  for (std::size_t d = 0; d < kernel.divided.size(); ++d) {
    if (!kernel.divided[d].empty()) return d == 0 || before < kernel.matrix.front();
    before *= kernel.shape[d];
  }
  return false;
}

Value product(const LayerCall& call, Value x, std::size_t kernel, std::optional<Value> bias) {
  Builder& b = call.b;
  const Parameter& of = call.node.parameters[kernel];
  const AxisSet summed = divides_rows(of) ? of.layout().axes() : AxisSet();
  const DType dtype = b.type(x).dtype;
  const std::int64_t in = b.type(x).shape.back(), out = numel(b.type(call.parameters[kernel]).shape) / in;
  Value y = product_of_rows(b, x, call.parameters[kernel], {in, out}, summed.empty() ? bias : std::nullopt);
  for (const Adapter& adapter : call.node.adapters) {
    if (adapter.kernel != kernel) continue;
    const Value a = cast(b, call.parameters[adapter.a], dtype), other = cast(b, call.parameters[adapter.b], dtype);
    const Value low = b.emit(ops::Matmul{}, {dropped_for(adapter, call, x, summed), a});
    y = add(b, y, b.emit(ops::Matmul{}, {mul(b, low, adapter.scale), other}));
  }
  return summed.empty() ? y : sum_of_terms(b, y, summed, bias, dtype);
}

}  // namespace pmaptrain::layers
