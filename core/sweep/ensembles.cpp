#include "core/sweep/ensembles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/report/plan_report.h"
#include "core/setup/make_setup.h"
#include "core/setup/setup.h"
#include "core/spec/load.h"

namespace pmaptrain::sweep {
namespace {

// More members make the plan's pieces no better, and a kill costs more.
constexpr std::size_t most_members = 256;

std::size_t rounded_up(std::size_t sum, std::size_t parts) { return (sum + parts - 1) / parts; }

bool fits(std::span<const Row* const> rows) {
  try {
    const std::string config = config_of_ensemble(rows, "ensemble");
    report::make_validate_report(setup::make_setup(spec::load_text(config, "ensemble", "/", {})));
    return true;
  } catch (const Error&) {
    return false;  // too large; or the numbers do not go together, and each trial is trained alone
  }
}

}  // namespace

std::int64_t ensemble_size(const Row& row, std::span<const Row> rows) {
  if (row.ensemble < 0) return 1;
  return std::count_if(rows.begin(), rows.end(), [&](const Row& one) { return one.ensemble == row.ensemble; });
}

std::string ensemble_folder(std::int64_t ensemble) { return fmt::format("ensembles/{:04}", ensemble); }

std::string config_of_ensemble(std::span<const Row* const> rows, const std::string& name) {
  std::vector<spec::Loaded> members;
  members.reserve(rows.size());
  for (const Row* const row : rows) members.push_back(spec::load_text(row->config, "trial", "/", {}));
  return spec::ensemble_config(members, name);
}

std::vector<Row> form_ensembles(const SweepPlan& plan, const std::filesystem::path& folder,
                                std::span<const Runner> runners, std::vector<Row>& rows, std::int64_t& next) {
  // The ensembles of processes on one host share its memory.
  std::size_t sharers = 1;
  for (const Runner& runner : runners) sharers = std::max(sharers, static_cast<std::size_t>(runner.sharers));
  const std::vector<std::size_t> programs = programs_of(plan, rows);
  std::map<std::size_t, std::vector<Row*>> by_program;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const bool is_new = row.status == Status::waiting && row.ensemble < 0 && row.steps == 0 && row.rung == 0 &&
                        row.attempts == 0 && !std::filesystem::exists(folder / row.run_folder);
    if (is_new) by_program[programs[i]].push_back(&rows[i]);
  }
  std::vector<Row> changed;
  for (auto& [program, together] : by_program) {
    std::size_t size = std::min(together.size(), most_members);
    while (size > 1 && !fits({together.data(), size})) size = size > 2 ? (size + 1) / 2 : 1;
    size = std::min(rounded_up(size, sharers), rounded_up(together.size(), runners.size()));
    for (std::size_t begin = 0; size > 1 && begin + 1 < together.size(); begin += size, ++next) {
      const std::size_t end = std::min(begin + size, together.size());
      for (std::size_t i = begin; i < end; ++i) {
        together[i]->ensemble = next;
        together[i]->member = static_cast<std::int64_t>(i - begin);
        changed.push_back(*together[i]);
      }
    }
  }
  return changed;
}

void halve_ensemble(std::vector<Row>& rows, std::span<const std::size_t> members, std::int64_t& next) {
  const std::size_t half = (members.size() + 1) / 2;
  for (const auto& part : {members.first(half), members.subspan(half)}) {
    const bool alone = part.size() < 2;
    for (std::size_t i = 0; i < part.size(); ++i) {
      Row& row = rows[part[i]];
      row.ensemble = alone ? -1 : next;
      row.member = static_cast<std::int64_t>(i);
      row.status = Status::waiting;
      row.steps = row.attempts = 0;
    }
    if (!alone) ++next;
  }
}

}  // namespace pmaptrain::sweep
