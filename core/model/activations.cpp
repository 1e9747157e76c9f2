// Elementwise layers: no parameters, any shape.
#include <cmath>
#include <numbers>

#include "core/model/arithmetic.h"
#include "core/model/layers.h"

namespace pmaptrain::model {
namespace {

PlannedLayer elementwise(const LayerInput& in, Value (*function)(Builder&, Value)) {
  PlannedLayer layer = in.start();
  layer.apply = [function](const LayerCall& call, Value x) { return function(call.b, x); };
  return layer;
}

}  // namespace

std::optional<PlannedLayer> plan(const spec::Relu&, const LayerInput& in) {
  return elementwise(in, [](Builder& b, Value x) { return b.emit(ops::Relu{}, {x}); });
}

std::optional<PlannedLayer> plan(const spec::Tanh&, const LayerInput& in) {
  return elementwise(in, [](Builder& b, Value x) { return b.emit(ops::Tanh{}, {x}); });
}

// x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))
std::optional<PlannedLayer> plan(const spec::Gelu&, const LayerInput& in) {
  return elementwise(in, [](Builder& b, Value x) {
    const Value cube = mul(b, mul(b, x, x), x);
    const Value inner = mul(b, add(b, x, mul(b, cube, 0.044715)), std::sqrt(2.0 / std::numbers::pi));
    const Value half = mul(b, x, 0.5);
    return mul(b, half, add(b, b.emit(ops::Tanh{}, {inner}), 1.0));
  });
}

}  // namespace pmaptrain::model
