// Names that a choice does not have: what a user may have meant by them, in the words and the syntax of other programs.
#pragma once

#include <string>
#include <string_view>

#include "core/spec/keys.h"
#include "core/spec/yaml/node.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {

// Reports a name that is not an alternative of a choice. `what` is the noun for alternatives, and `value` the scalar
// that was written with the name, if any. Returns the alternative that was meant, or null.
const Key* refuse_alternative(const Key& key, const Node& name, const std::string& what, std::string_view value,
                              const Reporter& reporter);

}  // namespace pmaptrain::spec
