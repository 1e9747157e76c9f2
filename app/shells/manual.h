// The manual page pmaptrain(1).
#pragma once

#include <string>

#include "app/options/syntax.h"

namespace pmaptrain::app {

// In the macros man of groff and mandoc. `introduction`: paragraphs, each with its end of line.
std::string manual_page(const ProgramSyntax& program, const std::string& introduction);

}  // namespace pmaptrain::app
