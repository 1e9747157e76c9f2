#include "core/spec/types/text.h"

#include "core/spec/types/leaf.h"
#include "core/spec/types/schema_text.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

// Control characters and bidirectional marks, which names must not contain, for use inside brackets of a pattern.
constexpr const char* unseen = "\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069";

std::string text_text(const Key& /*key*/) { return "text"; }
std::string text_schema(const Key& /*key*/, Definitions& /*named*/) { return schema::text(); }

std::string texts_text(const Key& /*key*/) { return "a text, or a list of texts"; }

std::string texts_schema(const Key& key, Definitions& /*named*/) {
  return schema::any_of({schema::text(), schema::list_of(schema::text(), key.need == Need::required ? 1 : 0)});
}

Node check_texts(const Key& key, const Node& value, const Reporter& reporter) {
  Node result =
      check_list_or_one(key, value, reporter, [&](const Node& item) { return check_text(key, item, reporter); });
  const bool empty = result.is(Kind::sequence) && result.items.empty();
  return empty && key.need == Need::required ? empty_value(key, value, reporter) : result;
}

std::string run_name_text(const Key& /*key*/) { return "a name without '/'"; }

std::string run_name_schema(const Key& /*key*/, Definitions& /*named*/) {
  const std::string pattern = std::string("^(?![- ])(?!\\.{1,2}$)[^/") + unseen + "]*[^/ " + unseen + "]$";
  return R"({"type": ["string", "number", "boolean"], "pattern": )" + schema::string(pattern) +
         R"(, "maxLength": 200, "minimum": 0})";
}

Node check_run_name(const Key& key, const Node& value, const Reporter& reporter) {
  if (!value.is(Kind::scalar)) return wrong_value(key, value, reporter);
  const std::string& name = value.text;
  const bool bad = name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
                   name.starts_with("-") || name.size() > 200;
  if (bad) {
    return reporter.report(value, "name '" + name + "' is not a valid run name",
                           "a name contains no '/', does not begin with '-' and has at most 200 bytes; --run-dir "
                           "sets the path of the run folder");
  }
  if (has_invisible(name) || name.front() == ' ' || name.back() == ' ') {
    return reporter.report(value, "name '" + name + "' contains invisible characters",
                           "remove control characters, bidirectional marks, and leading or trailing spaces");
  }
  return check_text(key, value, reporter);
}

std::string layer_name_text(const Key& /*key*/) { return "a name of letters, digits and '_', no digit first"; }

std::string layer_name_schema(const Key& /*key*/, Definitions& /*named*/) {
  return R"({"type": ["string", "boolean"], "pattern": )" + schema::string(schema::identifier) + "}";
}

Node check_layer_name(const Key& key, const Node& value, const Reporter& reporter) {
  if (!value.is(Kind::scalar)) return wrong_value(key, value, reporter);
  if (is_identifier(value.text)) return value;
  if (value.text.find('.') != std::string::npos) {
    const std::string noun = key.item.empty() ? "layer" : std::string(key.item);
    return reporter.report(value, "the " + noun + " name '" + value.text + "' contains a dot",
                           "dots separate the parts of parameter names such as head.kernel");
  }
  return wrong_value(key, value, reporter);
}

}  // namespace

constinit const Type Type::text{text_text, text_schema, check_text};
constinit const Type Type::run_name{run_name_text, run_name_schema, check_run_name};
constinit const Type Type::layer_name{layer_name_text, layer_name_schema, check_layer_name};
constinit const Type TakesTexts::type{texts_text, texts_schema, check_texts};

Node check_text(const Key& key, const Node& value, const Reporter& reporter) {
  if (!value.is(Kind::scalar) || value.text.empty()) return wrong_value(key, value, reporter);
  Node result = value;
  result.quoted = true;
  return result;
}

void Takes<std::vector<declare::Pattern>>::store(const Node& value, std::vector<declare::Pattern>& out) {
  out.clear();
  for (const Node& item : value.items) out.push_back({item.text, place_of(item)});
}

void Takes<std::vector<ColumnName>>::store(const Node& value, std::vector<ColumnName>& out) {
  store_items<Takes<ColumnName>>(value, out);
}

}  // namespace pmaptrain::spec
