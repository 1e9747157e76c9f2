#include "core/train/resume.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/run/records/lines.h"
#include "core/run/records/records.h"
#include "core/setup/advice.h"
#include "core/spec/change.h"
#include "core/spec/compare.h"
#include "core/spec/keys.h"
#include "core/spec/paths.h"
#include "core/train/changes.h"
#include "core/train/decisions.h"
#include "core/train/members.h"

namespace pmaptrain::train {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  const data::Bytes file = data::map_file(path.string());
  std::string text(reinterpret_cast<const char*>(file.data()), file.size());
  file.check_intact();
  return text;
}

std::vector<spec::ChangedKey> changed_keys(const RunConfig& run, const spec::Loaded& loaded) {
  return spec::changed_keys(run.text, (run.run / "config.yaml").string(), loaded);
}

std::string shown(const std::string& value) { return value.empty() ? "nothing" : value; }

void check_step(const run::RunState& state, std::int64_t step) {
  if (state.step == step) return;
  fail_data("the checkpoint " + run::checkpoint_name(step) + " is damaged: its state is of step " +
            std::to_string(state.step));
}

// A run that has ended has a checkpoint. If it is missing, beginning anew would destroy the record of the run.
void refuse_lost_checkpoints(const fs::path& run) {
  std::error_code error;
  const bool ended = fs::exists(run / "summary.json", error);
  const bool odd =
      fs::exists(fs::symlink_status(run / "checkpoints", error)) && !fs::is_directory(run / "checkpoints", error);
  if (!ended && !odd) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(run, error)) {
    // --overwrite was interrupted after it had renamed the checkpoints: the rest was about to be removed.
    if (run::is_temporary_name(entry.path().filename().string(), "checkpoints")) return;
  }
  fail_data("'" + run.string() + "' has no checkpoint to resume from" + (ended ? ", though its run has ended" : ""),
            "--overwrite begins the run anew and removes what is left of it");
}

// A damaged best checkpoint counts as none: the next evaluation becomes the best.
void check_best(const fs::path& run, run::RunState& state, std::vector<std::string>& damaged) {
  const std::string best = run::best_folder(state);
  if (best.empty() || best == run::checkpoint_name(state.step)) return;
  try {
    run::load_checkpoint(run / "checkpoints" / best);
  } catch (const Error& error) {
    if (error.status() != ExitStatus::data) throw;
    for (run::MemberState& member : state.members) member.best.reset();
    damaged.push_back("the best checkpoint is lost: " + error.diagnostics().front().message);
  }
}

// What an evaluation had of a metric, of the split on which the best is selected.
std::optional<double> value_of(const run::MemberState& state, const std::string& metric) {
  const auto validation = state.measures.find("validation");
  const auto split = validation != state.measures.end() ? validation : state.measures.find("test");
  if (split == state.measures.end()) return std::nullopt;
  for (const auto& [name, value] : split->second) {
    if (name == metric && !std::isnan(value)) return value;
  }
  return std::nullopt;
}

