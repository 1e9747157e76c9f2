// JSON documents that commands print. Include it in .cpp files only, because the library is slow to compile.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/graph/type.h"

namespace pmaptrain::report {

using Json = nlohmann::ordered_json;

// [{"kind", "file", "line", "column", "message", "help", "notes"}]; unknown values are null.
Json errors_json(const std::vector<Diagnostic>& diagnostics);

// The elements of a value as nested lists. A number that is not finite is null; 0.1f is 0.1.
Json value_json(DType dtype, const Shape& shape, std::span<const std::byte> value);
// Whether value_json() of these bytes has no null.
bool all_finite(DType dtype, std::span<const std::byte> value);

// Indented text with its end of line. Bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json& document);

}  // namespace pmaptrain::report
