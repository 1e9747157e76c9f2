#include "core/sweep/store.h"

#include <sqlite3.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "core/base/error.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/sweep/trials.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using sweep::Row;
using sweep::Store;
using test::contains;
namespace fs = std::filesystem;

namespace {

Row row_of(std::int64_t number, const std::string& config) {
  Row row;
  row.number = number;
  row.parameters = "{}";
  row.config = config;
  return row;
}

// While it lives, no file grows beyond this size; writes fail as on a full disk.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = before_;
    small.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace

TEST_CASE("a store gives back what it was given, to the bit", "[sweep]") {
  const test::TemporaryFolder folder;
  Row row = row_of(3, "name: 'ä'\n\"quoted\"\n");
  row.replicate = 1;
  row.status = sweep::Status::failed;
  row.value = 0.1 + 0.2;
  row.steps = 12;
  row.seconds = 1.25;
  row.run_folder = "trials/0003-r1";
  row.error = "it's full";
  row.exit_status = 4;
  row.attempts = 2;
  row.ensemble = 5;
  row.member = 7;
  row.left = true;
  {
    Store store(folder.path(), Store::Access::write);
    store.add({row, row_of(4, "")});
    store.set_text("metric", "loss");
    store.set_data_files({{"/data/a", 3, 1234567890123456789, "abc"}});
    store.decide({{0, 3, 1, 12, 0.5, true}, {0, 4, 0, 12, std::nullopt, false}}, {});
  }
  const Store store(folder.path(), Store::Access::read);
  const std::vector<Row> rows = store.rows();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].config == row.config);
  CHECK(rows[0].status == row.status);
  CHECK(rows[0].value == row.value);
  CHECK(rows[0].seconds == row.seconds);
  CHECK(rows[0].run_folder == row.run_folder);
  CHECK(rows[0].error == row.error);
  CHECK(rows[0].exit_status == row.exit_status);
  CHECK(rows[0].attempts == 2);
  CHECK(rows[0].ensemble == 5);
  CHECK(rows[0].member == 7);
  CHECK(rows[0].left);
  CHECK_FALSE(rows[1].left);
  CHECK_FALSE(rows[1].value);
  CHECK_FALSE(rows[1].exit_status);
  CHECK(store.text("metric") == "loss");
  CHECK(store.text("mode").empty());
  CHECK(store.data_files() == std::vector<sweep::DataFile>{{"/data/a", 3, 1234567890123456789, "abc"}});
  CHECK(store.rungs()[0].advanced);
  CHECK_FALSE(store.rungs()[1].value);
}

TEST_CASE("a store on a full disk says so, and has what it had before", "[sweep]") {
  const test::TemporaryFolder folder;
  Store store(folder.path(), Store::Access::write);
  store.add({row_of(0, "small")});
  const std::vector<Row> many(1, row_of(1, std::string(1 << 20, 'x')));
  {
    const SmallFiles small(fs::file_size(folder / "sweep.sqlite-wal") + 4096);
    const std::string said = error_of([&] { store.add(many); });
    CHECK(contains(said, "error: the sweep's store '" + (folder / "sweep.sqlite") + "' cannot be written: "));
    CHECK(contains(said, "--resume goes on"));
    // As a run whose files the disk does not take.
    try {
      store.add(many);
      FAIL("a row was added");
    } catch (const Error& error) {
      CHECK(error.status() == ExitStatus::failed);
    }
  }
  CHECK(store.rows().size() == 1);
  store.add(many);
  CHECK(store.rows().size() == 2);
}

TEST_CASE("a store that is damaged, of a later version or missing is refused", "[sweep]") {
  const test::TemporaryFolder folder;
  CHECK(contains(error_of([&] { Store(folder.path(), Store::Access::read); }), "cannot be opened: "));
  folder.write("sweep.sqlite", std::string(8192, 'x'));
  for (const Store::Access access : {Store::Access::read, Store::Access::write}) {
    const std::string said = error_of([&] { Store(folder.path(), access).rows(); });
    CHECK(contains(said, "file is not a database"));
    CHECK(contains(said, "--overwrite"));
  }
  fs::remove(folder / "sweep.sqlite");
  { Store(folder.path(), Store::Access::write).add({row_of(0, "")}); }
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open((folder / "sweep.sqlite").c_str(), &database) == SQLITE_OK);
  sqlite3_exec(database, "UPDATE trials SET status = 'lost'", nullptr, nullptr, nullptr);
  CHECK(contains(error_of([&] { Store(folder.path(), Store::Access::read).rows(); }),
                 "is damaged: trial 0 has the status 'lost'"));
  sqlite3_exec(database, "PRAGMA user_version = 99", nullptr, nullptr, nullptr);
  sqlite3_close(database);
  CHECK(contains(error_of([&] { Store(folder.path(), Store::Access::read); }),
                 "was written by a later version of pmaptrain"));
}
