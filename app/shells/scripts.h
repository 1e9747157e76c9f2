// Scripts with which shells complete the command lines of the program. They contain its commands, options and config
// keys, so completion starts no process.
#pragma once

#include <string>

#include "app/options/syntax.h"
#include "app/shells/config_keys.h"

namespace pmaptrain::app {

std::string bash_script(const ProgramSyntax& program, const ConfigKeys& keys);  // bash 4
std::string zsh_script(const ProgramSyntax& program, const ConfigKeys& keys);   // zsh 5
std::string fish_script(const ProgramSyntax& program, const ConfigKeys& keys);  // fish 3

}  // namespace pmaptrain::app
