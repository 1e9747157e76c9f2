#include "core/sweep/store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace pmaptrain::sweep {
namespace {

constexpr std::array<std::string_view, 5> status_names = {"waiting", "running", "done", "failed", "stopped"};
constexpr int store_version = 1;

constexpr const char* schema = R"(
  CREATE TABLE IF NOT EXISTS sweep (name TEXT PRIMARY KEY, text TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS trials (
    number INTEGER NOT NULL, replicate INTEGER NOT NULL, parameters TEXT NOT NULL, config TEXT NOT NULL,
    status TEXT NOT NULL, rung INTEGER NOT NULL, value REAL, steps INTEGER NOT NULL, seconds REAL NOT NULL,
    run_folder TEXT NOT NULL, error TEXT NOT NULL, exit_status INTEGER, attempts INTEGER NOT NULL,
    ensemble INTEGER NOT NULL, member INTEGER NOT NULL, left_ensemble INTEGER NOT NULL,
    PRIMARY KEY (number, replicate));
  CREATE TABLE IF NOT EXISTS rungs (
    rung INTEGER NOT NULL, number INTEGER NOT NULL, replicate INTEGER NOT NULL, steps INTEGER NOT NULL, value REAL,
    advanced INTEGER NOT NULL, PRIMARY KEY (rung, number, replicate));
  CREATE TABLE IF NOT EXISTS data (
    path TEXT PRIMARY KEY, bytes INTEGER NOT NULL, changed INTEGER NOT NULL, hash TEXT NOT NULL);
)";

constexpr const char* permissions_help = "check the permissions of the folder and of the files in it";

// The name of a file that does not change, for SQLite.
std::string uri_of(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    const bool plain = c != '%' && c != '?' && c != '#';
    uri += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return uri + "?immutable=1";
}

// One prepared statement; parameters and columns are taken in order.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql) {
    valid_ = sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr) == SQLITE_OK;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::int64_t value) {
    sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  Statement& bind(double value) {
    sqlite3_bind_double(statement_, ++bound_, value);
    return *this;
  }
  Statement& bind(const std::string& value) {
    sqlite3_bind_text64(statement_, ++bound_, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    return *this;
  }
  template <class T>
  Statement& bind(const std::optional<T>& value) {
    if (value) return bind(*value);
    sqlite3_bind_null(statement_, ++bound_);
    return *this;
  }
  Statement& bind(const std::optional<int>& value) {
    return bind(value ? std::optional<std::int64_t>(*value) : std::nullopt);
  }

  bool valid() const { return valid_; }
  int step() {
    column_ = 0;
    return sqlite3_step(statement_);
  }
  std::int64_t integer() { return sqlite3_column_int64(statement_, column_++); }
  double real() { return sqlite3_column_double(statement_, column_++); }
  bool is_null() const { return sqlite3_column_type(statement_, column_) == SQLITE_NULL; }
  std::optional<double> optional_real() {
    const bool null = is_null();
    const double value = real();
    return null ? std::nullopt : std::optional(value);
  }
  std::optional<int> optional_integer() {
    const bool null = is_null();
    const std::int64_t value = integer();
    return null ? std::nullopt : std::optional(static_cast<int>(value));
  }
  std::string text() {
    const auto* const bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column_));
    const int count = sqlite3_column_bytes(statement_, column_++);
    return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(count));
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  bool valid_ = false;
  int bound_ = 0, column_ = 0;
};

}  // namespace

std::string to_string(Status status) { return std::string(status_names.at(static_cast<std::size_t>(status))); }

struct Store::Impl {
  std::string path;
  sqlite3* database = nullptr;
  ~Impl() { sqlite3_close(database); }

