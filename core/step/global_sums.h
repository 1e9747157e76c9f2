// The sums over all devices of what each has computed, and the parts of them that a device updates.
#pragma once

#include <optional>
#include <span>

#include "core/graph/builder.h"
#include "core/model/buckets.h"
#include "core/step/device_sums.h"
#include "core/step/table_rows.h"

namespace pmaptrain::step {

// Appends these equations.
class GlobalSums {
 public:
  // `axes` are those of the data. References outlive this.
  GlobalSums(Builder& b, std::span<const model::Bucket> buckets, const model::Sharding& sharding, AxisSet axes)
      : b_(b), buckets_(buckets), sharding_(sharding), axes_(axes) {}

  // `divided` is by gradient, of a parameter or a bucket, as Bucket::divided; what follows the gradients is not
  // divided.
  Sums synchronised(const Sums& local, std::span<const AxisSet> divided) const;
  // The same with gradients in buckets, of which each device has the part that it updates. `tables` is by bucket; of
  // those by rows each device has all rows.
  Sums of_buckets(Sums local, std::span<const std::optional<TableRows>> tables) const;
  // A device's part of a bucket.
  Value own_part(Value bucket) const;

 private:
  Sums of_dense_buckets(Sums local, std::span<const AxisSet> divided) const;
  Value scattered(Value bucket, AxisSet divided) const;

  Builder& b_;
  const std::span<const model::Bucket> buckets_;
  const model::Sharding sharding_;
  const AxisSet axes_;
};

}  // namespace pmaptrain::step
