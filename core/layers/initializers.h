// How the first values of a parameter are made: Flax's initializers, by their names, with the formulas of
// jax.nn.initializers.
//
// An initializer is a struct with its keys and `Initializer initial(const Fans&) const`, or `Initializer initial()
// const` if it needs no fans, and its place in a list of initializers.cpp.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/declare/kind.h"

namespace pmaptrain::layers {

using declare::Declaration;
using declare::field;
using declare::Need;

enum class InitializerKind {
  constant,          // `scale` everywhere
  normal,            // of standard deviation `scale`
  truncated_normal,  // at two standard deviations, which are `scale` before
  uniform,           // in [low, low + scale)
  orthogonal,        // orthogonal columns of length `scale`
};

// An initializer with the sizes of its parameter.
struct Initializer {
  InitializerKind kind = InitializerKind::constant;
  double scale = 0;
  double low = 0;
  std::int64_t columns = 1;  // of the matrix that is orthogonal
  std::int64_t zeros = 0;    // so many of the first elements are 0

  bool draws() const { return kind != InitializerKind::constant; }
};

inline constexpr Initializer zeros = {};
inline constexpr Initializer ones = {InitializerKind::constant, 1.0};

// A parameter as a matrix (rows, columns) for each place of `receptive` (of a convolution: height times width). A row
// of the parameter's columns has rows x receptive elements.
struct Fans {
  std::int64_t rows = 1, columns = 1, receptive = 1;

  double in() const { return static_cast<double>(rows) * static_cast<double>(receptive); }
  double out() const { return static_cast<double>(columns) * static_cast<double>(receptive); }
};

// An initializer of parameters with at least two dimensions: these have fans. Without a value, lecun_normal.
class KernelInit {
 public:
  KernelInit() = default;
  template <class Kind>
  requires requires { Kind::declaration(); }
  KernelInit(Kind kind)
      : initial_([kind](const Fans& fans) {
          if constexpr (requires { kind.initial(fans); }) {
            return kind.initial(fans);
          } else {
            static_assert(
                requires { kind.initial(); }, "this initializer has no initial()");
            return kind.initial();
          }
        }) {}

  explicit operator bool() const { return initial_ != nullptr; }
  Initializer operator()(const Fans& fans) const;

 private:
  std::function<Initializer(const Fans&)> initial_;
};
const std::vector<declare::AnyKind>& family(declare::Tag<KernelInit>);

// An initializer of biases and scales.
class VectorInit {
 public:
  VectorInit() = default;
  template <class Kind>
  requires requires(const Kind& kind) { kind.initial(); }
  VectorInit(Kind kind) : initial_([kind] { return kind.initial(); }) {}

  explicit operator bool() const { return initial_ != nullptr; }
  // `otherwise` if it has no value.
  Initializer operator()(const Initializer& otherwise = zeros) const { return initial_ ? initial_() : otherwise; }

 private:
  std::function<Initializer()> initial_;
};
const std::vector<declare::AnyKind>& family(declare::Tag<VectorInit>);

// ---- kinds ----------------------------------------------------------------------------------------------------------
// What a float32 holds; and the largest spread whose draws, of at most 6.7 deviations, it holds.
inline constexpr double largest_value = 3.4e38, largest_spread = 1e37;

struct ZerosInit {
  static Declaration<ZerosInit> declaration() {
    return declare::kind<ZerosInit>({.path = "zeros", .meaning = "0.", .example = "kernel_init: zeros"});
  }
  Initializer initial() const { return zeros; }
};

struct OnesInit {
  static Declaration<OnesInit> declaration() {
    return declare::kind<OnesInit>({.path = "ones", .meaning = "1.", .example = "scale_init: ones"});
  }
  Initializer initial() const { return ones; }
};

struct ConstantInit {
  double value = 0.0;

  static Declaration<ConstantInit> declaration() {
    return declare::kind<ConstantInit>(
        {.path = "constant", .meaning = "One value.", .example = "bias_init: {constant: 0.1}"},
        field(&ConstantInit::value, {.path = "value",
                                     .need = Need::required,
                                     .low = -largest_value,
                                     .high = largest_value,
                                     .shorthand = true,
                                     .meaning = "The value.",
                                     .example = "value: 0.1"}));
  }
  Initializer initial() const { return {InitializerKind::constant, value}; }
};

struct NormalInit {
  double stddev = 0.01;

