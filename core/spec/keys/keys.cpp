#include "core/spec/keys.h"

#include "core/spec/rows/sections.h"
#include "core/spec/types/path.h"
#include "core/spec/types/word.h"

namespace pmaptrain::spec {
namespace {

const std::vector<Key>& table() {
  static const std::vector<Key> all = [] {
    std::vector<Key> made;
    Section<Spec>::add_keys("", made);
    return made;
  }();
  return all;
}

bool is_child(std::string_view path, std::string_view parent) {
  if (!parent.empty()) {
    if (path.size() <= parent.size() + 1 || !path.starts_with(parent) || path[parent.size()] != '.') return false;
    path.remove_prefix(parent.size() + 1);
  }
  return path.find('.') == std::string_view::npos;
}

std::string_view path_of_children(const Key& key) { return key.like.empty() ? std::string_view(key.path) : key.like; }

}  // namespace

std::span<const Key> keys() { return table(); }

const Key& root_key() {
  static const Key root{.type = Type::map, .meaning = "The whole config."};
  return root;
}

std::vector<const Key*> children(const Key& key) {
  std::vector<const Key*> found;
  for (const Key& other : table()) {
    if (is_child(other.path, path_of_children(key))) found.push_back(&other);
  }
  return found;
}

const Key* child(const Key& key, std::string_view name) {
  if (key.type == Type::entries) return children(key).front();
  for (const Key& other : table()) {
    if (other.name() == name && is_child(other.path, path_of_children(key))) return &other;
  }
  return nullptr;
}

const Key* find_key(std::string_view path) {
  for (const Key& key : table()) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

std::vector<const Key*> find_ending(std::string_view path) {
  std::vector<const Key*> found;
  for (const Key& key : table()) {
    if (!key.like.empty() && key.path != path) continue;  // the key that it is like says it all
    if (key.path == path || (key.path.size() > path.size() && key.path.ends_with(path) &&
                             key.path[key.path.size() - path.size() - 1] == '.')) {
      found.push_back(&key);
    }
  }
  return found;
}

std::vector<const Key*> alternatives(const Key& key) {
  std::vector<const Key*> found = children(key);
  std::erase_if(found, [](const Key* other) { return other->need != Need::alternative; });
  return found;
}

std::vector<std::string> value_words(const Key& key) {
  if (key.type == Takes<bool>::type) return {"true", "false"};
  std::vector<std::string> words = key.words;
  if (key.type == Type::interval) words.emplace_back("never");
  if (key.type == Type::choice) {
    for (const Key* alternative : alternatives(key)) words.emplace_back(alternative->name());
  }
  return words;
}

bool takes_path(const Key& key) {
  return key.type == Type::path || key.type == Takes<std::vector<std::string>>::type ||
         key.type == Takes<declare::FileOrArrays>::type;
}

}  // namespace pmaptrain::spec
