#include "core/layers/initializers.h"

namespace pmaptrain::layers {

// In the order of help.
const std::vector<declare::AnyKind>& family(declare::Tag<KernelInit>) {
  static const auto all =
      declare::kinds_of<KernelInit, LecunNormalInit, LecunUniformInit, HeNormalInit, HeUniformInit, GlorotNormalInit,
                        GlorotUniformInit, VarianceScalingInit, NormalInit, TruncatedNormalInit, UniformInit,
                        OrthogonalInit, ZerosInit, OnesInit, ConstantInit>();
  return all;
}

const std::vector<declare::AnyKind>& family(declare::Tag<VectorInit>) {
  static const auto all =
      declare::kinds_of<VectorInit, ZerosInit, OnesInit, ConstantInit, NormalInit, TruncatedNormalInit, UniformInit>();
  return all;
}

}  // namespace pmaptrain::layers
