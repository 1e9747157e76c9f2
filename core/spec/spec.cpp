#include "core/spec/spec.h"

namespace pmaptrain::spec {

std::string to_string(Loss loss) {
  return loss == Loss::softmax_cross_entropy ? "softmax_cross_entropy" : "mean_squared_error";
}

std::string to_string(Metric metric) { return metric == Metric::accuracy ? "accuracy" : "mean_absolute_error"; }

std::string kind_name(const LayerKind& kind) {
  static constexpr const char* names[] = {"dense", "conv", "max_pool", "avg_pool", "global_avg_pool", "reshape",
                                          "flatten", "dropout", "relu", "tanh", "gelu", "sigmoid", "silu", "softmax",
                                          "leaky_relu", "elu", "softplus"};
  static_assert(std::variant_size_v<LayerKind> == std::size(names));
  return names[kind.index()];
}

}  // namespace pmaptrain::spec
