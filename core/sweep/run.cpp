#include "core/sweep/run.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/sweep/data_files.h"
#include "core/sweep/ensembles.h"
#include "core/sweep/reconcile.h"
#include "core/sweep/scheduler.h"

namespace pmaptrain::sweep {
namespace {

namespace fs = std::filesystem;

// Tells the warnings of configs, and which trials have lost their run folders.
void tell_notes(const SweepOptions& options, const SweepPlan& plan, const SweepFolder& folder,
                const std::vector<Row>& rows) {
  if (!options.told) return;
  std::vector<std::string> notes;
  for (const std::string& note : plan.notes) notes.push_back("note: " + note);
  for (const std::string& warning : plan.warnings) notes.push_back("warning: " + warning);
  std::vector<std::string> gone;
  for (const Row& row : rows) {
    const bool has_run = row.status == Status::done && (row.ensemble < 0 || row.left);
    if (has_run && !fs::exists(folder.path() / row.run_folder)) gone.push_back(trial_name(row.number, row.replicate));
  }
  if (!gone.empty())
    notes.push_back("the run folders of these trials are gone; their values stay: " + join(gone, ", "));
  for (std::string& note : notes) {
    Progress progress;
    progress.note = std::move(note);
    options.told(progress);
  }
}

// A sweep that was killed with its launcher holds its lock for another moment, until its processes have ended.
void await_end(const SweepOptions& options) {
  const Clock::time_point began = Clock::now();
  bool told = false;
  while (SweepFolder::is_taken(options.folder) && seconds_since(began) < options.most_seconds_taken) {
    if (options.stop != nullptr && *options.stop != 0) return;
    if (options.told && !std::exchange(told, true)) {
      Progress progress;
      progress.note = fmt::format("a sweep runs in '{}'; waiting {:.0f} s for its end", options.folder.string(),
                                  options.most_seconds_taken);
      options.told(progress);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

Numbers numbers_in(const Store& store) {
  Numbers numbers;
  for (const Row& row : store.rows()) {
    if (row.replicate == 0) numbers.emplace(in_any_order(row.parameters), row.number);
  }
  return numbers;
}

// Their names, a line each: what shows the sweep draws them on logarithmic axes.
std::string logarithmic_parameters(const spec::SweepSpec& sweep) {
  std::vector<std::string> names;
  for (const spec::SweepParameter& parameter : sweep.parameters) {
    const bool is_log = parameter.space == spec::Space::log_uniform || parameter.space == spec::Space::log_integer;
    if (is_log) names.push_back(parameter.name);
  }
  return join(names, "\n");
}

bool has_store(const SweepOptions& options) {
  std::error_code error;
  return options.how.resume && fs::exists(options.folder / "sweep.sqlite", error);
}

// With what an earlier process has stored, if there is a store.
Beginning begin_with(const spec::Sweep& sweep, const Store* store, int cores) {
  Beginning found;
  found.continues = store != nullptr && !store->rows().empty();
  const bool is_earlier = found.continues && store->text("draws").empty();
  found.plan = plan_sweep(sweep, cores, found.continues ? numbers_in(*store) : Numbers(),
                          is_earlier ? Draws::with_replacement : Draws::distinct);
  found.data = data_files_of(found.plan.data_paths, found.continues ? store->data_files() : std::vector<DataFile>());
  found.rows = found.continues ? reconcile(sweep, found.plan, *store, found.data) : found.plan.rows;
  return found;
}

}  // namespace

Beginning check_sweep(const spec::Sweep& sweep, const SweepOptions& options, int cores) {
  SweepFolder::check(options.folder, options.how);
  std::optional<Store> store;
  if (has_store(options)) store.emplace(options.folder, Store::Access::read);
  return begin_with(sweep, store ? &*store : nullptr, cores);
}

std::vector<Row> run_sweep(const spec::Sweep& sweep, const SweepOptions& options, Runners& runners) {
  if (options.how.resume) await_end(options);
  SweepFolder::check(options.folder, options.how);
  std::optional<SweepFolder> folder;
  std::optional<Store> store;
  if (has_store(options)) {
    folder = SweepFolder::claim(options.folder, options.how);
    store.emplace(folder->path(), Store::Access::write);
  }
  Beginning begun = begin_with(sweep, store ? &*store : nullptr, runners.all().front().cores);
  const SweepPlan& plan = begun.plan;
  std::vector<Row>& rows = begun.rows;
  if (begun.continues) {
    runners.prepare(folder->path(), plan.data_paths, plan.timeout);
    folder->write("sweep.yaml", sweep.resolved());
    record_space(sweep, *store);
    store->decide({}, rows);
  } else {
    if (!folder) folder = SweepFolder::claim(options.folder, options.how);
    runners.prepare(folder->path(), plan.data_paths, plan.timeout);
    folder->write("sweep.yaml", sweep.resolved());
    if (!store) store.emplace(folder->path(), Store::Access::write);
    for (const auto& [name, text] : identity_of(sweep, plan)) store->set_text(name, text);
    record_space(sweep, *store);
    store->set_text("draws", "distinct");
    store->set_data_files(begun.data);
    store->add(rows);  // last: a store without rows begins anew
  }
  store->set_text("logarithmic", logarithmic_parameters(sweep.spec()));
  if (sweep.spec().vectorize) {
    std::int64_t next = std::strtoll(store->text("next_ensemble").c_str(), nullptr, 10);
    const std::vector<Row> changed = form_ensembles(plan, folder->path(), runners.all(), rows, next);
    store->set_text("next_ensemble", std::to_string(next));
    if (!changed.empty()) store->decide({}, changed);
  }
  tell_notes(options, plan, *folder, rows);
  return Scheduler(sweep, options, runners, *folder, *store, plan, std::move(rows)).run();
}

}  // namespace pmaptrain::sweep
