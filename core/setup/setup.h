// From a config to everything that is fixed before the first step: data, model, batches, programs. `validate`,
// `explain`, `run` and `eval` all begin here, so what they say cannot disagree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/batches/batch.h"
#include "core/data/dataset.h"
#include "core/graph/program.h"
#include "core/model/model.h"
#include "core/run/records/events.h"
#include "core/runtime/backend.h"
#include "core/spec/load.h"
#include "core/step/step_program.h"
#include "core/step/timetable.h"

namespace pmaptrain::train {

// What evaluates one split.
struct EvaluationPlan {
  std::string split;                             // "validation", "test"
  std::shared_ptr<const data::Dataset> dataset;  // its examples, or their row numbers where it stays on the devices
  data::BatchPlan batch;
  std::shared_ptr<const Program> program;  // for batches of `batch`, simplified
};

// A split that stays on the devices: the inputs of programs that hold its examples.
struct ResidentSplit {
  std::string split, inputs, targets;
  std::shared_ptr<const data::Dataset> dataset;
};

// What the members of an ensemble may have different values of.
struct Member {
  Optimizer optimizer;
  std::vector<model::Number> numbers;  // of the step: step_numbers
};

// Of an ensemble, model, batch and programs are those of each member: they are made for the member's mesh, exactly as
// if the member were trained alone, and mention no other.
// A member of an ensemble of so many; without an ensemble the only one.
struct Membership {
  std::int64_t member = 0;
  std::optional<std::int64_t> of = std::nullopt;
};

// Where a schedule counts from.
struct ScheduleOrigin {
  ScheduleOrigin(std::int64_t its_steps, std::vector<std::int64_t> its_began = {})
      : steps(its_steps), began(std::move(its_began)) {}
  std::int64_t steps;               // of the run that were left there, which default lengths have
  std::vector<std::int64_t> began;  // the updates of each member until there; empty: it begins with the run
};

struct Setup {
  spec::Loaded loaded;
  data::Source source;
  model::Model model;
  data::BatchPlan batch;
  Timetable timetable;
  std::vector<Member> members;              // one without an ensemble
  std::vector<std::string> warnings;        // keys that do nothing with this data, or little on this machine
  std::shared_ptr<const Program> training;  // simplified: what runs
  StepRoles roles;                          // of its inputs and outputs
  // The first is evaluated at train.eval_every: validation where there is one, else test. Where there are both, test is
  // the second, evaluated at the end. Empty without either, or where eval_every is never.
  std::vector<EvaluationPlan> evaluations;
  std::vector<ResidentSplit> resident;
  std::shared_ptr<const data::Dataset> row_numbers;  // of the training split, where it stays on the devices

  // What batches of training are filled from.
  const std::shared_ptr<const data::Dataset>& fed() const { return row_numbers ? row_numbers : source.train; }
  const spec::Spec& spec() const { return loaded.spec; }
  // What a run of this member alone would have; without an ensemble the config itself.
  const spec::Spec& member_spec(std::int64_t member = 0) const { return spec::member_spec(loaded.spec, member); }
  const Optimizer& optimizer(std::int64_t member = 0) const {
    return members.at(static_cast<std::size_t>(member)).optimizer;
  }
  // The whole one. That of a member is the program's.
  const Mesh& mesh() const { return loaded.spec.mesh.mesh; }
  Membership membership(std::int64_t member) const {
    return {member, spec().ensemble ? std::optional(spec::members(spec())) : std::nullopt};
  }
  // What events and messages call this member: nothing without an ensemble.
  MemberNumber member_number(std::int64_t member) const {
    return spec().ensemble ? MemberNumber(member) : std::nullopt;
  }
};

// Opens the data and checks that everything fits together. `schedule` and `left_out`: of a resumed run, what its
// RunState says. Throws Error: usage, or data.
Setup make_setup(spec::Loaded loaded, std::optional<ScheduleOrigin> schedule = std::nullopt,
                 const data::Skipped& left_out = {});

// The model of a config for the data of `source`, of which `split` is one.
model::Model model_of(const spec::Spec& spec, const data::Source& source, const data::Dataset& split);

// The split on which the best checkpoint, early stopping and the like select: the first that is evaluated. The warning
// is empty unless that is the test split. Throws Error (usage) at `place`, of the key `key`, where nothing is
// evaluated.
struct SelectionSplit {
  std::string split, warning;
};
SelectionSplit selects_on(const Setup& setup, const std::string& key, const Place& place);

// The same run with other training batches, planned anew. Throws Error (usage) where the data or the mesh does not
// divide into them.
Setup with_batches(Setup setup, std::int64_t batch_size, std::int64_t microbatches);

// The training program at a stage, for `explain`. Not simplified before the final stage.
Program program_at(const Setup& setup, Stage stage);

// What runs on any backend: after the passes (core/passes/pipeline.h), the same bits from fewer passes over memory.
Program optimize(Program program);

// What evaluates `model` on `dataset`, in batches of at most `rows` rows over all devices.
EvaluationPlan plan_evaluation(const model::Model& model, const spec::Spec& spec, data::Split split,
                               std::shared_ptr<const data::Dataset> dataset, std::int64_t rows,
                               model::Weights weights = model::Weights::raw);

// Of one step over the whole mesh, and what each device sends, by axis name in mesh order (a collective over several
// axes counts once: for the outermost of more than one device).
struct StepCost {
  double flops = 0;
  std::vector<std::pair<std::string, double>> wire_bytes;
};
StepCost cost_of(const Program& program);
// Of a run's step: of all members, which send nothing to each other.
StepCost cost_of(const Setup& setup);

}  // namespace pmaptrain::train
