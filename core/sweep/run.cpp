#include "core/sweep/run.h"

#include <utility>

#include "core/sweep/data_files.h"
#include "core/sweep/ensembles.h"
#include "core/sweep/reconcile.h"
#include "core/sweep/scheduler.h"

namespace pmaptrain::sweep {
namespace {

namespace fs = std::filesystem;

Numbers numbers_in(const Store& store) {
  Numbers numbers;
  for (const Row& row : store.rows()) {
    if (row.replicate == 0) numbers.emplace(row.parameters, row.number);
  }
  return numbers;
}

}  // namespace

std::vector<Row> run_sweep(const spec::Sweep& sweep, const SweepOptions& options, Launcher& launcher) {
  SweepFolder::check(options.folder, options.how);
  std::optional<SweepFolder> folder;
  std::optional<Store> store;
  std::error_code error;
  if (options.how.resume && fs::exists(options.folder / "sweep.sqlite", error)) {
    folder = SweepFolder::claim(options.folder, options.how);
    store.emplace(folder->path(), Store::Access::write);
  }
  const bool continues = store && !store->rows().empty();
  const SweepPlan plan = plan_sweep(sweep, options.cores, continues ? numbers_in(*store) : Numbers());
  const std::vector<DataFile> data =
      data_files_of(plan.data_paths, continues ? store->data_files() : std::vector<DataFile>());
  std::vector<Row> rows = plan.rows;
  if (continues) {
    rows = reconcile(sweep, plan, *store, data);
    store->decide({}, rows);
  } else {
    if (!folder) folder = SweepFolder::claim(options.folder, options.how);
    folder->write("sweep.yaml", sweep.resolved());
    if (!store) store.emplace(folder->path(), Store::Access::write);
    for (const auto& [name, text] : identity_of(sweep, plan)) store->set_text(name, text);
    store->set_data_files(data);
    store->add(rows);  // last: a store without rows begins anew
  }
  if (sweep.spec().vectorize) {
    const std::vector<Row> changed = form_ensembles(sweep, plan, rows);
    if (!changed.empty()) store->decide({}, changed);
  }
  return Scheduler(sweep, options, launcher, *folder, *store, plan, std::move(rows)).run();
}

}  // namespace pmaptrain::sweep
