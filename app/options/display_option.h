// --progress and --color, of the commands that train.
#pragma once

#include <string>

#include "app/display/display.h"
#include "app/options/arguments.h"

namespace pmaptrain::app {

// `bar`: what a terminal shows, such as "a progress bar". `options` must outlive parse().
void add_display_options(Arguments& arguments, display::DisplayOptions& options, const std::string& bar);

}  // namespace pmaptrain::app
