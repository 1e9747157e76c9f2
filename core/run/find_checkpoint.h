// The checkpoints of a run folder, by their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain::run {

// The name of a step's checkpoint, "step-00000100", and the step of such a name; none for another name.
std::string checkpoint_name(std::int64_t step);
std::optional<std::int64_t> checkpoint_step(std::string_view name);

// "best-00000100": a folder with the best parameters of each member of an ensemble. They are of different steps; the
// number is the last of these steps.
std::string best_name(std::int64_t step);
bool is_best_name(std::string_view name);

// The steps of a run's checkpoints in ascending order. Throws Error (data) if they cannot be read.
std::vector<std::int64_t> checkpoint_steps(const std::filesystem::path& run);

// The folder to which checkpoints/last or checkpoints/best leads; none if there is none.
std::optional<std::filesystem::path> checkpoint_folder(const std::filesystem::path& run, const std::string& which);

// The folder of a run's checkpoint: "last", "best" or a step. Links are resolved. Throws Error (usage), which lists the
// existing checkpoints, or Error (data) if they cannot be read.
std::filesystem::path find_checkpoint(const std::filesystem::path& run, const std::string& which);

}  // namespace pmaptrain::run
