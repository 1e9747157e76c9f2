#include "core/spec/keys/check.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "core/base/text.h"
#include "core/hints/hints.h"
#include "core/spec/keys.h"
#include "core/spec/keys/alternatives.h"
#include "core/spec/types/leaf.h"
#include "core/spec/types/number.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/parse.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

std::vector<std::string> names_of(const std::vector<const Key*>& keys) {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const Key* key : keys) names.emplace_back(key->name());
  return names;
}

// The name of a key in messages.
std::string title(const Key& key) {
  if (key.path.empty()) return "the config";
  return std::string(key.name());
}

bool has_keys(const Key& key) { return key.type == Type::map || key.type == Type::choice; }

class Checker {
 public:
  explicit Checker(const Reporter& reporter) : reporter_(reporter) {}

  Node check(const Key& key, const Node& at, const Node& value) const {
    if (value.is(Kind::invalid)) return value;
    if (value.is(Kind::blank)) {
      return reporter_.report(at, "'" + at.text + "' has no value",
                              "write one (" + takes(key) + ")" +
                                  (has_keys(key) && key.type == Type::map ? ", '{}' for no options" : "") +
                                  ", or remove the key");
    }
    if (key.type == Type::map) return map(key, at, value);
    if (key.type == Type::choice) return choice(key, at, value, std::string(key.name()));
    if (key.type == Type::choices) return choices(key, at, value);
    if (key.type == Type::maps) return maps(key, at, value);
    if (key.type == Type::entries) return entries(key, at, value);
    return key.type->check(key, value, reporter_);
  }

  Node map(const Key& key, const Node& at, const Node& value) const {
    if (value.is(Kind::scalar) && std::find(key.words.begin(), key.words.end(), value.text) != key.words.end()) {
      return value;
    }
    if (value.is(Kind::scalar) || value.is(Kind::sequence)) {
      for (const Key* other : children(key)) {
        if (!other->shorthand) continue;
        Node full = empty_at(value, Kind::map);
        full.add(scalar_at(value, std::string(other->name())), value);
        return map(key, at, full);
      }
    }
    if (!value.is(Kind::map) && !value.is(Kind::null)) {
      const std::size_t colon = value.is(Kind::scalar) && !value.quoted ? value.text.find(':') : std::string::npos;
      if (colon != std::string::npos && child(key, value.text.substr(0, colon)) != nullptr) {
        return reporter_.report(value, "there is no space after the ':' of '" + value.text.substr(0, colon) + "'",
                                "write '" + value.text.substr(0, colon) + ": " + value.text.substr(colon + 1) + "'");
      }
      const std::string subject =
          title(key) + (key.path.empty() ? " is a map of keys, not " : " takes " + takes(key) + ", not ");
      return reporter_.report(value, subject + describe(value),
                              key.path.empty() ? "write 'key: value' lines; pmaptrain init writes an example config"
                              : children(key).empty() ? "write its bare name, " + title(key)
                                                      : "for example:\n" + std::string(key.example));
    }
    Node result = empty_at(at, Kind::map);
    result.fallback = value.fallback;
    const Names meant = refuse_unknown(key, value);
    for (const Key* other : children(key)) {
      if (other->as_long_as.empty()) {
        add_child(*other, at, value, meant, result);
      } else {
        add_child(with_length(*other, value), at, value, meant, result);
      }
    }
    return result;
  }

 private:
  using Names = std::set<std::string, std::less<>>;

  // A key of a list with as many items as the key of the same map that it is as long as, if that has a list which fits.
  static Key with_length(Key key, const Node& map) {
    const Node* const other = map.find(key.as_long_as);
    const std::size_t items = other == nullptr ? 0 : other->items.size();
    if (items < key.least_length || items > key.length) return key;
    key.length = items;
    key.least_length = 0;
    return key;
  }

