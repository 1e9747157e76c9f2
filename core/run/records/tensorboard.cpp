#include "core/run/records/tensorboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace pmaptrain::run {
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

constexpr std::size_t second_digits = 10;  // as next_file() writes them

// The second in the name of an event file of ours; none for another name.
std::optional<std::int64_t> timestamp_in_name(std::string_view name) {
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
    if (const auto other = timestamp_in_name(name)) second = std::max(second, *other + 1);
  }
  return fmt::format("{}{:010}{}", file_prefix, second, file_suffix);
}

std::vector<Scalar> scalars_of(const std::string& prefix, const Measures& measures) {
  std::vector<Scalar> scalars;
  scalars.reserve(measures.size());
  for (const auto& [name, value] : measures) scalars.emplace_back(prefix + name, value);
  return scalars;
}

}  // namespace

bool is_event_entry(const std::string& name) { return timestamp_in_name(name) || member_in(name); }

TensorBoard::TensorBoard(const Directory& run, std::int64_t members, std::int64_t step, const Warn& warn)
    : holds_open_(members <= most_open) {
  try {
    folder_ = run.open_subdirectory(std::string(tensorboard_folder), true);
    for (std::int64_t m = 0; m < std::max<std::int64_t>(1, members); ++m) {
      std::string name;
      if (members == 0) {
        name = next_file(folder_);
      } else {
        const Directory folder = folder_.open_subdirectory(member_folder(m), true);
        name = member_folder(m) + "/" + next_file(folder);
      }
      AppendFile& file = files_.emplace_back(folder_.place(name), warn, event_records);
      std::string begin = version_record(wall_time());
      if (step > 0) begin += restart_record(wall_time(), step + 1);
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
      if (!evaluation.checkpoint.empty()) continue;  // steps ascend
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

}  // namespace pmaptrain::run
