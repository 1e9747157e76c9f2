#include "core/evaluate/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/evaluate/member_outputs.h"
#include "core/evaluate/threshold.h"
#include "core/metrics/confusion_matrix.h"
#include "core/model/batch.h"
#include "core/model/prediction.h"
#include "core/ops/all.h"
#include "core/run/checkpoint.h"
#include "core/run/run_folder.h"
#include "core/setup/base.h"
#include "core/setup/data_checks.h"
#include "core/setup/memory.h"
#include "core/setup/processes.h"
#include "core/setup/programs.h"
#include "core/setup/restore.h"
#include "core/setup/start.h"
#include "core/setup/values.h"

namespace pmaptrain::evaluate {
namespace {

data::Split chosen_split(const spec::DataSpec& spec, const std::optional<std::string>& name) {
  std::vector<std::string> names;
  for (const data::Split split : data::all_splits) {
    if (input::has_split(spec, split)) names.emplace_back(data::name_of(split));
  }
  if (!name) {
    for (const data::Split split : {data::Split::test, data::Split::validation}) {
      if (input::has_split(spec, split)) return split;
    }
    fail_usage("the data has neither a test nor a validation split", "there is train: add --split train");
  }
  const std::optional<data::Split> split = data::split_named(*name);
  if (!split || !input::has_split(spec, *split)) {
    fail_usage("the data has no split '" + *name + "'",
               names.size() == 1 ? "there is train: add --split train" : "there are " + join(names, ", "));
  }
  return *split;
}

}  // namespace

std::vector<std::int64_t> chosen_members(const spec::Spec& spec, run::MemberNumber member) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(spec::members(spec)));
  std::iota(all.begin(), all.end(), 0);
  if (!member) return all;
  const std::string given = "member " + std::to_string(*member);
  if (!spec.ensemble) {
    fail_usage(given + " is asked for, but the run is no ensemble", "leave --member out");
  }
  if (*member < 0 || *member >= std::ssize(all)) {
    fail_usage("the ensemble has no " + given, "its members are 0 to " + std::to_string(all.size() - 1));
  }
  return {*member};
}

void check_same_members(const spec::Spec& spec, const run::RunState& state) {
  const auto shown = [](bool is_ensemble, std::int64_t members) {
    return is_ensemble ? counted(members, "member") : std::string("no ensemble");
  };
  const bool is_ensemble = spec.ensemble.has_value();
  if (is_ensemble == state.is_ensemble && spec::members(spec) == std::ssize(state.members)) return;
  fail_usage("the config has " + shown(is_ensemble, spec::members(spec)) + ", the checkpoint " +
                 shown(state.is_ensemble, std::ssize(state.members)),
             "use it with the run's own ensemble; --member N chooses one member");
}

// The bytes of the gathered rows, and of the memory to sort them by a probability.
std::size_t gathered_bytes(const setup::EvaluationPlan& plan, const model::Model& model) {
  const auto columns = static_cast<std::size_t>(model::row_size(model));
  const auto rows = static_cast<std::size_t>(plan.batch.rows() * plan.batch.steps_per_epoch);
  constexpr std::size_t order = 48;
  return columns == 0 ? 0 : product_of(rows, columns * sizeof(float) + order);
}

Evaluator::Evaluator(Module& module, std::size_t entry, const setup::EvaluationPlan& plan, const model::Model& model,
                     std::optional<double> threshold)
    : module_(module),
      entry_(entry),
      batch_(plan.batch),
      model_(model),
      threshold_(threshold),
      split_(plan.split),
      loader_(plan.dataset, data::Sampler::in_order(plan.batch.dataset), plan.batch,
              setup::batch_slots(module, entry, *plan.dataset, plan.batch), {0, 0}) {
  const std::size_t bytes = product_of(static_cast<std::size_t>(module.source().members), gathered_bytes(plan, model));
  if (bytes > 0) demand_memory(bytes, "what metrics gather of " + split_, "leave out roc_auc and confusion_matrix");
}

