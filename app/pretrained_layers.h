// Models of transformers and torchvision as layers of a config.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/layout.h"

namespace pmaptrain::app {

struct PretrainedModel {
  model::ParameterLayout layout = model::ParameterLayout::hf_gpt2;
  std::string what;    // "GPT-2: 12 blocks of 768 features, 12 heads"
  std::string layers;  // lines of YAML, below `layers:`, up to the head
  std::string head;    // the line of the last layer
  // Of a language model: the size of its vocabulary, the most positions, and the token that ends a text.
  std::int64_t tokens = 0, positions = 0;
  std::optional<std::int64_t> end_token = {};
  // Of a classifier: its input [height,width,channels], and how pixels, scaled to 0..1, are normalised.
  std::vector<std::int64_t> image = {};
  std::int64_t classes = 0;
  std::vector<double> mean = {}, std = {};
  bool has_head = true;  // whether the file has one

  bool is_language_model() const { return tokens > 0; }
};

// The model of a folder that transformers wrote, by its config.json. Throws Error (data), which names what differs from
// the models here.
PretrainedModel read_transformers(const std::string& folder);
// The ResNet of a file of safetensors with the names of torchvision, by its tensors. Throws Error (data).
PretrainedModel read_torchvision(const std::string& file);

}  // namespace pmaptrain::app