// Where the config selects the best by another metric or mode than the run, the best checkpoint so far stays the best,
// with what its evaluation had of the new metric: it is kept until another is better. Without that number it is none.
// Returns what to say; nothing changes where members have ended, whose best no evaluation can replace.
std::string rebase_best(const fs::path& run, run::RunState& state, const spec::TrainSpec& spec) {
  const auto& best = spec.checkpoint.best;
  const std::string folder = run::best_folder(state);
  if (!best || folder.empty()) return "";
  const std::string mode = spec::to_string(mode_of(*best));
  const auto found = std::find_if(state.members.begin(), state.members.end(), [&](const run::MemberState& member) {
    return member.best && (member.best->metric != best->metric || state.best_mode != mode);
  });
  const bool has_ended = std::any_of(state.members.begin(), state.members.end(),
                                     [](const run::MemberState& member) { return !member.finished.empty(); });
  if (found == state.members.end() || has_ended) return "";
  std::string text = "train.checkpoint.best selects by " + best->metric + " (" + mode + ") now, and by " +
                     found->best->metric + " (" + state.best_mode + ") before: ";
  const run::RunState then = run::load_run_state(run / "checkpoints" / folder);
  bool is_known = true;
  for (std::size_t m = 0; m < state.members.size(); ++m) {
    run::MemberState& member = state.members[m];
    if (!member.best) continue;
    const run::MemberState& at_best = then.members.at(m);
    const std::optional<double> value = value_of(at_best, best->metric);
    is_known = is_known && value.has_value();
    if (value && state.members.size() == 1) {
      text += "step " + with_commas(member.best->step) + ", the best so far, has " + best->metric + " " +
              run::compact(*value) + ", and ";
    }
    if (value) {
      member.best = run::Best{member.best->step, best->metric, *value, value_of(at_best, "loss")};
    } else {
      member.best.reset();
    }
    member.lost_best.reset();
  }
  state.best_mode = mode;
  return text + (is_known ? "stays the best until an evaluation is better"
                          : "the best so far has no value of it, so the next evaluation becomes the best");
}

// Whether two texts such as "replicas=2 shards=4" name the same axes, with any sizes and in any order.
bool same_names(const std::string& before, const std::string& after) {
  const auto names = [](const std::string& axes) {
    std::set<std::string> found;
    std::istringstream words(axes);
    for (std::string axis; words >> axis;) found.insert(axis.substr(0, axis.find('=')));
    return found;
  };
  return names(before) == names(after);
}

// Removes keys that differ only because another key does. Examples: if mesh.axes differs, so does data.axes. If the
// number of members differs, so does every list below ensemble.vary. If the ensemble is new or along another axis, the
// size of that axis and the default of data.seed differ too.
void drop_what_follows(std::vector<spec::ChangedKey>& keys) {
  const auto changed = [&](auto&& is) { return std::any_of(keys.begin(), keys.end(), is); };
  const auto is_members = [](const spec::ChangedKey& key) {
    return key.path.starts_with("mesh.axes.") && !key.is_tensor_axis;
  };
  const bool axes = changed([](const spec::ChangedKey& key) { return key.path == "mesh.axes" || key.is_tensor_axis; });
  const bool ensemble =
      changed([](const spec::ChangedKey& key) { return key.path == "ensemble" || key.path == "ensemble.axis"; });
  const bool seed = changed([](const spec::ChangedKey& key) { return key.path == "seed"; });
  const bool members = changed(is_members);
  std::erase_if(keys, [&](const spec::ChangedKey& key) {
    const bool follows_seed = key.path == "data.seed" && (key.is_default || key.after.empty());
    return (axes && key.path == "data.axes") || (ensemble && is_members(key)) ||
           (members && spec::is_at_or_below(key.path, "ensemble.vary")) || ((seed || ensemble) && follows_seed);
  });
}

