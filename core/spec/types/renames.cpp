#include "core/spec/types/renames.h"

#include <algorithm>

#include "core/spec/types/leaf.h"
#include "core/spec/types/schema_text.h"
#include "core/spec/types/text.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

std::string renames_text(const Key& /*key*/) { return "a map of names of tensors to names of parameters"; }

std::string renames_schema(const Key& /*key*/, Definitions& /*named*/) {
  return R"({"type": "object", "additionalProperties": )" + schema::text() + "}";
}

Node check_rename(const Key& key, const Node& from, const Node& to, const Reporter& reporter) {
  if (!to.is(Kind::scalar) || to.text.empty()) {
    return reporter.report(
        to.is(Kind::blank) ? from : to,
        std::string(key.name()) + ": '" + from.text + "' takes the name of a parameter, not " + describe(to),
        "for example " + std::string(key.example));
  }
  const auto stars = [](const Node& node) { return std::count(node.text.begin(), node.text.end(), '*'); };
  if (stars(to) > stars(from)) {
    return reporter.report(to, std::string(key.name()) + ": '" + to.text + "' has more * than '" + from.text + "'",
                           "each * on the right is what the same * on the left stands for");
  }
  return check_text(key, to, reporter);
}

Node check_renames(const Key& key, const Node& value, const Reporter& reporter) {
  if (!value.is(Kind::map)) return wrong_value(key, value, reporter);
  Node result = empty_at(value, Kind::map);
  for (std::size_t i = 0; i < value.keys.size(); ++i) {
    const Node& to = value.items[i];
    Node checked = to.valid() ? check_rename(key, value.keys[i], to, reporter) : to;
    if (!checked.valid()) result.kind = Kind::invalid;
    result.add(value.keys[i], std::move(checked));
  }
  return result;
}

}  // namespace

constinit const Type Takes<std::vector<Rename>>::type{renames_text, renames_schema, check_renames};

void Takes<std::vector<Rename>>::store(const Node& value, std::vector<Rename>& out) {
  out.clear();
  for (std::size_t i = 0; i < value.keys.size(); ++i) {
    out.push_back({{value.keys[i].text, place_of(value.keys[i])}, value.items[i].text});
  }
}

}  // namespace pmaptrain::spec
