// How the first values of a parameter are made: Flax's initializers, by their names.
#pragma once

#include <variant>

namespace pmaptrain::spec {

struct ZerosInit {};
struct OnesInit {};
struct ConstantInit {
  double value = 0.0;
};
struct NormalInit {
  double stddev = 0.01;
};
struct TruncatedNormalInit {  // at two standard deviations
  double stddev = 0.01;       // before it is truncated
};
struct UniformInit {
  double scale = 0.01;  // values are in [0, scale)
};
enum class Fan { in, out, average };
enum class InitDistribution { truncated_normal, normal, uniform };
struct VarianceScalingInit {  // with mean 0 and variance scale / fan
  double scale = 1.0;
  Fan mode = Fan::in;
  InitDistribution distribution = InitDistribution::truncated_normal;
};
// Variance scalings that have a name: the scale is 1 of LeCun and Glorot and 2 of He; the fan of Glorot is the average.
struct LecunNormalInit {};
struct LecunUniformInit {};
struct HeNormalInit {};
struct HeUniformInit {};
struct GlorotNormalInit {};
struct GlorotUniformInit {};
struct OrthogonalInit {
  double scale = 1.0;
};

// Of parameters with at least two dimensions: these have fans.
using KernelInitializer = std::variant<LecunNormalInit, LecunUniformInit, HeNormalInit, HeUniformInit, GlorotNormalInit,
                                       GlorotUniformInit, VarianceScalingInit, NormalInit, TruncatedNormalInit,
                                       UniformInit, OrthogonalInit, ZerosInit, OnesInit, ConstantInit>;
// Of biases and scales.
using VectorInitializer = std::variant<ZerosInit, OnesInit, ConstantInit, NormalInit, TruncatedNormalInit, UniformInit>;

}  // namespace pmaptrain::spec