void Evaluator::add_step(Sums& sums, std::int64_t member) {
  // The outputs are the parts in their order, followed by the count.
  const auto output = [&](std::size_t i) {
    const Handle value = module_.output(entry_, i);
    return setup::to_doubles(setup::bytes_here(module_, value, {module_.own_device(), member}),  // waits for the step
                             module_.type(value).dtype);
  };
  for (std::size_t i = 0; i < sums.parts.size(); ++i) {
    const std::vector<double> found = output(i);
    for (std::size_t j = 0; j < found.size(); ++j) sums.parts[i][j] += found[j];
  }
  sums.count += output(sums.parts.size()).front();
  if (model::row_size(model_) == 0) return;
  const Handle rows = module_.output(entry_, "rows");
  const std::size_t slice = module_.slice_bytes(rows) / sizeof(float);
  const std::size_t begin = sums.rows.size();
  sums.rows.resize(begin + slice * static_cast<std::size_t>(batch_.devices));
  module_.read_every_instance_here(rows, member, std::as_writable_bytes(std::span(sums.rows).subspan(begin)));
}

void Evaluator::share(std::span<const std::int64_t> members, std::vector<Sums>& sums) {
  const MemberShare& share = module_.member_share();
  if (share.is_whole()) return;
  std::vector<double> numbers;
  for (const Sums& of_member : sums) {
    for (const std::vector<double>& part : of_member.parts) numbers.insert(numbers.end(), part.begin(), part.end());
    numbers.push_back(of_member.count);
  }
  module_.share_of_members(members, std::as_writable_bytes(std::span(numbers)));
  const double* next = numbers.data();
  for (Sums& of_member : sums) {
    for (std::vector<double>& part : of_member.parts) {
      std::copy_n(next, part.size(), part.begin());
      next += part.size();
    }
    of_member.count = *next++;
  }
  if (model::row_size(model_) == 0) return;
  const std::size_t slice = module_.slice_bytes(module_.output(entry_, "rows")) / sizeof(float);
  for (std::size_t m = 0; m < members.size(); ++m) {
    sums[m].rows.resize(slice * static_cast<std::size_t>(batch_.devices * batch_.steps_per_epoch));
    module_.share_of_members(members.subspan(m, 1), std::as_writable_bytes(std::span(sums[m].rows)));
  }
}

Evaluation Evaluator::finish(Sums sums, std::int64_t member) const {
  for (std::vector<double>& part : sums.parts) {
    for (double& sum : part) sum /= sums.count;
  }
  Evaluation evaluation{split_, model::finish_measures(model_, sums.parts), static_cast<std::int64_t>(sums.count), 0,
                        member};
  if (model::row_size(model_) == 0) return evaluation;
  model::RowMeasures gathered = model::finish_rows(model_, sums.rows, threshold_);
  for (auto& measure : gathered.values) evaluation.measures.push_back(std::move(measure));
  evaluation.confusion = std::move(gathered.confusion);
  return evaluation;
}

std::vector<Evaluation> Evaluator::run(std::span<const std::int64_t> members, const IsToStop& is_to_stop,
                                       const Progress& progress, const Fill& fill) {
  const Clock::time_point begin = Clock::now();
  loader_.restart(0, batch_.steps_per_epoch);
  Sums none;
  for (const metrics::MeasurePart& part : model::measure_parts(model_))
    none.parts.emplace_back(static_cast<std::size_t>(numel(part.shape)));
  std::vector<Sums> sums(members.size(), none);
  const std::int64_t gathered = model::row_size(model_) * batch_.rows() * batch_.steps_per_epoch;
  for (Sums& of_member : sums) of_member.rows.reserve(static_cast<std::size_t>(gathered));
  for (std::int64_t step = 0; step < batch_.steps_per_epoch; ++step) {
    if (progress) progress(step, batch_.steps_per_epoch);
    const int slot = loader_.next().slot;
    if (fill) fill(slot);
    if (is_to_stop && is_to_stop()) return {};
    module_.submit(entry_, slot, 1, members);
    for (std::size_t m = 0; m < members.size(); ++m) {
      if (module_.member_share().has(members[m])) add_step(sums[m], members[m]);
    }
  }
  share(members, sums);
  std::vector<Evaluation> evaluations;
  for (std::size_t m = 0; m < members.size(); ++m) evaluations.push_back(finish(std::move(sums[m]), members[m]));
  for (Evaluation& evaluation : evaluations) evaluation.seconds = seconds_since(begin);
  return evaluations;
}

