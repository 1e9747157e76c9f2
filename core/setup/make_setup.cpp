#include "core/setup/make_setup.h"

#include <algorithm>
#include <compare>
#include <map>
#include <span>
#include <utility>

#include "core/base/text.h"
#include "core/data/one_hot.h"
#include "core/input/batches/padded_sizes.h"
#include "core/input/open.h"
#include "core/kernel/in_f32.h"
#include "core/losses/softmax_cross_entropy.h"
#include "core/run/records/lines.h"
#include "core/runtime/backends.h"
#include "core/setup/advice.h"
#include "core/setup/base.h"
#include "core/setup/data_checks.h"
#include "core/setup/initial_advice.h"
#include "core/setup/initialize.h"
#include "core/setup/options.h"
#include "core/setup/plan.h"
#include "core/setup/programs.h"
#include "core/setup/resident.h"
#include "core/setup/statistics_advice.h"
#include "core/setup/without_effect.h"

namespace pmaptrain::setup {
namespace {

step::Timetable make_timetable(const spec::Spec& spec, const BatchPlan& batch, bool evaluates) {
  step::Timetable timetable;
  timetable.steps_per_epoch = batch.steps_per_epoch;
  timetable.steps = step::to_steps(spec.train.duration, batch, "train.duration");
  const auto interval = [&](const spec::Interval& given, const std::string& key) {
    return given ? step::to_steps(*given, batch, key) : 0;
  };
  timetable.log_every = interval(spec.train.log_every, "train.log_every");
  timetable.eval_every = evaluates ? interval(spec.train.eval_every, "train.eval_every") : 0;
  timetable.verify_every = interval(spec.train.verify_replicas, "train.verify_replicas");
  if (const spec::Interval& every = spec.train.checkpoint.every) {
    if (spec::is_time(*every)) {
      timetable.save_seconds = spec::seconds_of(*every);
    } else {
      timetable.save_every = step::to_steps(*every, batch, "train.checkpoint.every");
    }
  }
  timetable.saves_during_run = timetable.save_every > 0 || timetable.save_seconds > 0 || spec.train.checkpoint.best;
  if (spec.train.loss_spike) {
    timetable.spike_window = step::to_steps(spec.train.loss_spike->window, batch, "train.loss_spike.window");
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

// A warning about mixed precision on a CPU without fast instructions for bf16; empty if the CPU has them or needs none.
std::string missing_instructions(const spec::MeshSpec& mesh, const model::Model& model) {
  const std::vector<const model::Node*> layers = model.nodes();
  const bool mixed =
      std::any_of(layers.begin(), layers.end(), [](const model::Node* layer) { return layer->compute == DType::bf16; });
  const bool is_automatic = mesh.backend == spec::Backend::automatic;
  const bool on_cpu = mesh.backend == spec::Backend::cpu || (is_automatic && find_gpus().all.empty());
  if (!mixed || !on_cpu || multiplies_bf16_faster()) return "";
  return "precision: mixed_bfloat16 is not faster than float32 here: this CPU has no fast instructions for bfloat16 "
         "(AMX, or AVX512_BF16 of other CPUs than Intel's), or ONEDNN_MAX_CPU_ISA hides them, so convolutions and "
         "matrix products convert their operands to float32 and compute in that; precision: float32 avoids it, and "
         "results differ by roundings alone";
}

std::vector<Member> make_members(const Setup& setup, std::span<const std::int64_t> schedule_began) {
  std::vector<Member> made;
  const data::Dataset& train = *setup.source.train;
  bool may_overflow = false;
  for (std::int64_t m = 0; m < spec::members(setup.spec()); ++m) {
    const spec::Spec& spec = setup.member_spec(m);
    const auto began =
        schedule_began.empty() ? std::nullopt : std::optional(schedule_began[static_cast<std::size_t>(m)]);
    Member member{step::make_optimizer(spec.optimizer, setup.model, setup.batch, setup.timetable.schedule_steps, began),
                  {}};
    member.numbers = step::step_numbers(model_of(spec, setup.source, train), step_options(spec), member.optimizer);
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
    if (spec.data.bucket_by_length ||
        input::training_stream(spec.data, spec.seed, *setup.source.train, setup.batch.global).is_random()) {
      course.data_seed = input::seed_of(spec.data, spec.seed);
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
    warnings.push_back(run::names_of(members) + " will have equal parameters: " +
                       (seeds ? "nothing is drawn by the seeds in which they differ, neither initial values nor "
                                "dropout nor the order of the data"
                              : "their values in ensemble.vary are equal"));
  }
  std::sort(warnings.begin(), warnings.end());
  return warnings;
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

std::shared_ptr<const MixedTraining> mixed_training(const Setup& setup) {
  const augment::Augmentation* const mixing = augment::mixing_augmentation(setup.spec().data.augment);
  if (mixing == nullptr) return nullptr;
  const model::Model& model = setup.model;
  if (model.has_distributions()) return std::make_shared<MixedTraining>(MixedTraining{setup.source.train, model});
  if (!model.has_labels() || model.has_sequences() || model.is_binary() || model.is_multi_label()) {
    throw Error(ExitStatus::usage,
                Diagnostic{"config",
                           mixing->place,
                           mixing->kind->name() + " mixes the classes of softmax_cross_entropy; the loss is " +
                               model.loss->name() + ", with targets " + std::string(to_string(model.target.dtype)) +
                               to_string(model.target.shape),
                           "remove it, or train with one class for each image and softmax_cross_entropy",
                           {}});
  }
  if (const std::optional<std::int64_t> ignored = model.ignored_label()) {
    throw Error(ExitStatus::usage,
                Diagnostic{"config",
                           mixing->place,
                           mixing->kind->name() +
                               " mixes the labels of two images, but softmax_cross_entropy leaves out those that are " +
                               std::to_string(*ignored) + " (ignore_label)",
                           "remove one of the two",
                           {}});
  }
  spec::Spec spec = setup.member_spec();
  spec.loss = model.loss;
  if (const auto* const entropy = model.loss.as<losses::SoftmaxCrossEntropy>()) {
    losses::SoftmaxCrossEntropy weighed = *entropy;
    weighed.class_weights.balanced = false;  // `each` has the weights by now, and probabilities cannot be balanced
    spec.loss = weighed;
  }
  std::shared_ptr<const data::Dataset> examples = data::one_hot_labels(setup.source.train, model.classes());
  model::Model of_mixed = model_of(spec, setup.source, *examples);
  return std::make_shared<MixedTraining>(MixedTraining{std::move(examples), std::move(of_mixed)});
}

// Batches of one step are of one size, so they have the same sequences for all members.
void check_buckets(const Setup& setup) {
  const spec::DataSpec& data = setup.member_spec().data;
  if (!data.bucket_by_length || training_streams(setup).size() == 1) return;
  throw Error(ExitStatus::usage,
              Diagnostic{"config",
                         data.bucket_by_length_place,
                         "bucket_by_length pads the batches of a step to one length, and members that draw their order "
                         "from seeds of their own have other sequences in it",
                         "leave data.seed out of ensemble.vary, so that all members have one order, or remove "
                         "bucket_by_length",
                         {}});
}

// A warning where no step is shorter than the arrays; else empty.
std::string nothing_is_shorter(const Setup& setup) {
  const spec::DataSpec& data = setup.member_spec().data;
  if (!data.bucket_by_length || !setup.shorter.empty()) return "";
  const std::string all = std::to_string(setup.model.input.shape.front()) + " positions";
  return "data.bucket_by_length" + in_parentheses(data.bucket_by_length_place) + " makes no step shorter: " +
         (input::padded_sizes(*setup.source.train).empty()
              ? "even among the quarter of the sequences that are shortest, one has nearly all " + all
              : "a layer needs more positions than the shorter sequences have; the arrays have " + all);
}

}  // namespace

Setup make_setup(spec::Loaded loaded, std::optional<ScheduleOrigin> schedule, const data::Encoding* continued,
                 std::shared_ptr<InitialFile> initial_file) {
  Setup setup;
  setup.initial_file = std::move(initial_file);
  setup.loaded = std::move(loaded);
  const spec::Spec& spec = setup.member_spec();
  const Mesh mesh = spec::data_mesh(spec.mesh);
  setup.source = input::open(spec.data, spec.seed, mesh.devices(), std::nullopt, nullptr, continued);
  if (setup.source.channels) spec::set_channels(setup.loaded, *setup.source.channels);
  const data::Dataset& train = *setup.source.train;
  setup.batch = input::plan_training(spec.data, mesh, train.size());
  setup.model = model_of(spec, setup.source, train);
  check_tokens(setup.model, train, spec.data.source_place);
  check_targets(setup.model, train, spec.data.source_place, setup.source.empty_folders);
  for (const data::Split split : {data::Split::validation, data::Split::test}) {
    if (const auto& dataset = setup.source.of(split)) {
      check_tokens(setup.model, *dataset, spec.data.source_place);
      check_targets(setup.model, *dataset, spec.data.source_place);
    }
  }
  setup.mixed = mixed_training(setup);
  take_word_vectors(setup);
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
  if (std::string warning = unused_classes(setup.model, setup.source, is_limited); !warning.empty()) {
    setup.warnings.push_back(std::move(warning));
  }
  setup.timetable = make_timetable(spec, setup.batch, setup.source.validation || setup.source.test);
  const bool resumed = schedule.has_value();  // the parameters then come from the checkpoint
  const ScheduleOrigin origin = resumed ? std::move(*schedule) : ScheduleOrigin(setup.timetable.steps);
  setup.timetable.schedule_steps = origin.steps;
  setup.members = make_members(setup, origin.began);
  check_statistics(setup);
  check_buckets(setup);
  make_programs(setup);
  if (std::string warning = nothing_is_shorter(setup); !warning.empty()) setup.warnings.push_back(std::move(warning));
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
    for (std::string& warning : check_base(setup, initial)) setup.warnings.push_back(std::move(warning));
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

}  // namespace pmaptrain::setup
