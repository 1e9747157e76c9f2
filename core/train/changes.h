// Changes of a run's numbers from the step on at which the run is resumed (--change).
//
// A change is on the disk before the first step that it applies to. The checkpoint from which the run continues is not
// modified. config.yaml is replaced before that step and records the changes under x-changes; later checkpoints have
// them in state.json. If a process is killed in between, only the record exists. Resuming the run therefore repeats the
// changes that are recorded for the checkpoint's step and missing in the checkpoint.
#pragma once

#include <string>
#include <vector>

#include "core/run/run_state.h"
#include "core/setup/setup.h"
#include "core/spec/load.h"
#include "core/train/resume.h"

namespace pmaptrain::train {

// Applies three sets of changes to `loaded`, the config with which the run continues: the changes in `state`, the
// changes that the run's config.yaml records for state.step, and `asked`, each as KEY=VALUE. Also updates the beginning
// of the schedule and the factors of plateaus in `state`. Does not append to RunState::changes: the new changes are
// those in Loaded::changes after the first state.changes.size(). Returns warnings about changes that were made after
// the checkpoint and are not repeated. Throws Error (usage), also if no step of the run is left.
std::vector<std::string> apply_changes(const RunConfig& run, const std::vector<std::string>& asked,
                                       spec::Loaded& loaded, run::RunState& state);

// Where the schedule of a resumed run begins.
setup::ScheduleOrigin schedule_origin(const run::RunState& state);

// Throws Error (usage) at the first of `asked`: no step is left to which a change could apply. `help` says what to do.
[[noreturn]] void refuse_without_steps(const std::string& asked, const std::string& why, const std::string& help);

// A warning about a config with recorded changes that begins a new run. Empty without recorded changes.
std::string unrepeated_changes_warning(const spec::Loaded& loaded);

}  // namespace pmaptrain::train
