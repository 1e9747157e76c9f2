#include "core/setup/looking_ahead.h"

#include <variant>

#include "core/data/texts/text_source.h"
#include "core/layers/attention.h"
#include "core/setup/advice.h"

namespace pmaptrain::setup {

const layers::Layer* first_that_looks_ahead(const std::vector<layers::Layer>& layers) {
  return layers::find_layer(layers, [](const layers::Layer& layer) { return layer.kind->looks_ahead(); });
}

void add_seen_targets(const Setup& setup, std::vector<std::string>& out) {
  if (setup.spec().data.source.as<data::TextFiles>() == nullptr) return;
  const layers::Layer* const layer = first_that_looks_ahead(setup.spec().model.layers);
  if (layer == nullptr) return;
  const bool is_attention = layer->kind.as<layers::Attention>() != nullptr;
  out.push_back(
      "each position of a text is to predict the token after it, and " + layer->name + in_parentheses(layer->place) +
      " shows it that token: the model learns to copy it, so its loss says nothing, and predict --prompt "
      "refuses it; " +
      (is_attention ? "write causal: true in it" : "leave it out; attention: {causal: true} sees no token ahead"));
}

}  // namespace pmaptrain::setup
