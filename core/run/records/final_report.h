// The final report: what a person wants to know when a run has ended.
#pragma once

#include <string>
#include <vector>

#include "core/run/records/events.h"

namespace pmaptrain::train {

// Status, steps and time; the final measures of each split as a table; learned beside true values (long parameters
// abbreviated); the run folder. Of an ensemble the table has its members, or the best, the median and the worst of
// them: of many, and where a row for each would be wider than `columns`. Lines with their ends, of whole words. `color`
// adds ANSI sequences; `columns` is the terminal's, or 0 where nothing limits a line.
std::string final_report(const Ended& ended, bool color = false, int columns = 0);

// A measure's name, which a class's is behind where its number is in it: "recall_0 (cat)". Without names of classes it
// is the name alone. Printable.
std::string with_class(const std::string& measure, const std::vector<std::string>& classes);

// A confusion matrix of at most 12 classes as a table below an empty line, else nothing. `split` names it.
std::string confusion_text(const std::vector<std::vector<double>>& matrix, const std::string& split,
                           const std::vector<std::string>& classes, bool color = false, int columns = 0);

// What was saved of a run that was stopped, and the command that goes on with it: a line. Empty for other runs.
std::string how_to_continue(const Ended& ended);

}  // namespace pmaptrain::train