  // Checks one key of a map, or fills in its default. `meant` maps unknown keys to the keys that were probably meant.
  void add_child(const Key& key, const Node& at, const Node& value, const Names& meant, Node& result) const {
    const std::string name(key.name());
    for (std::size_t i = 0; i < value.keys.size(); ++i) {
      if (value.keys[i].text != name) continue;
      if (value.items[i].is(Kind::null)) {
        add_default(key, value.keys[i], result);
      } else {
        result.add(value.keys[i], check(key, value.keys[i], value.items[i]));
      }
      return;
    }
    if (meant.contains(name)) {
      result.add(scalar_at(at, name), empty_at(at, Kind::invalid));
      return;
    }
    add_default(key, at, result);
  }

  void add_default(const Key& key, const Node& at, Node& result) const {
    const std::string name(key.name());
    if (key.need == Need::alternative) return;
    if (key.need == Need::required) {
      // A missing top-level key is reported for the whole file, another one for the map above it.
      const bool top = key.path.find('.') == std::string_view::npos;
      const std::string where = top ? "" : " in " + at.text;
      result.add(scalar_at(at, name), reporter_.report(at, name + " is missing" + where,
                                                       "add it, for example:\n" + std::string(key.example)));
      return;
    }
    if (key.fallback.empty()) return;
    Node value = parse_own(std::string(key.fallback));
    const bool is_list = value.is(Kind::sequence) && !value.items.empty();
    if (is_list && !key.as_long_as.empty() && key.least_length == 0) {
      const Node last = value.items.back();
      value.items.resize(key.length, last);
    }
    move_to(value, at);
    Node label = scalar_at(at, name);
    label.fallback = value.fallback = true;
    Node checked = check(key, label, value);
    checked.fallback = true;
    result.add(std::move(label), std::move(checked));
  }

  // Returns the names of the keys that were meant.
  Names refuse_unknown(const Key& key, const Node& value) const {
    Names meant;
    for (std::size_t i = 0; i < value.keys.size(); ++i) {
      const Node& name = value.keys[i];
      if (child(key, name.text) != nullptr) continue;
      if (key.path.empty() && name.text.starts_with("x-")) continue;
      meant.insert(refuse_key(key, title(key), name, value.items[i], names_of(children(key))));
    }
    return meant;
  }

  // Reports a key that is not in `known`, the possible keys under `key`. Returns the key that was meant, or an empty
  // name.
  std::string refuse_key(const Key& key, const std::string& map, const Node& name, const Node& value,
                         const std::vector<std::string>& known) const {
    const std::string where = key.path.empty() ? "" : " in " + map;
    const std::string unknown = "unknown key '" + name.text + "'" + where;
    // "b1=0.9", "b1:0.9"
    const std::size_t end = name.text.find_first_of("=:");
    if (end != std::string::npos && !name.quoted && same_letters(name.text.substr(0, end), known)) {
      std::string meant = nearest(name.text.substr(0, end), known);
      reporter_.report(name, unknown, "write '" + meant + ": " + name.text.substr(end + 1) + "'");
      return meant;
    }
    const bool is_of_map = hint_for(key.name(), name.text).has_value();  // data: {train: FILE}
    if (!key.path.empty() && !is_of_map && child(root_key(), name.text) != nullptr) {
      reporter_.report(name, unknown, "it stands at the top level of the config, without indentation");
      return {};
    }
    const std::optional<Hint> hint = same_letters(name.text, known)
                                         ? std::nullopt
                                         : hint_for_key(key.path, name.text, value.is(Kind::scalar) ? value.text : "");
    if (hint && !hint->is_supported()) {
      reporter_.report(name, "'" + name.text + "' is not supported" + where, hint->help);
      return {};
    }
    if (hint) {
      reporter_.report(name, unknown, hint->help);
      return std::string(hint->meant);
    }
    if (known.empty()) {
      reporter_.report(name, unknown, map + " takes no options");
      return {};
    }
    if (const std::string path = path_ending_in(name, value, known); !path.empty()) {
      reporter_.report(name, unknown, "did you mean '" + path + "'?");
      return {};
    }
    reporter_.report(name, unknown, suggest(name.text, known, "keys"));
    return nearest(name.text, known);
  }

