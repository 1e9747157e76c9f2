// The trials of a sweep file beside those that an earlier process recorded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/spec/sweep.h"
#include "core/sweep/plan.h"
#include "core/sweep/store.h"

namespace pmaptrain::sweep {

// What must stay the same for values to compare: how trials are chosen and judged, by name.
std::vector<std::pair<std::string, std::string>> identity_of(const spec::Sweep& sweep, const SweepPlan& plan);

// Writes to the store what trials are made of: the parameters and the seed. reconcile() tells what of it was edited.
void record_space(const spec::Sweep& sweep, Store& store);

// The rows with which the sweep goes on, by number and replicate: those of the store, with the plan's configs, and
// those that only the plan has. What was running waits again. Throws Error (usage) for every edit by which
// trials are gone, every key that differs and may not, and another search; Error (data) if files of the data have
// changed.
std::vector<Row> reconcile(const spec::Sweep& sweep, const SweepPlan& plan, const Store& store,
                           const std::vector<DataFile>& data);

}  // namespace pmaptrain::sweep
