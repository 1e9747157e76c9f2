// What a sweep, its store and its runs change is recorded. A kill of all their processes leaves a prefix of the
// changes. Whichever it is, the sweep goes on to the same values, decisions and parameters.
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "core/run/files/file_system.h"
#include "core/sweep/run.h"
#include "tests/catch.h"
#include "tests/run/disk.h"
#include "tests/slice.h"
#include "tests/sweep/trials.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
namespace fs = std::filesystem;

namespace {

int open_file(const char* path, int flags, int /*mode*/) {
  return run::file_system().open_at(AT_FDCWD, path, flags | O_CLOEXEC);
}
ssize_t write_file(int fd, const void* bytes, std::size_t count) {
  return run::file_system().write(fd, {static_cast<const std::byte*>(bytes), count});
}
ssize_t write_file_at(int fd, const void* bytes, std::size_t count, off_t at) {
  if (::lseek(fd, at, SEEK_SET) != at) return -1;
  return write_file(fd, bytes, count);
}
int truncate_file(int fd, off_t size) { return run::file_system().ftruncate(fd, size); }
int remove_file(const char* path) { return run::file_system().unlink_at(AT_FDCWD, path); }

// SQLite changes files through run::file_system() as long as this lives. What it writes into shared memory (the index
// of its log) is not recorded: after a kill it makes that anew from the log.
class StoreOnFileSystem {
 public:
  StoreOnFileSystem() {
    set("open", open_file);
    set("write", write_file);
    set("pwrite", write_file_at);
    set("pwrite64", write_file_at);
    set("ftruncate", truncate_file);
    set("unlink", remove_file);
  }
  ~StoreOnFileSystem() { vfs_->xSetSystemCall(vfs_, nullptr, nullptr); }
  StoreOnFileSystem(const StoreOnFileSystem&) = delete;
  StoreOnFileSystem& operator=(const StoreOnFileSystem&) = delete;

 private:
  // Builds of SQLite use either "write" or one of the others.
  template <class Function>
  void set(const char* name, Function* function) {
    if (vfs_->xGetSystemCall(vfs_, name) == nullptr) return;
    vfs_->xSetSystemCall(vfs_, name, reinterpret_cast<sqlite3_syscall_ptr>(function));
  }

  sqlite3_vfs* vfs_ = sqlite3_vfs_find("unix");
};

}  // namespace

TEST_CASE("a sweep that is killed between any two changes of it, its store and its runs goes on to the same values",
          "[sweep]") {
  const bool vectorize = GENERATE(false, true);
  const SweepFolder folder;
  const spec::Sweep sweep = folder.sweep(halved, vectorize);
  fs::create_directory(folder.path("recorded"));
  RecordingFileSystem recorder(folder.path("recorded"));
  std::string expected;
  {
    const run::InstalledFileSystem installed(recorder);
    const StoreOnFileSystem store;
    CalledTrials trials;
    expected = results_of(folder.path("recorded/sweep"), folder.run(sweep, "recorded/sweep", trials));
  }
  std::vector<Change> changes;
  for (std::size_t i = recorder.first(); i < recorder.changes().size(); ++i) add_torn(changes, recorder.changes()[i]);

  Disk disk;
  for (std::size_t i = 0; i < recorder.first(); ++i) disk.apply(recorder.changes()[i]);
  constexpr std::uint64_t slices_of_store = 60 * test::slices_with_sanitizer(4);
  constexpr std::uint64_t slices_elsewhere = 150 * test::slices_with_sanitizer(4);
  test::Slice at_store(slices_of_store), elsewhere(slices_elsewhere);
  std::mt19937 random(13);
  std::size_t of_store = 0, kills = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    disk.apply(changes[i]);
    const bool changes_store = disk.path_of(changes[i]).starts_with("sweep/sweep.sqlite");
    of_store += changes_store ? 1U : 0U;
    if (!(changes_store ? at_store : elsewhere).takes()) continue;
    ++kills;
    INFO("killed after change " << i + 1 << " of " << changes.size() << ": " << to_string(changes[i]));
    write_tree(disk.tree(), folder.path("killed"));
    CalledTrials trials;
    trials.choose = [&random](std::size_t started) { return random() % started; };
    const std::vector<sweep::Row> rows = folder.run(sweep, "killed/sweep", trials, true);
    REQUIRE(results_of(folder.path("killed/sweep"), rows) == expected);
  }
  CHECK(of_store > 400);
  CHECK(kills >= of_store / slices_of_store + (changes.size() - of_store) / slices_elsewhere);
}
