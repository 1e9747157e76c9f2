// Networks whose layers devices divide, as configs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pmaptrain::testing {

// A network of layers that are divided, and the data and the loss that it takes.
struct DividedNetwork {
  std::string name;
  std::string text;     // a config without `mesh`
  double mixed = 1e-2;  // how far gradients of mixed precision may be apart
};

inline const std::string divided_sgd = R"(
optimizer: {sgd: {momentum: 0.9}, learning_rate: 0.1}
train: {duration: 1 step, log_every: 1 step, checkpoint: {keep: 1}}
)";

// Images of 6x6 in 3 classes.
inline std::string images_with(const std::string& layers, const std::string& metrics = "[accuracy]") {
  return "data: {source: {synthetic_images: {height: 6, width: 6, classes: 3, train: 32, test: 8}}, batch_size: 8}\n"
         "model: {layers: [" +
         layers + "]}\nloss: softmax_cross_entropy\nmetrics: " + metrics + "\n";
}

// A text of bytes, in windows of 8; the model gives a logit for each of `classes` tokens.
inline std::string texts_with(const std::string& file, const std::string& layers,
                              const std::string& loss = "softmax_cross_entropy",
                              const std::string& metrics = "[accuracy, perplexity]") {
  return "data: {source: {text: {train: [" + file + "], tokens: bytes, length: 8}}, batch_size: 8}\nmodel: {layers: [" +
         layers + "]}\nloss: " + loss + "\nmetrics: " + metrics + "\n";
}

inline std::string some_text() {
  std::string text;
  for (int i = 0; i < 700; ++i) text += static_cast<char>(' ' + (i * i + 7 * i) % 90);
  return text;
}

// The --set options of a mesh {data: D, model: M}.
inline std::vector<std::string> on_axes(int data, int model) {
  std::vector<std::string> set{"mesh.axes=[{data: " + std::to_string(data) + "}, {model: " + std::to_string(model) +
                               "}]"};
  if (model > 1) {
    set.emplace_back("parallelism.tensor={axis: model}");
  } else {
    set.front() = "mesh.axes=[{data: " + std::to_string(data) + "}]";
  }
  return set;
}

}  // namespace pmaptrain::testing
