// Changes of a run's numbers from the step on at which the run is resumed (--change).
//
// A change is on the disk before the first step that it applies to. The checkpoint from which the run continues is not
// modified. config.yaml is replaced before that step and records the changes under x-changes; later checkpoints have
// them in state.json. If a process is killed in between, only the record exists. Resuming the run therefore repeats the
// changes that are recorded for the checkpoint's step and missing in the checkpoint.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/run/run_state.h"
#include "core/setup/setup.h"
#include "core/spec/load.h"

namespace pmaptrain::train {

// Applies the run's changes to the config that continues it: those in `state`, those recorded for its step, and
// `asked`, each as KEY=VALUE. Updates the schedule and the plateau's factor in `state`, but not its list of changes, so
// that changes in Loaded::changes beyond that list are new. Returns warnings about changes that were made after the
// checkpoint and are not repeated. Throws Error (usage), also if no step of the run is left.
std::vector<std::string> change_run(const std::filesystem::path& run, const std::vector<std::string>& asked,
                                    spec::Loaded& loaded, RunState& state);

// The step from which the schedule of a resumed run counts.
ScheduleOrigin schedule_origin(const RunState& state);

// Throws Error (usage) at the first of `asked`: no step is left to which a change could apply. `help` says what to do.
[[noreturn]] void refuse_without_steps(const std::string& asked, const std::string& why, const std::string& help);

// A warning about a config with recorded changes that begins a new run. Empty without recorded changes.
std::string unrepeated_changes(const spec::Loaded& loaded);

}  // namespace pmaptrain::train
