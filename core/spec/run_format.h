// The format of run folders, which their file .pmaptrain names: what a key means that a run's config.yaml lacks,
// because the pmaptrain that wrote it did not know the key.
#pragma once

#include <string_view>

namespace pmaptrain::spec {

// 2: as for a new config. 1, of folders that name none: data.source.npz.channels is none.
inline constexpr int run_format = 2;

inline constexpr std::string_view run_marker = ".pmaptrain", run_marker_line = "pmaptrain run folder\n",
                                  run_format_line = "Format: ";
// A run folder's copy of data.tokenizer.
inline constexpr std::string_view kept_tokenizer = "tokenizer.json";

}  // namespace pmaptrain::spec
