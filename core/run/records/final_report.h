// The final report of a run, for a person.
#pragma once

#include <string>
#include <vector>

#include "core/run/records/events.h"

namespace pmaptrain::run {

// Returns status, steps and time; a table of the final measures of each split; learned and true values (long parameters
// abbreviated); and the run folder. For an ensemble, the table shows its members; or the best, the median and the worst
// if there are many members or a row for each would be wider than `columns`. Lines have their ends and contain whole
// words. `color` adds ANSI sequences; `columns` is the width of the terminal, or 0 for no limit.
std::string final_report(const Ended& ended, bool color = false, int columns = 0);

// The name of a measure with the name of the class whose number it contains: "recall_0 (cat)". Without class names, the
// name of the measure. Printable.
std::string with_class(const std::string& measure, const std::vector<std::string>& classes);

// A confusion matrix of at most 12 classes as a table, after an empty line; empty for more classes. `split` is its
// title.
std::string confusion_text(const std::vector<std::vector<double>>& matrix, const std::string& split,
                           const std::vector<std::string>& classes, bool color = false, int columns = 0);

// A line for a stopped run: what was saved, and the command that continues the run. Empty for other runs.
std::string how_to_continue(const Ended& ended);

}  // namespace pmaptrain::run
