// From the config's `data.source` to datasets.
#pragma once

#include <cstdint>

#include "core/data/dataset.h"
#include "core/data/sampler.h"
#include "core/spec/spec.h"

namespace pmaptrain::data {

// `data.seed`, or the top-level `seed` where the config does not give one.
std::uint64_t seed_of(const spec::DataSpec& spec, std::uint64_t seed);

// Opens and checks the datasets. `seed` is the top-level one; `devices` sizes synthetic_linear. Throws Error (exit
// status data) placed at the source in the config.
Source open(const spec::DataSpec& spec, std::uint64_t seed, std::int64_t devices);

// The order of training examples: shuffled, unless the config says `shuffle: false` or `batch_size: all`. A gradient
// over all examples does not need shuffling, and file order lets the one batch be kept.
Sampler training_sampler(const spec::DataSpec& spec, std::uint64_t seed, std::int64_t examples);

}  // namespace pmaptrain::data
