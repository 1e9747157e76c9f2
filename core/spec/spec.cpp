#include "core/spec/spec.h"

namespace pmaptrain::spec {

std::string to_string(const Loss& loss) {
  static constexpr const char* names[] = {"softmax_cross_entropy", "sigmoid_cross_entropy", "mean_squared_error",
                                          "mean_absolute_error", "huber"};
  static_assert(std::variant_size_v<Loss> == std::size(names));
  return names[loss.index()];
}

std::string to_string(const Metric& metric) {
  switch (metric.kind) {
    case MetricKind::accuracy: return "accuracy";
    case MetricKind::top_k_accuracy: return "top_" + std::to_string(metric.k) + "_accuracy";
    case MetricKind::precision: return "precision";
    case MetricKind::recall: return "recall";
    case MetricKind::f1: return "f1";
    case MetricKind::perplexity: return "perplexity";
    case MetricKind::mean_absolute_error: return "mean_absolute_error";
    case MetricKind::mean_squared_error: return "mean_squared_error";
    case MetricKind::r2: break;
  }
  return "r2";
}

std::string kind_name(const LayerKind& kind) {
  static constexpr const char* names[] = {
      "dense", "conv", "max_pool", "avg_pool", "global_avg_pool", "reshape",    "flatten", "dropout", "relu",
      "tanh",  "gelu", "sigmoid",  "silu",     "softmax",         "leaky_relu", "elu",     "softplus"};
  static_assert(std::variant_size_v<LayerKind> == std::size(names));
  return names[kind.index()];
}

}  // namespace pmaptrain::spec
