#include "core/spec/changes/loaded.h"

#include <variant>

#include "core/data/arrays/npz_source.h"
#include "core/spec/print.h"
#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

std::vector<std::string> Loaded::facts_and_notes() const {
  std::vector<std::string> all = facts;
  all.insert(all.end(), notes.begin(), notes.end());
  return all;
}

void set_channels(Loaded& loaded, data::Channels channels) {
  const auto set = [&](Spec& spec) {
    const auto* const npz = spec.data.source.as<data::Npz>();
    if (npz == nullptr) return;
    data::Npz changed = *npz;
    changed.channels = channels;
    spec.data.source = changed;
  };
  set(loaded.spec);
  if (loaded.spec.ensemble) {
    for (Spec& member : loaded.spec.ensemble->alone) set(member);
  }
  Node tree = *loaded.tree;
  Node* at = &tree;
  for (const char* const key : {"data", "source", "npz", "channels"}) at = at->find(key);
  at->text = declare::word_of(channels);
  if (loaded.changes.empty()) loaded.resolved = print_config(tree);
  loaded.tree = std::make_shared<const Node>(std::move(tree));
}

}  // namespace pmaptrain::spec
