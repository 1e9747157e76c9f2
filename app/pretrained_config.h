// Configs that train a model of another project further.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pmaptrain::app {

struct PretrainedConfig {
  std::string text;
  std::vector<std::string> notes;
};

enum class Pretrained { hf, torchvision };

// A commented config that begins from the weights at `path`, a folder of transformers or a file of torchvision, to be
// written to `file`: paths in it are relative to that, and it is named after it. `data`: the texts, or the folder of
// images, to train on; none: an example. It is one that `validate` accepts. Throws Error (data) for a model or data
// that cannot be read.
PretrainedConfig pretrained_config(Pretrained kind, const std::string& path, const std::string& file,
                                   const std::optional<std::string>& data);

}  // namespace pmaptrain::app
