#include "core/layers/product.h"

#include <cassert>

#include "core/layers/dropout.h"
#include "core/layers/rows.h"

namespace pmaptrain::layers {
namespace {

// x as it enters an adapter: in training, each element is kept with probability 1 - rate and divided by it.
Value dropped_for(const Adapter& adapter, const LayerCall& call, Value x) {
  if (!call.training || !adapter.drops) return x;
  assert(call.rows);
  Builder& b = call.b;
  const Value scale = call.numbers["lora/dropout/scale"];
  const DType dtype = b.type(x).dtype;
  const Value key = call.forward.dropout_keys[adapter.key];
  return cast(b, dropped(b, cast(b, x, b.type(scale).dtype), key, *call.rows, call.numbers["lora/dropout/rate"], scale),
              dtype);
}

}  // namespace

Value product(const LayerCall& call, Value x, std::size_t kernel, std::optional<Value> bias) {
  Builder& b = call.b;
  const Value y = product_of_rows(b, x, call.parameters[kernel], call.node.parameters[kernel].matrix, bias);
  for (const Adapter& adapter : call.node.adapters) {
    if (adapter.kernel != kernel) continue;
    const DType dtype = b.type(x).dtype;
    const Value a = cast(b, call.parameters[adapter.a], dtype), other = cast(b, call.parameters[adapter.b], dtype);
    const Value low = b.emit(ops::Matmul{}, {dropped_for(adapter, call, x), a});
    return add(b, y, b.emit(ops::Matmul{}, {mul(b, low, adapter.scale), other}));
  }
  return y;
}

}  // namespace pmaptrain::layers
