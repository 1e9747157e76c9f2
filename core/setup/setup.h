// Everything that is fixed before the first step, made from a config: data, model, batches, programs. `validate`,
// `explain`, `run` and `eval` all begin with it, so their output cannot disagree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/graph/program.h"
#include "core/input/batches/batch.h"
#include "core/input/content.h"
#include "core/model/model.h"
#include "core/run/records/events.h"
#include "core/runtime/backend.h"
#include "core/spec/load.h"
#include "core/step/options.h"
#include "core/step/step_program.h"
#include "core/step/timetable.h"

namespace pmaptrain::setup {

struct InitialFile;

// The evaluation of one split.
struct EvaluationPlan {
  std::string split;                             // "validation", "test"
  std::shared_ptr<const data::Dataset> dataset;  // the examples, or their row numbers if the split stays on the devices
  BatchPlan batch;
  std::shared_ptr<const Program> program;  // simplified, for batches of `batch`
  double work = 0;                         // see Entry
};

// A split that stays on the devices, with the names of the program inputs that hold its examples.
struct ResidentSplit {
  std::string split, inputs, targets;
  std::shared_ptr<const data::Dataset> dataset;
};

// What may be different for each member of an ensemble.
struct Member {
  step::Optimizer optimizer;
  std::vector<equations::Number> numbers;  // of the step, in the order of step_numbers
};

// The number of a member and the size of its ensemble. Without an ensemble, the run is member 0 and has no size.
struct Membership {
  std::int64_t member = 0;
  std::optional<std::int64_t> ensemble_size = std::nullopt;
};

// Where a schedule begins: with the run, or at the step of a --change that set it.
struct ScheduleOrigin {
  ScheduleOrigin(std::int64_t its_steps, std::vector<std::int64_t> its_began = {})
      : steps(its_steps), began(std::move(its_began)) {}
  std::int64_t steps;               // of the run from there on: the default length of schedules
  std::vector<std::int64_t> began;  // updates of each member before it; empty: it begins with the run
};

// With mixed examples (core/augment/augmenter.h) the training program reads class probabilities, evaluations labels.
struct MixedTraining {
  std::shared_ptr<const data::Dataset> examples;
  model::Model model;
};

// The training program for steps whose sequences all end by position `positions`.
struct ShorterTraining {
  std::int64_t positions = 0;
  std::shared_ptr<const data::Dataset> examples;  // those of training, up to that position
  std::shared_ptr<const Program> program;         // simplified; it has the inputs and outputs of Setup::training
  double work = 0;                                // see Entry
};

// Model, batch and programs are those of one member, and all members of an ensemble share them. They are made for the
// member's mesh, as if it were trained alone.
struct Setup {
  spec::Loaded loaded;
  data::Source source;
  input::Contents contents;  // of the files of `source`, set by those that identify them; make_setup() reads none
  model::Model model;
  BatchPlan batch;
  step::Timetable timetable;
  step::StepOptions step;                   // of the training program
  std::vector<Member> members;              // one without an ensemble
  std::vector<std::string> warnings;        // keys without effect for this data, or with little effect on this machine
  std::shared_ptr<const Program> training;  // simplified
  double training_work = 0;                 // see Entry
  std::vector<ShorterTraining> shorter;     // with data.bucket_by_length; in ascending order of their positions
  step::StepRoles roles;                    // of its inputs and outputs
  // The first split is evaluated at train.eval_every: validation if there is one, else test. If there are both, test is
  // the second, and is evaluated at the end. Empty without such a split, or if eval_every is never.
  std::vector<EvaluationPlan> evaluations;
  std::vector<ResidentSplit> resident_splits;
  std::shared_ptr<const data::Dataset> row_numbers;  // of the training split, if it stays on the devices
  std::shared_ptr<const MixedTraining> mixed;        // with mixup or cutmix
  std::shared_ptr<InitialFile> initial_file;         // of model.init.from, if it was opened before

  // The data set from which a loader fills the batches of training: the training split, or its row numbers if the split
  // stays on the devices.
  const std::shared_ptr<const data::Dataset>& loader_dataset() const {
    return row_numbers ? row_numbers : training_examples();
  }
  // The training split, and the model of the training program.
  const std::shared_ptr<const data::Dataset>& training_examples() const {
    return mixed ? mixed->examples : source.train;
  }
  const model::Model& training_model() const { return mixed ? mixed->model : model; }
  const spec::Spec& spec() const { return loaded.spec; }
  // The config of a run of this member alone; without an ensemble the config itself.
  const spec::Spec& member_spec(std::int64_t member = 0) const { return spec::member_spec(loaded.spec, member); }
  const step::Optimizer& optimizer(std::int64_t member = 0) const {
    return members.at(static_cast<std::size_t>(member)).optimizer;
  }
  // The mesh of the whole run. The program has the mesh of a member.
  const Mesh& mesh() const { return loaded.spec.mesh.mesh; }
  Membership membership(std::int64_t member) const {
    return {member, spec().ensemble ? std::optional(spec::members(spec())) : std::nullopt};
  }
  // The member's number in events and messages: none without an ensemble.
  run::MemberNumber member_number(std::int64_t member) const {
    return spec().ensemble ? run::MemberNumber(member) : std::nullopt;
  }

  // Defined in its source: their code is long, and each source that copies or destroys one would compile it again.
  Setup();
  Setup(const Setup&);
  Setup(Setup&&) noexcept;
  Setup& operator=(const Setup&);
  Setup& operator=(Setup&&) noexcept;
  ~Setup();
};

// The model of a config for the data of `source`. `split` is one of its splits.
model::Model model_of(const spec::Spec& spec, const data::Source& source, const data::Dataset& split);

// The split on which the best checkpoint, early stopping and plateaus select: the first that is evaluated. `warning` is
// empty unless that is the test split. Throws Error (usage) at `place`, the place of the key `key`, if nothing is
// evaluated.
struct SelectionSplit {
  std::string split, warning;
};
SelectionSplit selection_split_of(const Setup& setup, const std::string& key, const Place& place);

}  // namespace pmaptrain::setup
