// Opens the datasets of `data.source`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/data/dataset.h"
#include "core/data/encoding.h"
#include "core/input/batches/stream.h"
#include "core/spec/spec.h"

namespace pmaptrain::input {

// `data.seed`, or the top-level `seed` if there is none.
std::uint64_t seed_of(const spec::DataSpec& spec, std::uint64_t seed);

// Whether the data has this split, of its own or by data.validation. Opens nothing.
bool has_split(const spec::DataSpec& spec, data::Split split);

// Opens and checks the datasets: all splits, or those that `only` needs, after data.validation and data.limit. `seed`
// is the top-level seed; the size of synthetic_linear depends on `devices`. With `known`, the encoding of a checkpoint,
// the splits are read by it, and nothing of the training split is needed for others. `continued` is that of
// the run that is continued: with `on_error: skip` the rows and files that it has left out are left out again, whether
// they can be read by now or not, and means are those of its version. Throws Error (data), placed
// at the source in the config, and Error (usage) for a share or limit that does not fit the number of examples.
data::Source open(const spec::DataSpec& spec, std::uint64_t seed, std::int64_t devices,
                  std::optional<data::Split> only = std::nullopt, const data::Encoding* known = nullptr,
                  const data::Encoding* continued = nullptr);

// The tokenizer of a run, whose encoding is given; null where bytes are tokens. Throws Error (data) if it is not that
// with which the run was trained, or is gone.
std::shared_ptr<const tokenizers::Tokenizer> tokenizer_of(const spec::DataSpec& spec, const data::Encoding& encoding);

// The order of the training examples: shuffled, unless the config has `shuffle: false` or `batch_size: all`. With one
// batch of all examples, shuffling does not change the gradient, and file order allows the loader to reuse the batch.
data::Sampler training_sampler(const spec::DataSpec& spec, std::uint64_t seed, std::int64_t examples);
// The training examples in that order, or by bucket_by_length in batches of `batch` examples, with the changes of
// `augment`, which open() has checked.
Stream training_stream(const spec::DataSpec& spec, std::uint64_t seed, const data::Dataset& train, std::int64_t batch);

}  // namespace pmaptrain::input
