#include "core/report/sharding.h"

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/base/wrap.h"
#include "core/graph/bucket.h"
#include "core/model/gathers.h"
#include "core/ops/all.h"
#include "core/setup/options.h"
#include "core/setup/plan.h"
#include "core/setup/programs.h"
#include "core/step/table_rows.h"
#include "core/train/resources.h"

namespace pmaptrain::report {
namespace {

// The same run in another stage.
setup::Setup at_stage(setup::Setup setup, int stage) {
  std::optional<spec::Parallelism>& parallelism = setup.loaded.spec.parallelism;
  parallelism->fsdp->stage = stage;
  if (stage == 0) parallelism->fsdp.reset();
  const BatchPlan batch = setup.batch;
  return setup::with_batches(std::move(setup), batch.global, batch.microbatches);  // makes the programs anew
}

std::optional<std::size_t> memory_of_process(const setup::Setup& setup, int stage, int processes) {
  if (processes == 1 || setup.spec().ensemble) return std::nullopt;
  const setup::Setup sharded = at_stage(setup, stage);
  const setup::PlannedSource run = setup::plan_run(sharded, false, KernelChoice::best, {{0, processes}});
  if (run.backend->uses_gpus()) return std::nullopt;
  return train::estimate_memory(sharded, run.planned->needs()).total();
}

ShardingStage stage_of(const setup::Setup& setup, int stage) {
  spec::Spec spec = setup.member_spec();
  spec.parallelism->fsdp->stage = stage;
  if (stage == 0) spec.parallelism->fsdp.reset();
  const step::StepOptions step = setup::step_options(spec);
  const Program program =
      setup::optimize(step::train_program(setup.training_model(), step, setup.optimizer(),
                                          {setup.batch.rows_per_device, setup.batch.microbatches}, all_ops()));
  ShardingStage found;
  found.stage = stage;
  for (const Input& input : program.inputs) {
    const std::size_t size = bytes(program.type(input.value));
    if (is_of_model(input.group)) found.parameters += size;
    if (input.group == Group::state) found.state += size;
  }
  const ShardedSums sums = sharded_sums(setup.model, setup.optimizer(), step.sharding, spec.mesh);
  found.gradients = sums.gradients;
  found.gathered = sums.gathered;
  for (const auto& [axis, sent] : setup::cost_of(program).wire_bytes) found.sent += sent;
  return found;
}

std::string processes_text(const std::vector<ShardingStage>& stages) {
  // The programs of the stages differ by some hundred bytes.
  const auto shown = [&](std::size_t stage) { return human_bytes(stages[stage].process.value_or(0)); };
  if (!stages[2].process || (*stages[2].process < *stages[1].process && shown(2) != shown(1))) return "";
  return fmt::format(
      "  stage 2 takes no less memory of a process than stage 1: in both a process adds only its parts of large sums, "
      "but\n"
      "  first computes whole gradients; it takes less where a model has several groups of layers ({} parameters or "
      "more\n"
      "  each) and no microbatches\n",
      with_commas(model::least_in_group));
}

// What buckets have beyond those of plain data parallelism.
std::string padding_text(const setup::Setup& setup) {
  const Mesh& mesh = setup.member_spec().mesh.mesh;
  const model::Sharding& sharding = setup.step.sharding;
  std::int64_t elements = 0, needed = 0;
  bool by_rows = false;
  for (const model::Bucket& bucket : step::buckets_of(setup.model, setup.optimizer(), sharding)) {
    elements += model::elements_of(setup.model, bucket, sharding, mesh);
    needed += model::elements_of(setup.model, bucket, {}, mesh);
    by_rows = by_rows || bucket.tokens > 0;
  }
  if (elements == needed) return "";
  return fmt::format("  padding: {} of {} elements, because each of {} shards of a bucket has whole units of {}{}\n",
                     with_commas(elements - needed), with_commas(elements), mesh.group_size(sharding.state),
                     bucket_unit, by_rows ? ", and of a table that is updated by rows whole rows, too" : "");
}

}  // namespace

ShardedSums sharded_sums(const model::Model& model, const step::Optimizer& optimizer, const model::Sharding& sharding,
                         const spec::MeshSpec& of) {
  const Mesh& mesh = of.mesh;
  // GPUs that add in a fixed order receive parts only of sums that divide equally among all of them.
  const bool in_order = of.backend == spec::Backend::cuda && of.deterministic;
  const auto shards_of = [&](std::int64_t elements) {
    const bool divides = !in_order || elements % mesh.group_size(of.roles.data) == 0;
    return static_cast<std::size_t>(!sharding.gradients.empty() && divides ? mesh.group_size(sharding.gradients) : 1);
  };
  const std::vector<model::Bucket> buckets = step::buckets_of(model, optimizer, sharding);
  ShardedSums found;
  found.gathered = static_cast<std::size_t>(
                       model::most_gathered(model, model::with_base(buckets, model, sharding), sharding, mesh)) *
                   size_of(model.dtype);
  for (const model::Bucket& bucket : buckets) {
    if (bucket.tokens > 0) {  // each device has all rows
      const Shape rows = step::gradient_shape(model, mesh, bucket, bucket.parameters.front());
      found.gradients += static_cast<std::size_t>(numel(rows)) * size_of(model.dtype);
      continue;
    }
    const std::int64_t elements = model::elements_of(model, bucket, sharding, mesh);
    found.gradients += static_cast<std::size_t>(elements) * size_of(model.dtype) / shards_of(elements);
  }
  return found;
}

std::vector<ShardingStage> stages_of_sharding(const setup::Setup& setup, int processes) {
  std::vector<ShardingStage> stages;
  for (int stage = 0; stage <= 3; ++stage) {
    stages.push_back(stage_of(setup, stage));
    stages.back().process = memory_of_process(setup, stage, processes);
  }
  return stages;
}

std::string sharding_text(const setup::Setup& setup, int processes, bool on_gpus) {
  const spec::Fsdp* const fsdp = setup.member_spec().fsdp();
  if (fsdp == nullptr) return "";
  const Mesh& mesh = setup.member_spec().mesh.mesh;
  const std::vector<ShardingStage> stages = stages_of_sharding(setup, processes);
  std::vector<std::vector<std::string>> rows{{"each device has"}, {"parameters"},         {"gradients it receives"},
                                             {"optimizer state"}, {"gathered at a time"}, {"sends in a step"}};
  for (const ShardingStage& each : stages) {
    rows[0].push_back(each.stage == fsdp->stage ? fmt::format("*stage {}", each.stage)
                                                : fmt::format("stage {}", each.stage));
    rows[1].push_back(human_bytes(each.parameters));
    rows[2].push_back(human_bytes(each.gradients));
    rows[3].push_back(human_bytes(each.state));
    rows[4].push_back(human_bytes(each.gathered));
    rows[5].push_back(human_bytes(each.sent));
    if (!each.process) continue;
    if (each.stage == 0) rows.push_back({"memory of this process"});
    rows[6].push_back(human_bytes(*each.process));
  }
  const std::string note =
      processes == 1 && !on_gpus
          ? "  all devices share the memory of one process, so this saves none; mpirun starts several\n"
          : "";
  return fmt::format("sharding: stage {} along {}, {} shards (stage 0 is plain data parallelism)\n{}{}{}{}\n",
                     fsdp->stage, mesh.to_string(fsdp->axes), mesh.group_size(fsdp->axes),
                     in_columns(rows, {false, true, true, true, true}), processes_text(stages), padding_text(setup),
                     note);
}

}  // namespace pmaptrain::report
