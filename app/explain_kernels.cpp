#include "app/explain_kernels.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <sstream>

#include "app/validate_report.h"
#include "core/base/text.h"

namespace pmaptrain::app {
namespace {

// A reference kernel of more than this share of a step stands out; of the step's bytes, where nothing was measured.
constexpr double much = 0.03;
// Changes of layout that move more than this share of what the op itself does stand out.
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

std::string name_of(const Step& step) {
  std::string op = step.equation == nullptr ? "" : std::string(step.equation->op.name());
  switch (step.kind) {
    case Step::Kind::copy: return "copy";
    case Step::Kind::kernel:
    case Step::Kind::accumulate:
    case Step::Kind::combine:
    case Step::Kind::exchange: return op;
    case Step::Kind::loop: return "loop";
  }
  return op;
}

std::string implementation_of(const train::KernelLine& line) {
  switch (line.step->kind) {
    case Step::Kind::kernel: return line.kernel.implementation.empty() ? "nothing to do" : line.kernel.implementation;
    case Step::Kind::copy: return "copy";
    case Step::Kind::accumulate: return "the block's devices in order";
    case Step::Kind::combine: return "blocks in order";
    case Step::Kind::exchange: return "the group's devices in order";
    case Step::Kind::loop:
      return fmt::format("{} times, slices of {}", line.step->iterations,
                         counted(static_cast<std::int64_t>(line.step->slices.size()), "value"));
  }
  return {};
}

class Table {
 public:
  Table(const train::KernelReport& report, const Plan& plan, int workers)
      : report_(report), plan_(plan), timed_(report.times) {
    const auto blocks = static_cast<std::int64_t>(plan.blocks.size());
    at_once_ = plan.pools.blocks_at_once(workers, blocks);
    std::vector<std::string> head{"op", "from"};
    if (!timed_) head.emplace_back("result");
    head.insert(head.end(), {"FLOP", "bytes"});
    if (timed_) head.insert(head.end(), {"time", "% step", "% roof"});
    head.emplace_back("implementation");
    rows_.push_back(head);
    below_.emplace_back();
    for (const train::KernelLine& line : report.lines) add(line);
    add_total();
  }

  std::string text() const {
    std::vector<bool> right{false, false};
    if (!timed_) right.push_back(false);
    right.resize(right.size() + (timed_ ? 5 : 2), true);
    std::istringstream lines(columns(rows_, right));
    std::string out;
    std::size_t row = 0;
    const train::KernelLine* before = nullptr;
    for (std::string line; std::getline(lines, line); ++row) {
      const bool is_step = row > 0 && row <= report_.lines.size();
      if (is_step) {
        const train::KernelLine& here = report_.lines[row - 1];
        if (before == nullptr || before->stage != here.stage || before->invariant != here.invariant) {
          out += heading(here);
        }
        before = &here;
      }
      out += line + "\n" + below_[row];
    }
    return out;
  }

 private:
  std::string heading(const train::KernelLine& line) const {
    const std::string stage =
        plan_.stages.size() > 1 ? fmt::format("stage {} of {}, ", line.stage + 1, plan_.stages.size()) : std::string();
    if (line.invariant) return stage + "once (every worker what is small, what is larger in ranges):\n";
    if (plan_.blocks.size() == 1) return stage + "the block of all devices:\n";
    return stage + fmt::format("each of {} blocks of up to {}{}:\n", plan_.blocks.size(),
                               counted(plan_.blocks.front().count, "device"),
                               at_once_ > 1 ? fmt::format(", up to {} at once", at_once_) : "");
  }

  void add(const train::KernelLine& line) {
    const Step& step = *line.step;
    const std::string indent(static_cast<std::size_t>(2 * line.depth), ' ');
    std::vector<std::string> row{indent + name_of(step), step.equation == nullptr ? "" : step.equation->origin->scope};
    if (!timed_) row.push_back(result_of(step));
    row.insert(row.end(), {amount(line.flops), amount(line.bytes)});
    if (timed_) {
      row.insert(row.end(), {with_prefix(round_to_three(line.seconds), "s"), percent(share(line)),
                             percent(line.share_of_roofline(timed_->peaks))});
    }
    row.push_back(implementation_of(line));
    if (line.is_reference() && share(line) > much) {
      row.back() +=
          fmt::format("  <== plain loops: {} % of the {}", percent(share(line)), timed_ ? "step" : "step's bytes");
    }
    rows_.push_back(std::move(row));
    std::string below;
    for (const LayoutChange& change : line.kernel.layout_changes) {
      below += "      changes the layout of " + change.of + "\n";
    }
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

  double share(const train::KernelLine& line) const {
    return timed_ ? line.seconds / timed_->step_seconds : line.bytes / std::max(1.0, report_.bytes());
  }

  static double round_to_three(double value) {
    if (value <= 0) return 0;
    const double scale = std::pow(10.0, 2 - std::floor(std::log10(value)));
    return std::round(value * scale) / scale;
  }

  static std::string result_of(const Step& step) {
    if (step.result_types.empty()) return "";
    const Type& type = step.result_types.front();
    return std::string(to_string(type.dtype)) + to_string(type.shape) + (step.result_types.size() > 1 ? ", ..." : "");
  }

  const train::KernelReport& report_;
  const Plan& plan_;
  const std::optional<train::KernelReport::Times>& timed_;
  std::int64_t at_once_ = 1;  // blocks
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> below_;  // lines below each row
};

}  // namespace

std::string kernels_text(const train::KernelReport& report, const Plan& plan, int workers) {
  struct Sum {
    int count = 0;
    double seconds = 0;
  };
  std::map<std::string, Sum> by_implementation;
  int kernels = 0;
  for (const train::KernelLine& line : report.lines) {
    if (line.kernel.implementation.empty()) continue;
    Sum& sum = by_implementation[line.kernel.implementation];
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
  const std::int64_t meetings = plan.barriers_per_step();
  out += fmt::format("{}, {}; workers meet {} a step\n", counted(plan.program->mesh.devices(), "logical device"),
                     counted(workers, "worker"), meetings == 1 ? "once" : fmt::format("{} times", meetings));
  if (report.times) {
    out += fmt::format("a step takes {}; the roof is {} and {}\n", with_prefix(report.times->step_seconds, "s"),
                       with_prefix(report.times->peaks.gemm_flops_per_second, "FLOP/s"),
                       with_prefix(report.times->peaks.copy_bytes_per_second, "B/s"));
  }
  return out + "\n" + Table(report, plan, workers).text();
}

}  // namespace pmaptrain::app
