// From a config to a setup.
#pragma once

#include <memory>
#include <optional>

#include "core/setup/setup.h"

namespace pmaptrain::setup {

// Opens the data and checks that everything fits together. For a resumed run, `schedule` and `continued`, the
// encoding with which it began, come from its RunState. Several processes open
// `initial_file` together, before; one process opens it each time that it needs it. Throws Error: usage, or data.
Setup make_setup(spec::Loaded loaded, std::optional<ScheduleOrigin> schedule = std::nullopt,
                 const data::Encoding* continued = nullptr, std::shared_ptr<InitialFile> initial_file = nullptr);

}  // namespace pmaptrain::setup
