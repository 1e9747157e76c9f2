#include "core/train/guards.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/setup/plan.h"
#include "core/step/optimizer.h"
#include "core/train/replay.h"
#include "core/train/replicas.h"

namespace pmaptrain::train {
namespace {

// The reason for skipped steps; `halts`, where the run ends at one that is not finite.
std::string skipped_why(const model::Model& model, bool halts) {
  const bool is_padding = model.has_padding && model.ignored_label().value_or(label_of_padding) == label_of_padding;
  const std::string by = is_padding ? "(all sequences have the length 0)" : "(ignore_label)";
  const std::string what = model.has_padded_numbers() ? "position" : "label";
  if (halts) return " skipped: no " + what + " of the batch counted " + by;
  return std::string(" skipped: the loss, the gradient or the update was not finite") +
         (model.may_count_nothing() ? ", or no " + what + " of the batch counted " + by
          : model.weighted          ? ", or the weights of the batch were all 0"
                                    : "") +
         " (train.on_nonfinite: skip)";
}

// What may help after a step that was not finite. `updates`: those that were made before it.
std::string what_may_help(const spec::Spec& spec, const step::Optimizer& optimizer, const data::Dataset& train,
                          std::int64_t updates) {
  if (updates == 0) {
    const bool is_measured = train.input().dtype == DType::f32 && !spec.data.normalize;
    return std::string("no update came before it: look at the data and the initial values first") +
           (is_measured ? "; data.normalize: auto brings the inputs near 0" : "");
  }
  // The factor of a plateau is not known here.
  const std::string rate =
      spec.optimizer.reduce_on_plateau
          ? ""
          : " (" + fmt::format("{:.3g}", step::learning_rate_at(optimizer, updates)) + " at the update before)";
  std::vector<std::string> ways{"a lower optimizer.learning_rate" + rate};
  if (!optimizer.schedule || !optimizer.schedule->name.starts_with("warmup"))
    ways.emplace_back("a schedule with a warm-up");
  if (!spec.optimizer.clip && !spec.optimizer.clip_by_global_norm)
    ways.emplace_back("optimizer.clip_by_global_norm: 1.0");
  if (spec.precision == spec::PrecisionPolicy::mixed_bfloat16) ways.emplace_back("precision: float32");
  return listed(ways, "or") + " may help";
}

}  // namespace

std::vector<GuardState> guard_states(const step::StepRoles& roles, Module& module,
                                     std::span<const std::int64_t> members) {
  std::vector<Handle> inputs = {module.input(setup::train_entry, roles.step)};
  if (roles.finite) inputs.push_back(module.input(setup::train_entry, *roles.finite));
  if (roles.skipped) inputs.push_back(module.input(setup::train_entry, *roles.skipped));
  std::vector<GuardState> states;
  for (const auto& numbers : setup::numbers_of(module, inputs, members)) {
    GuardState& state = states.emplace_back();
    state.updates = static_cast<std::int64_t>(numbers.front().front());
    if (roles.finite) state.finite = numbers[1].front() != 0;
    if (roles.skipped) state.skipped = static_cast<std::int64_t>(numbers.back().front());
  }
  return states;
}

std::string Guards::skipped_steps(std::int64_t skipped) const {
  if (skipped == 0 || must_stop()) return "";
  return (skipped == 1 ? "1 step was" : with_commas(skipped) + " steps were") +
         skipped_why(setup_.model, setup_.roles.finite.has_value());
}

// After a bad step the program updates nothing, so the number of updates tells which step was the first bad one,
// however many steps have run since.
bool Guards::check_finite(const GuardState& state, bool replays) {
  if (state.finite || must_stop()) return false;
  const std::int64_t good = state.updates + steps_skipped(state);
  const bool weighs = weighs_anything(good + 1);
  reason_ = "step " + std::to_string(good + 1) + ": " +
            (weighs ? "the loss, the gradient or the update is not finite"
                    : "the weights of the batch are all 0, so it has no mean") +
            "; stopped with the parameters " +
            (good == 0 ? "that training began with" : "after step " + std::to_string(good)) +
            " (train.on_nonfinite: halt)";
  if (!weighs) reason_ += "; a larger batch, or on_nonfinite: skip, gets past it";
  if (weighs) reason_ += "; " + (replays ? replayed(good + 1, state.updates) : advice(state.updates));
  good_steps_ = good;
  return true;
}

std::string Guards::advice(std::int64_t updates) const {
  return what_may_help(setup_.member_spec(member_), setup_.optimizer(member_), *setup_.source.train, updates);
}

std::string Guards::replayed(std::int64_t step, std::int64_t updates) const {
  const Module& module = reader_.module();
  const MemberShare& share = module.member_share();
  std::string here = share.has(member_) ? replayed_here(step, updates) : std::string();
  if (share.is_whole()) return here;
  return texts_of_all(module.processes(), here)[static_cast<std::size_t>(share.first_process(member_))];
}

std::string Guards::replayed_here(std::int64_t step, std::int64_t updates) const {
  std::string text;
  if (reader_.is_sharded()) {
    text =
        "it is not replayed, because processes have shards of what it began with: a run of this seed without "
        "parallelism names the layer";
  } else {
    try {
      Replayed found = replay(setup_, reader_.module(), step, member_);
      if (found.is_of_few) return found.text;
      text = std::move(found.text);
    } catch (const Error& error) {  // the run ends anyway, and the replay only explains why
      text = "it could not be replayed: " + error.diagnostics().front().message;
    } catch (const std::bad_alloc&) {
      text = "it could not be replayed: there is not enough memory";
    } catch (const std::exception& error) {  // other processes wait for the text
      text = std::string("it could not be replayed: ") + error.what();
    }
  }
  return text + "; " + advice(updates);
}

bool Guards::weighs_anything(std::int64_t step) const {
  try {
    return has_weighted_example(setup_.member_spec(member_), *setup_.source.train, setup_.batch, step);
  } catch (const Error&) {  // the data can no longer be read; what is said next does not need it
    return true;
  }
}

// Every step may have been skipped, so that nothing was trained.
bool Guards::check_all_skipped(const GuardState& state, std::int64_t steps) {
  if (steps == 0 || steps_skipped(state) < steps || must_stop()) return false;
  reason_ = (steps == 1 ? "the only step was" : "all " + with_commas(steps) + " steps were") +
            skipped_why(setup_.model, setup_.roles.finite.has_value());
  return true;
}

bool Guards::check_replicas(std::int64_t step, Agreement& agreement) {
  const bool is_alone = agreement.processes().transport == nullptr;
  if ((compared_at_ == step && is_alone) || must_stop()) return false;
  compared_at_ = step;
  const auto divergence = find_divergence(reader_, &agreement, member_);
  if (!divergence) return false;
  reason_ = "step " + std::to_string(step) + ": " + describe(*divergence, *setup_.training) +
            "; the checkpoint holds what device 0 has, which may be damaged too";
  return true;
}

}  // namespace pmaptrain::train