std::vector<std::int64_t> remove_members_without_best(std::vector<std::int64_t>& members, const run::RunState& state) {
  std::vector<std::int64_t> without;
  for (const std::int64_t member : members) {
    if (!run::has_best(state, member)) without.push_back(member);
  }
  if (without.size() == members.size()) run::check_has_best(state, members.front(), "--checkpoint last");
  std::erase_if(members, [&](std::int64_t member) { return !run::has_best(state, member); });
  return without;
}

CheckpointEvaluation::CheckpointEvaluation(const spec::Loaded& loaded, const std::filesystem::path& run_dir,
                                           const std::string& checkpoint, const std::optional<std::string>& split,
                                           spec::Weights weights, run::MemberNumber member, bool is_own_data,
                                           SharedBatches shared, bool verify_data)
    : loaded_(loaded),
      checkpoint_(checkpoint),
      members_(chosen_members(loaded.spec, member)),
      trained_(run::load_weights(run_dir, checkpoint, weights, shared.first_process())),
      split_(chosen_split(spec::member_spec(loaded.spec, members_.front()).data, split)),
      shared_(shared) {
  const run::RunState& state = trained_.state;
  check_same_members(loaded.spec, state);
  if (checkpoint == "best" && state.is_ensemble) {
    if (member) run::check_has_best(state, *member, "--checkpoint last");
    left_out_ = remove_members_without_best(members_, state);
  }
  const spec::Spec& spec = spec::member_spec(loaded.spec, members_.front());
  is_own_data = compare_contents(is_own_data, verify_data);
  data_ = input::open(spec.data, spec.seed, spec::data_mesh(spec.mesh).devices(), split_, &state.encoding,
                      is_own_data ? &state.encoding : nullptr);
  const bool is_divided = split_ == data::Split::validation && spec.data.validation;
  if (is_own_data && is_divided && data_.train->size() != state.train_examples) {
    data_.notes.push_back("the data has changed: the run trained on " + counted(state.train_examples, "example") +
                          ", and now " + with_commas(data_.train->size()) +
                          " are left to train on, so validation has other examples than in the run");
  }
  if (!is_own_data && is_divided) {
    const std::int64_t taken = data_.of(split_)->size();
    data_.notes.push_back(
        fmt::format("data.validation takes {} of the {} of this other data; all of them: --split train "
                    "--set data.validation=null",
                    with_commas(taken), counted(taken + data_.train->size(), "example")));
  }
  const model::Model model = model_for(members_.front());
  setup::check_tokens(model, *data_.of(split_), spec.data.source_place);
  setup::check_targets(model, *data_.of(split_), spec.data.source_place);
  if (!shared_.is_alone()) check_processes();
}

bool CheckpointEvaluation::compare_contents(bool is_own_data, bool verify_data) {
  const input::Contents& before = trained_.state.contents;
  if (before.empty() && shared_.is_alone()) return is_own_data;
  try {
    contents_ = input::contents_of(loaded_, split(), verify_data);
  } catch (const Error&) {
    return is_own_data;  // input::open() says why it cannot be read
  }
  const std::string changed = input::difference(before, contents_);
  if (!is_own_data) return !contents_.empty() && changed.empty() && input::has_all(before, contents_);
  // Rows that could not be read may have been repaired.
  if (changed.empty() || !trained_.state.encoding.skipped.empty()) return true;
  throw Error(ExitStatus::data,
              Diagnostic{"data", loaded_.spec.data.source_place, "the run's data has changed: " + changed,
                         "restore the data; --data-root DIR, or --set data.source...=PATH, says where it lies by now"});
}

