// What process 0 of a launcher asks the others for, and what they answer. Texts are any bytes: paths and output need
// not be UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/sweep/launcher.h"

namespace pmaptrain::sweep {

struct Request {
  struct Start {
    std::size_t job = 0;
    std::vector<std::string> arguments;
  };
  std::vector<std::string> paths;  // to be looked for
  std::optional<double> timeout;   // as Transport::set_timeout() takes it
  std::vector<Start> starts;
  bool stop = false;  // Launcher::stop()
  bool over = false;  // this is the last request
};

struct Answer {
  std::vector<std::size_t> missing;  // indices of the paths that are not there
  std::vector<Exit> ended;
  int signal = 0;       // that came to this process; 0: none
  std::string problem;  // why it failed; empty: it did not
};

std::string text_of(const Request& request);
std::string text_of(const Answer& answer);
Request request_from(std::string_view text);
Answer answer_from(std::string_view text);

}  // namespace pmaptrain::sweep
