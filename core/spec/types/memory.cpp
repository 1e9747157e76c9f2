#include "core/spec/types/memory.h"

#include <cstddef>
#include <optional>

#include "core/spec/types/leaf.h"
#include "core/spec/yaml/scalar.h"

namespace pmaptrain::spec {
namespace {

std::string memory_text(const Key& /*key*/) { return "a whole number of MiB, GiB or TiB such as '80GiB'"; }

std::string memory_schema(const Key& /*key*/, Definitions& /*named*/) {
  return R"({"type": "string", "pattern": "^[1-9][0-9]{0,5} ?(MiB|GiB|TiB)$"})";
}

Node check_memory(const Key& key, const Node& value, const Reporter& reporter) {
  const std::optional<std::size_t> bytes = value.is(Node::Kind::scalar) ? parse_memory(value.text) : std::nullopt;
  return bytes ? with_value(value, value.text, MemorySize{*bytes}) : wrong_value(key, value, reporter);
}

}  // namespace

constinit const Type Takes<MemorySize>::type{memory_text, memory_schema, check_memory};

}  // namespace pmaptrain::spec
