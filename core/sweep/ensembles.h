// Trials that are trained together: those that differ in numbers alone are members of an ensemble, as many as memory
// allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/spec/sweep.h"
#include "core/sweep/plan.h"
#include "core/sweep/store.h"

namespace pmaptrain::sweep {

// Gives rows that never ran ensembles and member numbers. `rows` are those of the plan and of the store; `folder` is
// that of the sweep, and has the run folders of what ran. There are enough ensembles for each of `runners` to train
// one. Returns the rows that it changed. `next` is the number of the next ensemble, and is advanced.
std::vector<Row> form_ensembles(const SweepPlan& plan, const std::filesystem::path& folder,
                                std::span<const Runner> runners, std::vector<Row>& rows, std::int64_t& next);

// An ensemble that did not end well is halved; the rows of a half of one are trained alone. They begin anew. `members`
// are the indices of its rows by member.
void halve_ensemble(std::vector<Row>& rows, std::span<const std::size_t> members, std::int64_t& next);

// The config of the ensemble of these rows.
std::string config_of_ensemble(std::span<const Row* const> rows, const std::string& name);

// How many of these rows are, or were, in the ensemble of `row`; 1 where it is trained alone.
std::int64_t ensemble_size(const Row& row, std::span<const Row> rows);

// "ensembles/0003", its run folder in that of the sweep.
std::string ensemble_folder(std::int64_t ensemble);

}  // namespace pmaptrain::sweep