  [[noreturn]] void fail(std::string_view doing) const {
    const int code = sqlite3_errcode(database);
    const std::string why = sqlite3_errmsg(database);
    const std::string message = fmt::format("the sweep's store '{}' cannot be {}: {}", path, doing, why);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
      fail_data(message,
                "restore it from a copy, or begin the sweep anew with --overwrite; the folders of trials are whole");
    }
    const bool is_refused = code == SQLITE_READONLY || code == SQLITE_CANTOPEN || code == SQLITE_PERM;
    // As of a run's files: what the disk does not take ends what was going on.
    if (code == SQLITE_FULL || code == SQLITE_IOERR) {
      const char* const help = code == SQLITE_FULL ? "free space on the disk; --resume goes on" : "--resume goes on";
      throw Error(ExitStatus::failed, Diagnostic{"resource", {}, message, help, {}});
    }
    fail_resource(message, is_refused ? permissions_help : "--resume goes on");
  }

  void open(const std::string& file, int flags) {
    sqlite3_close(std::exchange(database, nullptr));
    if (sqlite3_open_v2(file.c_str(), &database, flags | SQLITE_OPEN_NOMUTEX, nullptr) != SQLITE_OK) fail("opened");
    sqlite3_extended_result_codes(database, 0);
    sqlite3_busy_timeout(database, 5000);
  }

  void open_to_write() {
    open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    // SQLite opens a file that may only be read without saying so.
    if (sqlite3_db_readonly(database, "main") == 1) {
      fail_resource(fmt::format("the sweep's store '{}' may not be written", path), permissions_help);
    }
    // Network file systems have no shared memory; there the journal is a rollback journal.
    Statement journal(database, "PRAGMA journal_mode = WAL");
    if (!journal.valid() || journal.step() != SQLITE_ROW) fail("opened");
    execute("PRAGMA synchronous = FULL", "opened");
  }

  void open_to_read() {
    open(path, SQLITE_OPEN_READONLY);
    const int found = sqlite3_exec(database, "PRAGMA user_version", nullptr, nullptr, nullptr);
    if (found != SQLITE_CANTOPEN && found != SQLITE_READONLY) return;
    // Where the folder may not be written and no sweep runs, a reader has no shared memory and can make none. The file
    // is whole without it, unless a sweep was killed and has left changes beside it.
    std::error_code error;
    const std::string changes = path + "-wal";
    if (const auto bytes = std::filesystem::file_size(changes, error); !error && bytes > 0) {
      fail_resource(fmt::format("the sweep's store '{}' cannot be read: the changes in '{}' cannot be applied in a "
                                "folder that may not be written",
                                path, changes),
                    "copy the sweep's folder to where you may write, and name the copy");
    }
    open(uri_of(path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  }

  void execute(const char* sql, std::string_view doing) const {
    if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(doing);
  }

  // Calls `add_row` for each row of a query.
  template <class F>
  void query(const char* sql, const F& add_row) const {
    Statement statement(database, sql);
    if (!statement.valid()) fail("read");
    int found = statement.step();
    for (; found == SQLITE_ROW; found = statement.step()) add_row(statement);
    if (found != SQLITE_DONE) fail("read");
  }

  // Runs `change` in a transaction, which is rolled back where it throws.
  template <class F>
  void transact(const F& change) const {
    execute("BEGIN IMMEDIATE", "written");
    try {
      change();
      execute("COMMIT", "written");
    } catch (...) {
      sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr);
      throw;
    }
  }

  void write(Statement& statement) const {
    if (!statement.valid() || statement.step() != SQLITE_DONE) fail("written");
  }

  void write_row(std::string_view how, const Row& row) const {
    const std::string sql = fmt::format(
        "{} INTO trials (number, replicate, parameters, config, status, rung, value, steps, seconds, run_folder, "
        "error, "
        "exit_status, attempts, ensemble, member, left_ensemble) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        how);
    Statement statement(database, sql.c_str());
    statement.bind(row.number).bind(row.replicate).bind(row.parameters).bind(row.config).bind(to_string(row.status));
    statement.bind(row.rung).bind(row.value).bind(row.steps).bind(row.seconds).bind(row.run_folder).bind(row.error);
    statement.bind(row.exit_status).bind(row.attempts).bind(row.ensemble).bind(row.member);
    statement.bind(std::int64_t{row.left});
    write(statement);
  }
};

Store::Store(const std::filesystem::path& folder, Access access) : impl_(std::make_unique<Impl>()) {
  impl_->path = (folder / "sweep.sqlite").string();
  access == Access::write ? impl_->open_to_write() : impl_->open_to_read();
  std::int64_t found = 0;
  impl_->query("PRAGMA user_version", [&](Statement& row) { found = row.integer(); });
  if (found > store_version) {
    fail_data(fmt::format("the sweep's store '{}' was written by a later version of pmaptrain", impl_->path),
              "use that version");
  }
  if (access == Access::read && found == 0) {
    fail_data(fmt::format("'{}' is no store of a sweep", impl_->path), "pmaptrain sweep run writes one");
  }
  if (access == Access::write && found == 0) {
    impl_->transact(

        [&] {
          impl_->execute(schema, "written");
          impl_->execute("PRAGMA user_version = 1", "written");
        });
  }
}

Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

std::vector<Row> Store::rows() const {
  std::vector<Row> rows;
  impl_->query(

      "SELECT number, replicate, parameters, config, status, rung, value, steps, seconds, run_folder, error, "
      "exit_status, attempts, ensemble, member, left_ensemble FROM trials ORDER BY number, replicate",
      [&](Statement& from) {
        Row row;
        row.number = from.integer();
        row.replicate = from.integer();
        row.parameters = from.text();
        row.config = from.text();
        const std::string status = from.text();
        std::size_t index = 0;
        while (index < status_names.size() && status_names.at(index) != status) ++index;
        if (index == status_names.size()) {
          fail_data(fmt::format("the sweep's store '{}' is damaged: trial {} has the status '{}'", impl_->path,
                                row.number, status));
        }
        row.status = static_cast<Status>(index);
        row.rung = from.integer();
        row.value = from.optional_real();
        row.steps = from.integer();
        row.seconds = from.real();
        row.run_folder = from.text();
        row.error = from.text();
        row.exit_status = from.optional_integer();
        row.attempts = from.integer();
        row.ensemble = from.integer();
        row.member = from.integer();
        row.left = from.integer() != 0;
        rows.push_back(std::move(row));
      });
  return rows;
}

std::vector<RungRow> Store::rungs() const {
  std::vector<RungRow> rungs;
  impl_->query(

      "SELECT rung, number, replicate, steps, value, advanced FROM rungs ORDER BY rung, number, replicate",
      [&](Statement& from) {
        RungRow row;
        row.rung = from.integer();
        row.number = from.integer();
        row.replicate = from.integer();
        row.steps = from.integer();
        row.value = from.optional_real();
        row.advanced = from.integer() != 0;
        rungs.push_back(row);
      });
  return rungs;
}

std::vector<DataFile> Store::data_files() const {
  std::vector<DataFile> files;
  impl_->query("SELECT path, bytes, changed, hash FROM data ORDER BY path", [&](Statement& from) {
    DataFile file;
    file.path = from.text();
    file.bytes = from.integer();
    file.changed = from.integer();
    file.hash = from.text();
    files.push_back(std::move(file));
  });
  return files;
}

std::string Store::text(const std::string& name) const {
  Statement statement(impl_->database, "SELECT text FROM sweep WHERE name = ?");
  if (!statement.valid()) impl_->fail("read");
  statement.bind(name);
  const int found = statement.step();
  if (found != SQLITE_ROW && found != SQLITE_DONE) impl_->fail("read");
  return found == SQLITE_ROW ? statement.text() : std::string();
}

void Store::add(const std::vector<Row>& rows) {
  impl_->transact(

      [&] {
        for (const Row& row : rows) impl_->write_row("INSERT", row);
      });
}

void Store::update(const Row& row) { decide({}, {row}); }

void Store::decide(const std::vector<RungRow>& rung, const std::vector<Row>& changed) {
  impl_->transact(

      [&] {
        for (const RungRow& row : rung) {
          Statement statement(impl_->database, "INSERT OR REPLACE INTO rungs VALUES (?,?,?,?,?,?)");
          statement.bind(row.rung).bind(row.number).bind(row.replicate).bind(row.steps).bind(row.value);
          statement.bind(std::int64_t{row.advanced});
          impl_->write(statement);
        }
        for (const Row& row : changed) impl_->write_row("INSERT OR REPLACE", row);
      });
}

void Store::set_data_files(const std::vector<DataFile>& files) {
  impl_->transact(

      [&] {
        impl_->execute("DELETE FROM data", "written");
        for (const DataFile& file : files) {
          Statement statement(impl_->database, "INSERT INTO data VALUES (?,?,?,?)");
          statement.bind(file.path).bind(file.bytes).bind(file.changed).bind(file.hash);
          impl_->write(statement);
        }
      });
}

void Store::set_text(const std::string& name, const std::string& text) {
  Statement statement(impl_->database, "INSERT OR REPLACE INTO sweep VALUES (?,?)");
  statement.bind(name).bind(text);
  impl_->write(statement);
}

}  // namespace pmaptrain::sweep
