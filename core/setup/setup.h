// Everything that is fixed before the first step, made from a config: data, model, batches, programs. `validate`,
// `explain`, `run` and `eval` all begin with it, so their output cannot disagree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/batches/batch.h"
#include "core/data/content.h"
#include "core/data/dataset.h"
#include "core/graph/program.h"
#include "core/model/model.h"
#include "core/run/records/events.h"
#include "core/runtime/backend.h"
#include "core/spec/load.h"
#include "core/step/step_program.h"
#include "core/step/timetable.h"

namespace pmaptrain::train {

struct InitialFile;

// The evaluation of one split.
struct EvaluationPlan {
  std::string split;                             // "validation", "test"
  std::shared_ptr<const data::Dataset> dataset;  // the examples, or their row numbers if the split stays on the devices
  data::BatchPlan batch;
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
  Optimizer optimizer;
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

// With mixed examples (core/data/images/mix.h) the training program reads class probabilities, evaluations labels.
struct MixedTraining {
  std::shared_ptr<const data::Dataset> examples;
  model::Model model;
};

// Model, batch and programs are those of one member, and all members of an ensemble share them. They are made for the
// member's mesh, as if it were trained alone.
struct Setup {
  spec::Loaded loaded;
  data::Source source;
  data::Contents contents;  // of the files of `source`, set by those that identify them; make_setup() reads none
  model::Model model;
  data::BatchPlan batch;
  Timetable timetable;
  std::vector<Member> members;              // one without an ensemble
  std::vector<std::string> warnings;        // keys without effect for this data, or with little effect on this machine
  std::shared_ptr<const Program> training;  // simplified
  double training_work = 0;                 // see Entry
  StepRoles roles;                          // of its inputs and outputs
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
  const Optimizer& optimizer(std::int64_t member = 0) const {
    return members.at(static_cast<std::size_t>(member)).optimizer;
  }
  // The mesh of the whole run. The program has the mesh of a member.
  const Mesh& mesh() const { return loaded.spec.mesh.mesh; }
  Membership membership(std::int64_t member) const {
    return {member, spec().ensemble ? std::optional(spec::members(spec())) : std::nullopt};
  }
  // The member's number in events and messages: none without an ensemble.
  MemberNumber member_number(std::int64_t member) const {
    return spec().ensemble ? MemberNumber(member) : std::nullopt;
  }

  // Defined in its source: their code is long, and each source that copies or destroys one would compile it again.
  Setup();
  Setup(const Setup&);
  Setup(Setup&&) noexcept;
  Setup& operator=(const Setup&);
  Setup& operator=(Setup&&) noexcept;
  ~Setup();
};

// Opens the data and checks that everything fits together. For a resumed run, `schedule` and `continued`, the
// encoding with which it began, come from its RunState. Several processes open
// `initial_file` together, before; one process opens it each time that it needs it. Throws Error: usage, or data.
Setup make_setup(spec::Loaded loaded, std::optional<ScheduleOrigin> schedule = std::nullopt,
                 const data::Encoding* continued = nullptr, std::shared_ptr<InitialFile> initial_file = nullptr);

// The model of a config for the data of `source`. `split` is one of its splits.
model::Model model_of(const spec::Spec& spec, const data::Source& source, const data::Dataset& split);

// The split on which the best checkpoint, early stopping and plateaus select: the first that is evaluated. `warning` is
// empty unless that is the test split. Throws Error (usage) at `place`, the place of the key `key`, if nothing is
// evaluated.
struct SelectionSplit {
  std::string split, warning;
};
SelectionSplit selection_split_of(const Setup& setup, const std::string& key, const Place& place);

// The same setup with other training batches, planned again. Throws Error (usage) if the data or the mesh does not
// divide into such batches.
Setup with_batches(Setup setup, std::int64_t batch_size, std::int64_t microbatches);

// The same setup, which is no ensemble's, with parallelism.fsdp along all axes of the data.
Setup with_sharding(Setup setup, int stage);

// The training program at a stage of its construction (train::Stage), for `explain`. Only the program of the final
// stage is simplified.
Program program_at(const Setup& setup, Stage stage);

// Runs the passes that every backend needs (core/passes/pipeline.h). Only the pass `widen` changes bits of results; the
// other passes save reads and writes of memory.
Program optimize(Program program);

// Plans the evaluation of `model` on `dataset`, in batches of at most `rows` rows over all devices.
EvaluationPlan plan_evaluation(const model::Model& model, const spec::Spec& spec, data::Split split,
                               std::shared_ptr<const data::Dataset> dataset, std::int64_t rows,
                               model::Weights weights = model::Weights::raw,
                               std::span<const model::Bucket> buckets = {});

// The cost of one step over the whole mesh, and the bytes that each device sends, by axis name in mesh order. A
// collective over several axes counts once, for the outermost axis with more than one device.
struct StepCost {
  double flops = 0;
  std::vector<std::pair<std::string, double>> wire_bytes;
};
StepCost cost_of(const Program& program);
// The cost of a step of all members of `spec`, which send nothing to each other. `training` is the program of each.
StepCost cost_of(const Program& training, const spec::Spec& spec);

}  // namespace pmaptrain::train
