#include "core/setup/looking_ahead.h"

#include <type_traits>
#include <variant>

#include "core/setup/advice.h"

namespace pmaptrain::train {

const spec::Layer* first_that_looks_ahead(const std::vector<spec::Layer>& layers) {
  for (const spec::Layer& layer : layers) {
    const spec::Layer* const found = std::visit(
        [&]<class Kind>(const Kind& kind) -> const spec::Layer* {
          if constexpr (std::is_same_v<Kind, spec::Attention>) {
            return kind.causal ? nullptr : &layer;
          } else if constexpr (std::is_same_v<Kind, spec::Residual>) {
            const spec::Layer* const inner = first_that_looks_ahead(kind.layers);
            return inner != nullptr ? inner : first_that_looks_ahead(kind.shortcut);
          } else if constexpr (requires { kind.layers; }) {
            return first_that_looks_ahead(kind.layers);
          } else {
            constexpr bool mixes = std::is_same_v<Kind, spec::Conv> || std::is_same_v<Kind, spec::MaxPool> ||
                                   std::is_same_v<Kind, spec::AvgPool> || std::is_same_v<Kind, spec::GlobalAvgPool> ||
                                   std::is_same_v<Kind, spec::Reshape> || std::is_same_v<Kind, spec::Flatten> ||
                                   std::is_same_v<Kind, spec::Transpose> || std::is_same_v<Kind, spec::GroupNorm>;
            return mixes ? &layer : nullptr;
          }
        },
        layer.kind);
    if (found != nullptr) return found;
  }
  return nullptr;
}

void add_seen_targets(const Setup& setup, std::vector<std::string>& out) {
  if (!std::holds_alternative<spec::TextFiles>(setup.spec().data.source)) return;
  const spec::Layer* const layer = first_that_looks_ahead(setup.spec().model.layers);
  if (layer == nullptr) return;
  const bool is_attention = std::holds_alternative<spec::Attention>(layer->kind);
  out.push_back(
      "each position of a text is to predict the token after it, and " + layer->name + in_parentheses(layer->place) +
      " shows it that token: the model learns to copy it, so its loss says nothing, and predict --prompt "
      "refuses it; " +
      (is_attention ? "write causal: true in it" : "leave it out; attention: {causal: true} sees no token ahead"));
}

}  // namespace pmaptrain::train
