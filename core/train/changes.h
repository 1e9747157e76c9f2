// What changes from the step on at which a run is resumed (--change).
//
// A change is on the disk before the first step that it applies to. The checkpoint that the run goes on from stays as
// it is: config.yaml, which is replaced whole before that step, records the changes under x-changes, and the
// checkpoints from there on have them in state.json. A process that is killed in between leaves the record alone. So
// whoever resumes the run makes those changes again that are recorded for the checkpoint's step and that the checkpoint
// lacks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/run/run_state.h"
#include "core/setup/setup.h"
#include "core/spec/load.h"

namespace pmaptrain::train {

// Applies to the config that continues a run what the run has changed until `state`, what is recorded for that step,
// and `asked`, each KEY=VALUE; and to `state` what follows for its schedule and the factor of a plateau. The list of
// changes in `state` stays, so what Loaded::changes has beyond it is new. Returns warnings for the user: of changes
// that were made after the checkpoint, and are not repeated. Throws Error (usage), also where the run has no step left.
std::vector<std::string> change_run(const std::filesystem::path& run, const std::vector<std::string>& asked,
                                    spec::Loaded& loaded, RunState& state);

// What the schedule of a resumed run counts from.
ScheduleOrigin schedule_origin(const RunState& state);

// Throws Error (usage), at the first of `asked`: no step is left that a change could apply to, and what would help.
[[noreturn]] void refuse_without_steps(const std::string& asked, const std::string& why, const std::string& help);

// What is told where a config with recorded changes begins a run of its own. Empty without any.
std::string unrepeated_changes(const spec::Loaded& loaded);

}  // namespace pmaptrain::train
