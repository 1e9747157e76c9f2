// Whether the data, the frozen members and the schedule of a run are those that it began with.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/run/records/lines.h"
#include "core/setup/base.h"
#include "core/setup/make_setup.h"
#include "core/spec/change.h"
#include "core/train/changes.h"
#include "core/train/decisions.h"
#include "core/train/members.h"
#include "core/train/resume.h"

namespace pmaptrain::train {
namespace {

// Notes about members that stay where they ended while others continue.
std::vector<std::string> frozen_members(const run::RunState& state, const spec::TrainSpec& spec) {
  if (stays_finished(state, spec)) return {};
  MemberTexts texts;
  for (std::size_t m = 0; m < state.members.size(); ++m) {
    const run::MemberState& member = state.members[m];
    if (!stays_finished(member, state, spec)) continue;
    texts.add(static_cast<std::int64_t>(m),
              "ended by " + run::reason_text(member.finished) + " before the others, and not continued", false);
  }
  std::vector<std::string> notes;
  for (run::Warned& told : texts.take(true)) notes.push_back(std::move(told.text));
  return notes;
}

// Throws Error if the config selects the best by another metric or mode although some members do not continue: their
// best parameters were selected by the run's metric and mode, and no later evaluation can select others.
void check_frozen_best(const run::RunState& state, const spec::TrainSpec& spec) {
  const auto& best = spec.checkpoint.best;
  if (!best || stays_finished(state, spec)) return;
  const std::string mode = spec::to_string(mode_of(*best));
  std::vector<std::int64_t> frozen;
  std::string metric;
  for (std::size_t m = 0; m < state.members.size(); ++m) {
    const run::MemberState& member = state.members[m];
    if (!member.best || !stays_finished(member, state, spec)) continue;
    if (member.best->metric == best->metric && state.best_mode == mode) continue;
    frozen.push_back(static_cast<std::int64_t>(m));
    metric = member.best->metric;
  }
  if (frozen.empty()) return;
  const auto shown = [](const std::string& of, const std::string& by) {
    return "{metric: " + of + ", mode: " + by + "}";
  };
  const bool one = frozen.size() == 1;
  throw Error(
      ExitStatus::usage,
      Diagnostic{"config", best->place,
                 "--resume cannot change train.checkpoint.best from " + shown(metric, state.best_mode) + " to " +
                     shown(best->metric, mode) + ": " + run::names_of(frozen) + (one ? " has" : " have") +
                     " ended, and " + (one ? "its best checkpoint was" : "their best checkpoints were") +
                     " selected by the former",
                 "leave train.checkpoint.best as the run has it, or begin another run (--name)"});
}

// Names the first row or file that could be read when the run began and cannot be read now, or the reverse; empty if
// there is none.
std::string changed_skipped(const data::Skipped& run, const data::Skipped& now) {
  const auto lacks = [](const data::Skipped& all, const data::Encoding::Skipped& one) {
    return std::none_of(all.begin(), all.end(), [&](const data::Encoding::Skipped& other) {
      return other.split == one.split && other.row == one.row;
    });
  };
  for (const data::Encoding::Skipped& one : now) {
    if (lacks(run, one)) return one.reason;
  }
  for (const data::Encoding::Skipped& one : run) {
    if (lacks(now, one)) return "what could not be read can be read by now: " + one.reason;
  }
  return "";
}

// Other tokens are other examples, also in their number.
std::string changed_tokenizer(const data::Encoding& run, const data::Encoding& now) {
  const bool is_new = run.tokenizer.empty() && !now.tokenizer.empty();
  if (run.tokenizer == now.tokenizer) return "";
  return is_new                  ? "data.tokenizer is new"
         : now.tokenizer.empty() ? "data.tokenizer is gone"
                                 : "data.tokenizer is another one";
}

// What differs in the way the data is read, in words; empty if nothing does.
std::string changed_encoding(const data::Encoding& run, const data::Encoding& now) {
  const auto of_list = [](const std::string& what, const std::vector<std::string>& before,
                          const std::vector<std::string>& after) -> std::string {
    if (before == after) return "";
    const std::set<std::string_view> old(before.begin(), before.end()), now_there(after.begin(), after.end());
    for (const std::string& name : after) {
      if (!old.contains(name)) return fmt::format("{} '{}' is new", what, shown_name(name));
    }
    for (const std::string& name : before) {
      if (!now_there.contains(name)) return fmt::format("{} '{}' is gone", what, shown_name(name));
    }
    return "they are in another order: " + what + "s";
  };
  const auto names = [](const data::Encoding& encoding) {
    std::vector<std::string> all;
    for (const data::Encoding::Column& column : encoding.columns) all.push_back(column.name);
    return all;
  };
  if (std::string found = of_list("column", names(run), names(now)); !found.empty()) return found;
  if (std::string found = of_list("class", run.classes, now.classes); !found.empty()) return found;
  for (std::size_t i = 0; i < now.columns.size(); ++i) {
    const data::Encoding::Column &before = run.columns[i], &after = now.columns[i];
    if (std::string found = of_list("category", before.categories, after.categories); !found.empty()) {
      return found + " in column '" + shown_name(after.name) + "'";
    }
    if (before.missing != after.missing) {
      return "the mean of column '" + after.name + "' was " + exact(before.missing.value_or(0)) + " and is " +
             exact(after.missing.value_or(0));
    }
  }
  if (run.class_weights != now.class_weights) return "the numbers of examples of the classes differ";
  if (run.image != now.image) return "the size of the images differs";
  if (run.targets != now.targets) return "the mean or the standard deviation of the targets differs";
  if (run.statistics == now.statistics) return "";
  if (!run.statistics || !now.statistics) return "only one of the two has normalize: auto";
  for (std::size_t c = 0; c < std::min(run.statistics->mean.size(), now.statistics->mean.size()); ++c) {
    const auto differs = [&](const std::vector<double>& before, const std::vector<double>& after,
                             const std::string& what) -> std::string {
      if (!(before[c] < after[c]) && !(before[c] > after[c])) return "";
      const std::string where = c < now.columns.size() && before.size() == now.columns.size()
                                    ? "column '" + now.columns[c].name + "'"
                                    : "channel " + std::to_string(c);
      return fmt::format("the {} of {} was {} and is {}", what, where, exact(before[c]), exact(after[c]));
    };
    if (std::string found = differs(run.statistics->mean, now.statistics->mean, "mean"); !found.empty()) return found;
    if (std::string found = differs(run.statistics->std, now.statistics->std, "standard deviation"); !found.empty()) {
      return found;
    }
  }
  return "the number of channels differs";
}

// Throws Error (data) if `changed` is not empty. `place` is the place of the data source in the config, `effect` what
// follows from the change, if anything is known.
void refuse_changed(const std::string& changed, const Place& place, const std::string& effect = "") {
  if (changed.empty()) return;
  Diagnostic refusal{"data",
                     place,
                     "--resume needs the data that the run began with, and it has changed: " + changed,
                     "restore the data, or begin another run (--name)",
                     {}};
  if (!effect.empty()) refusal.notes.push_back(effect);
  throw Error(ExitStatus::data, std::move(refusal));
}

// The step at which a change set the schedule; 0 if the schedule began with the run.
std::int64_t schedule_began_after(const spec::Loaded& loaded) {
  std::int64_t step = 0;
  for (const spec::Change& change : loaded.changes) {
    if (spec::begins_schedule(change)) step = change.step;
  }
  return step;
}

}  // namespace

setup::Setup make_resumed_setup(spec::Loaded loaded, const run::RunState& state, bool verify,
                                std::shared_ptr<setup::InitialFile> base) {
  const auto make = [&] {
    try {
      return setup::make_setup(loaded, schedule_origin(state), &state.encoding, base);
    } catch (const Error& error) {
      if (loaded.spec.lora && loaded.spec.model.initial_from &&
          error.diagnostics().back().place == loaded.spec.model.init_place) {
        throw setup::with_note_of_base(error);
      }
      std::string changed;
      try {
        changed = input::difference(state.contents, input::contents_of(loaded, verify));
      } catch (const Error&) {
        std::vector<Diagnostic> diagnostics = error.diagnostics();
        diagnostics.back().notes.push_back(
            "--data-root DIR, or --set data.source...=PATH, says where the data of the run lies by now");
        throw Error(error.status(), std::move(diagnostics));
      }
      refuse_changed(changed, loaded.spec.data.source_place, error.diagnostics().front().message);
      throw;
    }
  };
  setup::Setup setup = make();
  setup.contents = input::contents_of(loaded, verify);
  for (input::Content& content : setup.contents) {
    for (const input::Content& before : state.contents) {
      if (before.key == content.key && content.whole.empty() && input::is_same(before, content)) {
        content.whole = before.whole;
      }
    }
  }
  return setup;
}

std::vector<std::string> check_data_continues(const run::RunState& state, const setup::Setup& setup) {
  const auto refuse = [&](std::string_view what, std::int64_t before, std::int64_t now, const Place& place) {
    if (before == now) return;
    throw Error(ExitStatus::usage, Diagnostic{"config", place,
                                              "--resume cannot change the " + std::string(what) + ": the run has " +
                                                  with_commas(before) + ", this config " + with_commas(now),
                                              "begin another run (--name)"});
  };
  const Place& source = setup.spec().data.source_place;
  const std::string changed = input::difference(state.contents, setup.contents);
  const bool may_be_repaired = !state.encoding.skipped.empty();
  const std::string skipped = changed_skipped(state.encoding.skipped, setup.source.encoding.skipped);
  if (!may_be_repaired) {
    refuse_changed(changed, source,
                   skipped.empty() ? changed_encoding(state.encoding, setup.source.encoding) : skipped);
  }
  refuse_changed(skipped, source);
  refuse_changed(changed_tokenizer(state.encoding, setup.source.encoding), source);
  refuse("number of training examples", state.train_examples, setup.batch.dataset, source);
  refuse("global batch size", state.batch_size, setup.batch.global, setup.spec().data.batch_size_place);
  refuse_changed(changed_encoding(state.encoding, setup.source.encoding), source);
  check_frozen_best(state, setup.spec().train);
  std::vector<std::string> notes = frozen_members(state, setup.spec().train);
  if (may_be_repaired && !changed.empty()) {
    notes.push_back(changed + ": rows that the run left out may have been repaired, and are left out again");
  }
  for (const input::Content& content : setup.contents) {
    const auto before = std::find_if(state.contents.begin(), state.contents.end(),
                                     [&](const input::Content& one) { return one.key == content.key; });
    if (content.whole.empty() || before == state.contents.end() || !before->whole.empty()) continue;
    notes.push_back("the run has a hash of a sample of '" + content.path +
                    "', which was compared; of all bytes it has one from now on");
  }
  if (!setup.optimizer().schedule) return notes;
  const schedules::Schedule& schedule = *setup.optimizer().schedule;
  const std::int64_t steps = setup.timetable.steps - schedule_began_after(setup.loaded);  // the steps of the schedule
  const std::int64_t length = std::max(state.schedule_steps, end_of(schedule).value_or(steps));
  if (steps <= length) return notes;
  const double rate = step::rate_after(schedule, schedule.began_at.value_or(0) + length);
  const std::string ended = "the schedule of the learning rate was for " + counted(length, "step");
  if (rate != 0) {
    notes.push_back(ended + "; the rate from there on is " + exact(rate));
    return notes;
  }
  throw Error(ExitStatus::usage,
              Diagnostic{"config", setup.spec().train.duration.place, ended + ", and the rate from there on is 0",
                         "--change optimizer.learning_rate=RATE, a number or another schedule, goes on from here; or "
                         "begin another run from this one's parameters with model.init.from"});
}

}  // namespace pmaptrain::train
