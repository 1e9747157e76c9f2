// Configs of random trees of layers on random meshes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pmaptrain::testing {

// A config whose data has the axes `outer`, perhaps `middle`, and `inner`; and what a test adds to it.
struct RandomRun {
  std::string config;
  std::uint32_t blocks = 0;  // the number that the config names
  std::string shards;        // an option: parallelism.fsdp along some of the axes
};

class RunWriter {
 public:
  explicit RunWriter(std::uint32_t seed) : state_(seed * 2654435761u + 4242u) {}

  RandomRun write() {
    const std::uint32_t outer = 2 + below(2), middle = below(4) == 0 ? 2 : 1, inner = 2 + below(3);
    const std::uint32_t devices = outer * middle * inner, blocks = divisor_of(devices);
    const std::uint32_t microbatches = 1 + below(3), rows = 2 + below(below(4) == 0 ? 20 : 4);
    const std::uint32_t batch = microbatches * rows * devices;
    std::string axes = "{outer: " + number(outer) + "}", names = "outer";
    std::vector<std::string> shards{"outer", "inner"};
    if (middle > 1) {
      axes += ", {middle: " + number(middle) + "}";
      names += ", middle";
      shards.insert(shards.end(), {"middle", "[outer, middle]", "[middle, inner]"});
    }
    axes += ", {inner: " + number(inner) + "}";
    RandomRun run;
    run.blocks = blocks;
    run.shards = "parallelism.fsdp={axis: " + any(shards);
    run.shards += ", stage: " + number(1 + below(3)) + "}";
    std::string& text = run.config;
    text = "mesh: {axes: [" + axes + "], workers: 2, blocks: " + number(blocks) + "}\n";
    text += "data: {source: {synthetic_images: " + images(batch) + "}, batch_size: " + number(batch) + ", axes: [" +
            names + ", inner], microbatches: " + number(microbatches) + ", remainder: mask}\n";
    text += "model: {layers: [" + model() + "]}\n";
    text += "loss: {softmax_cross_entropy: {" + loss() + "}}\nmetrics: [accuracy, f1]\n";
    text += "optimizer: {" + optimizer() + "learning_rate: 0.01}\n";
    text += "precision: " + any({"float32", "float32", "float32", "mixed_bfloat16"}) + "\n";
    text += "train: {duration: 2 steps, log_every: 1 step, eval_every: 2 steps" + any({"", "", ", ema: {decay: 0.9}"});
    text += any({"}\n", "}\n", "}\n", ", verify_replicas: 1 step}\n"});
    return run;
  }

  std::uint32_t below(std::uint32_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 16) % n;
  }

 private:
  static std::string number(std::uint32_t value) { return std::to_string(value); }
  std::string any(const std::vector<std::string>& of) { return of[below(static_cast<std::uint32_t>(of.size()))]; }

  std::uint32_t divisor_of(std::uint32_t n) {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 1; i <= n; ++i) {
      if (n % i == 0) all.push_back(i);
    }
    return all[below(static_cast<std::uint32_t>(all.size()))];
  }

  std::string images(std::uint32_t batch) {
    height_ = 2 + below(4);
    width_ = 2 + below(4);
    return "{height: " + number(height_) + ", width: " + number(width_) +
           ", channels: 1, classes: 3, train: " + number(2 * batch - below(batch)) + ", test: 5, noise: 0.5}";
  }

  std::string layer(std::uint32_t width) {
    const std::string statistics = any({"{}", "{axes: inner}", "{axes: outer}", "{axes: [outer, inner]}"});
    return any({"relu", "gelu", "softplus", "layer_norm", "rms_norm", "{group_norm: {num_groups: 1}}",
                "{batch_norm: " + statistics + "}", "{dropout: 0.3}", "{swiglu: {hidden: 3}}",
                "{parallel: {branches: {skip: [], gate: [{dense: " + number(width) + "}, sigmoid]}, join: multiply}}",
                "{layers: [{parallel: {branches: [[], [tanh]], join: concat}}, {dense: " + number(width) + "}]}",
                "{dense: " + number(width) + "}"});
  }

  // A list of layers that keep the `width` of the last dimension.
  std::string layers(std::uint32_t width, int depth) {
    std::string list;
    for (std::uint32_t i = 1 + below(3); i > 0; --i) {
      const std::uint32_t kind = depth > 0 ? below(6) : 9;
      if (kind > 1) {
        list += layer(width) + ", ";
        continue;
      }
      list += kind == 0 ? "{residual: {layers: [" : "{repeat: {times: 2, layers: [";
      list += layers(width, depth - 1) + "{dense: " + number(width) + "}]}}, ";
    }
    return list;
  }

  std::string model() {
    const std::uint32_t kind = below(4);
    if (kind == 0) {
      const std::uint32_t width = 4 * (1 + below(8));
      const std::string first = any({"", "{conv: {features: 5, kernel_size: [2], padding: CAUSAL}}, ",
                                     "{lstm: {features: 4, bidirectional: true}}, ", "{gru: {features: 6}}, "});
      return "{reshape: {shape: [" + number(height_) + ", " + number(width_) + "]}}, " + first +
             "{dense: " + number(width) + "}, {residual: {layers: [layer_norm, {attention: {heads: 2}}]}}, " +
             layers(width, 1) + "global_avg_pool, {dense: 3}";
    }
    const std::uint32_t width = below(5) == 0 ? 130 + below(300) : 2 + below(30);
    std::string list;
    if (kind == 1) {
      list = "{conv: {features: " + number(1 + below(5)) + ", kernel_size: [2, 2]}}, ";
      list += any({"{batch_norm: {}}, ", "{batch_norm: {axes: inner}}, ", "relu, ",
                   "{upsample: {scale: 2, method: bilinear}}, ",
                   "{conv_transpose: {features: 3, kernel_size: [2, 2], strides: [2, 2]}}, "});
    }
    list += "flatten, {dense: " + number(width) + "}, " + layers(width, 2);
    if (kind == 2) list += "{dense: " + number(140 + below(300)) + "}, ";
    return list + "{dense: 3}";
  }

  std::string loss() {
    return any({"label_smoothing: 0.1", "ignore_label: 1", "class_weights: [0.5, 1.0, 2.5]",
                "class_weights: [0.1, 3.0, 1.0], ignore_label: 0"});
  }

  std::string optimizer() {
    std::string keys = any({"sgd: {momentum: 0.9}, ", "adam: {}, ", "rmsprop: {}, ",
                            "adamw: {weight_decay: 0.1}, weight_decay_exclude: ['*.bias'], "});
    return keys + any({"", "clip_by_global_norm: 0.05, "});
  }

  std::uint32_t state_, height_ = 0, width_ = 0;
};

}  // namespace pmaptrain::testing
