#include "core/run/records/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/run/files/file_system.h"

namespace pmaptrain::train {
namespace {

constexpr std::string_view file_prefix = "events.out.tfevents.", file_suffix = ".pmaptrain", member_prefix = "member-";
constexpr RecordKind event_records{"record", record_bytes};
constexpr std::int64_t most_open = 16;

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Parses a number of digits only.
std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = wrong == std::errc() && end == text.data() + text.size() && value >= 0;
  return whole ? std::optional(value) : std::nullopt;
}

constexpr off_t most_bytes = off_t{1} << 30;  // limit for files that are cut: millions of lines
constexpr std::size_t second_digits = 10;     // as next_file() writes them

// The second in the name of an event file of ours; none for another name.
std::optional<std::int64_t> second_of(std::string_view name) {
  if (!name.starts_with(file_prefix) || !name.ends_with(file_suffix)) return std::nullopt;
  if (name.size() < file_prefix.size() + file_suffix.size()) return std::nullopt;
  name.remove_prefix(file_prefix.size());
  name.remove_suffix(file_suffix.size());
  return name.size() == second_digits ? number_in(name) : std::nullopt;
}

MemberNumber member_in(std::string_view folder) {
  if (!folder.starts_with(member_prefix)) return std::nullopt;
  return number_in(folder.substr(member_prefix.size()));
}

std::string member_folder(std::int64_t member) { return fmt::format("{}{}", member_prefix, member); }

// TensorBoard reads the files of a folder in the order of their names, and never returns to an earlier one.
std::string next_file(const Directory& folder) {
  std::int64_t second = std::max<std::int64_t>(0, static_cast<std::int64_t>(wall_time()));
  for (const std::string& name : folder.names()) {
    if (const auto other = second_of(name)) second = std::max(second, *other + 1);
  }
  return fmt::format("{}{:010}{}", file_prefix, second, file_suffix);
}

std::vector<Scalar> scalars_of(const std::string& prefix, const Measures& measures) {
  std::vector<Scalar> scalars;
  scalars.reserve(measures.size());
  for (const auto& [name, value] : measures) scalars.emplace_back(prefix + name, value);
  return scalars;
}

// Why an event file could not be read or cut.
struct Failure {
  int error = 0;
};

std::string read_all(int fd, off_t size) {
  std::string bytes(static_cast<std::size_t>(size), '\0');
  std::size_t count = 0;
  while (count < bytes.size()) {
    const ssize_t got = ::pread(fd, bytes.data() + count, bytes.size() - count, static_cast<off_t>(count));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Failure{errno};
    if (got == 0) break;  // the file was cut meanwhile
    count += static_cast<std::size_t>(got);
  }
  bytes.resize(count);
  return bytes;
}

// Removes the records after a step from event files.
class Cutter {
 public:
  Cutter(std::int64_t step, std::vector<std::string>& warnings) : warnings_(warnings) { kept_.step = step; }
  void cut_files(const Directory& folder, MemberNumber member);
  TensorBoard::Resumed kept() { return std::move(kept_); }

 private:
  void cut_file(const Directory& folder, const std::string& name, MemberNumber member);

