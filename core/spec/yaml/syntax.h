// Why a text is not YAML.
#pragma once

#include <string>
#include <vector>

namespace pmaptrain::spec {

// Lines count from 0, columns and lengths are of bytes.
struct SyntaxError {
  std::size_t line = 0, column = 0, length = 1;
  std::string message, help;
};

// The line that is wrong and what would be right there. The parser gave up at `line` and `column` with `message`; the
// mistake is often before.
SyntaxError explain_syntax_error(const std::vector<std::string>& lines, std::size_t line, std::size_t column,
                                 const std::string& message);

}  // namespace pmaptrain::spec
