// Configs that are written for the data of a user.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain::app {

// What `init` takes in place of an example's name.
enum class DataKind { npz, csv, images };
std::optional<DataKind> data_kind(std::string_view name);

struct DataConfig {
  std::string text;
  std::vector<std::string> notes;  // what was left out, which the text says too
  std::string target;              // of a table, a line on what is predicted, and on what else could be
};
// A commented config for the data at `path`, to be written to `file`: paths in it are relative to that, and it is named
// after it. It is one that `validate` accepts. Throws Error (data) for data that cannot be read, or of which it is not
// clear what it means.
// `targets` names the columns of a table that are to be predicted.
DataConfig config_for(DataKind kind, const std::string& path, const std::string& file,
                      const std::vector<std::string>& targets = {});

}  // namespace pmaptrain::app
