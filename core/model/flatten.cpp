#include "core/model/arithmetic.h"
#include "core/model/layers.h"

namespace pmaptrain::model {

// One example of any shape becomes a vector, row-major.
std::optional<PlannedLayer> plan(const spec::Flatten&, const LayerInput& in) {
  PlannedLayer layer = in.start();
  layer.output = {numel(in.shape)};
  layer.apply = [features = numel(in.shape)](const LayerCall& call, Value x) {
    Builder& b = call.b;
    return b.emit(ops::Reshape{{b.type(x).shape.front(), features}}, {x});
  };
  return layer;
}

}  // namespace pmaptrain::model
