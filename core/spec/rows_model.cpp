// The rows of `model` and of the layers.
#include "core/spec/row.h"

namespace pmaptrain::spec {

static auto row(Tag<Dense>) {
  return alternative<Dense>(
      {.path = "dense",
       .meaning = "Every output is a weighted sum of all inputs. Parameters: kernel (in, out) and bias.",
       .example = "- dense: 10"},
      option(&Dense::features, {.path = "features",
                                .need = Need::required,
                                .low = 1,
                                .shorthand = true,
                                .meaning = "Outputs.",
                                .example = "features: 10"}),
      option(&Dense::use_bias,
             {.path = "use_bias", .meaning = "Whether a learned constant is added.", .example = "use_bias: false"}));
}

static auto row(Tag<Conv>) {
  return alternative<Conv>(
      {.path = "conv",
       .meaning = "Convolution over height and width. Parameters: kernel (height, width, in, out) and bias.",
       .example = "- conv: {features: 32, kernel_size: [3, 3]}"},
      option(&Conv::features, {.path = "features",
                               .need = Need::required,
                               .low = 1,
                               .meaning = "Channels of the output.",
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
                              .meaning = "Steps of the kernel along height and width.",
                              .example = "strides: [2, 2]"}),
      option(
          &Conv::padding,
          {.path = "padding",
           .high = 65536,
           .meaning =
               "SAME gives ceil(size / stride) outputs, VALID pads nothing, or the zeros before and after, for height "
               "and for width.",
           .example = "padding: [[1, 1], [1, 1]]"}),
      option(&Conv::kernel_dilation,
             {.path = "kernel_dilation",
              .low = 1,
              .high = 65536,
              .length = 2,
              .meaning = "How far apart the kernel's elements meet the image, along height and width.",
              .example = "kernel_dilation: [2, 2]"}),
      option(&Conv::feature_group_count,
             {.path = "feature_group_count",
              .low = 1,
              .meaning =
                  "Into how many groups the channels are cut: each group of outputs sees its own inputs alone. With as "
                  "many groups as channels, a depthwise convolution.",
              .example = "feature_group_count: 2"}),
      option(&Conv::use_bias, {.path = "use_bias",
                               .meaning = "Whether a learned constant is added to each channel.",
                               .example = "use_bias: false"}));
}

static auto row(Tag<MaxPool>) {
  return alternative<MaxPool>(
      {.path = "max_pool",
       .meaning = "The largest value of each window.",
       .example = "- max_pool: {window_shape: [2, 2], strides: [2, 2]}"},
      option(&MaxPool::window_shape, {.path = "window_shape",
                                      .need = Need::required,
                                      .low = 1,
                                      .high = 65536,
                                      .length = 2,
                                      .meaning = "Height and width of a window.",
                                      .example = "window_shape: [2, 2]"}),
      option(&MaxPool::strides,
             {.path = "strides",
              .need = Need::required,
              .low = 1,
              .high = 65536,
              .length = 2,
              .meaning = "Steps of the window along height and width (required: libraries disagree on a default).",
              .example = "strides: [2, 2]"}),
      option(&MaxPool::padding, {.path = "padding",
                                 .high = 65536,
                                 .meaning = "As for conv; what is padded never wins.",
                                 .example = "padding: SAME"}));
}

static auto row(Tag<AvgPool>) {
  return alternative<AvgPool>(
      {.path = "avg_pool",
       .meaning = "The mean of each window.",
       .example = "- avg_pool: {window_shape: [2, 2], strides: [2, 2]}"},
      option(&AvgPool::window_shape, {.path = "window_shape",
                                      .need = Need::required,
                                      .low = 1,
                                      .high = 65536,
                                      .length = 2,
                                      .meaning = "Height and width of a window.",
                                      .example = "window_shape: [2, 2]"}),
      option(&AvgPool::strides,
             {.path = "strides",
              .need = Need::required,
              .low = 1,
              .high = 65536,
              .length = 2,
              .meaning = "Steps of the window along height and width (required: libraries disagree on a default).",
              .example = "strides: [2, 2]"}),
      option(&AvgPool::padding,
             {.path = "padding", .high = 65536, .meaning = "As for conv.", .example = "padding: SAME"}),
      option(&AvgPool::count_include_pad,
             {.path = "count_include_pad",
              .meaning = "Whether padding counts as zeros; else a mean is that of the image's elements.",
              .example = "count_include_pad: false"}));
}

static auto row(Tag<GlobalAvgPool>) {
  return alternative<GlobalAvgPool>({.path = "global_avg_pool",
                                     .meaning = "The mean of each channel over height and width.",
                                     .example = "- global_avg_pool"});
}

static auto row(Tag<Reshape>) {
  return alternative<Reshape>(
      {.path = "reshape",
       .meaning = "The same values in another shape, row by row.",
       .example = "- reshape: [7, 7, 64]"},
      option(&Reshape::shape,
             {.path = "shape",
              .need = Need::required,
              .low = -1,
              .shorthand = true,
              .meaning = "The sizes of one example; one of them may be -1, which takes what the others leave.",
              .example = "shape: [7, 7, -1]"}));
}

static auto row(Tag<Layers>) {
  return alternative_of(
      choices(&Layers::layers,
              {.path = "layers",
               .meaning = "Layers in a list of their own: its name leads theirs, as in block.conv_0.kernel.",
               .example = "- name: block\n  layers:\n    - conv: {features: 32, kernel_size: [3, 3]}\n    - relu",
               .item = "layer",
               .like = "model.layers"}));
}

static auto row(Tag<Flatten>) {
  return alternative<Flatten>(
      {.path = "flatten", .meaning = "All dimensions of an example become one.", .example = "- flatten"});
}

static auto row(Tag<Dropout>) {
  return alternative<Dropout>(
      {.path = "dropout",
       .meaning = "While training, sets a share of the values to zero and scales the others up; nothing in evaluation.",
       .example = "- dropout: 0.5"},
      option(&Dropout::rate, {.path = "rate",
                              .need = Need::required,
                              .high = 1,
                              .open_high = true,
                              .shorthand = true,
                              .meaning = "The share that is set to zero.",
                              .example = "rate: 0.5"}));
}

static auto row(Tag<Relu>) { return alternative<Relu>({.path = "relu", .meaning = "max(x, 0).", .example = "- relu"}); }

static auto row(Tag<Tanh>) {
  return alternative<Tanh>({.path = "tanh", .meaning = "The hyperbolic tangent.", .example = "- tanh"});
}

static auto row(Tag<Gelu>) {
  return alternative<Gelu>(
      {.path = "gelu", .meaning = "The Gaussian error linear unit, in its tanh form.", .example = "- gelu"});
}

static auto row(Tag<Sigmoid>) {
  return alternative<Sigmoid>(
      {.path = "sigmoid", .meaning = "The logistic function, 1 / (1 + exp(-x)).", .example = "- sigmoid"});
}

static auto row(Tag<Silu>) {
  return alternative<Silu>({.path = "silu", .meaning = "x times its sigmoid, also called swish.", .example = "- silu"});
}

static auto row(Tag<Softmax>) {
  return alternative<Softmax>(
      {.path = "softmax",
       .meaning =
           "Exponentials divided by their sum, along the last dimension. softmax_cross_entropy takes what is before "
           "it: it has a softmax of its own.",
       .example = "- softmax"});
}

static auto row(Tag<LeakyRelu>) {
  return alternative<LeakyRelu>({.path = "leaky_relu",
                                 .meaning = "x where it is at least 0, else negative_slope times x.",
                                 .example = "- leaky_relu: 0.01"},
                                option(&LeakyRelu::negative_slope, {.path = "negative_slope",
                                                                    .low = -unbounded,
                                                                    .high = unbounded,
                                                                    .shorthand = true,
                                                                    .meaning = "The slope below 0.",
                                                                    .example = "negative_slope: 0.01"}));
}

static auto row(Tag<Elu>) {
  return alternative<Elu>(
      {.path = "elu", .meaning = "x where it is above 0, else alpha times (exp(x) - 1).", .example = "- elu"},
      option(&Elu::alpha, {.path = "alpha",
                           .low = -unbounded,
                           .high = unbounded,
                           .shorthand = true,
                           .meaning = "Minus the limit far below 0.",
                           .example = "alpha: 1.0"}));
}

static auto row(Tag<Softplus>) {
  return alternative<Softplus>(
      {.path = "softplus", .meaning = "log(1 + exp(x)), without overflow.", .example = "- softplus"});
}

static auto row(Tag<Layer>) {
  return keys_of<Layer>(
      option(&Layer::name, {.path = "name",
                            .type = Type::layer_name,
                            .meaning = "What the layer's parameters are called: head.kernel, head.bias.",
                            .example = "{name: head, dense: 10}",
                            .fallback_text = "its kind and its index among that kind: conv_0"}),
      alternatives(&Layer::kind));
}

static auto row(Tag<ModelSpec>) {
  return keys_of<ModelSpec>(
      choices(&ModelSpec::layers,
              {.path = "layers",
               .need = Need::required,
               .meaning =
                   "The layers, in order. Images are (height, width, channels). A layer is a bare name or one key with "
                   "its options.",
               .example = "layers:\n  - conv: {features: 32, kernel_size: [3, 3]}\n  - relu\n  - flatten\n"
                          "  - {name: head, dense: 10}",
               .item = "layer"}),
      by_hand<ModelSpec>(
          {.path = "init",
           .type = Type::choice,
           .meaning =
               "Values to start from instead of random ones, by the names of parameters. Kernels start LeCun normal "
               "and biases at zero.",
           .example = "init: {from: params.safetensors}",
           .fallback_text = "random values from the seed"}),
      option(&ModelSpec::initial_file, {.path = "init.from",
                                        .type = Type::path,
                                        .need = Need::alternative,
                                        .meaning = "A safetensors file.",
                                        .example = "init: {from: params.safetensors}"}),
      option(&ModelSpec::initial_values,
             {.path = "init.values",
              .type = Type::tensors,
              .need = Need::alternative,
              .low = -unbounded,
              .high = unbounded,
              .meaning = "Nested lists of numbers; what is not named keeps its random values.",
              .example = "init: {values: {dense_0: {kernel: [[1.0]], bias: [0.0]}}}"}));
}

template struct Section<ModelSpec>;
template struct Section<Layer>;
template struct Choice<LayerKind>;

}  // namespace pmaptrain::spec
