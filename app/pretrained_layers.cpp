#include "app/pretrained_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "app/pretrained_json.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/file.h"
#include "core/run/files/safetensors.h"

namespace pmaptrain::app {
namespace {

namespace fs = std::filesystem;

// The layer of an activation of transformers. Throws Error (data) for one that is not here.
std::string activation(const JsonFile& config, std::string_view key, std::string_view otherwise) {
  static const std::map<std::string, std::string, std::less<>> layers{
      {"gelu_new", "gelu"},  {"gelu_pytorch_tanh", "gelu"},
      {"gelu_fast", "gelu"}, {"gelu", "gelu: {approximate: none}"},
      {"relu", "relu"},      {"silu", "silu"},
      {"swish", "silu"},     {"tanh", "tanh"}};
  const auto found = layers.find(config.text(key, otherwise));
  if (found == layers.end()) config.refuse(key, "there are gelu, gelu_new, relu, silu and tanh");
  return found->second;
}

std::string dropout_line(double rate, const std::string& indent) {
  return rate == 0 ? "" : fmt::format("{}- dropout: {}\n", indent, rate);
}

std::string dropout_option(double rate) { return rate == 0 ? "" : fmt::format(", dropout: {}", rate); }

// A head of so many outputs, without a bias.
std::string untied_head(std::int64_t tokens) {
  return fmt::format("    - {{name: head, dense: {{features: {}, use_bias: false}}}}\n", tokens);
}

// Whether the class that wrote the model has a head: GPT2LMHeadModel and ViTForImageClassification, not ViTModel.
bool has_head(const JsonFile& config) {
  const std::string name = config.first_text("architectures");
  return !name.ends_with("Model") || name.ends_with("HeadModel");
}

// The id of the token that ends a text, if the vocabulary has it.
std::optional<std::int64_t> end_token(const JsonFile& config, std::int64_t tokens) {
  constexpr std::string_view key = "eos_token_id";
  if (!config.has(key)) return std::nullopt;
  const std::vector<std::int64_t> ids = config.integers(key, 0);  // the first of several is that of a text
  return !ids.empty() && ids.front() < tokens ? std::optional(ids.front()) : std::nullopt;
}

void check_heads(const JsonFile& config, std::string_view key, std::int64_t heads, std::int64_t features) {
  if (features % heads != 0) config.refuse(key, fmt::format("heads divide the {} features", features));
}

PretrainedModel gpt2(const JsonFile& config) {
  for (const std::string_view key : {"add_cross_attention", "scale_attn_by_inverse_layer_idx"}) {
    if (config.flag(key, false)) config.refuse(key, "GPT-2 is read without it");
  }
  if (!config.flag("scale_attn_weights", true)) config.refuse("scale_attn_weights", "attention divides by sqrt(D)");
  PretrainedModel model;
  model.layout = model::ParameterLayout::hf_gpt2;
  const std::int64_t blocks = config.integer("n_layer"), features = config.integer("n_embd");
  const std::int64_t heads = config.integer("n_head"), hidden = config.integer("n_inner", 4 * features);
  model.tokens = config.integer("vocab_size");
  model.positions = config.integer("n_positions");
  model.end_token = end_token(config, model.tokens);
  check_heads(config, "n_head", heads, features);
  const std::string norm = fmt::format("layer_norm: {{epsilon: {}}}", config.number("layer_norm_epsilon", 1e-5));
  const double dropped = config.number("resid_pdrop", 0.1);
  model.layers =
      fmt::format("    - {{name: tokens, embedding: {{num_embeddings: {}, features: {}}}}}\n", model.tokens, features);
  model.layers += fmt::format("    - position_embedding: {{length: {}}}\n", model.positions);
  model.layers += dropout_line(config.number("embd_pdrop", 0.1), "    ");
  model.layers += fmt::format("    - repeat:\n        times: {}\n        layers:\n", blocks);
  const std::string indent(16, ' ');
  model.layers += "          - residual:\n              layers:\n";
  model.layers += fmt::format("{0}- {1}\n{0}- attention: {{heads: {2}, causal: true{3}}}\n", indent, norm, heads,
                              dropout_option(config.number("attn_pdrop", 0.1)));
  model.layers += dropout_line(dropped, indent);
  model.layers += "          - residual:\n              layers:\n";
  model.layers += fmt::format("{0}- {1}\n{0}- dense: {2}\n{0}- {3}\n{0}- dense: {4}\n", indent, norm, hidden,
                              activation(config, "activation_function", "gelu_new"), features);
  model.layers += dropout_line(dropped, indent);
  model.layers += "    - " + norm + "\n";
  model.head =
      config.flag("tie_word_embeddings", true) ? "    - attend: {embedding: tokens}\n" : untied_head(model.tokens);
  model.what = fmt::format("GPT-2: {} of {} features, {}, {} tokens", counted(blocks, "block"), with_commas(features),
                           counted(heads, "head"), with_commas(model.tokens));
  return model;
}

// The options of rotary. transformers 5 has them in rope_parameters, version 4 beside the others.
std::string rotary(const JsonFile& config) {
  const std::string in = config.has("rope_parameters") ? "rope_parameters." : "rope_scaling.";
  const bool has_theta = config.has("rope_parameters.rope_theta");
  const double base = config.number(has_theta ? "rope_parameters.rope_theta" : "rope_theta", 10000.0);
  const std::string type_key = in + (config.has(in + "rope_type") ? "rope_type" : "type");
  const std::string type = config.text(type_key, "default");
  for (const std::string& key : {std::string("partial_rotary_factor"), in + "partial_rotary_factor"}) {
    if (config.number(key, 1.0) != 1.0) config.refuse(key, "rotary turns all features of a head");
  }
  if (type == "default") return fmt::format("{{base: {:.1f}}}", base);
  if (type != "llama3") config.refuse(type_key, "rotary is scaled as llama3 has it, or not at all");
  return fmt::format(
      "{{base: {:.1f}, scaling: {{llama3: {{factor: {}, low_freq_factor: {}, high_freq_factor: {}, original_length: "
      "{}}}}}}}",
      base, config.number(in + "factor"), config.number(in + "low_freq_factor"), config.number(in + "high_freq_factor"),
      config.integer(in + "original_max_position_embeddings"));
}

PretrainedModel llama(const JsonFile& config) {
  if (config.text("hidden_act", "silu") != "silu") config.refuse("hidden_act", "swiglu has silu");
  if (config.flag("mlp_bias", false)) config.refuse("mlp_bias", "swiglu has no biases");
  PretrainedModel model;
  model.layout = model::ParameterLayout::hf_llama;
  const std::int64_t blocks = config.integer("num_hidden_layers"), features = config.integer("hidden_size");
  const std::int64_t heads = config.integer("num_attention_heads");
  const std::int64_t shared = config.integer("num_key_value_heads", heads);
  model.tokens = config.integer("vocab_size");
  model.positions = config.integer("max_position_embeddings", 2048);
  model.end_token = end_token(config, model.tokens);
  if (!config.has("head_dim")) check_heads(config, "num_attention_heads", heads, features);
  const std::int64_t head_dim = config.integer("head_dim", features / heads);
  if (heads % shared != 0) config.refuse("num_key_value_heads", fmt::format("they divide the {} heads", heads));
  if (head_dim % 2 != 0) config.refuse("head_dim", "rotary turns pairs of features");
  const std::string norm = fmt::format("rms_norm: {{epsilon: {}}}", config.number("rms_norm_eps", 1e-6));
  std::vector<std::string> options{fmt::format("heads: {}", heads), fmt::format("kv_heads: {}", shared)};
  if (head_dim * heads != features) options.push_back(fmt::format("head_dim: {}", head_dim));
  options.emplace_back("causal: true");
  if (!config.flag("attention_bias", false)) options.emplace_back("use_bias: false");
  if (const double rate = config.number("attention_dropout", 0.0); rate != 0) {
    options.push_back(fmt::format("dropout: {}", rate));
  }
  options.push_back("rotary: " + rotary(config));
  const std::string indent(16, ' ');
  model.layers =
      fmt::format("    - {{name: tokens, embedding: {{num_embeddings: {}, features: {}}}}}\n", model.tokens, features);
  model.layers += fmt::format("    - repeat:\n        times: {}\n        layers:\n", blocks);
  model.layers +=
      fmt::format("          - residual:\n              layers:\n{0}- {1}\n{0}- attention:\n", indent, norm);
  for (const std::string& option : options) model.layers += fmt::format("{}    {}\n", indent, option);
  model.layers += fmt::format("          - residual:\n              layers:\n{0}- {1}\n{0}- swiglu: {2}\n", indent,
                              norm, config.integer("intermediate_size"));
  model.layers += "    - " + norm + "\n";
  model.head =
      config.flag("tie_word_embeddings", false) ? "    - attend: {embedding: tokens}\n" : untied_head(model.tokens);
  model.what =
      fmt::format("Llama: {} of {} features, {} of which {} have keys and values, {} tokens", counted(blocks, "block"),
                  with_commas(features), counted(heads, "head"), shared, with_commas(model.tokens));
  return model;
}

// A key that is one number, or a list of one or two: [height, width].
std::vector<std::int64_t> sides(const JsonFile& config, std::string_view key, std::int64_t otherwise) {
  if (!config.has(key)) return {otherwise, otherwise};
  const std::vector<std::int64_t> list = config.integers(key, 1);
  if (list.empty() || list.size() > 2) config.refuse(key, "expected one size, or height and width");
  return {list.front(), list.back()};
}

PretrainedModel vit(const JsonFile& config) {
  if (!config.flag("qkv_bias", true)) config.refuse("qkv_bias", "attention has a bias of each product, or none at all");
  PretrainedModel model;
  model.layout = model::ParameterLayout::hf_vit;
  const std::int64_t blocks = config.integer("num_hidden_layers"), features = config.integer("hidden_size");
  const std::int64_t heads = config.integer("num_attention_heads");
  check_heads(config, "num_attention_heads", heads, features);
  const std::vector<std::int64_t> size = sides(config, "image_size", 224), patch = sides(config, "patch_size", 16);
  if (size[0] < patch[0] || size[1] < patch[1]) config.refuse("patch_size", "a patch is no larger than the image");
  model.image = {size[0], size[1], config.integer("num_channels", 3)};
  model.classes = config.has("id2label") ? config.entries("id2label") : 2;
  const std::int64_t patches = (size[0] / patch[0]) * (size[1] / patch[1]);
  const std::string norm = fmt::format("layer_norm: {{epsilon: {}}}", config.number("layer_norm_eps", 1e-12));
  const double dropped = config.number("hidden_dropout_prob", 0.0);
  const std::string indent(16, ' ');
  model.layers =
      fmt::format("    - conv: {{features: {0}, kernel_size: [{1}, {2}], strides: [{1}, {2}], padding: VALID}}\n",
                  features, patch[0], patch[1]);
  model.layers += fmt::format("    - reshape: [{}, {}]\n    - class_token\n    - position_embedding: {{length: {}}}\n",
                              patches, features, patches + 1);
  model.layers += dropout_line(dropped, "    ");
  model.layers += fmt::format("    - repeat:\n        times: {}\n        layers:\n", blocks);
  model.layers +=
      fmt::format("          - residual:\n              layers:\n{0}- {1}\n{0}- attention: {{heads: {2}{3}}}\n", indent,
                  norm, heads, dropout_option(config.number("attention_probs_dropout_prob", 0.0)));
  model.layers += dropout_line(dropped, indent);
  model.layers += fmt::format(
      "          - residual:\n              layers:\n{0}- {1}\n{0}- dense: {2}\n{0}- {3}\n{0}- dense: {4}\n", indent,
      norm, config.integer("intermediate_size"), activation(config, "hidden_act", "gelu"), features);
  model.layers += dropout_line(dropped, indent);
  model.layers += "    - " + norm + "\n    - take: first\n";
  model.what = fmt::format("ViT: {} of {} features, {}, patches of {} x {} pixels", counted(blocks, "block"),
                           with_commas(features), counted(heads, "head"), patch[0], patch[1]);
  return model;
}

}  // namespace

PretrainedModel read_transformers(const std::string& folder) {
  const JsonFile config((fs::path(folder) / "config.json").string());
  const std::string type = config.text("model_type", "");
  PretrainedModel model;
  if (type == "gpt2") {
    model = gpt2(config);
  } else if (type == "llama") {
    model = llama(config);
  } else if (type == "vit") {
    model = vit(config);
    const fs::path images = fs::path(folder) / "preprocessor_config.json";
    std::error_code ignored;
    model.mean = model.std = std::vector<double>(static_cast<std::size_t>(model.image.back()), 0.5);
    if (fs::exists(images, ignored)) {
      const JsonFile prepared(images.string());
      if (prepared.has("image_mean")) model.mean = prepared.numbers("image_mean");
      if (prepared.has("image_std")) model.std = prepared.numbers("image_std");
      if (!prepared.flag("do_normalize", true)) model.mean = model.std = {};
    }
  } else {
    if (!config.has("model_type")) {
      fail_data("'" + config.path() + "' has no 'model_type'",
                "save_pretrained() of transformers writes a complete one");
    }
    config.refuse("model_type",
                  "layouts are there for gpt2, llama and vit; other files are read by layout: torch, and "
                  "init.from.rename for their names");
  }
  model.has_head = has_head(config);
  return model;
}

namespace {

// Layers as the shapes of the tensors in a file tell them.
class ResNetWriter {
 public:
  explicit ResNetWriter(const std::string& path) : path_(path), file_(data::map_file(path)) {
    for (const run::TensorView& tensor : run::view_safetensors_with_halves(file_, path)) {
      shapes_.emplace(tensor.name, tensor.shape);
    }
  }