  static Declaration<NormalInit> declaration() {
    return declare::kind<NormalInit>({.path = "normal",
                                      .meaning = "A normal distribution of mean 0.",
                                      .example = "kernel_init: {normal: {stddev: 0.02}}"},
                                     field(&NormalInit::stddev, {.path = "stddev",
                                                                 .high = largest_spread,
                                                                 .shorthand = true,
                                                                 .meaning = "The standard deviation.",
                                                                 .example = "stddev: 0.02"}));
  }
  Initializer initial() const { return {InitializerKind::normal, stddev}; }
};

struct TruncatedNormalInit {
  double stddev = 0.01;  // before it is truncated at two of them

  static Declaration<TruncatedNormalInit> declaration() {
    return declare::kind<TruncatedNormalInit>(
        {.path = "truncated_normal",
         .meaning = "A normal distribution of mean 0 without the values beyond two standard deviations.",
         .example = "kernel_init: {truncated_normal: {stddev: 0.02}}"},
        field(
            &TruncatedNormalInit::stddev,
            {.path = "stddev",
             .high = largest_spread,
             .shorthand = true,
             .meaning = "The standard deviation of the distribution before it is truncated; after, it is 0.8796 of it.",
             .example = "stddev: 0.02"}));
  }
  Initializer initial() const { return {InitializerKind::truncated_normal, stddev}; }
};

struct UniformInit {
  double scale = 0.01;

  static Declaration<UniformInit> declaration() {
    return declare::kind<UniformInit>({.path = "uniform",
                                       .meaning = "The uniform distribution of [0, scale).",
                                       .example = "kernel_init: {uniform: {scale: 0.1}}"},
                                      field(&UniformInit::scale, {.path = "scale",
                                                                  .high = largest_spread,
                                                                  .shorthand = true,
                                                                  .meaning = "The end of the range.",
                                                                  .example = "scale: 0.1"}));
  }
  Initializer initial() const { return {InitializerKind::uniform, scale}; }
};

enum class Fan { in, out, average };
constexpr std::array<declare::Word<Fan>, 3> words_of(declare::Tag<Fan>) {
  return {{{"fan_in", Fan::in}, {"fan_out", Fan::out}, {"fan_avg", Fan::average}}};
}
enum class InitDistribution { truncated_normal, normal, uniform };
constexpr std::array<declare::Word<InitDistribution>, 3> words_of(declare::Tag<InitDistribution>) {
  return {{{"truncated_normal", InitDistribution::truncated_normal},
           {"normal", InitDistribution::normal},
           {"uniform", InitDistribution::uniform}}};
}

struct VarianceScalingInit {
  double scale = 1.0;
  Fan mode = Fan::in;
  InitDistribution distribution = InitDistribution::truncated_normal;

