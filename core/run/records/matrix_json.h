// A confusion matrix in documents: summary.json, and what `eval --json` prints.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace pmaptrain::train {

// A list for each true class. Of examples without weights its numbers are counts.
nlohmann::ordered_json matrix_json(const std::vector<std::vector<double>>& matrix);

}  // namespace pmaptrain::train
