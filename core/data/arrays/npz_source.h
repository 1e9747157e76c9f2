// The source of NumPy archives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/arrays/array.h"
#include "core/data/channels.h"
#include "core/data/opening.h"

namespace pmaptrain::data {

// One archive with separate arrays for each split, or one archive per split with the same array names in each.
struct Npz {
  using Split = declare::FileOrArrays;
  std::optional<std::string> file;  // absolute path of the archive with all splits
  Split train;
  std::optional<Split> validation, test;
  std::optional<std::string> inputs, targets;  // array names in the archive of each split
  Channels channels = Channels::automatic;
  std::optional<std::string> lengths = {};         // the array of each split that has those of its sequences
  std::optional<std::int64_t> padding_token = {};  // behind sequences of tokens, which have the lengths up to it

  // `split` with its file and its array names.
  Split complete(const Split& split) const {
    if (file) return {*file, split.inputs, split.targets, split.lengths};
    return {split.file, inputs.value_or(""), targets.value_or(""), lengths.value_or("")};
  }
  // Of the sequences of a complete split. Throws Error (data).
  std::vector<std::int32_t> lengths_of(const Array& of_inputs, const Split& split) const;
  bool has_lengths() const { return padding_token || lengths || !train.lengths.empty(); }

  static Declaration<Npz> declaration();
  Source open(const Opening& opening) const;
  std::string assignment(std::string_view split) const { return (file ? "file" : std::string(split)) + "=FILE"; }
};

}  // namespace pmaptrain::data
