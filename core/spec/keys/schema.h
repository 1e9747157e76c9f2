// The table of keys as a JSON Schema.
#pragma once

#include <string>
#include <string_view>

namespace pmaptrain::spec {

// The output of `pmaptrain schema`: a JSON Schema (draft 2020-12) of the config. It accepts every config that
// load_text() accepts. load_text() has further checks that a schema cannot express (tests/schema/beyond.yaml).
std::string json_schema();
// The title of the schema, which identifies a file with this schema.
inline constexpr std::string_view schema_title = "A config of pmaptrain";

}  // namespace pmaptrain::spec
