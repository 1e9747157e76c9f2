#include "core/setup/setup.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "core/analysis/cost.h"
#include "core/base/text.h"
#include "core/data/images/mix.h"
#include "core/data/sources/open.h"
#include "core/graph/passes.h"
#include "core/kernel/in_f32.h"
#include "core/ops/all.h"
#include "core/passes/pipeline.h"
#include "core/run/records/lines.h"
#include "core/runtime/backends.h"
#include "core/setup/advice.h"
#include "core/setup/initial_advice.h"
#include "core/setup/initialize.h"
#include "core/setup/resident.h"
#include "core/setup/statistics_advice.h"
#include "core/setup/without_effect.h"

namespace pmaptrain::train {
namespace {

Timetable make_timetable(const spec::Spec& spec, const data::BatchPlan& batch, bool evaluates) {
  Timetable timetable;
  timetable.steps_per_epoch = batch.steps_per_epoch;
  timetable.steps = to_steps(spec.train.duration, batch, "train.duration");
  const auto interval = [&](const spec::Interval& given, const std::string& key) {
    return given ? to_steps(*given, batch, key) : 0;
  };
  timetable.log_every = interval(spec.train.log_every, "train.log_every");
  timetable.eval_every = evaluates ? interval(spec.train.eval_every, "train.eval_every") : 0;
  timetable.verify_every = interval(spec.train.verify_replicas, "train.verify_replicas");
  if (const spec::Interval& every = spec.train.checkpoint.every) {
    if (spec::is_time(*every)) {
      timetable.save_seconds = spec::seconds_of(*every);
    } else {
      timetable.save_every = to_steps(*every, batch, "train.checkpoint.every");
    }
  }
  timetable.saves_during_run = timetable.save_every > 0 || timetable.save_seconds > 0 || spec.train.checkpoint.best;
  if (spec.train.loss_spike) {
    timetable.spike_window = to_steps(spec.train.loss_spike->window, batch, "train.loss_spike.window");
  }
  return timetable;
}

// Checks that a split is evaluated if a key (best checkpoint, early stopping, plateau) selects by evaluations. Adds a
// warning if that is the test split.
void check_selection(Setup& setup) {
  const spec::TrainSpec& train = setup.spec().train;
  std::vector<SelectionSplit> found;
  const auto check = [&](const char* key, const auto& given) {
    if (given) found.push_back(selection_split_of(setup, key, given->place));
  };
  check("train.checkpoint.best", train.checkpoint.best);
  check("train.early_stopping", train.early_stopping);
  check("optimizer.reduce_on_plateau", setup.spec().optimizer.reduce_on_plateau);
  if (!found.empty() && !found.front().warning.empty()) setup.warnings.push_back(found.front().warning);
}

// A warning about mixed precision on a CPU without bf16 instructions; empty if the CPU has them or needs none.
std::string missing_instructions(const spec::MeshSpec& mesh, const model::Model& model) {
  const std::vector<const model::Node*> layers = model.nodes();
  const bool mixed =
      std::any_of(layers.begin(), layers.end(), [](const model::Node* layer) { return layer->compute == DType::bf16; });
  const bool is_automatic = mesh.backend == spec::Backend::automatic;
  const bool on_cpu = mesh.backend == spec::Backend::cpu || (is_automatic && find_gpus().all.empty());
  if (!mixed || !on_cpu || has_bf16_instructions()) return "";
  return "precision: mixed_bfloat16 is slower than float32 here: this CPU has no instructions for bfloat16 "
         "(AVX512_BF16 or AMX), or ONEDNN_MAX_CPU_ISA hides them, so convolutions and matrix products convert their "
         "operands to float32 and compute in that; precision: float32 avoids it, and results differ by roundings alone";
}

}  // namespace

Setup::Setup() = default;
Setup::Setup(const Setup&) = default;
Setup::Setup(Setup&&) noexcept = default;
Setup& Setup::operator=(const Setup&) = default;
Setup& Setup::operator=(Setup&&) noexcept = default;
Setup::~Setup() = default;

model::Model model_of(const spec::Spec& spec, const data::Source& source, const data::Dataset& split) {
  return model::make_model(spec, split.input(), split.target(), DType::f32, source.encoding);
}

namespace {

std::vector<Member> make_members(const Setup& setup, std::span<const std::int64_t> schedule_began) {
  std::vector<Member> made;
  const data::Dataset& train = *setup.source.train;
  bool may_overflow = false;
  for (std::int64_t m = 0; m < spec::members(setup.spec()); ++m) {
    const spec::Spec& spec = setup.member_spec(m);
    const auto began =
        schedule_began.empty() ? std::nullopt : std::optional(schedule_began[static_cast<std::size_t>(m)]);
    Member member{make_optimizer(spec.optimizer, setup.model, setup.batch, setup.timetable.schedule_steps, began), {}};
    member.numbers = step_numbers(model_of(spec, setup.source, train), spec, member.optimizer);
    may_overflow = may_overflow || member.optimizer.may_overflow;
    made.push_back(std::move(member));
  }
  // Members share one program.
  for (Member& member : made) member.optimizer.may_overflow = may_overflow;
  for (std::size_t i = 0; i < setup.model.parameters.size(); ++i) {
    const bool by_rows = std::all_of(made.begin(), made.end(), [i](const Member& member) {
      return member.optimizer.parameter_options[i].tokens > 0;
    });
    for (Member& member : made) {
      if (!by_rows) member.optimizer.parameter_options[i].tokens = 0;
    }
  }
  return made;
}

// All values that can make the training of two members different.
struct Course {
  std::vector<double> numbers;
  double plateau_factor = 1;
  std::optional<std::int64_t> initial_member;
  std::optional<std::uint64_t> seed, data_seed;  // none if nothing is drawn with the seed
  friend auto operator<=>(const Course&, const Course&) = default;
};

// The members of an ensemble by the course of their training.
std::map<Course, std::vector<std::int64_t>> by_course(const Setup& setup, const InitialValues& initial) {
  std::map<Course, std::vector<std::int64_t>> found;
  for (std::int64_t m = 0; m < spec::members(setup.spec()); ++m) {
    const spec::Spec& spec = setup.member_spec(m);
    Course course;
    for (const equations::Number& number : setup.members[static_cast<std::size_t>(m)].numbers) {
      course.numbers.push_back(number.value);
    }
    if (const auto& plateau = spec.optimizer.reduce_on_plateau) course.plateau_factor = plateau->factor;
    if (initial.varies_by_member()) course.initial_member = m;
    if (initial.draws() || !setup.model.drawing_layers().empty()) course.seed = spec.seed;
    if (data::training_stream(spec.data, spec.seed, *setup.source.train).is_random()) {
      course.data_seed = data::seed_of(spec.data, spec.seed);
    }
    found[course].push_back(m);
  }
  return found;
}

// Warnings about members whose parameters will be equal, because the courses of their training are.
std::vector<std::string> equal_members(const spec::Spec& spec,
                                       const std::map<Course, std::vector<std::int64_t>>& members_by_course) {
  std::vector<std::string> warnings;
  for (const auto& entry : members_by_course) {
    const std::vector<std::int64_t>& members = entry.second;
    if (members.size() == 1) continue;
    const bool seeds = std::any_of(members.begin(), members.end(), [&](std::int64_t m) {
      const spec::Spec &one = spec::member_spec(spec, m), &first = spec::member_spec(spec, members.front());
      return one.seed != first.seed || one.data.seed != first.data.seed;
    });
    warnings.push_back(names_of(members) + " will have equal parameters: " +
                       (seeds ? "nothing is drawn by the seeds in which they differ, neither initial values nor "
                                "dropout nor the order of the data"
                              : "their values in ensemble.vary are equal"));
  }
  std::sort(warnings.begin(), warnings.end());
  return warnings;
}

EpochSums epoch_of(const data::BatchPlan& batch) {
  return batch.steps_per_epoch == 1 ? EpochSums::last_step : EpochSums::all_steps;
}

// Makes the programs, which depend on the batches of the setup.
void make_programs(Setup& setup) {
  const spec::Spec& spec = setup.member_spec();
  StepProgram step =
      step_program(setup.training_model(), spec, setup.optimizer(),
                   {setup.batch.rows_per_device, setup.batch.microbatches}, all_ops(), epoch_of(setup.batch));
  setup.training = std::make_shared<const Program>(optimize(std::move(step.program)));
  setup.roles = std::move(step.roles);
  setup.training_work = 0;
  if (const model::Model& model = setup.training_model(); spec.fsdp() != nullptr || model.has_remat()) {
    spec::Spec plain = spec;
    plain.parallelism.reset();
    setup.training_work = work_of(optimize(train_program(model.without_remat(), plain, setup.optimizer(),
                                                         {setup.batch.rows_per_device, setup.batch.microbatches},
                                                         all_ops(), Stage::final, epoch_of(setup.batch))));
  }
  setup.evaluations.clear();
  if (setup.timetable.eval_every == 0) return;
  const model::Weights weights = model::weights_of(spec.train.ema);
  const std::vector<model::Bucket> buckets = buckets_of(setup.model, setup.optimizer(), model::sharding_of(spec));
  for (const data::Split split : {data::Split::validation, data::Split::test}) {
    const auto& dataset = setup.source.of(split);
    if (!dataset) continue;
    setup.evaluations.push_back(
        plan_evaluation(setup.model, spec, split, dataset, setup.batch.rows_at_once(), weights, buckets));
  }
}

// Warnings about keys for GPUs that have no effect because no GPU is used.
std::vector<std::string> unused_gpu_keys(const spec::MeshSpec& mesh) {
  if (!mesh.gpu_memory && !mesh.tf32) return {};
  const bool is_automatic = mesh.backend == spec::Backend::automatic;
  if (mesh.backend == spec::Backend::cuda || (is_automatic && !find_gpus().all.empty())) return {};
  const std::string backend = mesh.backend == spec::Backend::reference ? "reference" : "cpu";
  const std::string why =
      " does nothing: mesh.backend is " + (is_automatic ? "auto, and no GPU was found" : backend) + "; with cuda it ";
  std::vector<std::string> warnings;
  if (mesh.gpu_memory) warnings.push_back("mesh.gpu_memory" + why + "limits the plan");
  if (mesh.tf32) warnings.push_back("mesh.tf32" + why + "lets tensor cores round the operands of products");
  return warnings;
}

}  // namespace

Program optimize(Program program) {
  program = run_passes(std::move(program), passes_of_all_backends());
  shrink(program);
  return program;
}

namespace {

std::shared_ptr<const MixedTraining> mixed_training(const Setup& setup) {
  const spec::Augmentation* const mixing = data::mixing_augmentation(setup.spec().data.augment);
  if (mixing == nullptr) return nullptr;
  const model::Model& model = setup.model;
  if (model.has_distributions()) return std::make_shared<MixedTraining>(MixedTraining{setup.source.train, model});
  if (!model.has_labels() || model.has_sequences() || model.is_binary() || model.is_multi_label()) {
    throw Error(ExitStatus::usage,
                Diagnostic{"config",
                           mixing->place,
                           spec::to_string(mixing->kind) + " mixes the classes of softmax_cross_entropy; the loss is " +
                               spec::to_string(model.loss) + ", with targets " +
                               std::string(to_string(model.target.dtype)) + to_string(model.target.shape),
                           "remove it, or train with one class for each image and softmax_cross_entropy",
                           {}});
  }
  if (const std::optional<std::int64_t> ignored = model.ignored_label()) {
    throw Error(ExitStatus::usage,
                Diagnostic{"config",
                           mixing->place,
                           spec::to_string(mixing->kind) +
                               " mixes the labels of two images, but softmax_cross_entropy leaves out those that are " +
                               std::to_string(*ignored) + " (ignore_label)",
                           "remove one of the two",
                           {}});
  }
  spec::Spec spec = setup.member_spec();
  spec.loss = model.loss;
  if (auto* entropy = std::get_if<spec::SoftmaxCrossEntropy>(&spec.loss)) {
    entropy->class_weights.balanced = false;  // `each` has the weights by now, and probabilities cannot be balanced
  }
  std::shared_ptr<const data::Dataset> examples = data::one_hot_labels(setup.source.train, model.classes());
  model::Model of_mixed = model_of(spec, setup.source, *examples);
  return std::make_shared<MixedTraining>(MixedTraining{std::move(examples), std::move(of_mixed)});
}

}  // namespace

Setup make_setup(spec::Loaded loaded, std::optional<ScheduleOrigin> schedule, const data::Encoding* continued,
                 std::shared_ptr<InitialFile> initial_file) {
  Setup setup;
  setup.initial_file = std::move(initial_file);
  setup.loaded = std::move(loaded);
  const spec::Spec& spec = setup.member_spec();
  const Mesh mesh = spec::data_mesh(spec.mesh);
  setup.source = data::open(spec.data, spec.seed, mesh.devices(), std::nullopt, nullptr, continued);
  if (setup.source.channels) spec::set_channels(setup.loaded, *setup.source.channels);
  const data::Dataset& train = *setup.source.train;
  setup.batch = data::plan_training(spec.data, mesh, train.size());
  setup.model = model_of(spec, setup.source, train);
  model::check_tokens(setup.model, train, spec.data.source_place);
  model::check_targets(setup.model, train, spec.data.source_place, setup.source.empty_folders);
  for (const data::Split split : {data::Split::validation, data::Split::test}) {
    if (const auto& dataset = setup.source.of(split)) {
      model::check_tokens(setup.model, *dataset, spec.data.source_place);
      model::check_targets(setup.model, *dataset, spec.data.source_place);
    }
  }
  setup.mixed = mixed_training(setup);
  if (std::string note =
          check_initial_file(setup.model, spec.model, setup.membership(0).ensemble_size, setup.initial_file.get());
      !note.empty()) {
    setup.source.notes.push_back(std::move(note));
  }
  setup.warnings = unused_keys(setup.source, spec.train);
  for (const Diagnostic& warning : setup.source.warnings) {
    setup.warnings.push_back(warning.message + in_parentheses(warning.place) + ": " + warning.help);
  }
  const bool is_limited = spec.data.limit.train.has_value();
  if (std::string warning = model::unused_classes(setup.model, setup.source, is_limited); !warning.empty()) {
    setup.warnings.push_back(std::move(warning));
  }
  setup.timetable = make_timetable(spec, setup.batch, setup.source.validation || setup.source.test);
  const bool resumed = schedule.has_value();  // the parameters then come from the checkpoint
  const ScheduleOrigin origin = resumed ? std::move(*schedule) : ScheduleOrigin(setup.timetable.steps);
  setup.timetable.schedule_steps = origin.steps;
  setup.members = make_members(setup, origin.began);
  check_statistics(setup);
  make_programs(setup);
  check_selection(setup);
  if (std::string note = best_model_not_kept(spec.train); !note.empty()) setup.source.notes.push_back(std::move(note));
  if (std::string warning = missing_instructions(spec.mesh, setup.model); !warning.empty()) {
    setup.warnings.push_back(std::move(warning));
  }
  for (std::string& warning : unused_gpu_keys(spec.mesh)) setup.warnings.push_back(std::move(warning));
  if (!resumed) {
    const InitialValues initial(setup.model, spec.model, 0, setup.membership(0), setup.initial_file.get());
    for (std::string& warning : unreached_boundaries(setup)) setup.warnings.push_back(std::move(warning));
    for (std::string& mistake : likely_mistakes(setup)) setup.warnings.push_back(std::move(mistake));
    for (std::string& doubt : doubtful_statistics(setup, initial)) setup.warnings.push_back(std::move(doubt));
    for (std::string& warning : frozen_draws(setup, initial)) setup.warnings.push_back(std::move(warning));
    if (std::string text = other_classes(setup, initial); !text.empty()) setup.warnings.push_back(std::move(text));
    if (std::string text = other_normalisation(setup, initial); !text.empty()) {
      setup.source.notes.push_back(std::move(text));
    }
    if (setup.spec().ensemble) {
      for (std::string& warning : equal_members(setup.spec(), by_course(setup, initial))) {
        setup.warnings.push_back(std::move(warning));
      }
    }
  } else if (continued != nullptr && !continued->exact) {
    for (std::string& mistake : mistakes_of_older_versions(setup)) setup.warnings.push_back(std::move(mistake));
  }
  return with_data_on_devices(std::move(setup));
}

Setup with_batches(Setup setup, std::int64_t batch_size, std::int64_t microbatches) {
  // A batch serves all members, so the first member's config has its size.
  spec::DataSpec data = setup.member_spec().data;
  data.batch_size = batch_size;
  data.microbatches = microbatches;
  setup.batch = data::plan_training(data, spec::data_mesh(setup.member_spec().mesh), setup.source.train->size());
  make_programs(setup);
  return setup;
}

Setup with_sharding(Setup setup, int stage) {
  spec::Spec& spec = setup.loaded.spec;
  spec::Fsdp fsdp;
  fsdp.stage = stage;
  fsdp.axes = spec.mesh.roles.data;
  spec.parallelism = spec::Parallelism{std::move(fsdp)};
  make_programs(setup);
  return setup;
}

Program program_at(const Setup& setup, Stage stage) {
  return train_program(setup.training_model(), setup.member_spec(), setup.optimizer(),
                       {setup.batch.rows_per_device, setup.batch.microbatches}, all_ops(), stage,
                       epoch_of(setup.batch));
}

EvaluationPlan plan_evaluation(const model::Model& model, const spec::Spec& spec, data::Split split,
                               std::shared_ptr<const data::Dataset> dataset, std::int64_t rows, model::Weights weights,
                               std::span<const model::Bucket> buckets) {
  const data::BatchPlan batch = data::plan_evaluation(dataset->size(), rows, spec::data_mesh(spec.mesh).devices());
  const auto program = [&](const model::Sharding& sharding) {
    return optimize(model::evaluation_program(model, spec.mesh.mesh, spec.mesh.roles.data, batch.rows_per_device,
                                              all_ops(), weights, buckets, sharding));
  };
  return {std::string(data::name_of(split)), std::move(dataset), batch,
          std::make_shared<const Program>(program(model::sharding_of(spec))),
          spec.fsdp() != nullptr ? work_of(program({})) : 0};
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

StepCost cost_of(const Program& program) {
  const Cost cost = pmaptrain::cost_of(program);
  StepCost total{cost.flops, {}};
  for (const Axis& axis : program.mesh.axes()) total.wire_bytes.emplace_back(axis.name, 0.0);
  for (const auto& [axes, bytes] : cost.wire) {
    std::size_t outermost = 0;
    while (!axes.contains(static_cast<int>(outermost))) ++outermost;
    total.wire_bytes[outermost].second += bytes;
  }
  return total;
}

StepCost cost_of(const Program& training, const spec::Spec& spec) {
  StepCost cost = train::cost_of(training);
  if (!spec.ensemble) return cost;
  cost.flops *= static_cast<double>(spec::members(spec));
  StepCost whole{cost.flops, {}};
  for (const Axis& axis : spec.mesh.mesh.axes()) {
    const auto sent = std::find_if(cost.wire_bytes.begin(), cost.wire_bytes.end(),
                                   [&](const auto& entry) { return entry.first == axis.name; });
    whole.wire_bytes.emplace_back(axis.name, sent != cost.wire_bytes.end() ? sent->second : 0.0);
  }
  return whole;
}

}  // namespace pmaptrain::train
