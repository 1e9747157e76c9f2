// The places of `lora`. What depends on the model is checked by model::adapt.
#include "core/spec/bind/bind.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {

void bind_lora(const Node& config, Spec& spec) {
  const Node* const section = get(&config, "lora");
  if (section == nullptr || !spec.lora) return;
  spec.lora->place = error_place(*section);
  const Node* const rank = get(section, "rank");
  spec.lora->rank_place = rank != nullptr ? place_of(*rank) : spec.lora->place;
}

}  // namespace pmaptrain::spec