void CheckpointEvaluation::check_processes() const {
  std::string options = "eval " + split() + " of";
  for (const std::int64_t member : members_) options += " " + std::to_string(member);
  setup::check_processes(*shared_.agreement(), spec::member_spec(loaded_.spec, members_.front()).mesh,
                         {loaded_.resolved, options, data_.description, data_.encoding.tokenizer, contents_});
}

std::vector<Evaluation> CheckpointEvaluation::run(Evaluator& evaluator, std::span<const std::int64_t> members,
                                                  const Evaluator::Fill& fill) const {
  std::int64_t batch = 0;
  return evaluator.run(
      members,
      [&] {
        shared_.has_read(batch);
        return false;
      },
      [&](std::int64_t step, std::int64_t) {
        batch = step;
        shared_.reads(batch);
      },
      fill);
}

void CheckpointEvaluation::set_threshold(double probability) {
  check_takes_threshold(model(), "--threshold");
  threshold_ = probability;
  std::vector<spec::Spec*> specs{&loaded_.spec};
  if (loaded_.spec.ensemble) {
    for (spec::Spec& alone : loaded_.spec.ensemble->alone) specs.push_back(&alone);
  }
  bool has_one = false;
  for (spec::Spec* const spec : specs) {
    for (metrics::Metric& metric : spec->metrics) {
      const std::optional<metrics::MetricKind> changed = metric.kind->with_threshold(probability);
      if (changed) metric.kind = *changed;
      has_one = has_one || changed || metric.kind.as<metrics::ConfusionMatrix>() != nullptr;
    }
  }
  if (has_one) return;
  fail_usage("--threshold: the run has no metric with a threshold",
             "--set 'metrics=[f1, precision, recall, confusion_matrix]' has some; roc_auc and average_precision are of "
             "all thresholds");
}

model::Model CheckpointEvaluation::model_for(std::int64_t member) const {
  return setup::model_of(spec::member_spec(loaded_.spec, member), data_, *data_.of(split_));
}

std::vector<Evaluation> CheckpointEvaluation::evaluate_members() const {
  const spec::Spec& spec = spec::member_spec(loaded_.spec, members_.front());
  const run::RunState& state = trained_.state;
  const model::Model model = model_for(members_.front());
  // The batches are as large as the run's, so that sums are rounded alike. If batch_size is all, that is the size of
  // the training split.
  const setup::EvaluationPlan plan =
      setup::plan_evaluation(model, spec, split_, data_.of(split_),
                             input::rows_at_once(spec.data, spec::data_mesh(spec.mesh), state.train_examples));
  Source source{
      {{"evaluate", plan.program, input::batches_in_memory(data::Sampler::in_order(plan.batch.dataset), plan.batch),
        false, false, plan.work}}};
  source.members = std::ssize(members_);
  const std::unique_ptr<Planned> planned =
      setup::plan_source(spec.mesh, std::move(source), KernelChoice::best, shared_.processes()).planned;
  setup::check_memory(setup::estimate_evaluation(planned->needs()), plan.batch,
                      members_.size() > 1 ? "--member N evaluates one member alone" : "");
  shared_.meet();
  const std::unique_ptr<Module> module = std::move(*planned).load();
  {
    const auto opened = setup::open_base(model, spec, shared_.first_process());
    setup::write_base(*module, model, spec, state.base, {}, opened.get());
  }
  std::vector<std::int64_t> there;
  for (const std::int64_t member : members_) {
    there.push_back(std::ssize(there));
    setup::write_group(*module, there.back(), 0, Group::params, trained_.parameters.of_member(member),
                       trained_.parameters.path);
    setup::set_loss_numbers(*module, model_for(member), there.back());
  }
  Evaluator evaluator(*module, 0, plan, model, threshold_);
  std::vector<Evaluation> results = run(evaluator, there);
  const bool best = checkpoint_ == "best" && state.is_ensemble;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    results[m].member = members_[m];
    results[m].classes = state.encoding.classes;
    results[m].checkpoint = best ? run::best_checkpoint(state, members_[m]) : run::checkpoint_name(state.step);
  }
  trained_.parameters.file.check_intact();
  shared_.meet();
  return results;
}

