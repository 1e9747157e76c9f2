#include "core/sweep/members.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/signals.h"
#include "core/base/version.h"
#include "core/run/checkpoint.h"
#include "core/run/files/file_writer.h"
#include "core/run/records/records.h"
#include "core/run/run_folder.h"
#include "core/spec/load.h"
#include "core/sweep/result.h"
#include "core/train/write_checkpoint.h"

namespace pmaptrain::sweep {
namespace {

namespace fs = std::filesystem;

// Why a member ended that a rung did not choose.
constexpr const char* dropped = "halving";

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// The lines of one member, without its number, and their length up to the checkpoint.
struct Metrics {
  std::string text;
  std::uint64_t at_checkpoint = 0;
};

// The lines of each member; those that name none are of all.
std::vector<Metrics> read_metrics(const fs::path& ensemble, std::size_t members, std::uint64_t bytes_at_checkpoint) {
  constexpr std::string_view key = "\"member\":";
  std::vector<Metrics> metrics(members);
  std::ifstream stream(ensemble / "metrics.jsonl", std::ios::binary);
  std::uint64_t read = 0;
  for (std::string line; std::getline(stream, line);) {
    read += line.size() + 1;
    std::size_t first = 0, last = members;
    if (const std::size_t at = line.find(key); at != std::string::npos) {
      first = std::strtoull(line.c_str() + at + key.size(), nullptr, 10);
      last = std::min(first + 1, members);
      line.erase(at, line.find(',', at) + 1 - at);
    }
    for (std::size_t m = first; m < last; ++m) {
      metrics[m].text += line + "\n";
      if (read <= bytes_at_checkpoint) metrics[m].at_checkpoint = metrics[m].text.size();
    }
  }
  return metrics;
}

// A checkpoint of the ensemble, read once for all of its members.
struct CheckpointSource {
  explicit CheckpointSource(const fs::path& folder) : state(run::load_run_state(folder)) {
    for (const auto& [name, checksum] : state.checksums) files.emplace(name, run::load_file(folder, name));
  }
  void check_intact() const {
    for (const auto& [name, file] : files) file.file.check_intact();
  }
  run::RunState state;
  std::map<std::string, run::CheckpointFile> files;
};

// The files of a checkpoint with one member's tensors and state, as after `step`.
void write_member(const run::Directory& into, const CheckpointSource& source, const Leaving& leaving, std::int64_t step,
                  std::uint64_t metrics_bytes) {
  run::RunState state = source.state;
  run::MemberState member = state.members.at(static_cast<std::size_t>(leaving.member));
  member.left_behind = false;
  state.step = step;
  state.members = {std::move(member)};
  state.is_ensemble = false;
  state.config_hash = run::hash_hex(bytes_of(leaving.config));
  state.metrics_bytes = metrics_bytes;
  const spec::DataSpec data = spec::load_text(leaving.config, "trial", "/", {}).spec.data;
  for (const auto& [name, tensors] : source.files) {
    run::FileWriter file(into.place(name));
    const bool optimizer = name == "optimizer.safetensors";
    run::write_safetensors(
        file, tensors.of_member(leaving.member), [&](const run::TensorView& tensor) { file.write(tensor.bytes); },
        optimizer ? std::map<std::string, std::string>() : train::metadata_of(state, data));
    file.close();
    state.checksums[name] = "xxh3:" + file.checksum();
  }
  const std::string text = run::to_json(state);
  run::FileWriter file(into.place("state.json"));
  file.write(bytes_of(text));
  file.close();
}

// The summary of the member's run.
run::Ended ended_of(run::Ended ended, const Leaving& leaving) {
  run::MemberEnded of_member = ended.members.at(static_cast<std::size_t>(leaving.member));
  of_member.varied.clear();
  ended.is_ensemble = false;
  // Of the steps that the member took; all steps of an ensemble have as many examples.
  const std::int64_t steps = std::max<std::int64_t>(ended.steps, 1);
  ended.epochs = ended.epochs * of_member.steps / steps;
  ended.examples_seen = ended.examples_seen / steps * of_member.steps;
  ended.examples_skipped = ended.examples_skipped * of_member.steps / steps;
  ended.steps = of_member.steps;
  ended.name = leaving.name;
  ended.run_dir = leaving.run.string();
  ended.config_hash = run::hash_hex(bytes_of(leaving.config));
  if (of_member.reason == "early_stopping") {
    ended.status = "done";
    ended.reason = of_member.reason;
  } else if (of_member.reason == dropped) {
    ended.status = "stopped";
    ended.reason = "max_steps";
    ended.exit_status = 0;
  } else if (!of_member.reason.empty()) {
    ended.status = "stopped";
    ended.reason = "guard";
    ended.exit_status = static_cast<int>(ExitStatus::guard);
  } else if (ended.reason == "guard" || ended.reason == "early_stopping") {
    // Of the others; this one has done what was asked of it.
    ended.status = "done";
    ended.reason = "duration";
    ended.exit_status = 0;
  }
  of_member.reason.clear();
  ended.members = {std::move(of_member)};
  return ended;
}

// What the ensemble left.
struct Left {
  run::Ended ended;
  CheckpointSource last;
  std::optional<CheckpointSource> best;  // none if no member has one
  std::vector<Metrics> metrics;
};

void leave(const fs::path& ensemble, const Left& left, const Leaving& leaving) {
  run::RunFolderOptions options;
  options.overwrite = true;
  run::RunFolder folder = run::RunFolder::claim(leaving.run, options);
  folder.begin(leaving.config);
  const auto m = static_cast<std::size_t>(leaving.member);
  // A member that ended before the others has taken fewer steps.
  const run::MemberState& state = left.last.state.members.at(m);
  const std::int64_t step = state.finished.empty() ? left.last.state.step : state.steps;
  const Metrics& metrics = left.metrics.at(m);
  const auto& best = state.best;
  if (best && best->step < step) {
    folder.commit_checkpoint(best->step, [&](const run::Directory& into) {
      write_member(into, left.best.value(), leaving, best->step, metrics.at_checkpoint);
    });
  }
  folder.commit_checkpoint(
      step, [&](const run::Directory& into) { write_member(into, left.last, leaving, step, metrics.at_checkpoint); },
      best ? run::best_checkpoint(left.last.state, leaving.member) : "");
  run::write_whole(folder.place("metrics.jsonl"), metrics.text);
  run::write_whole(folder.place("log.txt"), fmt::format("trained with other trials as member {} of the ensemble in "
                                                        "'{}', whose log.txt has its lines\n",
                                                        leaving.member, ensemble.string()));
  left.last.check_intact();
  if (left.best) left.best->check_intact();
  run::write_whole(folder.place("summary.json"),
                   run::summary_json(ended_of(left.ended, leaving), std::string(version)));
}

Left read_ensemble(const fs::path& ensemble) {
  const std::optional<run::Ended> ended = read_summary(ensemble);
  if (!ended) fail_running(fmt::format("'{}' has no summary.json", ensemble.string()), "--resume goes on");
  Left left{*ended, CheckpointSource(fs::canonical(run::find_checkpoint(ensemble, "last"))), {}, {}};
  const auto& members = left.last.state.members;
  const bool has_best =
      std::any_of(members.begin(), members.end(), [](const auto& one) { return one.best.has_value(); });
  if (has_best) left.best.emplace(fs::canonical(run::find_checkpoint(ensemble, "best")));
  left.metrics = read_metrics(ensemble, members.size(), left.last.state.metrics_bytes);
  return left;
}

}  // namespace

void leave_run_folders(const fs::path& ensemble, const std::vector<Leaving>& leaving) {
  if (leaving.empty()) return;
  const Left left = read_ensemble(ensemble);
  // Most of the time is waiting for the disk, which commits what several threads flush at once.
  constexpr std::size_t most_threads = 8;
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failed;
  std::mutex mutex;
  {
    const BlockSignals blocked;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min(most_threads, leaving.size()); ++i) {
      threads.emplace_back([&] {
        try {
          for (std::size_t at = next++; at < leaving.size(); at = next++) leave(ensemble, left, leaving[at]);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failed) failed = std::current_exception();
        }
      });
    }
  }
  if (failed) std::rethrow_exception(failed);
}

void keep_members(const fs::path& ensemble, const std::set<std::int64_t>& kept) {
  const std::optional<fs::path> last = run::checkpoint_folder(ensemble, "last");
  if (!last) return;
  run::RunState state = run::load_run_state(*last);
  bool changed = false;
  for (std::size_t m = 0; m < state.members.size(); ++m) {
    run::MemberState& member = state.members[m];
    if (kept.contains(static_cast<std::int64_t>(m)) || member.left_behind) continue;
    if (member.finished.empty()) {
      member.finished = dropped;
      member.finished_why = "other trials of the sweep go on";
    }
    member.left_behind = changed = true;
  }
  if (changed) run::write_whole((*last / "state.json").string(), run::to_json(state));
}

}  // namespace pmaptrain::sweep
