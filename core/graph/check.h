// The checker that runs after every pass: a program that it accepts is well-formed by docs/program.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/graph/program.h"

namespace pmaptrain {

// Every value is defined once and before its use, regions see only their own values, each equation's types are what
// its op infers, and rule 4: what replaces a parameter or a piece of state has exactly its type. Throws Error (usage)
// that shows the equations around the failure; `after` names the pass.
void check(const Program& program, std::string_view after = {});

// What is wrong with the layout of an input of this type, or with its parts. Both are empty if nothing is.
struct StorageError {
  std::string message, help;
};
StorageError storage_error(const Input& input, const Type& type, const Mesh& mesh);

}  // namespace pmaptrain
