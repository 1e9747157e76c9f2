#include <algorithm>

#include "core/ops/max_pool/loops.h"
#include "core/ops/max_pool/max_pool.h"

namespace pmaptrain::ops {

void MaxPool::reference(const ReferenceCall& call) const {
  const PoolGeometry g = pool_geometry(name, call.operands[0].shape(), window, strides, padding);
  dispatch_floating(call.results[0].dtype(),
                    [&]<class T>() { max_pool(g, call.operands[0].as<T>(), call.results[0].as<T>()); });
}

void MaxPoolGrad::reference(const ReferenceCall& call) const {
  const PoolGeometry g = pool_geometry(name, call.operands[0].shape(), window, strides, padding);
  dispatch_floating(call.results[0].dtype(), [&]<class T>() {
    max_pool_grad(g, call.operands[0].as<T>(), call.operands[1].as<T>(), call.results[0].as<T>(), relu);
  });
}

}  // namespace pmaptrain::ops