  PretrainedModel write() {
    PretrainedModel model;
    model.layout = model::ParameterLayout::torchvision_resnet;
    model.layers = convolution("conv1", "conv1", 1, 2, "    ") + norm("bn1", "    ") + "    - relu\n" +
                   "    - max_pool: {window_shape: [3, 3], strides: [2, 2], padding: [[1, 1], [1, 1]]}\n";
    std::int64_t blocks = 0;
    for (int stage = 1; stage <= 4; ++stage) {
      std::int64_t block = 0;
      for (; has(fmt::format("layer{}.{}.conv1.weight", stage, block)); ++block) add_block(model.layers, stage, block);
      if (block == 0) refuse(fmt::format("has no 'layer{}.0.conv1.weight'", stage));
      blocks += block;
    }
    model.layers += "    - global_avg_pool\n";
    const bool is_deep = has("layer1.0.conv3.weight");
    model.classes = shape("fc.weight", 2)[0];
    constexpr std::int64_t side = 224;  // torchvision's weights are for images of this size
    model.image = {side, side, shape("conv1.weight", 4)[1]};
    if (model.image.back() == 3) {
      model.mean = {0.485, 0.456, 0.406};
      model.std = {0.229, 0.224, 0.225};
    }
    model.what = fmt::format("ResNet-{}: {} in four stages", (is_deep ? 3 : 2) * blocks + 2, counted(blocks, "block"));
    return model;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail_data(fmt::format("'{}' {}, so it is no ResNet of torchvision", path_, what),
              "its names are those of torchvision.models.resnet18().state_dict(); transformers' ResNets have others");
  }
  bool has(const std::string& name) const { return shapes_.contains(name); }
  const Shape& shape(const std::string& name, std::size_t rank) const {
    const auto found = shapes_.find(name);
    if (found == shapes_.end()) refuse("has no '" + name + "'");
    if (found->second.size() != rank) refuse("has '" + name + "' as " + to_string(found->second));
    return found->second;
  }

