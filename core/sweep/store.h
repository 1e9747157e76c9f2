// The state of a sweep: a SQLite database in its folder. Every change is a transaction, so a sweep that is killed at
// any moment leaves what it had decided and measured before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pmaptrain::sweep {

enum class Status { waiting, running, done, failed, stopped };
std::string to_string(Status status);

// One run of a trial: one row for each replicate.
struct Row {
  std::int64_t number = 0, replicate = 0;
  std::string parameters;  // JSON: {"optimizer.learning_rate": 0.001}
  std::string config;      // the resolved config
  Status status = Status::waiting;
  std::int64_t rung = 0;        // of successive halving: the one that it waits for, runs or has done
  std::optional<double> value;  // none: not measured, not finite, or stopped by a guard
  std::int64_t steps = 0;
  double seconds = 0;      // of training
  std::string run_folder;  // relative to the sweep's
  std::string error;       // why it failed, or what the guard said
  std::optional<int> exit_status;
  std::int64_t attempts = 0;  // how often it failed in this rung
  // The ensemble in which the run is trained with others, and its member number there; -1: it is trained alone.
  std::int64_t ensemble = -1, member = 0;
  bool left = false;  // whether it has left the ensemble, with a run folder of its own
};

// The value of a run when its rung was decided.
struct RungRow {
  std::int64_t rung = 0, number = 0, replicate = 0, steps = 0;
  std::optional<double> value;
  bool advanced = false;
};

// A file of the sweep's data.
struct DataFile {
  std::string path;
  std::int64_t bytes = 0, changed = 0;  // `changed`: nanoseconds since 1970
  std::string hash;
  friend bool operator==(const DataFile&, const DataFile&) = default;
};

class Store {
 public:
  enum class Access { read, write };
  // Opens sweep.sqlite in `folder`; to write, creates it where it is missing. Throws Error: data, if it is damaged or
  // was written by a later version; resource, if it cannot be opened.
  Store(const std::filesystem::path& folder, Access access);
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  // All rows, by number and replicate. Throws Error (data).
  std::vector<Row> rows() const;
  std::vector<RungRow> rungs() const;
  std::vector<DataFile> data_files() const;
  // A text of the sweep as a whole, such as "search"; empty if there is none.
  std::string text(const std::string& name) const;

  // Changes are on the disk when these return. They throw Error (failed where the disk is full or broken, else
  // resource), and then nothing is changed.
  void add(const std::vector<Row>& rows);
  void update(const Row& row);
  void decide(const std::vector<RungRow>& rung, const std::vector<Row>& changed);
  void set_data_files(const std::vector<DataFile>& files);
  void set_text(const std::string& name, const std::string& text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pmaptrain::sweep
