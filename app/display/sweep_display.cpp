#include "app/display/sweep_display.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "app/display/line_printer.h"
#include "app/display/sweep_table.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/wrap.h"
#include "core/sweep/plan.h"
#include "core/sweep/value_text.h"

namespace pmaptrain::display {

std::string run_line(const sweep::Row& row, const spec::SweepSpec& sweep, std::int64_t together) {
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
  return fmt::format("trial {}: {}, {}, {}, {:.1f} s{}", sweep::trial_name(row.number, row.replicate), said,
                     sweep::parameters_text(row.parameters), counted(row.steps, "step"), row.seconds,
                     together > 1 ? fmt::format(" of an ensemble of {}", together) : "");
}

struct SweepDisplay::Impl {
  spec::SweepSpec sweep;
  bool quiet = false;
  Terminal terminal;
  std::optional<LinePrinter> printer;

  // The last column stays free: with it, some terminals wrap. So do two more for the ^C that a terminal echoes behind
  // the table, and two lines, so that what has ended is seen above it.
  SweepTableStyle style() const {
    const int width = terminal.width ? terminal.width() : 0, height = terminal.height ? terminal.height() : 0;
    SweepTableStyle style;
    style.width = std::max((width > 0 ? width : style.width) - 3, 4);
    style.height = std::max((height > 0 ? height : style.height) - 2, 1);
    style.color = terminal.color;
    return style;
  }

  void print(const std::string& text, const std::string& table) {
    printer->print(wrapped(text, text_columns(terminal.width)) + "\n", 1, Keep::longer, table);
  }
};

SweepDisplay::SweepDisplay(const DisplayOptions& options, const spec::SweepSpec& sweep)
    : SweepDisplay(options, sweep, standard_error(options.color)) {}

SweepDisplay::SweepDisplay(const DisplayOptions& options, const spec::SweepSpec& sweep, Terminal terminal)
    : impl_(std::make_unique<Impl>()) {
  impl_->sweep = sweep;
  impl_->quiet = is_silent(options);
  impl_->terminal = std::move(terminal);
  const bool moving = impl_->terminal.moving && options.progress != Progress::plain && !impl_->quiet;
  impl_->printer.emplace(impl_->terminal.fd, moving, options.stop, nullptr, impl_->terminal.width);
}

SweepDisplay::~SweepDisplay() = default;

void SweepDisplay::show(const sweep::Progress& progress) {
  if (impl_->quiet) return;
  const std::string table = sweep_table(progress, impl_->sweep, impl_->style());
  if (progress.ended != nullptr) {
    impl_->print(run_line(*progress.ended, impl_->sweep, progress.together), table);
  } else if (!progress.note.empty()) {
    impl_->print(progress.note, table);
  } else {
    impl_->printer->set_status(table);
  }
}

}  // namespace pmaptrain::display
