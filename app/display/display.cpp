#include "app/display/display.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "app/display/bar.h"
#include "app/display/line_printer.h"
#include "app/display/progress.h"
#include "app/display/style.h"
#include "core/base/text.h"
#include "core/base/wrap.h"
#include "core/run/records/lines.h"

namespace pmaptrain::display {
namespace {

using run::Field;
using run::Line;
using run::LineKind;

constexpr double redraw_seconds = 1.0 / 15;
constexpr int assumed_width = 80, least_width = 5;

std::string field_text(const Field& field, LineKind kind, bool color) {
  if (!color) return field.text();
  const bool strong = kind == LineKind::epoch || kind == LineKind::evaluation;
  std::string text = painted(dim, field.label, color);
  for (const auto& [part, style] : {std::pair{&field.value, strong ? bold : std::string_view()}, {&field.unit, dim}}) {
    if (part->empty()) continue;
    if (!text.empty()) text += ' ';
    text += style.empty() ? *part : painted(style, *part, color);
  }
  return text;
}

std::vector<int> widths_of_fields(const Line& line) {
  std::vector<int> widths;
  widths.reserve(line.fields.size());
  for (const Field& field : line.fields) widths.push_back(display_width(field.text()));
  return widths;
}

// Fields of these widths, between which two spaces stand, the first padded to `lead`.
int width_of(const std::vector<int>& fields, int lead) {
  int width = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    width += fields[i];
    if (i == 0 && fields.size() > 1) width = std::max(width, lead);
    if (i > 0) width += 2;
  }
  return width;
}

// How expendable is what goes next of a field: it, or first its unit.
int next_of(const Field& field) { return std::max(field.expendable, field.expendable_unit); }

// What is left of a line so that it fits in `width` columns, or is as short as it can be: the most expendable parts go
// first, the alignment among them.
Line shortened(Line line, int width) {
  std::vector<int> widths = widths_of_fields(line);  // a line may have a metric for each of many classes
  while (width_of(widths, line.lead) > width) {
    const auto most = std::max_element(line.fields.begin(), line.fields.end(),
                                       [](const Field& a, const Field& b) { return next_of(a) <= next_of(b); });
    const int next = most == line.fields.end() ? 0 : next_of(*most);
    if (next < run::expendable_alignment && line.lead > 0) {
      line.lead = 0;
      continue;
    }
    if (next == 0) break;
    const auto its_width = widths.begin() + (most - line.fields.begin());
    if (most->expendable_unit > 0) {
      most->unit.clear();
      most->expendable_unit = 0;
      *its_width = display_width(most->text());
    } else {
      line.fields.erase(most);
      widths.erase(its_width);
    }
  }
  return line;
}

// A line that has to be folded all the same keeps its units.
Line fitted(const Line& line, int width) {
  Line with_units = line, short_line = shortened(line, width);
  if (width_of(widths_of_fields(short_line), short_line.lead) <= width) return short_line;
  for (Field& field : with_units.fields) field.expendable_unit = 0;
  return shortened(std::move(with_units), width);
}

// Whether a line is text.
bool is_told(LineKind kind) { return kind == LineKind::note || kind == LineKind::warning || kind == LineKind::error; }

// The line with its end. With `width` above 0 it is made to fit, and what must stay is folded between its fields.
// Notes, warnings and errors are folded between words.
std::string line_text(const Line& whole, int width, bool color) {
  if (is_told(whole.kind)) {
    std::string text = whole.kind == LineKind::warning ? painted(yellow, "warning:", color) + " "
                       : whole.kind == LineKind::error ? painted(red, "error:", color) + " "
                                                       : "";
    for (const Field& field : whole.fields) text += field.text();
    return wrapped(text, width) + "\n";
  }
  const Line line = width > 0 ? fitted(whole, width) : whole;
  std::string text;
  int column = 0;
  for (std::size_t i = 0; i < line.fields.size(); ++i) {
    const int field_width = display_width(line.fields[i].text());
    if (i > 0 && width > 0 && column + 2 + field_width > width) {
      text += "\n  ";
      column = 2;
    } else if (i > 0) {
      text += "  ";
      column += 2;
    }
    text += field_text(line.fields[i], line.kind, color);
    column += field_width;
    if (i == 0 && column < line.lead && line.fields.size() > 1) {
      text.append(static_cast<std::size_t>(line.lead - column), ' ');
      column = line.lead;
    }
  }
  return text + "\n";
}

// What to let go where the reader stays away for long: step lines, and not what they lead to.
Keep keep_of(const Line& line) { return line.kind == LineKind::step ? Keep::passing : Keep::longer; }

// What a signal does, told while the step goes on that it ends.
std::string line_of_signal(int signal) {
  const std::string again =
      signal == SIGINT ? "press Ctrl-C again to end at once" : "another signal ends the run at once";
  return "stopping after this step, with a checkpoint; " + again + "\n";
}

class MuteDisplay : public run::Consumer {
 public:
  void on(const run::Event&) override {}
};

// Only what went wrong.
class SilentDisplay : public run::Consumer {
 public:
  SilentDisplay(const Terminal& terminal, const std::atomic<int>* stop)
      : terminal_(terminal), printer_(terminal.fd, false, stop) {}