  // The path of the one key that ends in `name`, which stands in the wrong map, or in what is written below it, as in
  // fsdp.stage; empty if there is none.
  static std::string path_ending_in(const Node& name, const Node& value, const std::vector<std::string>& known) {
    if (!nearest(name.text, known).empty()) return "";
    std::string ending = name.text;
    const bool is_set = name.source && name.source->option;  // the whole path was written there
    for (const Node* at = &value; is_set && at->is(Kind::map) && at->keys.size() == 1; at = &at->items.front()) {
      ending += "." + at->keys.front().text;
    }
    for (; !ending.empty(); ending.erase(0, std::min(ending.find('.'), ending.size() - 1) + 1)) {
      auto found = find_ending(ending);
      std::erase_if(found, [](const Key* key) { return is_in_alternative(*key); });
      if (found.size() == 1) return found.front()->path;
    }
    return "";
  }

  // Whether a key belongs to one alternative and not to the others.
  static bool is_in_alternative(const Key& key) {
    for (std::size_t dot = key.path.rfind('.'); dot != std::string::npos && dot > 0;
         dot = key.path.rfind('.', dot - 1)) {
      const Key* above = find_key(std::string_view(key.path).substr(0, dot));
      if (above != nullptr && above->need == Need::alternative) return true;
    }
    return key.path.starts_with("model.init");
  }

  // Checks a bare name, or a map with one alternative and further keys.
  Node choice(const Key& key, const Node& at, const Node& value, const std::string& what) const {
    const auto options = alternatives(key);
    Node given = value;
    if (is_number(key, value)) return number_or_choice(key.like.empty() ? key : *find_key(key.like), value);
    if (value.is(Kind::scalar)) {
      const Key* chosen = child(key, value.text);
      if (chosen == nullptr || chosen->need != Need::alternative) {
        refuse_alternative(key, value, what, "", reporter_);
        return empty_at(value, Kind::invalid);
      }
      given = empty_at(value, Kind::map);
      given.add(value, chosen->type == Type::map ? empty_at(value, Kind::map) : empty_at(value, Kind::blank));
    } else if (!value.is(Kind::map)) {
      return reporter_.report(value, what + " takes " + names_in_text(options) + ", not " + describe(value),
                              "for example:\n" + std::string(key.example));
    }
    const Node* chosen = nullptr;
    bool wrong = false;
    for (const Node& name : given.keys) {
      const Key* option = child(key, name.text);
      if (option == nullptr) wrong = true;
      if (option == nullptr || option->need != Need::alternative) continue;
      if (chosen != nullptr) {
        reporter_.report(name, what + " has both " + chosen->text + " and " + name.text + "; it takes exactly one",
                         "keep one of them");
        wrong = true;
        continue;
      }
      chosen = &name;
    }
    Names meant;
    for (std::size_t i = 0; i < given.keys.size(); ++i) {
      const Node& name = given.keys[i];
      if (child(key, name.text) != nullptr) continue;
      const Node& option = given.items[i];
      const Key* inside = chosen != nullptr ? child(*child(key, chosen->text), name.text) : nullptr;
      if (inside != nullptr && child(key, chosen->text)->like.empty()) {
        reporter_.report(name, "unknown key '" + name.text + "' in " + what,
                         "it belongs inside: " + chosen->text + ": {" + name.text + ": ...}");
      } else if (chosen != nullptr || is_key_beside(key, name.text)) {
        meant.insert(refuse_key(key, what, name, option, names_beside(key)));
      } else {
        const Key* other = refuse_alternative(key, name, what, option.is(Kind::scalar) ? option.text : "", reporter_);
        // Errors in its options are reported at once, not only after the name is corrected.
        if (other != nullptr && option.is(Kind::map)) check_written(*other, option);
        // What is beside a name of another framework is of that framework, too.
        if (hint_for(what, name.text)) break;
      }
    }
    if (chosen == nullptr && !wrong) {
      const Node& where = given.keys.empty() ? given : at;
      reporter_.report(where, what + " has no kind", "add " + names_in_text(options));
      wrong = true;
    }
    Node result = empty_at(at, Kind::map);
    if (wrong) result.kind = Kind::invalid;
    for (const Key* other : children(key)) {
      if (other->need == Need::alternative) {
        if (chosen == nullptr || other->name() != chosen->text) continue;
        const Node& options_given = *given.find(chosen->text);
        // `adam: null` is adam with its defaults.
        result.add(*chosen, options_given.is(Kind::null) && other->type == Type::map
                                ? map(*other, *chosen, options_given)
                                : check(*other, *chosen, options_given));
        continue;
      }
      Node label = at;
      if (key.type == Type::choices && chosen != nullptr) label = *chosen;
      add_child(*other, label, given, meant, result);
    }
    return result;
  }

