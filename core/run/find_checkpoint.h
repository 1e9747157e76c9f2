// The checkpoints of a run folder, by their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain::train {

// "step-00000100", and the step of such a name; none of another.
std::string checkpoint_name(std::int64_t step);
std::optional<std::int64_t> checkpoint_step(std::string_view name);

// "best-00000100": the best of each member of an ensemble, which are of several steps, the last of them this one.
std::string best_name(std::int64_t step);
bool is_best_name(std::string_view name);

// The steps of a run's checkpoints, ascending. Throws Error (data) when they cannot be read.
std::vector<std::int64_t> checkpoint_steps(const std::filesystem::path& run);

// The folder of a run's checkpoint: "last", "best" or a step; of a link, what it leads to. Throws Error (usage) that
// lists the checkpoints there are, or (data) when they cannot be read.
std::filesystem::path find_checkpoint(const std::filesystem::path& run, const std::string& which);

}  // namespace pmaptrain::train
