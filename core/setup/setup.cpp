#include "core/setup/setup.h"

#include <utility>

#include "core/setup/options.h"

namespace pmaptrain::setup {

Setup::Setup() = default;
Setup::Setup(const Setup&) = default;
Setup::Setup(Setup&&) noexcept = default;
Setup& Setup::operator=(const Setup&) = default;
Setup& Setup::operator=(Setup&&) noexcept = default;
Setup::~Setup() = default;

model::Model model_of(const spec::Spec& spec, const data::Source& source, const data::Dataset& split) {
  return model_of(spec, split.input(), split.target(), source.encoding);
}

SelectionSplit selection_split_of(const Setup& setup, const std::string& key, const Place& place) {
  const auto refuse = [&](std::string why, std::string help) {
    throw Error(ExitStatus::usage,
                Diagnostic{"config", place, key + " has nothing to select on: " + std::move(why), std::move(help), {}});
  };
  if (!setup.spec().train.eval_every) refuse("train.eval_every is never", "evaluate, for example every epoch");
  if (setup.evaluations.empty()) {
    refuse("the data has neither a validation nor a test split",
           "data.validation: 0.1 would keep a tenth of the training examples aside");
  }
  if (setup.timetable.eval_every > setup.timetable.steps) {
    refuse("no evaluation is due during the run", "a train.eval_every of at most train.duration");
  }
  const std::string& split = setup.evaluations.front().split;
  if (split != "test") return {split, ""};
  return {split, key +
                     " selects on the test split, so the test measures of the run are no longer an unbiased estimate; "
                     "data.validation: 0.1 would keep a tenth of the training examples aside to select on"};
}

}  // namespace pmaptrain::setup