// A batch has as many rows as training has in memory at once, so that an evaluation needs no more memory than training.
BatchPlan CheckpointEvaluation::batch_plan_of(const data::Dataset& dataset, const spec::Spec& spec) const {
  const Mesh mesh = spec::data_mesh(spec.mesh);
  return input::plan_evaluation(dataset.size(), input::rows_at_once(spec.data, mesh, trained_.state.train_examples),
                                mesh.devices());
}

// One module computes the outputs of the members, and another one the measures of their means.
Evaluation CheckpointEvaluation::evaluate_average() const {
  const spec::Spec& spec = spec::member_spec(loaded_.spec, members_.front());
  const model::Model model = model_for(members_.front());
  const std::shared_ptr<const data::Dataset> dataset = data_.of(split_);
  const Mesh& mesh = spec.mesh.mesh;
  const BatchPlan batch = batch_plan_of(*dataset, spec);
  Program program =
      model::averaged_evaluation_program(model, mesh, spec.mesh.roles.data, batch.rows_per_device, all_ops());
  const setup::EvaluationPlan plan{std::string(data::name_of(split_)), dataset, batch,
                                   std::make_shared<const Program>(setup::optimize(std::move(program)))};
  Source source{
      {{"evaluate", plan.program, input::batches_in_memory(data::Sampler::in_order(plan.batch.dataset), plan.batch)}}};
  // Logarithms are inverted before they are averaged, as predictions are.
  const model::PredictionKind kind =
      model.log_targets.empty() ? model::PredictionKind::logits : model::PredictionKind::values;
  MemberOutputs outputs(spec, model, kind, dataset, plan.batch, members_, trained_, shared_);
  const std::unique_ptr<Planned> planned =
      setup::plan_source(spec.mesh, std::move(source), KernelChoice::best, shared_.processes()).planned;
  setup::check_memory(setup::estimate_evaluation(planned->needs()), plan.batch,
                      "--member N evaluates one member alone");
  shared_.meet();
  const std::unique_ptr<Module> module = std::move(*planned).load();
  setup::set_loss_numbers(*module, model, 0);
  outputs.restart();
  const auto fill = [&](int slot) {
    outputs.next();
    const EnsembleMean found =
        ensemble_mean(outputs, model::output_kind(model), model.output.empty() ? 1 : model.output.back());
    const auto put = [&](const char* input, const std::vector<float>& numbers) {
      const std::span<std::byte> memory = module->batch(0, slot, input);  // of this process's devices
      const auto all = std::as_bytes(std::span(numbers));
      const IndexRange own = module->share(0).instances(spec.mesh.roles.data);
      const std::size_t begin =
          all.size() / static_cast<std::size_t>(batch.devices) * static_cast<std::size_t>(own.first);
      if (!memory.empty()) std::memcpy(memory.data(), all.subspan(begin).data(), memory.size());
    };
    put("outputs", found.outputs);
    put("probabilities", found.probabilities);
  };
  Evaluator evaluator(*module, 0, plan, model, threshold_);
  Evaluation result = run(evaluator, std::vector<std::int64_t>{0}, fill).front();
  result.classes = trained_.state.encoding.classes;
  result.is_of_mean = true;
  result.checkpoint = checkpoint_name_of_all();
  trained_.parameters.file.check_intact();
  shared_.meet();
  return result;
}

std::string CheckpointEvaluation::checkpoint_name_of_all() const {
  if (checkpoint_ != "best" || !trained_.state.is_ensemble) return run::checkpoint_name(trained_.state.step);
  return members_.size() > 1 ? checkpoint_ : run::best_checkpoint(trained_.state, members_.front());
}