// Reports each key with its place, and how to change it if it may change within a run. If many keys differ, the run
// belongs to another config: one error then names the first of them.
[[noreturn]] void refuse_changes(const fs::path& run, const std::vector<spec::ChangedKey>& keys,
                                 const spec::Loaded& loaded, bool lacks_contents) {
  constexpr std::size_t most_errors = 5, first_keys = 3;
  const auto values = [](const spec::ChangedKey& key) {
    return ": the run has " + shown(key.before) + ", this config " + shown(key.after);
  };
  std::vector<Diagnostic> errors;
  if (keys.size() <= most_errors) {
    std::set<std::string> told;  // keys of one schedule have the same suggestion, which is given once
    for (const spec::ChangedKey& key : keys) {
      errors.push_back({key.kind, key.place, "--resume cannot change " + key.path + values(key), {}});
      const std::string change = spec::change_for(key, loaded);
      if (change.empty() || !told.insert(change).second) continue;
      errors.back().help = "pmaptrain run " + shell_quoted(run.string()) + " --resume --change " +
                           shell_quoted(change) + " changes it from the resumed step on";
    }
  } else {
    Diagnostic& error = errors.emplace_back();
    error.kind = "usage";
    error.message = "--resume cannot continue '" + run.string() + "' with this config: " + std::to_string(keys.size()) +
                    " keys differ from the run's";
    std::vector<std::string> others;
    for (const spec::ChangedKey& key : keys) {
      if (error.notes.size() < first_keys) {
        error.notes.push_back(key.path + values(key));
      } else {
        others.push_back(key.path);
      }
    }
    error.notes.push_back("and " + join(others, ", "));
  }
  const auto is_data = [](const spec::ChangedKey& key) {
    return spec::is_at_or_below(key.path, "data.source") && spec::is_path(key.path);
  };
  if (lacks_contents && std::any_of(keys.begin(), keys.end(), is_data)) {
    errors.back().notes.push_back(
        "the run was begun by a version that kept no hash of its data, so data at another path cannot be compared; "
        "where it is the same, the paths in " +
        (run / "config.yaml").string() + " can be edited");
  }
  std::string& help = errors.back().help;
  help += (help.empty() ? "" : "; or ") + ("begin another run (--name), from this one's parameters with "
                                           "model.init.from: " +
                                           run.string());
  throw Error(ExitStatus::usage, std::move(errors));
}

std::optional<ResumePoint> own_resume_point(const fs::path& run, const spec::TrainSpec* spec) {
  const std::vector<std::int64_t> steps = run::checkpoint_steps(run);
  std::vector<std::string> damaged;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      ResumePoint point{run::load_checkpoint(run / "checkpoints" / run::checkpoint_name(*step)), steps.back(), {}};
      check_step(point.checkpoint.state, *step);
      check_best(run, point.checkpoint.state, damaged);
      if (spec != nullptr) {
        std::string told = rebase_best(run, point.checkpoint.state, *spec);
        if (!told.empty()) point.warnings.push_back(std::move(told));
      }
      for (const std::string& problem : damaged) point.warnings.push_back(problem + "; the run goes on without it");
      return point;
    } catch (const Error& error) {
      if (error.status() != ExitStatus::data) throw;
      damaged.push_back(error.diagnostics().front().message);
    }
  }
  if (steps.empty()) {
    refuse_lost_checkpoints(run);
    return std::nullopt;
  }
  fail_data("no checkpoint of '" + run.string() + "' is whole: " + join(damaged, "; "),
            "--overwrite begins the run anew");
}

}  // namespace

std::optional<ResumePoint> find_resume_point(const fs::path& run, const run::FirstProcess& first,
                                             const spec::TrainSpec* spec) {
  std::optional<ResumePoint> point;
  if (first.is_this()) point = own_resume_point(run, spec);
  if (first.is_alone()) return point;
  if (first.text([&] { return std::string(point ? "found" : "none"); }) == "none") return std::nullopt;
  if (!point) point.emplace();
  point->checkpoint = run::checkpoint_of(first, std::move(point->checkpoint));
  return point;
}

RunConfig read_run_config(const fs::path& run, const run::FirstProcess& first) {
  return {run, first.text([&] { return read_text(run / "config.yaml"); })};
}

std::vector<std::string> kept_decisions(const RunConfig& run, const spec::Loaded& loaded) {
  std::vector<std::string> set;
  for (const spec::ChangedKey& changed : changed_keys(run, loaded)) {
    const bool is_open = changed.path == "data.source.npz.channels" && changed.after == "auto";
    if (is_open) set.push_back(changed.path + "=" + changed.before);
    if (!changed.is_default || changed.before.empty() || !spec::is_at_or_below(changed.path, spec::learning_rate_key))
      continue;
    const spec::Key* const key = spec::find_key(changed.path);
    // A default that is no duration cannot be kept by an override; check_config_continues() refuses it.
    if (key != nullptr && key->type == spec::Type::duration) set.push_back(changed.path + "=" + changed.before);
  }
  return set;
}

