#include "app/shells/config_keys.h"

#include <algorithm>

#include "core/spec/keys.h"

namespace pmaptrain::app {
namespace {

using spec::Key;

bool is_list(const Key& key) {
  return key.type == spec::Type::choices || key.type == spec::Type::maps || key.type == spec::Type::entries ||
         !key.like.empty();
}

// Whether `key=value` is more than a map of all the keys below.
bool takes_value(const Key& key, const std::vector<const Key*>& below) {
  if (below.empty() || is_list(key) || key.type == spec::Type::choice || !key.words.empty() || key.or_number)
    return true;
  return std::any_of(below.begin(), below.end(), [](const Key* one) { return one->shorthand; });
}

Values values_of_key(const Key& key) {
  if (spec::takes_path(key)) return {Values::Kind::files};
  std::vector<std::string> words = spec::value_words(key);
  if (words.empty()) return {};
  return {Values::Kind::words, std::move(words)};
}

class Collector {
 public:
  explicit Collector(ConfigKeys& out) : out_(out) {}

  // `head` is the path of `key` with its dot, and with "#." if it is a list.
  void add_below(const Key& key, const std::string& head) {
    std::vector<std::string> segments;
    const std::vector<const Key*> children = spec::children(key);
    for (const Key* child : children) {
      const std::string path = head + std::string(child->name());
      const std::vector<const Key*> below = spec::children(*child);
      if (takes_value(*child, below)) {
        segments.push_back(std::string(child->name()) + "=");
        add_values(path, values_of_key(*child));
      }
      if (!below.empty() && child->type != spec::Type::entries) segments.push_back(std::string(child->name()) + ".");
    }
    out_.below.emplace_back(head, std::move(segments));
    for (const Key* child : children) add_all(*child, head + std::string(child->name()) + ".");
  }

 private:
  void add_all(const Key& key, const std::string& head) {
    if (key.type == spec::Type::entries) {
      // Users choose the names of a map; those of a list are indices.
      const Key& each = *spec::child(key, "");
      if (!each.like.empty()) out_.same.emplace_back(head + "#.", std::string(each.like) + ".");
      return;
    }
    const bool has_items = is_list(key);
    if (!key.like.empty()) {
      const bool like_list = is_list(*spec::find_key(key.like));
      out_.same.emplace_back(head + (like_list ? "" : "#."), std::string(key.like) + ".");
    } else if (!spec::children(key).empty()) {
      add_below(key, head + (has_items ? "#." : ""));
    }
  }

  void add_values(const std::string& path, const Values& values) {
    if (values.kind == Values::Kind::none) return;
    const auto same =
        std::find_if(out_.values.begin(), out_.values.end(), [&](const auto& other) { return other.second == values; });
    if (same != out_.values.end()) {
      same->first.push_back(path);
    } else {
      out_.values.push_back({{path}, values});
    }
  }

  ConfigKeys& out_;
};

}  // namespace

ConfigKeys config_keys() {
  ConfigKeys all;
  Collector(all).add_below(spec::root_key(), "");
  for (const Key& key : spec::keys()) {
    const bool is_entry = key.name() == "*";  // of any name
    if (!key.path.empty() && !is_entry) all.paths.push_back(key.path);
  }
  return all;
}

}  // namespace pmaptrain::app
