// The source of NumPy archives.
#pragma once

#include <optional>
#include <string>
#include <string_view>

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

  // `split` with its file and its array names.
  Split complete(const Split& split) const {
    if (file) return {*file, split.inputs, split.targets};
    return {split.file, inputs.value_or(""), targets.value_or("")};
  }

  static Declaration<Npz> declaration();
  Source open(const Opening& opening) const;
  std::string assignment(std::string_view split) const { return (file ? "file" : std::string(split)) + "=FILE"; }
};

}  // namespace pmaptrain::data
