// The text form of programs: what `explain` prints, `exec` reads and tests hold. docs/program.md has the grammar.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/program.h"

namespace pmaptrain {

struct PrintOptions {
  bool origins = false;  // a comment with each equation's scope
  // The lines of comments below an equation, without "#".
  std::function<std::vector<std::string>(const Equation&)> notes = nullptr;
};

// Values are renumbered in order of appearance, so equal programs have equal text. Parsing it gives the program back.
std::string to_text(const Program& program, const PrintOptions& options = {});

// One equation as text, with the program's value numbers.
std::string to_text(const Program& program, const Equation& equation);

// Reads a program and checks it. `mesh` replaces sizes of axes that the text declares, and may add axes, innermost;
// where it names every axis of the text, its order counts. Throws Error (usage) with places in `file`.
Program parse_program(std::string_view text, const std::string& file, const OpSet& ops,
                      const std::vector<Axis>& mesh = {});

}  // namespace pmaptrain
