#include "tests/app/call.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sstream>
#include <stdexcept>

#include "app/commands/commands.h"
#include "core/base/descriptor.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace pmaptrain::tests {

Finished call(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Finished result;
  result.status = app::run_program(arguments, {out, err});
  result.out = out.str();
  result.err = err.str();
  return result;
}

Finished call_with_display(const std::vector<std::string>& arguments) {
  const Descriptor file(::memfd_create("standard error", MFD_CLOEXEC));
  const Descriptor before(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<std::intptr_t>(before.get())));
#endif
  if (!file || !before || ::dup2(file.get(), STDERR_FILENO) < 0) throw std::runtime_error("no place for output");
  Finished result = call(arguments);
  ::dup2(before.get(), STDERR_FILENO);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_set_report_fd(reinterpret_cast<void*>(std::intptr_t{STDERR_FILENO}));
#endif
  std::string shown(static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END)), '\0');
  shown.resize(static_cast<std::size_t>(::pread(file.get(), shown.data(), shown.size(), 0)));
  result.err = shown + result.err;
  return result;
}

}  // namespace pmaptrain::tests
