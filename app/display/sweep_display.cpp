#include "app/display/sweep_display.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "app/display/line_printer.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/run/records/lines.h"
#include "core/sweep/plan.h"
#include "core/sweep/table.h"

namespace pmaptrain::display {
std::string run_line(const sweep::Row& row, const spec::SweepSpec& sweep) {
  std::string said;
  switch (row.status) {
    case sweep::Status::done:
      said = row.value ? fmt::format("{} {:.6g}", sweep.metric, *row.value) : "no value: " + printable(row.error);
      break;
    case sweep::Status::waiting: said = "is tried again at the end: " + printable(row.error); break;
    case sweep::Status::failed: said = "failed: " + printable(row.error); break;
    case sweep::Status::stopped: said = "stopped with a checkpoint"; break;
    case sweep::Status::running: said = "runs"; break;
  }
  return fmt::format("trial {}: {}, {}, {}, {:.1f} s", sweep::trial_name(row.number, row.replicate), said,
                     sweep::parameters_text(row.parameters), counted(row.steps, "step"), row.seconds);
}

std::string sweep_line(const sweep::Progress& progress, const spec::SweepSpec& sweep, int width) {
  const std::int64_t all = progress.waiting + progress.running + progress.done + progress.failed;
  std::vector<std::string> parts;
  parts.push_back(fmt::format("{} of {} done", with_commas(progress.done), counted(all, "run")));
  if (progress.best && progress.best->value) {
    parts.push_back(
        fmt::format("best {} {:.6g} (trial {})", sweep.metric, *progress.best->value, progress.best->number));
  }
  if (progress.steps > 0 && progress.all_steps > progress.steps) {
    const double rate = progress.seconds / static_cast<double>(progress.steps);
    parts.push_back(train::clock_time(rate * static_cast<double>(progress.all_steps - progress.steps)) + " left");
  }
  parts.push_back(fmt::format("{} running", with_commas(progress.running)));
  parts.push_back(fmt::format("{} waiting", with_commas(progress.waiting)));
  if (progress.failed > 0) parts.push_back(fmt::format("{} failed", with_commas(progress.failed)));
  std::string line = join(parts, ", ");
  // Where it does not fit, its last parts go.
  while (width > 0 && display_width(line) > width && parts.size() > 1) {
    parts.pop_back();
    line = join(parts, ", ");
  }
  return line;
}

struct SweepDisplay::Impl {
  spec::SweepSpec sweep;
  bool quiet = false;
  Terminal terminal;
  std::optional<LinePrinter> printer;
};

SweepDisplay::SweepDisplay(const DisplayOptions& options, const spec::SweepSpec& sweep)
    : impl_(std::make_unique<Impl>()) {
  impl_->sweep = sweep;
  impl_->quiet = options.quiet || options.progress == Progress::none;
  impl_->terminal = standard_error(options.color);
  const bool moving = impl_->terminal.moving && options.progress != Progress::plain && !impl_->quiet;
  impl_->printer.emplace(impl_->terminal.fd, moving, options.stop);
}

SweepDisplay::~SweepDisplay() = default;

void SweepDisplay::show(const sweep::Progress& progress) {
  if (impl_->quiet) return;
  const int width = impl_->terminal.width ? impl_->terminal.width() : 0;
  const std::string status = sweep_line(progress, impl_->sweep, width > 1 ? width - 1 : 0);
  if (progress.ended != nullptr) {
    impl_->printer->print(run_line(*progress.ended, impl_->sweep) + "\n", 1, Keep::longer, status);
  } else if (!progress.note.empty()) {
    impl_->printer->print(progress.note + "\n", 1, Keep::longer, status);
  } else {
    impl_->printer->set_status(status);
  }
}

}  // namespace pmaptrain::display
