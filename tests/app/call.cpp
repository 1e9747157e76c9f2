#include "tests/app/call.h"

#include <sstream>

#include "app/commands.h"

namespace pmaptrain::tests {

Finished call(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Finished result;
  result.status = app::run_program(arguments, {out, err});
  result.out = out.str();
  result.err = err.str();
  return result;
}

}  // namespace pmaptrain::tests
