// Opens the datasets of `data.source`.
#pragma once

#include <cstdint>

#include "core/data/dataset.h"
#include "core/data/sampler.h"
#include "core/spec/spec.h"

namespace pmaptrain::data {

// `data.seed`, or the top-level `seed` if there is none.
std::uint64_t seed_of(const spec::DataSpec& spec, std::uint64_t seed);

// Opens and checks the datasets. `seed` is the top-level seed; the size of synthetic_linear depends on `devices`.
// Throws Error (data), placed at the source in the config.
Source open(const spec::DataSpec& spec, std::uint64_t seed, std::int64_t devices);

// The order of the training examples: shuffled, unless the config has `shuffle: false` or `batch_size: all`. With one
// batch of all examples, shuffling does not change the gradient, and file order allows the loader to reuse the batch.
Sampler training_sampler(const spec::DataSpec& spec, std::uint64_t seed, std::int64_t examples);

}  // namespace pmaptrain::data
