#include "core/train/changes.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/spec/change.h"

namespace pmaptrain::train {
namespace {

using Changes = std::vector<spec::Change>;

// The changes that config.yaml records in addition to those of the checkpoint. If the record does not begin with the
// checkpoint's changes, it was written for steps that the run no longer has, and the result is empty.
Changes recorded_after(const Changes& of_checkpoint, const Changes& recorded) {
  const auto [end, rest] = std::mismatch(of_checkpoint.begin(), of_checkpoint.end(), recorded.begin(), recorded.end());
  return end == of_checkpoint.end() ? Changes(rest, recorded.end()) : Changes();
}

std::int64_t steps_of_run(const spec::Loaded& loaded, const run::RunState& state) {
  const spec::Spec& spec = spec::member_spec(loaded.spec, 0);
  const BatchPlan batch = input::plan_training(spec.data, spec::data_mesh(spec.mesh), state.train_examples);
  return step::to_steps(spec.train.duration, batch, "train.duration");
}

std::string option_of(const spec::Change& change) { return "--change " + shell_quoted(spec::text_of(change).text); }

// Updates `state` for changes of the learning rate from its step on: sets the factors of plateaus to 1, and sets or
// clears the place where the schedule begins.
void begin_course(std::span<const spec::Change> changes, std::int64_t steps_left, run::RunState& state) {
  for (const spec::Change& change : changes) {
    if (!spec::is_of_rate(change)) continue;
    for (run::MemberState& member : state.members) member.plateau.state.scale = 1.0;
    if (change.key != spec::learning_rate_key) continue;  // a change of one number of a schedule does not restart it
    if (!spec::begins_schedule(change)) {
      for (run::MemberState& member : state.members) member.schedule_began.reset();
      continue;
    }
    state.schedule_steps = steps_left;
    for (run::MemberState& member : state.members) member.schedule_began = member.updates;
  }
}

}  // namespace

std::vector<std::string> apply_changes(const RunConfig& run, const std::vector<std::string>& asked,
                                       spec::Loaded& loaded, run::RunState& state) {
  const std::string file = (run.run / "config.yaml").string();
  std::error_code ignored;
  const std::string folder = std::filesystem::absolute(run.run, ignored).string();
  const Changes recorded = spec::load_text(run.text, file, folder, {}).recorded;
  for (const spec::Change& change : state.changes) {
    spec::apply_changes(loaded, {spec::text_of(change)}, change.step, 0);
  }
  std::vector<spec::ChangeText> texts;
  std::vector<std::string> warnings;
  for (const spec::Change& change : recorded_after(state.changes, recorded)) {
    if (change.step == state.step) texts.push_back(spec::text_of(change));
    if (change.step <= state.step) continue;
    warnings.push_back("the run goes on after step " + with_commas(state.step) + ", so its change of " + change.key +
                       " after step " + with_commas(change.step) + " is not repeated; " + option_of(change) +
                       " makes it again");
  }
  for (const std::string& text : asked) texts.push_back({text});
  if (texts.empty()) return warnings;
  const std::int64_t steps_left = steps_of_run(loaded, state) - state.step;
  const std::size_t before = loaded.changes.size();
  spec::apply_changes(loaded, texts, state.step, std::max<std::int64_t>(steps_left, 1));  // reports mistakes first
  if (steps_left < 1 && !asked.empty()) {
    refuse_without_steps(asked.front(), "the run has ended after step " + with_commas(state.step),
                         "a longer train.duration continues it");
  }
  begin_course(std::span(loaded.changes).subspan(before), steps_left, state);
  return warnings;
}

setup::ScheduleOrigin schedule_origin(const run::RunState& state) {
  setup::ScheduleOrigin origin(state.schedule_steps);
  for (const run::MemberState& member : state.members) {
    if (member.schedule_began) origin.began.push_back(*member.schedule_began);
  }
  return origin;
}

void refuse_without_steps(const std::string& asked, const std::string& why, const std::string& help) {
  const Place place{"--change", 1, 1, std::max(1, count_characters(asked)), asked};
  throw Error(ExitStatus::usage,
              Diagnostic{"usage", place, why + ", so no step is left that a change applies to", help, {}});
}

std::string unrepeated_changes_warning(const spec::Loaded& loaded) {
  if (loaded.recorded.empty()) return "";
  std::vector<std::string> made;
  for (const spec::Change& change : loaded.recorded) {
    made.push_back(printable(change.key) + " to " + printable(change.value) + " after step " +
                   with_commas(change.step));
  }
  return "x-changes are not repeated: the run of this config changed " + join(made, ", ") +
         ", and this one keeps the values that it begins with";
}

}  // namespace pmaptrain::train
