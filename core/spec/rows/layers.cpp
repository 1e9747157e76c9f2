// The rows of the layers.
#include "core/spec/rows/layer_keys.h"
#include "core/spec/rows/row.h"
#include "core/spec/rows/sequence_layers.h"
#include "core/spec/types/axes.h"
#include "core/spec/types/lists.h"
#include "core/spec/types/padding.h"

namespace pmaptrain::spec {

static auto row(Tag<Dense>) {
  return alternative<Dense>(
      {.path = "dense",
       .meaning = "A fully connected layer: x @ kernel + bias, along the last dimension. Parameters: kernel (in, out) "
                  "and bias (out).",
       .example = "- dense: 10"},
      option(&Dense::features, {.path = "features",
                                .need = Need::required,
                                .low = 1,
                                .shorthand = true,
                                .meaning = "Number of output features.",
                                .example = "features: 10"}),
      option(&Dense::use_bias, {.path = "use_bias", .meaning = "Whether to add a bias.", .example = "use_bias: false"}),
      choice(&Dense::kernel_init, kernel_init("")), choice(&Dense::bias_init, bias_init("")));
}

static auto row(Tag<Conv>) {
  return alternative<Conv>(
      {.path = "conv",
       .meaning = "Convolution over height and width. Parameters: kernel (height, width, in / feature_group_count, "
                  "out) and bias (out).",
       .example = "- conv: {features: 32, kernel_size: [3, 3]}"},
      option(&Conv::features, {.path = "features",
                               .need = Need::required,
                               .low = 1,
                               .meaning = "Number of output channels.",
                               .example = "features: 32"}),
      option(&Conv::kernel_size, {.path = "kernel_size",
                                  .need = Need::required,
                                  .low = 1,
                                  .high = 65536,
                                  .length = 2,
                                  .meaning = "Height and width of the kernel.",
                                  .example = "kernel_size: [3, 3]"}),
      option(&Conv::strides, {.path = "strides",
                              .low = 1,
                              .high = 65536,
                              .length = 2,
                              .meaning = "Strides along height and width.",
                              .example = "strides: [2, 2]"}),
      option(&Conv::padding, {.path = "padding",
                              .high = 65536,
                              .meaning = "SAME: zero padding for an output size of ceil(size / stride). VALID: no "
                                         "padding. Or explicit zero padding: [before, after] for height and for width.",
                              .example = "padding: [[1, 1], [1, 1]]"}),
      option(&Conv::kernel_dilation,
             {.path = "kernel_dilation",
              .low = 1,
              .high = 65536,
              .length = 2,
              .meaning = "Spacing between kernel elements along height and width (dilated convolution).",
              .example = "kernel_dilation: [2, 2]"}),
      option(&Conv::feature_group_count,
             {.path = "feature_group_count",
              .low = 1,
              .meaning = "Number of groups: input and output channels are split into groups, which are convolved "
                         "separately. As many groups as input channels give a depthwise convolution.",
              .example = "feature_group_count: 2"}),
      option(&Conv::use_bias,
             {.path = "use_bias", .meaning = "Whether to add a bias to each channel.", .example = "use_bias: false"}),
      choice(&Conv::kernel_init, kernel_init()), choice(&Conv::bias_init, bias_init()));
}

// Of every pooling.
static Key window_shape() {
  return {.path = "window_shape",
          .need = Need::required,
          .low = 1,
          .high = 65536,
          .length = 2,
          .meaning = "Height and width of the window.",
          .example = "window_shape: [2, 2]"};
}
static Key window_strides() {
  return {.path = "strides",
          .need = Need::required,
          .low = 1,
          .high = 65536,
          .length = 2,
          .meaning =
              "Strides along height and width. They are required, because defaults differ: without strides "
              "PyTorch and Keras move the window by its own size, Flax by 1.",
          .example = "strides: [2, 2]"};
}

static auto row(Tag<MaxPool>) {
  return alternative<MaxPool>({.path = "max_pool",
                               .meaning = "The maximum of each window.",
                               .example = "- max_pool: {window_shape: [2, 2], strides: [2, 2]}"},
                              option(&MaxPool::window_shape, window_shape()),
                              option(&MaxPool::strides, window_strides()),
                              option(&MaxPool::padding, {.path = "padding",
                                                         .high = 65536,
                                                         .meaning = "As for conv; padding counts as -infinity.",
                                                         .example = "padding: SAME"}));
}

static auto row(Tag<AvgPool>) {
  return alternative<AvgPool>(
      {.path = "avg_pool",
       .meaning = "The mean of each window.",
       .example = "- avg_pool: {window_shape: [2, 2], strides: [2, 2]}"},
      option(&AvgPool::window_shape, window_shape()), option(&AvgPool::strides, window_strides()),
      option(&AvgPool::padding,
             {.path = "padding", .high = 65536, .meaning = "As for conv.", .example = "padding: SAME"}),
      option(&AvgPool::count_include_pad,
             {.path = "count_include_pad",
              .meaning = "Whether padding is included in the mean as zeros; false: the mean excludes it.",
              .example = "count_include_pad: false"}));
}

static auto row(Tag<GlobalAvgPool>) {
  return alternative<GlobalAvgPool>({.path = "global_avg_pool",
                                     .meaning = "The mean of each channel, the last dimension, over all others.",
                                     .example = "- global_avg_pool"});
}

static auto row(Tag<Reshape>) {
  return alternative<Reshape>(
      {.path = "reshape",
       .meaning = "Reshapes each example; elements stay in row-major order.",
       .example = "- reshape: [7, 7, 64]"},
      option(
          &Reshape::shape,
          {.path = "shape",
           .need = Need::required,
           .low = -1,
           .shorthand = true,
           .meaning =
               "The new shape of one example, without the batch dimension. One size may be -1, which is then inferred.",
           .example = "shape: [7, 7, -1]"}));
}

static auto row(Tag<Layers>) {
  return alternative_of(choices(
      &Layers::layers,
      {.path = "layers",
       .meaning =
           "A nested list of layers. Its name is the prefix of their parameter names, as in block.conv_0.kernel.",
       .example = "- name: block\n  layers:\n    - conv: {features: 32, kernel_size: [3, 3]}\n    - relu",
       .item = "layer",
       .like = "model.layers"}));
}

static auto row(Tag<Residual>) {
  return alternative<Residual>(
      {.path = "residual",
       .meaning = "A residual connection: layers(x) + shortcut(x). Parameters are named residual_0.conv_0.kernel and "
                  "residual_0.shortcut.conv_0.kernel.",
       .example = "- residual:\n    layers:\n      - conv: {features: 32, kernel_size: [3, 3], strides: [2, 2]}\n"
                  "      - relu\n    shortcut:\n      - conv: {features: 32, kernel_size: [1, 1], strides: [2, 2]}"},
      choices(&Residual::layers, {.path = "layers",
                                  .need = Need::required,
                                  .meaning = "The layers whose output is added to that of the shortcut.",
                                  .example = "layers: [{dense: 64}, relu, {dense: 64}]",
                                  .item = "layer",
                                  .like = "model.layers"}),
      choices(&Residual::shortcut,
              {.path = "shortcut",
               .fallback = "[]",
               .meaning = "The layers beside them, such as a projection to the shape of their output. An empty list is "
                          "the identity.",
               .example = "shortcut: [{conv: {features: 64, kernel_size: [1, 1], strides: [2, 2]}}]",
               .item = "layer",
               .like = "model.layers"}));
}

static auto row(Tag<Repeat>) {
  return alternative<Repeat>(
      {.path = "repeat",
       .meaning = "The same layers several times, one after another. Each time has parameters of its own, which are "
                  "named repeat_0.2.dense_0.kernel (the third time). The layers keep the shape.",
       .example = "- repeat:\n    times: 4\n    layers: [{residual: {layers: [{dense: 64}, relu]}}]"},
      option(&Repeat::times, {.path = "times",
                              .need = Need::required,
                              .low = 1,
                              .high = 10000,
                              .meaning = "How often the layers are applied.",
                              .example = "times: 4"}),
      choices(&Repeat::layers, {.path = "layers",
                                .need = Need::required,
                                .meaning = "The layers that are repeated.",
                                .example = "layers: [{dense: 64}, relu]",
                                .item = "layer",
                                .like = "model.layers"}),
      option(&Repeat::remat, {.path = "remat",
                              .meaning = "Whether the backward pass computes the activations of each time again from "
                                         "its input: less memory, more time.",
                              .example = "remat: true"}));
}

static auto row(Tag<Flatten>) {
  return alternative<Flatten>(
      {.path = "flatten", .meaning = "Reshapes each example to one dimension.", .example = "- flatten"});
}

static auto row(Tag<Dropout>) {
  return alternative<Dropout>({.path = "dropout",
                               .meaning = "In training, sets each value to zero with probability rate and divides the "
                                          "others by 1 - rate. In evaluation, the identity.",
                               .example = "- dropout: 0.5"},
                              option(&Dropout::rate, {.path = "rate",
                                                      .need = Need::required,
                                                      .high = 1,
                                                      .open_high = true,
                                                      .shorthand = true,
                                                      .varies = true,
                                                      .structural = Structural{0.0, "dropout of rate 0 does nothing"},
                                                      .meaning = "The probability that a value is set to zero.",
                                                      .example = "rate: 0.5"}));
}

// Of every normalisation.
static Key epsilon() {
  return {.path = "epsilon",
          .high = 1,
          .open_low = true,
          .meaning = "What is added to the variance, so that nothing is divided by 0.",
          .example = "epsilon: 1.0e-5"};
}
static Key use_scale() {
  return {
      .path = "use_scale", .meaning = "Whether to multiply each channel by a scale.", .example = "use_scale: false"};
}
static Key use_norm_bias() {
  return {.path = "use_bias", .meaning = "Whether to add a bias to each channel.", .example = "use_bias: false"};
}

static auto row(Tag<LayerNorm>) {
  return alternative<LayerNorm>(
      {.path = "layer_norm",
       .meaning = "(x - mean) / sqrt(variance + epsilon) * scale + bias, with the mean and the variance over the last "
                  "dimension. Parameters: scale (C) and bias (C).",
       .example = "- layer_norm"},
      option(&LayerNorm::epsilon, epsilon()), option(&LayerNorm::use_scale, use_scale()),
      option(&LayerNorm::use_bias, use_norm_bias()), choice(&LayerNorm::scale_init, scale_init()),
      choice(&LayerNorm::bias_init, bias_init()));
}

static auto row(Tag<RmsNorm>) {
  return alternative<RmsNorm>(
      {.path = "rms_norm",
       .meaning = "x / sqrt(mean of x * x + epsilon) * scale, with the mean over the last dimension. Parameters: scale "
                  "(C) and, with use_bias, bias (C).",
       .example = "- rms_norm"},
      option(&RmsNorm::epsilon, epsilon()), option(&RmsNorm::use_scale, use_scale()),
      option(&RmsNorm::use_bias, use_norm_bias()), choice(&RmsNorm::scale_init, scale_init()),
      choice(&RmsNorm::bias_init, bias_init()));
}

static auto row(Tag<GroupNorm>) {
  return alternative<GroupNorm>(
      {.path = "group_norm",
       .meaning = "(x - mean) / sqrt(variance + epsilon) * scale + bias, with the mean and the variance of each group "
                  "of channels over all positions of an example. Parameters: scale (C) and bias (C).",
       .example = "- group_norm: {num_groups: 8}"},
      option(&GroupNorm::num_groups, {.path = "num_groups",
                                      .low = 1,
                                      .meaning = "The number of groups, which divides the channels.",
                                      .example = "num_groups: 8"}),
      option(&GroupNorm::epsilon, epsilon()), option(&GroupNorm::use_scale, use_scale()),
      option(&GroupNorm::use_bias, use_norm_bias()), choice(&GroupNorm::scale_init, scale_init()),
      choice(&GroupNorm::bias_init, bias_init()));
}

static auto row(Tag<BatchNorm>) {
  return alternative<BatchNorm>(
      {.path = "batch_norm",
       .meaning =
           "(x - mean) / sqrt(variance + epsilon) * scale + bias. In training, the mean and the variance of each "
           "channel are those of the rows of a device, in a microbatch; a step moves running statistics to "
           "them, which evaluations use. Parameters: scale (C) and bias (C); statistics: mean (C) and var (C).",
       .example = "- batch_norm: {momentum: 0.9}"},
      option(&BatchNorm::axes, {.path = "axes",
                                .meaning = "Axes of the mesh over which the statistics are, besides the rows of a "
                                           "device: those devices have equal statistics.",
                                .example = "axes: [devices]"}),
      option(&BatchNorm::momentum,
             {.path = "momentum",
              .high = 1,
              .open_high = true,
              .meaning = "The share of the running statistics that a step keeps, as in Flax: 0.9 is PyTorch's 0.1.",
              .example = "momentum: 0.9"}),
      option(&BatchNorm::epsilon, epsilon()), option(&BatchNorm::use_scale, use_scale()),
      option(&BatchNorm::use_bias, use_norm_bias()), choice(&BatchNorm::scale_init, scale_init()),
      choice(&BatchNorm::bias_init, bias_init()));
}

static auto row(Tag<Transpose>) {
  return alternative<Transpose>(
      {.path = "transpose", .meaning = "Permutes the dimensions of each example.", .example = "- transpose: [1, 0]"},
      option(
          &Transpose::permutation,
          {.path = "permutation",
           .need = Need::required,
           .high = 7,
           .shorthand = true,
           .meaning = "The dimensions of an example, counted from 0 without the batch dimension, in their new order.",
           .example = "permutation: [2, 0, 1]"}));
}

static auto row(Tag<Relu>) { return alternative<Relu>({.path = "relu", .meaning = "max(x, 0).", .example = "- relu"}); }

static auto row(Tag<Tanh>) {
  return alternative<Tanh>({.path = "tanh", .meaning = "The hyperbolic tangent.", .example = "- tanh"});
}

static constexpr std::array<Word<GeluFunction>, 2> words_of(Tag<GeluFunction>) {
  return {{{"tanh", GeluFunction::tanh}, {"none", GeluFunction::exact}}};
}

static auto row(Tag<Gelu>) {
  return alternative<Gelu>(
      {.path = "gelu",
       .meaning = "The Gaussian error linear unit (GELU), x / 2 * (1 + erf(x / sqrt(2))).",
       .example = "- gelu"},
      option(&Gelu::approximate, {.path = "approximate",
                                  .meaning = "tanh: the approximation by tanh, the default of Flax. none: by erf, the "
                                             "default of PyTorch.",
                                  .example = "approximate: none"}));
}

static auto row(Tag<Sigmoid>) {
  return alternative<Sigmoid>(
      {.path = "sigmoid", .meaning = "The logistic function, 1 / (1 + exp(-x)).", .example = "- sigmoid"});
}

static auto row(Tag<Silu>) {
  return alternative<Silu>({.path = "silu", .meaning = "x * sigmoid(x), also called swish.", .example = "- silu"});
}

static auto row(Tag<Softmax>) {
  return alternative<Softmax>(
      {.path = "softmax",
       .meaning = "Softmax along the last dimension. Not for use before softmax_cross_entropy, which expects logits.",
       .example = "- softmax"});
}

static auto row(Tag<LeakyRelu>) {
  return alternative<LeakyRelu>(
      {.path = "leaky_relu", .meaning = "x for x >= 0, else negative_slope * x.", .example = "- leaky_relu: 0.01"},
      option(&LeakyRelu::negative_slope, {.path = "negative_slope",
                                          .low = -unbounded,
                                          .high = unbounded,
                                          .shorthand = true,
                                          .meaning = "The slope for x < 0.",
                                          .example = "negative_slope: 0.01"}));
}

static auto row(Tag<Elu>) {
  return alternative<Elu>(
      {.path = "elu", .meaning = "x for x > 0, else alpha * (exp(x) - 1).", .example = "- elu"},
      option(&Elu::alpha, {.path = "alpha",
                           .low = -unbounded,
                           .high = unbounded,
                           .shorthand = true,
                           .meaning = "The scale for x < 0; the limit for x -> -infinity is -alpha.",
                           .example = "alpha: 1.0"}));
}

static auto row(Tag<Softplus>) {
  return alternative<Softplus>(
      {.path = "softplus", .meaning = "log(1 + exp(x)), computed without overflow.", .example = "- softplus"});
}

static auto row(Tag<Layer>) {
  return keys_of<Layer>(
      option(&Layer::name, {.path = "name",
                            .type = Type::layer_name,
                            .meaning = "The prefix of the layer's parameter names: head.kernel, head.bias.",
                            .example = "{name: head, dense: 10}",
                            .fallback_text = "its kind and its index among that kind: conv_0"}),
      option(&Layer::precision,
             {.path = "precision",
              .words = {"float32"},
              .meaning = "Keeps this layer, or list of layers, in float32 under precision: mixed_bfloat16.",
              .example = "{dense: 10, precision: float32}",
              .fallback_text = "the precision of the config"}),
      option(&Layer::remat,
             {.path = "remat",
              .meaning = "Whether the backward pass computes the activations of this layer, or list of layers, again "
                         "from its input: less memory, more time.",
              .example = "{residual: {layers: [{dense: 64}, relu]}, remat: true}",
              .fallback_text = "false"}),
      alternatives(&Layer::kind));
}

template struct Section<Rotary>;
template struct Section<Layer>;
template struct Choice<LayerKind>;

}  // namespace pmaptrain::spec
