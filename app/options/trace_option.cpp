#include "app/options/trace_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/wrap.h"

namespace pmaptrain::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_item_rows = 20, most_device_rows = 16;  // rows of a table

std::optional<std::int64_t> step_in(std::string_view text) {
  std::int64_t step = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), step);
  return wrong == std::errc() && end == text.data() + text.size() && step >= 1 ? std::optional(step) : std::nullopt;
}

train::StepRange range_in(const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto first = step_in(std::string_view(text).substr(0, dots));
  const auto last = dots == std::string::npos ? std::nullopt : step_in(std::string_view(text).substr(dots + 2));
  if (!first || !last) {
    fail_option("--trace-steps", text,
                "--trace-steps takes two steps A..B, from 1 and both included, not '" + text + "'",
                "for example --trace-steps 10..14");
  }
  if (*last < *first) {
    fail_option("--trace-steps", text, "--trace-steps has its last step before its first one",
                fmt::format("{}..{} would be traced", *last, *first));
  }
  return {*first, *last};
}

bool is_trace(const std::string& file) {
  std::string head(train::trace_head.size(), '\0');
  std::ifstream(file, std::ios::binary).read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == train::trace_head;
}

// "93.4 %"
std::string share_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::vector<std::vector<std::string>> device_rows(const std::vector<double>& devices) {
  if (devices.size() <= most_device_rows) {
    std::vector<std::vector<std::string>> rows;
    for (std::size_t d = 0; d < devices.size(); ++d) {
      rows.push_back({fmt::format("logical device {}", d), share_text(devices[d])});
    }
    return rows;
  }
  const auto [least, most] = std::minmax_element(devices.begin(), devices.end());
  return {
      {counted(std::ssize(devices), "logical device"), fmt::format("{} to {}", share_text(*least), share_text(*most))}};
}

}  // namespace

void TraceOption::add_to(Arguments& arguments) {
  arguments.text("--trace", "FILE", file,
                 "write a trace of some steps to FILE, in the JSON format of Chrome and Perfetto, and show where their "
                 "time went; FILE must be new, or with --overwrite a trace");
  arguments.text("--trace-steps", "A..B", steps,
                 "the steps to trace, from 1 and both included; by default five, from the second that runs");
}

std::optional<train::TraceOptions> TraceOption::accepted(bool overwrite) const {
  if (!file) {
    if (steps) {
      fail_option("--trace-steps", *steps, "--trace-steps was given without --trace",
                  "--trace FILE says where the trace is written");
    }
    return std::nullopt;
  }
  train::TraceOptions options{*file, {}};
  if (steps) options.steps = range_in(*steps);
  std::error_code error;
  const fs::file_status status = fs::status(options.file, error);
  if (fs::is_directory(status)) fail_option("--trace", *file, "--trace takes a file, and '" + *file + "' is a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    fail_option("--trace", *file, "'" + *file + "' is no regular file", "name a new file");
  }
  if (fs::is_regular_file(status) && !(overwrite && is_trace(*file))) {
    fail_option("--trace", *file, "'" + *file + "' exists",
                is_trace(*file) ? "name another file, or replace this trace, and the run, with --overwrite"
                                : "name another file");
  }
  const fs::path folder = options.file.has_parent_path() ? options.file.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error)) {
    fail_option("--trace", *file, "there is no folder '" + folder.string() + "'", "make it first");
  }
  return options;
}

std::string trace_text(const std::optional<train::TraceSummary>& summary, int columns) {
  if (!summary) return "no step was traced\n";
  const std::int64_t steps = summary->steps.last - summary->steps.first + 1;
  std::string out = fmt::format("\ntrace of steps {} to {} ({}): {}{}\n", summary->steps.first, summary->steps.last,
                                with_prefix(summary->seconds, "s"), printable(summary->file),
                                summary->is_cut_short ? " (cut short: more steps would make too large a file)" : "");
  std::vector<std::vector<std::string>> shares{{"", "busy", "waits", "other"}};
  for (std::size_t w = 0; w < summary->workers.size(); ++w) {
    const auto& [busy, waits] = summary->workers[w];
    shares.push_back({fmt::format("worker {}", w), share_text(busy), share_text(waits), share_text(1 - busy - waits)});
  }
  for (std::vector<std::string>& row : device_rows(summary->devices)) shares.push_back(std::move(row));
  out += in_columns(shares, {false, true, true, true}, columns);
  double total = 0, shown = 0;
  for (const train::TraceSummary::Item& item : summary->items) total += item.seconds;
  std::vector<std::vector<std::string>> items{{"from", "op", "time a step", "% of work"}};
  const auto add = [&](const std::string& from, const std::string& op, double seconds) {
    items.push_back({printable(from), op, with_prefix(seconds / static_cast<double>(steps), "s"),
                     fmt::format("{:.1f}", 100 * seconds / total)});
  };
  for (std::size_t i = 0; i < std::min(most_item_rows, summary->items.size()); ++i) {
    const train::TraceSummary::Item& item = summary->items[i];
    add(item.from, item.op, item.seconds);
    shown += item.seconds;
  }
  if (summary->items.size() > most_item_rows) add("others", "", total - shown);
  return out + "\n" + in_columns(items, {false, false, true, true}, columns);
}

}  // namespace pmaptrain::app
