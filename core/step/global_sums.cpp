#include "core/step/global_sums.h"

#include <utility>
#include <vector>

#include "core/graph/passes.h"
#include "core/ops/collective/collective.h"

namespace pmaptrain::step {

Sums GlobalSums::synchronised(const Sums& local, std::span<const AxisSet> divided) const {
  const Builder::Scope scope(b_, {"synchronise", {}});
  std::vector<Synchronised> values;
  for (const Value value : local.flat()) {
    values.push_back({value, values.size() < divided.size() ? divided[values.size()] : AxisSet()});
  }
  return local.unflattened(synchronise(b_, values));
}

Sums GlobalSums::of_buckets(Sums local, std::span<const std::optional<TableRows>> tables) const {
  std::vector<Value> dense;
  std::vector<AxisSet> divided;
  for (std::size_t k = 0; k < tables.size(); ++k) {
    if (tables[k]) continue;
    dense.push_back(local.gradients[k]);
    divided.push_back(buckets_[k].divided);
  }
  std::vector<Value> gradients = std::exchange(local.gradients, std::move(dense));
  Sums global = of_dense_buckets(std::move(local), divided);
  auto next = global.gradients.begin();
  const Builder::Scope scope(b_, {"synchronise", {}});
  for (std::size_t k = 0; k < tables.size(); ++k) {
    gradients[k] = tables[k] ? tables[k]->summed(gradients[k]) : *next++;
  }
  global.gradients = std::move(gradients);
  return global;
}

Sums GlobalSums::of_dense_buckets(Sums local, std::span<const AxisSet> divided) const {
  if (sharding_.state.empty()) return synchronised(local, divided);
  std::vector<Value> gradients;
  if (!sharding_.gradients.empty()) {
    for (const Value bucket : std::exchange(local.gradients, {})) {
      gradients.push_back(scattered(bucket, divided[gradients.size()]));
    }
    divided = {};
  }
  Sums global = synchronised(local, divided);
  for (const Value bucket : std::exchange(global.gradients, std::move(gradients))) {
    global.gradients.push_back(own_part(bucket));
  }
  return global;
}

// A device's part of the sum of a bucket. Shards along some axes are parts of the sum along all axes, because a
// psum_scatter along these and a psum along the others would add in another order.
Value GlobalSums::scattered(Value bucket, AxisSet divided) const {
  const Builder::Scope scope(b_, {"synchronise", {}});
  const AxisSet axes = b_.type(bucket).varying - divided;
  if (sharding_.is_of_all_data && axes == axes_) return b_.emit(ops::PsumScatter{axes, 0}, {bucket});
  return own_part(b_.emit(ops::Psum{axes}, {bucket}));
}

Value GlobalSums::own_part(Value bucket) const {
  const Builder::Scope scope(b_, {"shard", {}});
  return b_.emit(ops::AllSlice{sharding_.state, 0}, {bucket});
}

}  // namespace pmaptrain::step
