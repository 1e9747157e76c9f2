#include "core/base/clock.h"

#include <unistd.h>

#include <fstream>
#include <string>

namespace pmaptrain {

// Uses the kernel's record of when the process began, in ticks since boot.
double seconds_since_process_began() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  double ticks = 0;
  std::size_t at = text.rfind(')');  // the command's name may hold spaces; field 22 is the 20th after it
  for (int field = 0; field < 20 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  if (at != std::string::npos) ticks = std::stod(text.substr(at + 1));
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace pmaptrain
