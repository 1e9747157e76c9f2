// The types of keys that have keys below them: descriptions of their values.
#include "core/base/text.h"
#include "core/spec/keys.h"
#include "core/spec/types/leaf.h"

namespace pmaptrain::spec {
namespace {

std::string map_text(const Key& key) {
  const std::string words = key.words.empty() ? "" : join(key.words, ", ") + " or ";
  return words + (children(key).empty() ? "no options" : "a map of options");
}

std::string names_of_alternatives(const Key& key) {
  std::vector<std::string> names;
  for (const Key* other : alternatives(key)) names.emplace_back(other->name());
  return join(names, ", ");
}

std::string list_text(const Key& key) {
  return "a list of " + (key.item.empty() ? std::string(key.name()) : plural(key));
}
std::string like_text(const Key& key) { return list_text(key) + ", as " + std::string(key.like); }

std::string choice_text(const Key& key) {
  if (!key.like.empty()) return "one of the choices of " + std::string(key.like);
  return (key.or_number ? "a number" + range_of(key, false) + ", or " : "") + "one of " + names_of_alternatives(key);
}

std::string choices_text(const Key& key) {
  if (!key.like.empty()) return like_text(key);
  return list_text(key) + ", each one of " + names_of_alternatives(key);
}

std::string entries_text(const Key& key) {
  const std::string each = plural(*children(key).front());
  return "a map of names to lists of " + each + ", or a list of lists of " + each;
}

std::string maps_text(const Key& /*key*/) { return "a list of maps of options"; }

}  // namespace

constinit const Type Type::map{map_text};
constinit const Type Type::choice{choice_text};
constinit const Type Type::choices{choices_text};
constinit const Type Type::maps{maps_text};
constinit const Type Type::entries{entries_text};

}  // namespace pmaptrain::spec
