// The options of every command that takes a config.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/arguments.h"
#include "app/commands.h"
#include "core/spec/load.h"

namespace pmaptrain::app {

struct ConfigOptions {
  std::string config;
  spec::Overrides overrides;

  // CONFIG, --set, --devices, --workers and --seed.
  void add_to(Arguments& arguments);
  // --set, --devices, --workers and --seed.
  void add_options_to(Arguments& arguments);
};

// "note: optimizer.sgd replaces optimizer.adam"
void print_notes(const std::vector<std::string>& notes, const Streams& streams);
void print_warnings(const std::vector<std::string>& warnings, const Streams& streams);

}  // namespace pmaptrain::app
