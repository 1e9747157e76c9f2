#include "core/sweep/members.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/version.h"
#include "core/run/checkpoint.h"
#include "core/run/files/file_writer.h"
#include "core/run/records/records.h"
#include "core/run/run_folder.h"
#include "core/sweep/result.h"
#include "core/train/write_checkpoint.h"

namespace pmaptrain::sweep {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// The lines of one member, without its number, and their length up to the checkpoint.
struct Metrics {
  std::string text;
  std::uint64_t at_checkpoint = 0;
};

Metrics metrics_of(const fs::path& ensemble, std::int64_t member, std::uint64_t bytes_at_checkpoint) {
  std::ifstream stream(ensemble / "metrics.jsonl", std::ios::binary);
  const std::string number = fmt::format("\"member\":{},", member);
  Metrics metrics;
  std::uint64_t read = 0;
  for (std::string line; std::getline(stream, line);) {
    read += line.size() + 1;
    const std::size_t at = line.find("\"member\":");
    const bool of_all = at == std::string::npos;
    if (!of_all && line.compare(at, number.size(), number) != 0) continue;
    if (!of_all) line.erase(at, number.size());
    metrics.text += line + "\n";
    if (read <= bytes_at_checkpoint) metrics.at_checkpoint = metrics.text.size();
  }
  return metrics;
}

// The files of a checkpoint with one member's tensors and state.
void write_member(const train::Directory& into, const fs::path& checkpoint, std::int64_t member, train::RunState state,
                  const std::string& config, std::uint64_t metrics_bytes) {
  train::MemberState of_member = state.members.at(static_cast<std::size_t>(member));
  of_member.left_behind = false;
  state.members = {std::move(of_member)};
  state.is_ensemble = false;
  state.config_hash = train::hash_hex(bytes_of(config));
  state.metrics_bytes = metrics_bytes;
  const std::map<std::string, std::string> files = std::exchange(state.checksums, {});
  for (const auto& [name, checksum] : files) {
    const train::CheckpointFile source = train::load_file(checkpoint, name);
    const std::vector<train::TensorView> tensors = source.of_member(member);
    train::FileWriter file(into.place(name));
    const bool optimizer = name == "optimizer.safetensors";
    train::write_safetensors(
        file, tensors, [&](const train::TensorView& tensor) { file.write(tensor.bytes); },
        optimizer ? std::map<std::string, std::string>() : train::metadata_of(state));
    file.close();
    source.file.check_intact();
    state.checksums[name] = "xxh3:" + file.checksum();
  }
  const std::string text = train::to_json(state);
  train::FileWriter file(into.place("state.json"));
  file.write(bytes_of(text));
  file.close();
}

// The summary of the member's run.
train::Ended ended_of(train::Ended ended, std::int64_t member, const std::string& name, const std::string& config,
                      const fs::path& run) {
  train::MemberEnded of_member = ended.members.at(static_cast<std::size_t>(member));
  of_member.varied.clear();
  ended.is_ensemble = false;
  ended.steps = of_member.steps;
  ended.name = name;
  ended.run_dir = run.string();
  ended.config_hash = train::hash_hex(bytes_of(config));
  if (of_member.reason == "early_stopping") {
    ended.status = "done";
    ended.reason = of_member.reason;
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

}  // namespace

void leave_run_folder(const fs::path& ensemble, std::int64_t member, const std::string& name, const std::string& config,
                      const fs::path& run) {
  const std::optional<train::Ended> ended = read_summary(ensemble);
  if (!ended) fail_running(fmt::format("'{}' has no summary.json", ensemble.string()), "--resume goes on");
  train::RunFolderOptions options;
  options.overwrite = true;
  train::RunFolder folder = train::RunFolder::claim(run, options);
  folder.begin(config);
  const fs::path last = fs::canonical(ensemble / "checkpoints/last");
  const train::RunState state = train::load_run_state(last);
  const Metrics metrics = metrics_of(ensemble, member, state.metrics_bytes);
  const auto& best = state.members.at(static_cast<std::size_t>(member)).best;
  if (best && best->step < state.step) {
    const fs::path from = fs::canonical(ensemble / "checkpoints/best");
    train::RunState at_best = train::load_run_state(from);
    at_best.step = best->step;
    folder.commit_checkpoint(best->step, [&](const train::Directory& into) {
      write_member(into, from, member, at_best, config, metrics.at_checkpoint);
    });
  }
  folder.commit_checkpoint(state.step, [&](const train::Directory& into) {
    write_member(into, last, member, state, config, metrics.at_checkpoint);
  });
  if (best) folder.link_checkpoint("best", train::best_checkpoint(state, member));
  train::write_whole(folder.place("metrics.jsonl"), metrics.text);
  train::write_whole(folder.place("log.txt"), fmt::format("trained with other trials as member {} of the ensemble in "
                                                          "'{}', whose log.txt has its lines\n",
                                                          member, ensemble.string()));
  const std::string summary = train::summary_json(ended_of(*ended, member, name, config, run), std::string(version));
  train::write_whole(folder.place("summary.json"), summary);
}

void keep_members(const fs::path& ensemble, const std::set<std::int64_t>& kept) {
  std::error_code error;
  const fs::path last = fs::canonical(ensemble / "checkpoints/last", error);
  if (error) return;
  train::RunState state = train::load_run_state(last);
  bool changed = false;
  for (std::size_t m = 0; m < state.members.size(); ++m) {
    train::MemberState& member = state.members[m];
    if (kept.contains(static_cast<std::int64_t>(m)) || member.left_behind) continue;
    if (member.finished.empty()) {
      member.finished = "halving";
      member.finished_why = "other trials of the sweep go on";
    }
    member.left_behind = changed = true;
  }
  if (changed) train::write_whole((last / "state.json").string(), train::to_json(state));
}

}  // namespace pmaptrain::sweep