  static Declaration<VarianceScalingInit> declaration() {
    return declare::kind<VarianceScalingInit>(
        {.path = "variance_scaling",
         .meaning =
             "A distribution of mean 0 and variance scale / fan. The fans of a kernel (..., in, out) are in and out "
             "times the sizes of all dimensions before them.",
         .example = "kernel_init: {variance_scaling: {scale: 2.0, mode: fan_out, distribution: normal}}"},
        field(&VarianceScalingInit::scale, {.path = "scale",
                                            .need = Need::required,
                                            .high = largest_spread,
                                            .open_low = true,
                                            .meaning = "The variance, times the fan.",
                                            .example = "scale: 2.0"}),
        field(&VarianceScalingInit::mode, {.path = "mode",
                                           .need = Need::required,
                                           .meaning = "The fan; fan_avg is the mean of both.",
                                           .example = "mode: fan_out"}),
        field(&VarianceScalingInit::distribution,
              {.path = "distribution",
               .need = Need::required,
               .meaning = "The distribution. That of truncated_normal is cut at two standard deviations and "
                          "has the variance after it.",
               .example = "distribution: normal"}));
  }
  Initializer initial(const Fans& fans) const {
    // The standard deviation of a standard normal distribution truncated at two.
    constexpr double cut_deviation = 0.87962566103423978;
    const double fan = mode == Fan::in ? fans.in() : mode == Fan::out ? fans.out() : (fans.in() + fans.out()) / 2;
    const double variance = scale / fan;
    switch (distribution) {
      case InitDistribution::normal: return {InitializerKind::normal, std::sqrt(variance)};
      case InitDistribution::uniform: {
        const double high = std::sqrt(3 * variance);
        return {InitializerKind::uniform, 2 * high, -high};
      }
      case InitDistribution::truncated_normal: break;
    }
    return {InitializerKind::truncated_normal, std::sqrt(variance) / cut_deviation};
  }
};

// Variance scalings that have a name.
struct LecunNormalInit {
  static Declaration<LecunNormalInit> declaration() {
    return declare::kind<LecunNormalInit>({.path = "lecun_normal",
                                           .meaning = "variance_scaling of scale 1, fan_in, truncated_normal.",
                                           .example = "kernel_init: lecun_normal"});
  }
  Initializer initial(const Fans& fans) const { return VarianceScalingInit{1}.initial(fans); }
};

struct LecunUniformInit {
  static Declaration<LecunUniformInit> declaration() {
    return declare::kind<LecunUniformInit>({.path = "lecun_uniform",
                                            .meaning = "variance_scaling of scale 1, fan_in, uniform.",
                                            .example = "kernel_init: lecun_uniform"});
  }
  Initializer initial(const Fans& fans) const {
    return VarianceScalingInit{1, Fan::in, InitDistribution::uniform}.initial(fans);
  }
};

struct HeNormalInit {
  static Declaration<HeNormalInit> declaration() {
    return declare::kind<HeNormalInit>({.path = "he_normal",
                                        .meaning = "variance_scaling of scale 2, fan_in, truncated_normal: for relu.",
                                        .example = "kernel_init: he_normal"});
  }
  Initializer initial(const Fans& fans) const { return VarianceScalingInit{2}.initial(fans); }
};

struct HeUniformInit {
  static Declaration<HeUniformInit> declaration() {
    return declare::kind<HeUniformInit>({.path = "he_uniform",
                                         .meaning = "variance_scaling of scale 2, fan_in, uniform.",
                                         .example = "kernel_init: he_uniform"});
  }
  Initializer initial(const Fans& fans) const {
    return VarianceScalingInit{2, Fan::in, InitDistribution::uniform}.initial(fans);
  }
};

struct GlorotNormalInit {
  static Declaration<GlorotNormalInit> declaration() {
    return declare::kind<GlorotNormalInit>({.path = "glorot_normal",
                                            .meaning = "variance_scaling of scale 1, fan_avg, truncated_normal.",
                                            .example = "kernel_init: glorot_normal"});
  }
  Initializer initial(const Fans& fans) const { return VarianceScalingInit{1, Fan::average}.initial(fans); }
};

struct GlorotUniformInit {
  static Declaration<GlorotUniformInit> declaration() {
    return declare::kind<GlorotUniformInit>({.path = "glorot_uniform",
                                             .meaning = "variance_scaling of scale 1, fan_avg, uniform.",
                                             .example = "kernel_init: glorot_uniform"});
  }
  Initializer initial(const Fans& fans) const {
    return VarianceScalingInit{1, Fan::average, InitDistribution::uniform}.initial(fans);
  }
};

struct OrthogonalInit {
  double scale = 1.0;

  static Declaration<OrthogonalInit> declaration() {
    return declare::kind<OrthogonalInit>(
        {.path = "orthogonal",
         .meaning = "A random matrix whose columns, the last dimension, are orthogonal and of length scale; its rows, "
                    "if these are fewer.",
         .example = "kernel_init: {orthogonal: {scale: 1.0}}"},
        field(&OrthogonalInit::scale, {.path = "scale",
                                       .high = largest_spread,
                                       .shorthand = true,
                                       .meaning = "The length of each column.",
                                       .example = "scale: 1.4142"}));
  }
  Initializer initial(const Fans& fans) const { return {InitializerKind::orthogonal, scale, 0, fans.columns}; }
};

inline Initializer KernelInit::operator()(const Fans& fans) const {
  return initial_ ? initial_(fans) : LecunNormalInit().initial(fans);
}

}  // namespace pmaptrain::layers
