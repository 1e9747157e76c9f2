#include "core/spec/types/word.h"

#include <algorithm>
#include <optional>

#include "core/base/text.h"
#include "core/hints/hints.h"
#include "core/spec/types/leaf.h"
#include "core/spec/types/schema_text.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

std::string boolean_text(const Key& /*key*/) { return "true or false"; }
std::string boolean_schema(const Key& /*key*/, Definitions& /*named*/) { return R"({"type": "boolean"})"; }

Node check_boolean(const Key& key, const Node& value, const Reporter& reporter) {
  if (!value.is(Kind::scalar) || value.quoted) return wrong_value(key, value, reporter);
  if (const auto truth = parse_boolean(value.text)) return with_value(value, *truth ? "true" : "false", *truth);
  std::string word = value.text;
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  std::string help;
  if (word == "yes" || word == "on" || word == "y" || word == "1") help = "write true";
  if (word == "no" || word == "off" || word == "n" || word == "0") help = "write false";
  return reporter.report(value, std::string(key.name()) + " takes true or false, not " + describe(value), help);
}

std::string word_text(const Key& key) { return (key.words.size() == 1 ? "" : "one of ") + join(key.words, ", "); }
std::string word_schema(const Key& key, Definitions& /*named*/) { return schema::words(key.words); }

Node check_word(const Key& key, const Node& value, const Reporter& reporter) {
  if (!value.is(Kind::scalar)) return wrong_value(key, value, reporter);
  if (has_word(key.words, value.text)) return value;
  std::string near = nearest(value.text, key.words);
  if (const std::optional<Hint> hint = hint_for(key.name(), value.text); hint && !same_letters(value.text, key.words)) {
    if (!hint->is_supported()) {
      return reporter.report(value, std::string(key.name()) + " " + value.text + " is not supported", hint->help);
    }
    near = hint->meant;
  }
  return near.empty() ? wrong_value(key, value, reporter) : misspelt_value(key, value, near, reporter);
}

std::string words_text(const Key& key) {
  return "one of " + join(key.words, ", ") + ", or a map of names to one of " + join(key.item_words, ", ");
}

std::string words_schema(const Key& key, Definitions& /*named*/) {
  return schema::any_of({schema::words(key.words), R"({"type": "object", "additionalProperties": )" +
                                                       schema::words(key.item_words) + R"(, "minProperties": 1})"});
}

Node check_words(const Key& key, const Node& value, const Reporter& reporter) {
  if (!value.is(Kind::map) || value.keys.empty()) return check_word(key, value, reporter);
  Key item = key;
  item.type = Type::word;
  item.words = key.item_words;
  Node result = empty_at(value, Kind::map);
  for (std::size_t i = 0; i < value.keys.size(); ++i) {
    Node checked = value.items[i].valid() ? check_word(item, value.items[i], reporter) : value.items[i];
    if (!checked.valid()) result.kind = Kind::invalid;
    result.add(value.keys[i], std::move(checked));
  }
  return result;
}

}  // namespace

constinit const Type Takes<bool>::type{boolean_text, boolean_schema, check_boolean};
constinit const Type Type::word{word_text, word_schema, check_word};
constinit const Type named_words{words_text, words_schema, check_words};

void Takes<NormalizeTargets>::store(const Node& value, NormalizeTargets& out) {
  const auto scale = [](const std::string& word) {
    return word == "log" ? TargetScale::log : word == "auto" ? TargetScale::automatic : TargetScale::none;
  };
  out = {};
  if (value.is(Kind::scalar)) out.others = scale(value.text);
  for (std::size_t i = 0; i < value.keys.size(); ++i) {
    out.outputs.emplace_back(ColumnName{value.keys[i].text, place_of(value.keys[i])}, scale(value.items[i].text));
  }
}

}  // namespace pmaptrain::spec