  // The convolution `name` of the file, which is called `here`; empty: by its number.
  std::string convolution(const std::string& name, const std::string& here, std::int64_t groups, std::int64_t stride,
                          const std::string& indent) const {
    const Shape& kernel = shape(name + ".weight", 4);
    const std::int64_t padding = kernel[2] / 2;
    std::string options = fmt::format("features: {}, kernel_size: [{}, {}]", kernel[0], kernel[2], kernel[3]);
    if (stride > 1) options += fmt::format(", strides: [{0}, {0}]", stride);
    if (padding > 0) options += fmt::format(", padding: [[{0}, {0}], [{0}, {0}]]", padding);
    if (groups > 1) options += fmt::format(", feature_group_count: {}", groups);
    const std::string named = here.empty() ? "" : "name: " + here + ", ";
    return fmt::format("{}- {{{}conv: {{{}, use_bias: false}}}}\n", indent, named, options);
  }
  static std::string norm(const std::string& here, const std::string& indent) {
    const std::string named = here.empty() ? "" : "name: " + here + ", ";
    return fmt::format("{}- {{{}batch_norm: {{momentum: 0.9, epsilon: 1.0e-05}}}}\n", indent, named);
  }

  void add_block(std::string& layers, int stage, std::int64_t block) const {
    const std::string name = fmt::format("layer{}.{}", stage, block), indent(10, ' ');
    const bool is_deep = has(name + ".conv3.weight");
    const std::int64_t stride = stage > 1 && block == 0 ? 2 : 1;
    layers += fmt::format("    - name: layer{}_{}\n      residual:\n        layers:\n", stage, block);
    // The strides of a deep block are in its 3 x 3 convolution.
    layers += convolution(name + ".conv1", "conv1", 1, is_deep ? 1 : stride, indent) + norm("bn1", indent);
    const std::int64_t read = shape(name + ".conv1.weight", 4)[0];
    const std::int64_t each = std::max<std::int64_t>(shape(name + ".conv2.weight", 4)[1], 1);
    layers +=
        indent + "- relu\n" +
        convolution(name + ".conv2", "conv2", std::max<std::int64_t>(read / each, 1), is_deep ? stride : 1, indent) +
        norm("bn2", indent);
    if (is_deep) {
      layers += indent + "- relu\n" + convolution(name + ".conv3", "conv3", 1, 1, indent) + norm("bn3", indent);
    }
    if (has(name + ".downsample.0.weight")) {
      layers += "        shortcut:\n" + convolution(name + ".downsample.0", "", 1, stride, indent) + norm("", indent);
    }
    layers += "    - relu\n";
  }

  std::string path_;
  data::Bytes file_;
  std::map<std::string, Shape> shapes_;
};

}  // namespace

PretrainedModel read_torchvision(const std::string& file) { return ResNetWriter(file).write(); }

}  // namespace pmaptrain::app
