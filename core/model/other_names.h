// The names that files of other projects have for the parameters of well-known models. The models are those that
// `pmaptrain init hf` and `pmaptrain init torchvision` write: names here are those of their layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/layout.h"

namespace pmaptrain::model {

// A * stands for the same text on both sides.
struct OtherName {
  std::string_view ours, theirs;
  std::int64_t part = 0, parts = 1;  // the parameter is one of so many equal ranges of the array's last dimension
  std::size_t ones = 0;              // so many dimensions of size 1 stand before those of the parameter
  bool is_linear = false;            // a linear layer's kernel, (out, in), where others of the layout are (in, out)
};

struct OtherNames {
  // What every name but those of `theirs` outside of it begins with; a file may leave it out, as those of models
  // without a head do.
  std::string_view prefix;
  bool transposes = true;                      // whether kernels are (out, in), as PyTorch's
  std::vector<OtherName> names;                // the first that matches a parameter is its own
  std::vector<std::string_view> ignored = {};  // tensors that hold nothing of a model which lacks them: masks
  std::string_view copy = {};                  // of a tied head, the name that its copy of the first table has
};

// Of a layout that is neither flax nor torch.
const OtherNames& other_names(ParameterLayout layout);
// The entry of a parameter; null if the layout has none for it.
const OtherName* find_other_name(ParameterLayout layout, std::string_view parameter);

// The names by which files may have what the layout calls `name`: with its prefix, and without.
std::vector<std::string> spellings(ParameterLayout layout, const std::string& name);
// Whether a tensor of a file holds nothing of a model that lacks it.
bool is_ignored(ParameterLayout layout, std::string_view tensor);

}  // namespace pmaptrain::model
