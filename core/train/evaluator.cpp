#include "core/train/evaluator.h"

#include <numeric>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/open.h"
#include "core/train/checkpoint.h"
#include "core/train/run_folder.h"
#include "core/train/start.h"
#include "core/train/values.h"

namespace pmaptrain::train {
namespace {

[[noreturn]] void refuse(std::string message, std::string help) {
  throw Error(ExitStatus::usage, Diagnostic{"usage", {}, std::move(message), std::move(help), {}});
}

data::Split chosen_split(const spec::DataSpec& spec, const std::optional<std::string>& name) {
  std::vector<std::string> names;
  for (const data::Split split : data::all_splits) {
    if (data::has_split(spec, split)) names.emplace_back(data::name_of(split));
  }
  if (!name) {
    for (const data::Split split : {data::Split::test, data::Split::validation}) {
      if (data::has_split(spec, split)) return split;
    }
    refuse("the data has neither a test nor a validation split", "there is train: add --split train");
  }
  const std::optional<data::Split> split = data::split_named(*name);
  if (!split || !data::has_split(spec, *split)) {
    refuse("the data has no split '" + *name + "'",
           names.size() == 1 ? "there is train: add --split train" : "there are " + join(names, ", "));
  }
  return *split;
}

}  // namespace

std::vector<std::int64_t> chosen_members(const spec::Spec& spec, MemberNumber member) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(spec::members(spec)));
  std::iota(all.begin(), all.end(), 0);
  if (!member) return all;
  const std::string given = "member " + std::to_string(*member);
  if (!spec.ensemble) {
    refuse(given + " is asked for, but the run is no ensemble", "leave --member out");
  }
  if (*member < 0 || *member >= std::ssize(all)) {
    refuse("the ensemble has no " + given, "its members are 0 to " + std::to_string(all.size() - 1));
  }
  return {*member};
}

void check_same_members(const spec::Spec& spec, const RunState& state) {
  const auto shown = [](bool is_ensemble, std::int64_t members) {
    return is_ensemble ? counted(members, "member") : std::string("no ensemble");
  };
  const bool is_ensemble = spec.ensemble.has_value();
  if (is_ensemble == state.is_ensemble && spec::members(spec) == std::ssize(state.members)) return;
  refuse("the config has " + shown(is_ensemble, spec::members(spec)) + ", the checkpoint " +
             shown(state.is_ensemble, std::ssize(state.members)),
         "use it with the run's own ensemble; --member N chooses one member");
}

Evaluator::Evaluator(Module& module, std::size_t entry, const EvaluationPlan& plan, const model::Model& model)
    : module_(module),
      entry_(entry),
      batch_(plan.batch),
      model_(model),
      split_(plan.split),
      loader_(plan.dataset, data::Sampler::in_order(plan.batch.dataset), plan.batch,
              batch_slots(module, entry, *plan.dataset, plan.batch), {0, 0}) {}

std::vector<Evaluation> Evaluator::run(std::span<const std::int64_t> members, const std::atomic<int>* stop,
                                       const Progress& progress) {
  const Clock::time_point begin = Clock::now();
  loader_.restart(0, batch_.steps_per_epoch);
  const std::vector<model::MeasurePart> parts = model::measure_parts(model_);
  struct Sums {
    std::vector<std::vector<double>> parts;
    double count = 0;
  };
  Sums none;
  for (const model::MeasurePart& part : parts) none.parts.emplace_back(static_cast<std::size_t>(numel(part.shape)));
  std::vector<Sums> sums(members.size(), none);
  for (std::int64_t step = 0; step < batch_.steps_per_epoch; ++step) {
    if (stop != nullptr && *stop != 0) return {};
    if (progress) progress(step, batch_.steps_per_epoch);
    module_.submit(entry_, loader_.next().slot, 1, members);
    for (std::size_t m = 0; m < members.size(); ++m) {
      // The outputs are the parts in their order, then the count.
      const auto output = [&](std::size_t i) {
        return numbers(module_, module_.output(entry_, i), {0, members[m]});  // waits for the step
      };
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::vector<double> found = output(i);
        for (std::size_t j = 0; j < found.size(); ++j) sums[m].parts[i][j] += found[j];
      }
      sums[m].count += output(parts.size()).front();
    }
  }
  std::vector<Evaluation> evaluations;
  for (std::size_t m = 0; m < members.size(); ++m) {
    auto& [means, count] = sums[m];
    for (std::vector<double>& part : means) {
      for (double& sum : part) sum /= count;
    }
    evaluations.push_back(
        {split_, model::finish_measures(model_, means), static_cast<std::int64_t>(count), 0, members[m]});
  }
  for (Evaluation& evaluation : evaluations) evaluation.seconds = seconds_since(begin);
  return evaluations;
}

std::vector<Evaluation> evaluate_checkpoint(const spec::Loaded& loaded, const std::filesystem::path& run_dir,
                                            const std::string& checkpoint, const std::optional<std::string>& name,
                                            spec::Weights weights, MemberNumber member) {
  std::vector<std::int64_t> members = chosen_members(loaded.spec, member);
  const spec::Spec& spec = spec::member_spec(loaded.spec, members.front());
  const data::Split split = chosen_split(spec.data, name);
  const CheckpointWeights trained = load_weights(run_dir, checkpoint, weights);
  const RunState& state = trained.state;
  const CheckpointFile& parameters = trained.parameters;
  check_same_members(loaded.spec, state);
  const bool best = checkpoint == "best" && state.is_ensemble;
  if (best && member) check_has_best(state, *member, "--checkpoint last");
  if (best) std::erase_if(members, [&](std::int64_t one) { return !has_best(state, one); });
  const data::Source data = data::open(spec.data, spec.seed, spec.mesh.mesh.devices(), split, &state.encoding);
  const data::Dataset& dataset = *data.of(split);
  const model::Model model = model_of(spec, data, dataset);
  model::check_targets(model, dataset, spec.data.source_place);
  // In the batches of the run, whose sums are rounded alike; batch_size: all is its training split.
  const EvaluationPlan plan = plan_evaluation(model, spec, split, data.of(split),
                                              data::rows_at_once(spec.data, spec.mesh.mesh, state.train_examples));
  Source source{
      {{"evaluate", plan.program, data::batches_in_memory(data::Sampler::in_order(plan.batch.dataset), plan.batch)}}};
  source.members = static_cast<std::int64_t>(members.size());
  const std::unique_ptr<Backend> backend = choose_backend(spec.mesh, source).backend;
  check_memory(estimate_evaluation(backend->needs(source)), plan.batch,
               members.size() > 1 ? "--member N evaluates one member alone" : "");
  const std::unique_ptr<Module> module = backend->load(source);
  std::vector<std::int64_t> loaded_members;
  for (const std::int64_t one : members) {
    const std::int64_t there = std::ssize(loaded_members);
    loaded_members.push_back(there);
    write_group(*module, there, 0, Group::params, parameters.of_member(one), parameters.path);
    set_loss_numbers(*module, model_of(spec::member_spec(loaded.spec, one), data, dataset), there);
  }
  std::vector<Evaluation> results = Evaluator(*module, 0, plan, model).run(loaded_members);
  for (std::size_t m = 0; m < members.size(); ++m) {
    results[m].member = members[m];
    results[m].checkpoint = best ? best_checkpoint(state, members[m]) : checkpoint_name(state.step);
  }
  parameters.file.check_intact();
  return results;
}

}  // namespace pmaptrain::train
