#include "core/report/parallelism.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/text.h"
#include "core/base/wrap.h"

namespace pmaptrain::report {

double speed_up(std::span<const StageReport> stages, double workers) {
  double total = 0, time = 0;
  for (const StageReport& stage : stages) {
    total += stage.total;
    time += stage.serial + std::max(stage.largest_task, (stage.total - stage.serial) / workers);
  }
  return time > 0 ? total / time : 1;
}

std::string parallelism_text(std::span<const StageReport> stages, int width) {
  std::vector<std::vector<std::string>> rows{{"stage", "total", "serial", "tasks", "largest task"}};
  StageReport sum;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageReport& stage = stages[i];
    rows.push_back({std::to_string(i + 1), with_prefix(stage.total, ""), with_prefix(stage.serial, ""),
                    std::to_string(stage.tasks), with_prefix(stage.largest_task, "")});
    sum.total += stage.total;
    sum.serial += stage.serial;
    sum.tasks += stage.tasks;
  }
  rows.push_back({"all", with_prefix(sum.total, ""), with_prefix(sum.serial, ""), std::to_string(sum.tasks), ""});
  std::string text = "work in floating operations plus bytes, by the cost model:\n" +
                     in_columns(rows, {false, true, true, true, true}, width) + "\n\n";
  rows = {{"workers", "speed-up"}};
  for (const int workers : {1, 2, 4, 8, 16, 32, 64}) {
    rows.push_back({std::to_string(workers), fmt::format("{:.1f}", speed_up(stages, workers))});
  }
  return text + in_columns(rows, {true, true}) +
         "\n\nspeed-up = total / sum over stages of (serial + max(largest, (total - serial) / workers))\n";
}

}  // namespace pmaptrain::report
