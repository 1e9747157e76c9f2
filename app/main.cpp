#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/display/terminal.h"

int main(int argc, char** argv) {
  pmaptrain::display::ignore_broken_pipes();
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const int status = pmaptrain::app::run_program(arguments, {std::cout, std::cerr, STDOUT_FILENO, STDERR_FILENO});
  std::cout.flush();
  return status;
}
