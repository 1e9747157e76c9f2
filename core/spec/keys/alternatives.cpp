#include "core/spec/keys/alternatives.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/hints/hints.h"
#include "core/spec/keys/check.h"
#include "core/spec/meant.h"
#include "core/spec/yaml/parse.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

std::string trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(begin);
  return std::string(text.substr(0, text.find_last_not_of(' ') + 1));
}

// ---- calls, such as nn.Linear(64, 8, bias=False) --------------------------------------------------------------------

struct Call {
  struct Argument {
    std::string name;   // empty: by its position
    std::string value;  // as YAML
  };
  std::string callee;  // without its modules
  std::vector<Argument> arguments;
};

// A value of Python as YAML: tuples are lists.
std::string as_yaml(std::string value) {
  if (value == "True") return "true";
  if (value == "False") return "false";
  if (value == "None") return "null";
  std::replace(value.begin(), value.end(), '(', '[');
  std::replace(value.begin(), value.end(), ')', ']');
  const bool quoted =
      value.size() > 2 && (value.front() == '\'' || value.front() == '"') && value.front() == value.back();
  return quoted ? value.substr(1, value.size() - 2) : value;
}

std::string last_segment(const std::string& dotted) { return dotted.substr(dotted.rfind('.') + 1); }

std::optional<Call> parse_call(const std::string& text) {
  const std::size_t open = text.find('(');
  if (open == std::string::npos || open == 0 || text.find_first_of(" :") < open) return std::nullopt;
  Call call{last_segment(text.substr(0, open)), {}};
  const std::size_t close = text.ends_with(')') ? text.size() - 1 : text.size();
  int depth = 0;
  std::size_t begin = open + 1;
  for (std::size_t at = begin; at <= close; ++at) {
    const char c = at < close ? text[at] : ',';
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c != ',' || (depth > 0 && at < close)) continue;
    const std::string argument = trimmed(std::string_view(text).substr(begin, at - begin));
    begin = at + 1;
    if (argument.empty()) continue;
    const std::size_t equals = argument.find('=');
    const bool is_named = equals != std::string::npos && equals > 0;
    call.arguments.push_back({is_named ? trimmed(std::string_view(argument).substr(0, equals)) : "",
                              as_yaml(trimmed(std::string_view(argument).substr(is_named ? equals + 1 : 0)))});
  }
  return call;
}

// ---- names ----------------------------------------------------------------------------------------------------------

class Refusal {
 public:
  Refusal(const Key& key, const Node& name, std::string what, std::string_view value, const Reporter& reporter)
      : key_(key), name_(name), what_(std::move(what)), value_(value), reporter_(reporter) {
    for (const Key* const alternative : alternatives(key)) names_.emplace_back(alternative->name());
  }

  const Key* report() const {
    if (!name_.quoted) {
      if (const auto call = parse_call(name_.text)) {
        if (const auto meant = report_call(*call)) return *meant;
      } else if (const auto separated = report_separated()) {
        return *separated;
      }
      if (report_file()) return nullptr;
    }
    // nn.Linear
    const std::string last = last_segment(name_.text);
    const bool is_known = same_letters(last, names_) || hint_for(what_, last);
    return report_word(is_known ? last : name_.text);
  }

 private:
  void refuse(std::string help) const {
    reporter_.report(name_, "unknown " + what_ + " '" + name_.text + "'", std::move(help));
  }
  const Key* refuse_unsupported(const std::string& word, const std::string& help) const {
    reporter_.report(name_, what_ + " '" + word + "' is not supported", help);
    return nullptr;
  }

  // The alternative of the same letters, or of the same meaning in another framework; else null.
  const Key* meant_by(std::string_view word) const {
    if (same_letters(word, names_)) return child(key_, nearest(word, names_));
    const std::optional<Hint> hint = hint_for(what_, word);
    return hint && hint->is_supported() ? child(key_, hint->meant) : nullptr;
  }

  // Whether an alternative may have these options, or may stand alone if they are empty.
  bool accepts(const Key& option, const std::string& options) const {
    std::vector<Diagnostic> errors;
    Node value = options.empty() ? empty_at(name_, Kind::map) : parse_own(options);
    const bool is_bare = options.empty() && option.type != Type::map;
    if (is_bare || !value.valid()) return false;
    move_to(value, name_);
    check_value(option, name_, value, Reporter(errors));
    return errors.empty();
  }

  static std::string written(const Key& option, const std::string& options) {
    return "'" + std::string(option.name()) + (options.empty() ? "" : ": " + options) + "'";
  }

  // The options of an alternative that a call gives, as YAML, and the activation that it names.
  struct Options {
    std::string yaml;
    const Key* activation = nullptr;
  };
  std::optional<Options> options_of(const Call& call, const Key& option) const {
    std::vector<std::pair<std::string, std::string>> given;
    std::vector<std::string> positional;
    Options found;
    for (const auto& [name, value] : call.arguments) {
      if (name.empty()) {
        positional.push_back(value);
        continue;
      }
      if (value == "null") continue;  // a default
      if (letters_of(name) == "activation" && key_.path == "model.layers") {
        found.activation = meant_by(last_segment(value));
        if (found.activation == nullptr) return std::nullopt;
        continue;
      }
      const std::optional<Hint> hint = hint_for_key(option.path, name);
      if (child(option, name) != nullptr) {
        given.emplace_back(name, value);
      } else if (hint && child(option, hint->meant) != nullptr) {
        given.emplace_back(hint->meant, value);
      } else if (!hint || hint->is_supported() || !hint->help.starts_with("leave it out")) {
        return std::nullopt;
      }
    }
    if (letters_of(call.callee) == "linear" && positional.size() == 2)
      positional.erase(positional.begin());  // PyTorch's
    std::vector<std::string> required, shorthand;
    for (const Key* const below : children(option)) {
      if (below->need == Need::required) required.emplace_back(below->name());
      if (below->shorthand) shorthand.emplace_back(below->name());
    }
    std::vector<std::string>& names = positional.size() == 1 && !shorthand.empty() ? shorthand : required;
    if (!positional.empty() && positional.size() != names.size()) return std::nullopt;
    for (std::size_t i = positional.size(); i-- > 0;) given.insert(given.begin(), {names[i], positional[i]});
    if (given.size() == 1 && !shorthand.empty() && given.front().first == shorthand.front()) {
      found.yaml = given.front().second;
    } else if (!given.empty()) {
      std::vector<std::string> items;
      items.reserve(given.size());
      for (const auto& [name, value] : given) items.push_back(std::string(name).append(": ").append(value));
      found.yaml = "{" + join(items, ", ") + "}";
    }
    return found;
  }