std::string blocks_override(const RunConfig& run, const spec::Loaded& loaded) {
  if (!loaded.spec.mesh.blocks_are_automatic) return "";
  for (const spec::ChangedKey& changed : changed_keys(run, loaded)) {
    if (changed.path != "mesh.blocks" || changed.before.empty()) continue;
    // Of fewer devices, by parallelism.tensor, there may not be as many blocks.
    std::int64_t blocks = 0;
    std::from_chars(changed.before.data(), changed.before.data() + changed.before.size(), blocks);
    if (blocks > 0 && loaded.spec.mesh.mesh.devices() % blocks == 0) return changed.path + "=" + changed.before;
  }
  return "";
}

std::vector<std::string> check_config_continues(const RunConfig& run, const spec::Loaded& loaded,
                                                const input::Contents& contents) {
  std::vector<std::string> notes;
  std::vector<spec::ChangedKey> keys = changed_keys(run, loaded);
  drop_what_follows(keys);
  std::erase_if(keys, [](const spec::ChangedKey& key) { return spec::may_differ_on_resume(key.path); });
  // The base of adapters is compared by its content.
  std::erase_if(keys, [&](const spec::ChangedKey& key) {
    return loaded.spec.lora && !key.before.empty() && !key.after.empty() && key.path == "model.init.from.path";
  });
  std::erase_if(keys, [&](const spec::ChangedKey& key) {
    const bool has_same_axes = key.path == "mesh.axes" && same_names(key.before, key.after);
    if (!has_same_axes && key.path != "mesh.blocks" && !key.is_tensor_axis) return false;
    const auto size = [](const std::string& text) { return text.empty() ? std::string("1") : text; };
    notes.push_back(key.path + " changes from " + size(key.before) + " to " + size(key.after) +
                    ": sums run in another order, so the bits may differ from here on");
    return true;
  });
  std::erase_if(keys, [&](const spec::ChangedKey& key) {
    if (!spec::is_path(key.path) || !input::has_same_keys(contents, loaded, key.path)) return false;
    const bool is_told = std::any_of(loaded.facts.begin(), loaded.facts.end(), [&](const std::string& note) {
      return note.starts_with(key.path + " is ");  // by find_data()
    });
    if (!is_told) notes.push_back(key.path + " is " + key.after + ", and was " + key.before);
    return true;
  });
  if (!keys.empty()) refuse_changes(run.run, keys, loaded, contents.empty());
  return notes;
}

std::vector<spec::ChangedKey> taken_from_config(const RunConfig& run, const spec::Loaded& loaded) {
  std::vector<spec::ChangedKey> keys = changed_keys(run, loaded);
  std::erase_if(
      keys, [](const spec::ChangedKey& key) { return !spec::may_differ_on_resume(key.path) || key.kind == "usage"; });
  return keys;
}

std::vector<std::string> tell_taken(const std::vector<spec::ChangedKey>& keys, const run::RunState& state,
                                    setup::Setup& setup) {
  std::vector<std::string> warnings;
  for (const spec::ChangedKey& key : keys) {
    std::string text = key.path + " changes from " + shown(key.before) + " to " + shown(key.after) +
                       (key.is_default ? ", the default" : setup::in_parentheses(key.place));
    const bool is_over = key.path == "train.duration" && setup.timetable.steps <= state.step;
    if (is_over) {
      text += ": the run then ends at step " + with_commas(setup.timetable.steps) + ", and is at step " +
              with_commas(state.step) + " already";
    }
    const std::string before = key.before.empty() ? "null" : key.before;
    text += "; --set " + shell_quoted(key.path + "=" + before) + " keeps the run's";
    (is_over ? warnings : setup.loaded.facts).push_back(std::move(text));
  }
  return warnings;
}

