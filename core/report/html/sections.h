// The sections of a report's page, as HTML.
#pragma once

#include <span>
#include <string>

#include "core/report/html/page.h"

namespace pmaptrain::report {

// How a run stands, and its most important numbers.
std::string facts_of(const RunRecord& run);
// How each of several runs stands; the best is marked. Empty for one run that is not of a sweep.
std::string cards_of(const Page& page);
// The measures of each split at the end of a run, with members side by side; or of several runs.
std::string results_section(const Page& page);
// What differs between the runs' configs and data. Empty for one run.
std::string differences_section(const Page& page);
// The confusion of classes, with precision and recall of each class. Empty where runs predict no classes.
std::string classes_section(const Page& page);
// The examples that the runs predict worst, as pictures where inputs are images.
std::string worst_section(const Page& page);
// Of those of a language model: each as its text, with the loss of each token.
std::string worst_texts(const SplitPredictions& of, std::span<const WorstExample> examples);
// Its mean loss: a token, and a byte.
std::string losses_of_text(const SplitPredictions& of);
// Layers, mesh, batch and memory.
std::string plan_section(const Page& page);
std::string trace_section(const TraceTable& trace);
std::string config_section(const Page& page);

// The trial with the best value; null where none has one.
const SweepTrial* best_trial(const SweepTable& sweep);
// Of a sweep: the best value so far, parallel coordinates, values by parameter, rungs, and the trials as a table.
// `id` and `heading` are those of the section.
std::string sweep_section(const SweepTable& sweep, const std::string& id = "sweep",
                          const std::string& heading = "Sweep");

}  // namespace pmaptrain::report