  TensorBoard::Resumed kept_;
  std::vector<std::string>& warnings_;
};

void Cutter::cut_file(const Directory& folder, const std::string& name, MemberNumber member) {
  const std::string shown = (folder.path() / name).string();
  try {
    const Descriptor file(file_system().open_at(folder.fd(), name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file) throw Failure{errno};
    struct stat status = {};
    if (::fstat(file.get(), &status) != 0) throw Failure{errno};
    if (!S_ISREG(status.st_mode)) return;
    if (status.st_size > most_bytes) throw Failure{EFBIG};
    const std::string bytes = read_all(file.get(), status.st_size);
    std::string_view rest = bytes;
    bool whole = true;
    while (!rest.empty()) {
      const auto record = read_record(rest);
      whole = record.has_value();
      if (!whole || record->step > kept_.step) break;
      if (record->step == kept_.step && !record->tag.empty()) kept_.told.emplace(member, record->tag);
      rest.remove_prefix(record->bytes);
    }
    if (!whole) warnings_.push_back(fmt::format("'{}' is damaged: its last {} bytes were cut off", shown, rest.size()));
    if (!rest.empty() && file_system().ftruncate(file.get(), static_cast<off_t>(bytes.size() - rest.size())) != 0) {
      throw Failure{errno};
    }
  } catch (const Failure& failure) {
    warnings_.push_back(
        fmt::format("'{}' cannot be cut back to step {}: {}; TensorBoard may show steps of a course "
                    "that the run did not take",
                    shown, kept_.step, system_words(failure.error)));
  }
}

void Cutter::cut_files(const Directory& folder, MemberNumber member) {
  for (const std::string& name : folder.names()) {
    if (second_of(name)) cut_file(folder, name, member);
  }
}

}  // namespace

bool is_event_entry(const std::string& name) { return second_of(name) || member_in(name); }

TensorBoard::TensorBoard(const Directory& run, std::int64_t members, Resumed resumed, const Warn& warn)
    : resumed_(std::move(resumed)), holds_open_(members <= most_open) {
  try {
    folder_ = run.enter(std::string(tensorboard_folder), true);
    for (std::int64_t m = 0; m < std::max<std::int64_t>(1, members); ++m) {
      std::string name;
      if (members == 0) {
        name = next_file(folder_);
      } else {
        const Directory folder = folder_.enter(member_folder(m), true);
        name = member_folder(m) + "/" + next_file(folder);
      }
      AppendFile& file = files_.emplace_back(folder_.place(name), warn, event_records);
      std::string begin = version_record(wall_time());
      if (resumed_.step > 0) begin += restart_record(wall_time(), resumed_.step + 1);
      file.write(begin);
      if (!holds_open_) file.close();
    }
  } catch (const Error& error) {
    files_.clear();
    problem_ = error.diagnostics().front().message;
    if (warn) warn(problem_ + "; the run goes on without event files for TensorBoard");
  }
}

void TensorBoard::write(MemberNumber member, std::int64_t step, const std::vector<Scalar>& scalars) {
  const auto index = static_cast<std::size_t>(member.value_or(0));
  if (index >= files_.size() || scalars.empty()) return;
  if (step == resumed_.step && resumed_.told.count({member, scalars.front().first}) > 0) return;
  files_[index].write(scalars_record(wall_time(), step, scalars));
  if (!holds_open_) files_[index].close();
}

void TensorBoard::on(const Event& event) {
  if (const auto* const started = std::get_if<Started>(&event)) {
    steps_per_epoch_ = started->steps_per_epoch;
  } else if (const auto* const lines = std::get_if<std::vector<Logged>>(&event)) {
    for (const Logged& line : *lines) {
      std::vector<Scalar> scalars = scalars_of("train/", line.measures);
      scalars.emplace_back("learning_rate", line.learning_rate);
      scalars.emplace_back("grad_norm", line.grad_norm);
      scalars.emplace_back("examples_per_second", line.examples_per_second);
      write(line.member, line.step, scalars);
    }
  } else if (const auto* const epochs = std::get_if<std::vector<EpochEnded>>(&event)) {
    for (const EpochEnded& epoch : *epochs) {
      // If an epoch has one step, the log interval decides which epochs are shown.
      if (steps_per_epoch_ <= 1 || epoch.step % steps_per_epoch_ != 0) continue;
      write(epoch.member, epoch.step, scalars_of("train/epoch_", epoch.measures));
    }
  } else if (const auto* const evaluations = std::get_if<std::vector<Evaluated>>(&event)) {
    for (const Evaluated& evaluation : *evaluations) {
      write(evaluation.member, evaluation.step, scalars_of(evaluation.split + "/", evaluation.measures));
    }
  }
}

void TensorBoard::flush() {
  for (AppendFile& file : files_) {
    file.flush();
    if (!holds_open_) file.close();
  }
}

std::vector<std::string> TensorBoard::missing() const {
  std::vector<std::string> sentences{problem_};
  for (const AppendFile& file : files_) sentences.push_back(file.missing());
  std::erase(sentences, "");
  return sentences;
}

TensorBoard::Resumed cut_event_files(const Directory& run, std::int64_t step, std::vector<std::string>& warnings) {
  Cutter cutter(step, warnings);
  const std::string name(tensorboard_folder);
  try {
    const Directory folder = run.has(name) ? run.enter(name, false) : Directory();
    if (folder.fd() < 0) return cutter.kept();
    cutter.cut_files(folder, std::nullopt);
    for (const std::string& entry : folder.names()) {
      if (const MemberNumber member = member_in(entry)) cutter.cut_files(folder.enter(entry, false), member);
    }
  } catch (const Error& error) {
    warnings.push_back(error.diagnostics().front().message);
  }
  return cutter.kept();
}

}  // namespace pmaptrain::train