bool stays_finished(const run::MemberState& member, const run::RunState& run, const spec::TrainSpec& spec) {
  if (member.left_behind || (!member.finished.empty() && member.steps < run.step)) return true;
  if (member.finished == "early_stopping") {
    return spec.early_stopping && continues_early_stopping(member.early_stopping, *spec.early_stopping) &&
           member.early_stopping.waited >= spec.early_stopping->patience;
  }
  if (member.finished == "nonfinite") return spec.on_nonfinite == spec::OnNonfinite::halt;
  if (member.finished == "loss_spike") return spec.loss_spike && spec.loss_spike->action == spec::SpikeAction::halt;
  return !member.finished.empty();
}

bool stays_finished(const run::RunState& run, const spec::TrainSpec& spec) {
  return std::all_of(run.members.begin(), run.members.end(),
                     [&](const run::MemberState& member) { return stays_finished(member, run, spec); });
}

std::vector<std::string> why_finished(const run::RunState& state) {
  MemberTexts texts;
  for (std::size_t m = 0; m < state.members.size(); ++m) {
    const std::string& why = state.members[m].finished_why;
    if (!why.empty()) texts.add(static_cast<std::int64_t>(m), why, false);
  }
  std::vector<std::string> reasons;
  for (run::Warned& told : texts.take(state.is_ensemble)) reasons.push_back(std::move(told.text));
  return reasons;
}

namespace {

// How to continue a run that has ended. Looks at the members that finished at the run's last step; members that
// finished earlier cannot continue.
std::string advice(const run::RunState& state, const spec::TrainSpec& spec, std::int64_t steps) {
  std::string finished;
  for (const run::MemberState& member : state.members) {
    if (member.finished.empty() || member.left_behind || member.steps < state.step) continue;
    finished = member.finished;
  }
  const bool all = stays_finished(state, spec);
  if (all && finished == "early_stopping") return "a larger train.early_stopping.patience continues it";
  if (all && finished == "nonfinite") return "train.on_nonfinite: skip continues it";
  if (all && finished == "loss_spike") return "train.loss_spike.action: warn continues it";
  if (all) return "model.init.from begins another run from its parameters";
  if (state.step < steps) return "a larger --max-steps continues it, or none";
  return "a longer train.duration continues it";
}

}  // namespace

std::optional<FinishedRun> find_finished(const fs::path& run, const run::RunState& state, const spec::TrainSpec& spec,
                                         const step::Timetable& times, std::optional<std::int64_t> max_steps,
                                         const run::FirstProcess& first) {
  const std::int64_t steps = std::min(times.steps, max_steps.value_or(times.steps));
  const bool finished = stays_finished(state, spec);
  const bool evaluates = state.evaluation_is_due && times.eval_every > 0;
  if (evaluates || (!finished && state.step < steps)) return std::nullopt;
  const std::string summary = first.text([&] {
    std::error_code error;
    return fs::exists(run / "summary.json", error) ? read_text(run / "summary.json") : std::string();
  });
  if (summary.empty()) return std::nullopt;  // the run was killed just before it ended
  std::optional<run::Ended> ended = run::parse_summary(summary);
  if (!ended || ended->steps != state.step) return std::nullopt;
  const bool guarded = finished && ended->exit_status == static_cast<int>(ExitStatus::guard);
  if (ended->exit_status != 0 && !guarded) return std::nullopt;  // it failed, or a signal left work undone
  ended->run_dir = run.string();
  return FinishedRun{*ended, advice(state, spec, times.steps)};
}

void check_newest(const ResumePoint& point, const fs::path& run) {
  const std::vector<std::int64_t> steps = run::checkpoint_steps(run);
  if (!steps.empty() && steps.back() == point.newest_step) return;
  fail_resource("another pmaptrain has just written the run folder '" + run.string() + "'", "resume it again");
}

}  // namespace pmaptrain::train
