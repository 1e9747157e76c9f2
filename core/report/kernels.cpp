#include "core/report/kernels.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <sstream>

#include "core/base/text.h"
#include "core/base/wrap.h"

namespace pmaptrain::report {
namespace {

// A reference kernel with more than this share of a step is marked. Without measurements, shares are of bytes.
constexpr double much = 0.03;
// A layout change is marked if it moves more than this share of the bytes of the op itself.
constexpr double surprising = 0.1;

// "1.36 G", "-" for nothing
std::string amount(double value) {
  if (value == 0) return "-";
  constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (prefix + 1 < std::size(prefixes) && value >= 999.5) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g}{}{}", value, prefix > 0 ? " " : "", prefixes[prefix]);
}

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

class Table {
 public:
  explicit Table(const KernelReport& report) : report_(report), timed_(report.times) {
    std::vector<std::string> head{"op", "from"};
    if (!timed_) head.emplace_back("result");
    head.insert(head.end(), {"FLOP", "bytes"});
    if (timed_) head.insert(head.end(), {"time", "% step", "% roof"});
    head.emplace_back("implementation");
    rows_.push_back(head);
    below_.emplace_back();
    for (const KernelLine& line : report.lines) add(line);
    add_total();
  }

  std::string text(int width) const {
    std::vector<bool> right{false, false};
    if (!timed_) right.push_back(false);
    right.resize(right.size() + (timed_ ? 5 : 2), true);
    std::istringstream lines(in_columns(rows_, right, width));
    std::string out;
    std::size_t row = 0;
    bool is_first = true;  // of the bands that fit into the width
    std::string part;
    for (std::string line; std::getline(lines, line); ++row) {
      if (line.empty()) {  // what did not fit follows, for all rows again
        is_first = false;
        out += "\n";
        part.clear();
        std::getline(lines, line);
        row = 0;
      }
      const bool is_step = row > 0 && row <= report_.lines.size();
      if (is_step) {
        const KernelLine& here = report_.lines[row - 1];
        if (here.section != part) out += here.section + ":\n";
        part = here.section;
      }
      out += line + "\n" + (is_first ? below_[row] : "");
    }
    return out;
  }

 private:
  void add(const KernelLine& line) {
    const std::string indent(static_cast<std::size_t>(2 * line.depth), ' ');
    std::vector<std::string> row{indent + line.name, line.equation == nullptr ? "" : line.equation->origin->scope};
    if (!timed_) row.push_back(line.result);
    row.insert(row.end(), {amount(line.flops), amount(line.bytes)});
    if (timed_) {
      row.insert(row.end(), {with_prefix(round_to_three(line.seconds), "s"), percent(share(line)),
                             percent(line.share_of_roofline(timed_->peaks))});
    }
    row.push_back(line.implementation);
    if (line.is_reference() && share(line) > much) {
      row.back() +=
          fmt::format("  <== plain loops: {} % of the {}", percent(share(line)), timed_ ? "step" : "step's bytes");
    }
    rows_.push_back(std::move(row));
    std::string below;
    for (const std::string& of : line.layout_changes) below += "      changes the layout of " + of + "\n";
    if (line.layout_bytes > surprising * line.bytes) {
      below.insert(below.size() - 1, fmt::format("  <== moves {} more bytes", amount(line.layout_bytes)));
    }
    below_.push_back(std::move(below));
  }

  void add_total() {
    std::vector<std::string> row{"total", ""};
    if (!timed_) row.emplace_back();
    row.insert(row.end(), {amount(report_.flops()), amount(report_.bytes())});
    if (timed_) {
      row.insert(row.end(), {with_prefix(round_to_three(report_.seconds()), "s"),
                             percent(report_.seconds() / timed_->step_seconds), ""});
    }
    rows_.push_back(std::move(row));
    below_.emplace_back();
  }

  double share(const KernelLine& line) const {
    return timed_ ? line.seconds / timed_->step_seconds : line.bytes / std::max(1.0, report_.bytes());
  }

  static double round_to_three(double value) {
    if (value <= 0) return 0;
    const double scale = std::pow(10.0, 2 - std::floor(std::log10(value)));
    return std::round(value * scale) / scale;
  }

  const KernelReport& report_;
  const std::optional<KernelReport::Times>& timed_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> below_;  // lines below each row
};

}  // namespace

std::string kernels_text(const KernelReport& report, int width) {
  struct Sum {
    int count = 0;
    double seconds = 0;
  };
  std::map<std::string, Sum> by_implementation;
  int kernels = 0;
  for (const KernelLine& line : report.lines) {
    if (!line.kernel) continue;
    Sum& sum = by_implementation[line.implementation];
    ++sum.count;
    sum.seconds += line.seconds;
    ++kernels;
  }
  std::string out = fmt::format("{} kernel steps:\n", kernels);
  for (const auto& [implementation, sum] : by_implementation) {
    const std::string share =
        report.times ? fmt::format("{:>6} %", percent(sum.seconds / report.times->step_seconds)) : "";
    out += fmt::format("{:>5} x{} {}\n", sum.count, share, implementation);
  }
  const std::string_view worker = report.on_gpus ? "GPU" : "worker";
  out += fmt::format("{}, {}; {}s {} a step\n", counted(report.devices, "logical device"),
                     counted(report.workers, worker), worker,
                     report.barriers == 0   ? "never meet in"
                     : report.barriers == 1 ? "meet once"
                                            : fmt::format("meet {} times", report.barriers));
  if (report.sent_bytes > 0) {
    out += fmt::format("each {} sends {} to the others in a step\n", worker, human_bytes(report.sent_bytes));
  }
  if (report.on_gpus && report.flops() > 0) {
    out += fmt::format("{} % of {} FLOP are on tensor cores\n",
                       percent(report.flops_on_tensor_cores() / report.flops()), amount(report.flops()));
  }
  if (report.times) {
    out += fmt::format("a step takes {}; the roof is {} and {}\n", with_prefix(report.times->step_seconds, "s"),
                       with_prefix(report.times->peaks.gemm_flops_per_second, "FLOP/s"),
                       with_prefix(report.times->peaks.copy_bytes_per_second, "B/s"));
  }
  return out + "\n" + Table(report).text(width);
}

}  // namespace pmaptrain::report
