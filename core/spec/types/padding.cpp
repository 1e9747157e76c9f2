#include "core/spec/types/padding.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/text.h"
#include "core/spec/types/leaf.h"
#include "core/spec/types/number.h"
#include "core/spec/types/schema_text.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

constexpr std::array<std::pair<const char*, PaddingKind>, 3> names = {
    {{"SAME", PaddingKind::same}, {"VALID", PaddingKind::valid}, {"CAUSAL", PaddingKind::causal}}};

std::string padding_text(const Key& key) {
  return join(key.words, ", ") + " or " + list_of(key, "pair") + " of integers" + range_of(key, true);
}

std::string padding_schema(const Key& key, Definitions& /*named*/) {
  const std::string pair = schema::list_of(schema::integer(key), 2, 2);
  return schema::any_of({schema::words(key.words), schema::list_of(pair, least_items(key), key.length)});
}

Node check_padding(const Key& key, const Node& value, const Reporter& reporter) {
  if (value.is(Kind::scalar)) {
    for (const std::string& name : key.words) {
      if (value.text == name) return value;
      if (letters_of(value.text) == letters_of(name)) return misspelt_value(key, value, name, reporter);
    }
    return wrong_value(key, value, reporter);
  }
  return check_list(key, value, reporter, [&](const Node& pair) {
    return check_list(key, pair, 2, reporter, [&](const Node& item) { return check_integer(key, item, reporter); });
  });
}

}  // namespace

constinit const Type Takes<Padding>::type{padding_text, padding_schema, check_padding};

void Takes<Padding>::store(const Node& value, Padding& out) {
  out.amounts.clear();
  if (value.is(Kind::scalar)) {
    out.kind =
        std::find_if(names.begin(), names.end(), [&](const auto& known) { return value.text == known.first; })->second;
    return;
  }
  out.kind = PaddingKind::explicit_;
  for (const Node& amounts : value.items) {
    auto& [low, high] = out.amounts.emplace_back();
    Takes<std::int64_t>::store(amounts.items[0], low);
    Takes<std::int64_t>::store(amounts.items[1], high);
  }
}

}  // namespace pmaptrain::spec