void CheckpointEvaluation::predict(const std::function<void(const Predicted&)>& take) const {
  const spec::Spec& spec = spec::member_spec(loaded_.spec, members_.front());
  const model::Model model = model_for(members_.front());
  const std::shared_ptr<const data::Dataset> dataset = data_.of(split_);
  const BatchPlan batch = batch_plan_of(*dataset, spec);
  const bool has_classes = model::is_classifier(model);
  const model::PredictionKind kind = has_classes ? model::PredictionKind::logits : model::PredictionKind::values;
  // Values are averaged as they are: those of poisson are rates, and no logarithms.
  const model::OutputKind averaged = has_classes ? model::output_kind(model) : model::OutputKind::identity;
  MemberOutputs outputs(spec, model, kind, dataset, batch, members_, trained_, shared_);
  outputs.restart();
  const auto row = static_cast<std::size_t>(numel(model.output));
  std::vector<float> alone;
  for (std::int64_t step = 0; step < outputs.batches(); ++step) {
    Predicted predicted{step * batch.global, outputs.next(), {}, {}};
    const EnsembleMean found = ensemble_mean(outputs, averaged, model.output.empty() ? 1 : model.output.back());
    const std::size_t count = static_cast<std::size_t>(predicted.examples) * row;
    predicted.outputs = std::span(found.outputs).first(count);
    predicted.probabilities = std::span(found.probabilities).first(count);
    if (outputs.members() == 1) {  // takes the f32 outputs, because rounding a mean could make two of them equal
      alone.resize(outputs.numbers());
      for (std::size_t i = 0; i < alone.size(); ++i) alone[i] = static_cast<float>(outputs.number(0, i));
      predicted.outputs = std::span<const float>(alone).first(count);
    }
    take(predicted);
  }
  trained_.parameters.file.check_intact();
}

void CheckpointEvaluation::position_losses(const std::function<void(const PositionLosses&)>& take) const {
  const spec::Spec& spec = spec::member_spec(loaded_.spec, members_.front());
  const model::Model model = model_for(members_.front());
  const std::shared_ptr<const data::Dataset> dataset = data_.of(split_);
  const BatchPlan batch = batch_plan_of(*dataset, spec);
  MemberOutputs outputs(
      spec, model,
      model::position_losses_program(model, spec.mesh.mesh, spec.mesh.roles.data, batch.rows_per_device, all_ops()),
      dataset, batch, members_, trained_, shared_);
  outputs.restart();
  const auto positions = static_cast<std::size_t>(numel(model.target.shape));
  const std::int64_t members = outputs.members();
  std::vector<double> losses;
  std::vector<std::int32_t> likeliest;
  for (std::int64_t step = 0; step < outputs.batches(); ++step) {
    const std::int64_t examples = outputs.next();
    losses.clear();
    likeliest.clear();
    for (std::size_t i = 0; i < static_cast<std::size_t>(examples) * positions; ++i) {
      const std::size_t at = i / positions * 2 * positions + i % positions;
      double least = outputs.number(0, at), chance = 0;
      for (std::int64_t m = 1; m < members; ++m) least = std::min(least, outputs.number(m, at));
      for (std::int64_t m = 0; m < members; ++m) chance += std::exp(least - outputs.number(m, at));
      const bool is_alone = members == 1;
      losses.push_back(is_alone ? outputs.number(0, at) : least - std::log(chance / static_cast<double>(members)));
      likeliest.push_back(is_alone ? static_cast<std::int32_t>(outputs.number(0, at + positions)) : -1);
    }
    take({step * batch.global, examples, losses, likeliest});
  }
  trained_.parameters.file.check_intact();
}

std::vector<Evaluation> evaluate_checkpoint(const spec::Loaded& loaded, const std::filesystem::path& run_dir,
                                            const std::string& checkpoint, const std::optional<std::string>& split,
                                            spec::Weights weights, run::MemberNumber member) {
  return CheckpointEvaluation(loaded, run_dir, checkpoint, split, weights, member).evaluate_members();
}

}  // namespace pmaptrain::evaluate
