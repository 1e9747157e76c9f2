#include "core/spec/types/padding.h"

#include "core/spec/types/leaf.h"
#include "core/spec/types/number.h"
#include "core/spec/types/schema_text.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

std::string padding_text(const Key& key) {
  return "SAME, VALID or a list of two pairs of integers" + range_of(key, true);
}

std::string padding_schema(const Key& key, Definitions& /*named*/) {
  const std::string pair = schema::list_of(schema::integer(key), 2, 2);
  return schema::any_of({schema::words({"SAME", "VALID"}), schema::list_of(pair, 2, 2)});
}

Node check_padding(const Key& key, const Node& value, const Reporter& reporter) {
  if (value.is(Kind::scalar)) {
    if (value.text == "SAME" || value.text == "VALID") return value;
    if (value.text == "same" || value.text == "valid") {
      return misspelt_value(key, value, value.text == "same" ? "SAME" : "VALID", reporter);
    }
    return wrong_value(key, value, reporter);
  }
  return check_list(key, value, 2, reporter, [&](const Node& pair) {
    return check_list(key, pair, 2, reporter, [&](const Node& item) { return check_integer(key, item, reporter); });
  });
}

}  // namespace

constinit const Type Takes<Padding>::type{padding_text, padding_schema, check_padding};

void Takes<Padding>::store(const Node& value, Padding& out) {
  out.amounts.clear();
  if (value.is(Kind::scalar)) {
    out.kind = value.text == "SAME" ? PaddingKind::same : PaddingKind::valid;
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
