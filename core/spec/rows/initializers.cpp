// The rows of initializers: model.layers.dense.kernel_init and its likes.
#include "core/spec/rows/row.h"

namespace pmaptrain::spec {

// What a float32 holds; and the largest spread whose draws, of at most 6.7 deviations, it holds.
static constexpr double largest = 3.4e38, largest_spread = 1e37;

static auto row(Tag<ZerosInit>) {
  return alternative<ZerosInit>({.path = "zeros", .meaning = "0.", .example = "kernel_init: zeros"});
}

static auto row(Tag<OnesInit>) {
  return alternative<OnesInit>({.path = "ones", .meaning = "1.", .example = "scale_init: ones"});
}

static auto row(Tag<ConstantInit>) {
  return alternative<ConstantInit>(
      {.path = "constant", .meaning = "One value.", .example = "bias_init: {constant: 0.1}"},
      option(&ConstantInit::value, {.path = "value",
                                    .need = Need::required,
                                    .low = -largest,
                                    .high = largest,
                                    .shorthand = true,
                                    .meaning = "The value.",
                                    .example = "value: 0.1"}));
}

static auto row(Tag<NormalInit>) {
  return alternative<NormalInit>({.path = "normal",
                                  .meaning = "A normal distribution of mean 0.",
                                  .example = "kernel_init: {normal: {stddev: 0.02}}"},
                                 option(&NormalInit::stddev, {.path = "stddev",
                                                              .high = largest_spread,
                                                              .shorthand = true,
                                                              .meaning = "The standard deviation.",
                                                              .example = "stddev: 0.02"}));
}

static auto row(Tag<TruncatedNormalInit>) {
  return alternative<TruncatedNormalInit>(
      {.path = "truncated_normal",
       .meaning = "A normal distribution of mean 0 without the values beyond two standard deviations.",
       .example = "kernel_init: {truncated_normal: {stddev: 0.02}}"},
      option(
          &TruncatedNormalInit::stddev,
          {.path = "stddev",
           .high = largest_spread,
           .shorthand = true,
           .meaning = "The standard deviation of the distribution before it is truncated; after, it is 0.8796 of it.",
           .example = "stddev: 0.02"}));
}

static auto row(Tag<UniformInit>) {
  return alternative<UniformInit>({.path = "uniform",
                                   .meaning = "The uniform distribution of [0, scale).",
                                   .example = "kernel_init: {uniform: {scale: 0.1}}"},
                                  option(&UniformInit::scale, {.path = "scale",
                                                               .high = largest_spread,
                                                               .shorthand = true,
                                                               .meaning = "The end of the range.",
                                                               .example = "scale: 0.1"}));
}

static constexpr std::array<Word<Fan>, 3> words_of(Tag<Fan>) {
  return {{{"fan_in", Fan::in}, {"fan_out", Fan::out}, {"fan_avg", Fan::average}}};
}
static constexpr std::array<Word<InitDistribution>, 3> words_of(Tag<InitDistribution>) {
  return {{{"truncated_normal", InitDistribution::truncated_normal},
           {"normal", InitDistribution::normal},
           {"uniform", InitDistribution::uniform}}};
}

static auto row(Tag<VarianceScalingInit>) {
  return alternative<VarianceScalingInit>(
      {.path = "variance_scaling",
       .meaning =
           "A distribution of mean 0 and variance scale / fan. The fans of a kernel (..., in, out) are in and out "
           "times the sizes of all dimensions before them.",
       .example = "kernel_init: {variance_scaling: {scale: 2.0, mode: fan_out, distribution: normal}}"},
      option(&VarianceScalingInit::scale, {.path = "scale",
                                           .need = Need::required,
                                           .high = largest_spread,
                                           .open_low = true,
                                           .meaning = "The variance, times the fan.",
                                           .example = "scale: 2.0"}),
      option(&VarianceScalingInit::mode, {.path = "mode",
                                          .need = Need::required,
                                          .meaning = "The fan; fan_avg is the mean of both.",
                                          .example = "mode: fan_out"}),
      option(&VarianceScalingInit::distribution, {.path = "distribution",
                                                  .need = Need::required,
                                                  .meaning = "The distribution. That of truncated_normal is cut at two "
                                                             "standard deviations and has the variance after it.",
                                                  .example = "distribution: normal"}));
}

static auto row(Tag<LecunNormalInit>) {
  return alternative<LecunNormalInit>({.path = "lecun_normal",
                                       .meaning = "variance_scaling of scale 1, fan_in, truncated_normal.",
                                       .example = "kernel_init: lecun_normal"});
}

static auto row(Tag<LecunUniformInit>) {
  return alternative<LecunUniformInit>({.path = "lecun_uniform",
                                        .meaning = "variance_scaling of scale 1, fan_in, uniform.",
                                        .example = "kernel_init: lecun_uniform"});
}

static auto row(Tag<HeNormalInit>) {
  return alternative<HeNormalInit>({.path = "he_normal",
                                    .meaning = "variance_scaling of scale 2, fan_in, truncated_normal: for relu.",
                                    .example = "kernel_init: he_normal"});
}

static auto row(Tag<HeUniformInit>) {
  return alternative<HeUniformInit>({.path = "he_uniform",
                                     .meaning = "variance_scaling of scale 2, fan_in, uniform.",
                                     .example = "kernel_init: he_uniform"});
}

static auto row(Tag<GlorotNormalInit>) {
  return alternative<GlorotNormalInit>({.path = "glorot_normal",
                                        .meaning = "variance_scaling of scale 1, fan_avg, truncated_normal.",
                                        .example = "kernel_init: glorot_normal"});
}

static auto row(Tag<GlorotUniformInit>) {
  return alternative<GlorotUniformInit>({.path = "glorot_uniform",
                                         .meaning = "variance_scaling of scale 1, fan_avg, uniform.",
                                         .example = "kernel_init: glorot_uniform"});
}

static auto row(Tag<OrthogonalInit>) {
  return alternative<OrthogonalInit>(
      {.path = "orthogonal",
       .meaning = "A random matrix whose columns, the last dimension, are orthogonal and of length scale; its rows, if "
                  "these are fewer.",
       .example = "kernel_init: {orthogonal: {scale: 1.0}}"},
      option(&OrthogonalInit::scale, {.path = "scale",
                                      .high = largest_spread,
                                      .shorthand = true,
                                      .meaning = "The length of each column.",
                                      .example = "scale: 1.4142"}));
}

template struct Choice<KernelInitializer>;
template struct Choice<VectorInitializer>;

}  // namespace pmaptrain::spec