  // Checks the options of an alternative whose name is misspelt: those that are there. Which are missing is no question
  // before it is known what was meant.
  void check_written(const Key& key, const Node& options) const {
    refuse_unknown(key, options);
    for (std::size_t i = 0; i < options.keys.size(); ++i) {
      const Key* const option = child(key, options.keys[i].text);
      if (option != nullptr && !options.items[i].is(Kind::null)) check(*option, options.keys[i], options.items[i]);
    }
  }

  // The keys that may appear next to the alternatives of a choice.
  static std::vector<std::string> names_beside(const Key& key) {
    std::vector<std::string> names;
    for (const Key* other : children(key)) {
      if (other->need != Need::alternative) names.emplace_back(other->name());
    }
    return names;
  }

  // Whether a name that a choice does not have is rather one of those keys than one of the alternatives.
  static bool is_key_beside(const Key& key, const std::string& name) {
    const std::vector<std::string> beside = names_beside(key);
    if (!nearest(name, beside).empty()) return nearest(name, names_of(alternatives(key))).empty();
    const std::optional<Hint> hint = hint_for_key(key.path, name);
    return hint && std::find(beside.begin(), beside.end(), hint->meant) != beside.end();
  }

  // Whether a choice that may also be a number is one, or is neither a number nor the name of an alternative.
  static bool is_number(const Key& key, const Node& value) {
    if (!key.or_number || value.is(Kind::map)) return false;
    const Key* chosen = value.is(Kind::scalar) && !value.quoted ? child(key, value.text) : nullptr;
    return chosen == nullptr;
  }

  // A value that is no alternative of a choice that may also be a number.
  Node number_or_choice(const Key& key, const Node& value) const {
    if (value.is(Kind::scalar) && parse_number(value.text).error != NumberError::not_a_number) {
      Key number = key;
      number.type = Type::number;
      return check_number(number, value, reporter_);
    }
    const std::string near = value.is(Kind::scalar) ? nearest(value.text, names_of(alternatives(key))) : std::string{};
    const std::optional<Hint> hint = near.empty() ? hint_for(key.name(), value.text) : std::nullopt;
    if (hint && !hint->is_supported()) {
      return reporter_.report(value, std::string(key.name()) + " " + value.text + " is not supported", hint->help);
    }
    const std::string meant = hint ? std::string(hint->meant) : near;
    return meant.empty() ? wrong_value(key, value, reporter_) : misspelt_value(key, value, meant, reporter_);
  }

  static std::string names_in_text(const std::vector<const Key*>& options) {
    return (options.size() > 1 ? "one of " : "") + join(names_of(options), ", ");
  }

  Node maps(const Key& key, const Node& at, const Node& value) const {
    if (!value.is(Kind::sequence)) {
      return reporter_.report(value, title(key) + " takes " + takes(key) + ", not " + describe(value),
                              "for example:\n" + std::string(key.example));
    }
    Node result = empty_at(at, Kind::sequence);
    for (const Node& item : value.items) {
      const Node label = scalar_at(item, "this " + std::string(key.item));
      result.items.push_back(item.valid() ? map(key, label, item) : item);
    }
    return result;
  }

