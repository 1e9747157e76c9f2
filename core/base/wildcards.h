// Patterns whose stars stand for texts that another pattern has in the same places.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain {

// What each * of `pattern` stands for in `text`, the first ones as short as possible; none if it does not match.
std::optional<std::vector<std::string_view>> wildcards(std::string_view pattern, std::string_view text);

// `pattern` with these texts in place of its stars, of which it has as many.
std::string with_wildcards(std::string_view pattern, const std::vector<std::string_view>& texts);

}  // namespace pmaptrain