  // Returns nothing if the name of the call is unknown, too.
  std::optional<const Key*> report_call(const Call& call) const {
    const Key* const meant = meant_by(call.callee);
    const std::optional<Hint> hint =
        same_letters(call.callee, names_) ? std::nullopt : hint_for(what_, call.callee, value_);
    if (meant == nullptr) {
      if (!hint) return std::nullopt;
      return refuse_unsupported(call.callee, hint->help);
    }
    const std::optional<Options> options = options_of(call, *meant);
    if (options && accepts(*meant, options->yaml)) {
      const Key* const then = options->activation;
      refuse("write " + written(*meant, options->yaml) +
             (then == nullptr ? "" : ", then '" + std::string(then->name()) + "'"));
    } else {
      const std::string example(meant->example.substr(0, meant->example.find('\n')));
      const std::string shown = example.starts_with("- ") ? " For example " + example.substr(2) : "";
      refuse(hint && hint->help.find("For example") != std::string::npos
                 ? hint->help
                 : "did you mean '" + std::string(meant->name()) + "'?" + shown);
    }
    return meant;
  }

  // "dense 10", "dense:10", "relu softmax"
  std::optional<const Key*> report_separated() const {
    const std::size_t end = name_.text.find_first_of(" :");
    if (end == std::string::npos) return std::nullopt;
    const std::string first = name_.text.substr(0, end);
    std::string rest = name_.text.substr(end + 1);
    rest.erase(0, rest.find_first_not_of(" :"));
    const Key* meant = meant_by(first);
    if (meant == nullptr) meant = child(key_, nearest(first, names_));
    if (meant == nullptr) return std::nullopt;
    if (same_letters(rest, names_)) {
      refuse("separate them by ',': '" + std::string(meant->name()) + ", " + rest + "'");
      return nullptr;
    }
    refuse(accepts(*meant, rest) ? "write " + written(*meant, rest)
                                 : "did you mean '" + std::string(meant->name()) + "'?");
    return meant;
  }

  // "data.csv", "table.parquet"
  bool report_file() const {
    const std::size_t dot = name_.text.rfind('.');
    if (what_ != "source" || dot == std::string::npos) return false;
    const std::string ending = name_.text.substr(dot + 1);
    const std::optional<Hint> hint = hint_for(what_, ending);
    const Key* const meant = meant_by(ending);
    if (meant == nullptr && !hint) return false;
    refuse(hint && !hint->is_supported() ? hint->help
                                         : "a file is an option of what reads it: `pmaptrain help " + key_.path + "`");
    return true;
  }

  const Key* report_word(const std::string& word) const {
    // "type: Conv2d"
    const Key* const of_value = meant_by(value_);
    const std::string named = of_value != nullptr ? std::string(of_value->name()) : std::string(value_);
    const std::optional<Hint> hint = same_letters(word, names_) ? std::nullopt : hint_for(what_, word, named);
    if (hint && !hint->is_supported()) return refuse_unsupported(word, hint->help);
    refuse(hint ? hint->help : suggest(word, names_, "choices"));
    return child(key_, hint ? hint->meant : std::string_view(nearest(word, names_)));
  }

  const Key& key_;
  const Node& name_;
  const std::string what_;
  const std::string_view value_;
  const Reporter& reporter_;
  std::vector<std::string> names_;
};

}  // namespace

const Key* refuse_alternative(const Key& key, const Node& name, const std::string& what, std::string_view value,
                              const Reporter& reporter) {
  return Refusal(key, name, what, value, reporter).report();
}

Meant meant_value(const Key& key, const std::string& value) {
  const std::string noun(key.item.empty() ? key.name() : key.item);
  std::vector<std::string> words = value_words(key);
  if (key.type == Type::choices) {
    for (const Key* const alternative : alternatives(key)) words.emplace_back(alternative->name());
  }
  if (same_letters(value, words)) return {nearest(value, words), ""};
  if (const std::optional<Hint> hint = hint_for(noun, value)) {
    if (hint->is_supported()) return {std::string(hint->meant), ""};
    return {value, noun + " '" + value + "' is not supported: " + hint->help};
  }
  // What the error of the value suggests.
  constexpr std::string_view before = "did you mean '", after = "'?";
  std::vector<Diagnostic> errors;
  Node written = parse_own(value);
  check_value(key, scalar_at(written, std::string(key.name())), written, Reporter(errors));
  const std::string help = errors.size() == 1 ? errors.front().help : "";
  if (!help.starts_with(before) || !help.ends_with(after)) return {value, ""};
  return {help.substr(before.size(), help.size() - before.size() - after.size()), ""};
}

}  // namespace pmaptrain::spec