  // Names are parts of the names of parameters.
  Node entries(const Key& key, const Node& at, const Node& value) const {
    const bool is_map = value.is(Kind::map);
    if (!is_map && !value.is(Kind::sequence)) return wrong_value(key, value, reporter_);
    if (value.items.empty()) return empty_value(key, at, reporter_);
    Key name = *child(key, "");
    name.path = std::string(key.item);
    name.type = Type::layer_name;
    name.item = key.item;
    name.example = key.example;
    Node result = empty_at(at, value.kind);
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const Node& item = value.items[i];
      if (is_map) {
        const Node checked = Type::layer_name.check(name, value.keys[i], reporter_);
        if (!checked.valid()) result.kind = Kind::invalid;
        result.keys.push_back(value.keys[i]);
      }
      Key each = *child(key, "");
      each.path = key.path + "." + std::string(key.item) + " " + entry_name(value, i);
      Node given = item;
      if (item.is(Kind::null) && !each.fallback.empty()) {
        given = parse_own(each.fallback);
        move_to(given, item);
      }
      result.items.push_back(item.valid() ? check(each, is_map ? value.keys[i] : at, given) : item);
    }
    return result;
  }

  // "-dense: 10", which is a key to YAML.
  Node refuse_dash(const Node& name, const Node& value) const {
    return reporter_.report(
        name, "there is no space after the '-' of '" + name.text + "'",
        "write '- " + name.text.substr(1) + (value.is(Kind::scalar) ? ": " + value.text : "") + "'");
  }

  Node choices(const Key& key, const Node& at, const Node& value) const {
    const std::string name(key.name()), item_name(key.item);
    if (!value.is(Kind::sequence)) {
      if (value.is(Kind::map) && !value.keys.empty() && value.keys.front().text.starts_with("-")) {
        return refuse_dash(value.keys.front(), value.items.front());
      }
      const bool single = value.is(Kind::scalar) && child(key, value.text) != nullptr;
      return reporter_.report(value, name + " takes a list of " + plural(key) + ", not " + describe(value),
                              single ? "write [" + value.text + "]" : "for example:\n" + std::string(key.example));
    }
    if (value.items.empty() && key.fallback != "[]") {
      return reporter_.report(at, name + " is empty; a model has at least one " + item_name,
                              "for example:\n" + std::string(key.example));
    }
    Node result = empty_at(at, Kind::sequence);
    for (const Node& item : value.items) {
      if (!item.valid()) {
        result.items.push_back(item);
        continue;
      }
      Node label = scalar_at(item, "this " + item_name);
      Node checked = choice(key, label, item, item_name);
      // Errors about an item underline its first word.
      checked.length = item.is(Kind::map) && !item.keys.empty() ? item.keys.front().length : item.length;
      result.items.push_back(std::move(checked));
    }
    return result;
  }

  const Reporter& reporter_;
};

}  // namespace

Node check_value(const Key& key, const Node& at, const Node& value, const Reporter& reporter) {
  return Checker(reporter).check(key, at, value);
}

Node check_config(const Node& root, const std::string& run_name, std::vector<Diagnostic>& errors) {
  const Reporter reporter(errors);
  const Checker checker(reporter);
  Node file;
  file.source = root.source;
  file.kind = Kind::scalar;
  if (root.is(Kind::blank) || root.is(Kind::null) || (root.is(Kind::invalid) && errors.empty())) {
    return reporter.report(file, "the config is empty", "pmaptrain init writes an example config");
  }
  if (!root.valid()) return root;
  Node result = checker.map(root_key(), file, root);
  if (result.is(Kind::map) && result.find("name") == nullptr) {
    Node name = scalar_at(file, run_name);
    name.quoted = name.fallback = true;
    Node label = scalar_at(file, "name");
    result.keys.insert(result.keys.begin(), label);
    result.items.insert(result.items.begin(), name);
  }
  return result;
}

}  // namespace pmaptrain::spec
