// What every command is given: its arguments, and where it writes.
#pragma once

#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "core/runtime/agreement.h"

namespace pmaptrain::app {

// Where a command writes. A descriptor is asked whether it is a terminal that shows colours; -1: none.
struct Streams {
  std::ostream& out;
  std::ostream& err;
  int out_fd = -1, err_fd = -1;
  Agreement* job = nullptr;  // with the other processes of a launcher; null: there are none
  bool quiet = false;        // no notes
};

// `text` for who reads standard output: on a terminal no line is broken within a word. What other programs read, such
// as JSON, YAML, CSV or the text of a program, is written to Streams::out as it is.
std::string for_reader(std::string_view text, const Streams& streams);

// The number of processes that a launcher has started.
inline int processes_of(const Streams& streams) {
  return streams.job != nullptr ? streams.job->processes().placement.processes : 1;
}

using CommandArguments = std::span<const std::string>;

}  // namespace pmaptrain::app
