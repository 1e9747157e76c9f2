#include "core/train/tracer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/run/files/file_writer.h"
#include "core/setup/plan.h"

namespace pmaptrain::train {
namespace {

constexpr std::int64_t default_steps = 5;
constexpr std::size_t most_spans = 1'000'000;  // about 60 MB in memory, and a file of 150 MB

StepRange range_of(const std::optional<TraceOptions>& options, std::int64_t step, std::int64_t steps) {
  if (!options) return {1, 0};
  if (!options->steps) {
    // The first step of the process is left out, because it does work that later steps need not repeat.
    return {std::min(step + 2, steps), std::min(step + 1 + default_steps, steps)};
  }
  const StepRange range = *options->steps;
  if (range.first > step && range.last <= steps) return range;
  const std::string taken =
      step < steps ? fmt::format("the run takes steps {} to {}", step + 1, steps) : "the run takes no more steps";
  fail_usage(fmt::format("--trace-steps {}..{} has steps that the run does not take", range.first, range.last),
             taken + "; without --trace-steps a few of them are traced");
}

}  // namespace

Tracer::Tracer(const std::optional<TraceOptions>& options, const spec::Spec& spec, Module& module, std::int64_t step,
               std::int64_t steps)
    : options_(options),
      spec_(spec),
      module_(module),
      range_(range_of(options, step, steps)),
      loop_(range_.first, range_.last),
      loader_(range_.first, range_.last),
      checkpoints_(range_.first, range_.last) {}

Ticket Tracer::submit(std::int64_t step, std::size_t entry, int slot, std::span<const std::int64_t> members) {
  if (!covers(step)) return module_.submit(entry, slot, 1, members);
  TracedStep& traced = steps_.emplace_back();
  traced.step = step;
  const Ticket ticket = module_.submit_traced(entry, slot, members, traced.trace);
  module_.wait(ticket);  // otherwise the step's span would end with the next step
  const auto [first, is_new] = first_of_entry_.emplace(entry, static_cast<std::int32_t>(instructions_.size()));
  if (is_new) std::ranges::move(module_.instructions(entry), std::back_inserter(instructions_));
  for (auto& spans : traced.trace.workers) {
    for (WorkSpan& span : spans) span.row += span.row >= 0 ? first->second : 0;
  }
  for (const auto& spans : traced.trace.workers) spans_ += spans.size();
  full_ = spans_ > most_spans;
  return ticket;
}

void Tracer::write(RunReport& report) {
  if (!options_ || written_ || steps_.empty()) return;
  written_ = true;
  const TracedRun traced{spec_.name,
                         module_.source().entries[setup::train_entry].program->mesh,
                         spec_.ensemble.has_value(),
                         instructions_,
                         steps_,
                         loop_.spans(),
                         loader_.spans(),
                         checkpoints_.spans()};
  steps_.clear();
  steps_.shrink_to_fit();
  try {
    run::write_whole(options_->file.string(), chrome_trace(traced));
  } catch (const Error& error) {
    problem_ = error.diagnostics().front().message;
    report.emit(run::Warned{problem_ + "; there is no trace"});
    return;
  }
  summary_ = summarise(traced);
  summary_->file = options_->file.string();
  summary_->is_cut_short = full_;
}

}  // namespace pmaptrain::train
