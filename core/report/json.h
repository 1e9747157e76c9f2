// JSON documents that commands print. Included by .cpp files only: the library is slow to compile.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/graph/type.h"

namespace pmaptrain::report {

using Json = nlohmann::ordered_json;

// [{"kind", "file", "line", "column", "message", "help", "notes"}]; what is not known is null.
Json errors_json(const std::vector<Diagnostic>& diagnostics);

// A value's bytes as nested lists; a number that is not finite is null, and 0.1f is 0.1.
Json value_json(DType dtype, const Shape& shape, std::span<const std::byte> value);
// Whether none of that is null.
bool all_finite(DType dtype, std::span<const std::byte> value);

// Indented, with its end of line. Bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json& document);

}  // namespace pmaptrain::report
