// A confusion matrix as JSON, for summary.json and `eval --json`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace pmaptrain::run {

// Returns a list for each true class. Without example weights the numbers are counts.
nlohmann::ordered_json matrix_json(const std::vector<std::vector<double>>& matrix);

}  // namespace pmaptrain::run