  void on(const run::Event& event) override {
    if (!std::holds_alternative<run::Warned>(event)) return;
    for (const Line& line : lines_(event)) {
      printer_.print(line_text(line, text_columns(terminal_.width), terminal_.color), 1, keep_of(line));
    }
  }

 private:
  Terminal terminal_;
  LinePrinter printer_;
  run::EventLines lines_;
};

// One line an event, whole lines only: for pipes, files and terminals that cannot move.
class PlainDisplay : public run::Consumer {
 public:
  PlainDisplay(const Terminal& terminal, bool verbose, const std::atomic<int>* stop)
      : terminal_(terminal), printer_(terminal.fd, false, stop, line_of_signal, terminal.width), lines_(verbose) {}

  void on(const run::Event& event) override {
    const std::vector<Line> lines = lines_(event);
    if (lines.empty()) return;
    std::string text;
    for (const Line& line : lines) text += whole_line_text(line);
    printer_.print(std::move(text), static_cast<int>(lines.size()), keep_of(lines.front()));
  }

 private:
  // Lines of numbers are whole, as in a pipe: none of their fields is left out.
  std::string whole_line_text(const Line& line) const {
    return line_text(line, is_told(line.kind) ? text_columns(terminal_.width) : 0, terminal_.color);
  }

  Terminal terminal_;
  LinePrinter printer_;
  run::EventLines lines_;
};

// The same lines, above a bar.
class BarDisplay : public run::Consumer {
 public:
  BarDisplay(Terminal terminal, bool verbose, const std::atomic<int>* stop)
      : terminal_(std::move(terminal)),
        printer_(terminal_.fd, true, stop, line_of_signal, terminal_.width),
        lines_(verbose) {}

  bool wants_live_measures() const override { return true; }

  void on(const run::Event& event) override {
    const std::vector<Line> lines = lines_(event);
    const bool was_running = progress_.is_running();
    const double now = terminal_.now();
    progress_.take(event, now);
    if (std::holds_alternative<run::Ended>(event) && was_running) printer_.keep_status(line(columns()));
    if (!lines.empty()) return print(lines, now);
    const bool moves = std::holds_alternative<run::Progressed>(event) || std::holds_alternative<run::Working>(event);
    // What comes before the run is told at once: it may take long.
    if (!moves || (was_running && now - drawn_ < redraw_seconds)) return;
    drawn_ = now;
    printer_.set_status(bar(columns()));
  }

 private:
  void print(const std::vector<Line>& lines, double now) {
    const int width = columns();
    std::string text;
    for (const Line& line : lines) text += line_text(line, width, terminal_.color);
    if (progress_.is_running()) drawn_ = now;
    printer_.print(std::move(text), static_cast<int>(lines.size()), keep_of(lines.front()),
                   progress_.is_running() ? bar(width) : std::string());
  }

  // The last column stays free: with it, some terminals wrap.
  int columns() const {
    const int width = terminal_.width ? terminal_.width() : 0;
    return std::max(width > 0 ? width : assumed_width, least_width) - 1;
  }
  // Two more columns are free for the ^C that a terminal echoes behind the bar: it would wrap, and the bar stay there.
  std::string bar(int width) const { return line(std::max(width - 2, least_width - 1)); }
  std::string line(int width) const { return progress_.line({width, terminal_.color, terminal_.utf8}); }

  Terminal terminal_;
  LinePrinter printer_;
  run::EventLines lines_;
  RunProgress progress_;
  double drawn_ = -1;
};

}  // namespace

std::unique_ptr<run::Consumer> make_display(const DisplayOptions& options, Terminal terminal) {
  if (options.mute) return std::make_unique<MuteDisplay>();
  if (is_silent(options)) {
    return std::make_unique<SilentDisplay>(terminal, options.stop);
  }
  if (options.progress == Progress::plain || !terminal.moving) {
    return std::make_unique<PlainDisplay>(terminal, options.verbose, options.stop);
  }
  return std::make_unique<BarDisplay>(std::move(terminal), options.verbose, options.stop);
}

std::unique_ptr<run::Consumer> make_display(const DisplayOptions& options) {
  return make_display(options, standard_error(options.color));
}

}  // namespace pmaptrain::display
