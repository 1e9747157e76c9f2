#include "core/step/step_program.h"

#include <cassert>
#include <cstring>
#include <optional>
#include <utility>

#include "core/equations/arithmetic.h"
#include "core/graph/check.h"
#include "core/model/gathers.h"
#include "core/ops/bucket/bucket.h"
#include "core/ops/collective/collective.h"
#include "core/ops/support/rules.h"
#include "core/step/clipping.h"
#include "core/step/device_sums.h"
#include "core/step/global_sums.h"
#include "core/step/statistics.h"
#include "core/step/step_inputs.h"

namespace pmaptrain::step {
namespace {

using equations::add;
using equations::cast;
using equations::div;
using equations::select;

class StepBuilder {
 public:
  StepBuilder(const model::Model& model, const StepOptions& options, const Optimizer& optimizer,
              const model::BatchShape& batch, const OpSet& ops, EpochSums epoch)
      : model_(model),
        options_(options),
        optimizer_(optimizer),
        batch_(batch),
        epoch_sums_(epoch),
        trained_(optimizer.trained()),
        statistics_(replaced_statistics(model, optimizer)),
        buckets_(buckets_of(model, optimizer, options.sharding)),
        b_(program_, ops),
        device_(b_, model, options, optimizer, statistics_, buckets_),
        global_(b_, buckets_, options.sharding, options.data_axes),
        tables_(buckets_.size()) {
    assert(batch.rows_per_device % batch.microbatches == 0);
    program_.mesh = options.mesh;
  }

  Program model_stage() {
    program_.name = "model";
    declare_model(batch_.rows_per_device / batch_.microbatches);
    const Sums sums = device_.forward(values_);
    output_measures(sums.measures, sums.count);
    return finish("building the model");
  }

  Program grad_stage() {
    program_.name = "grad";
    declare_model(batch_.rows_per_device);
    const Sums sums = device_.with_gradients(values_, batch_.microbatches);
    output_measures(sums.measures, sums.count);
    output_gradients(sums.gradients);
    return finish("differentiating the model");
  }

  Program synchronised_stage() {
    program_.name = "synchronised";
    if (!options_.sharding.state.empty()) return synchronised_shards();
    declare_model(batch_.rows_per_device);
    std::vector<AxisSet> divided;
    for (const std::size_t i : trained_) divided.push_back(model_.parameters[i].layout().axes());
    Sums global = global_.synchronised(device_.with_gradients(values_, batch_.microbatches), divided);
    const Value divisor = divisor_of(global);
    output_measures(measure_means(global, divisor), global.count);
    const Builder::Scope scope(b_, {"normalise", {}});
    for (Value& gradient : global.gradients) gradient = div(b_, gradient, divisor);
    output_gradients(global.gradients);
    return finish("synchronising the gradients");
  }

  // Of buckets: where shards are gathered and sums are scattered.
  Program synchronised_shards() {
    in_.parameters = model::declare_parameters(b_, model_, buckets_, options_.sharding);
    declare_batch_and_numbers(batch_.rows_per_device);
    use_parameters();
    const Sums global =
        global_.of_buckets(device_.packed(device_.with_gradients(values_, batch_.microbatches)), tables_);
    const Value divisor = divisor_of(global);
    output_measures(measure_means(global, divisor), global.count);
    const Builder::Scope scope(b_, {"normalise", {}});
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      b_.output("grad." + buckets_[i].name, div(b_, global.gradients[i], divisor));
    }
    return finish("synchronising the gradients");
  }

  StepProgram final_stage() {
    program_.name = "train_step";
    in_ = declare_step(b_, model_, options_, optimizer_, buckets_, batch_.rows_per_device);
    roles_ = input_roles(program_, in_, options_, buckets_);
    use_batch(in_.batch);
    values_.dropout_keys = in_.dropout_keys;
    use_numbers(step_numbers(model_, options_, optimizer_), in_.numbers);
    use_parameters();
    find_table_rows();
    stored_ = stored_parameters();
    owned_ = updated_of(stored_);
    for (const std::vector<Value>& kind : in_.slots) owned_slots_.push_back(updated_of(kind));

    const Sums local = device_.packed(device_.with_gradients(values_, batch_.microbatches, true), true);
    const Sums global = global_.of_buckets(local, tables_);
    const Value divisor = divisor_of(global);
    const std::vector<Value> means = measure_means(global, divisor);
    const GradientBuckets sums = gradient_buckets(model_, b_.mesh(), trained_, buckets_, global.gradients);
    const Norms norms = gradient_norms(sums, divisor);
    const Clipping clipping = emit_clipping(b_, optimizer_.options, numbers_, sums, divisor, norms);
    const Value next_step = incremented(in_.step);
    const Value learning_rate = learning_rate_now();
    const std::vector<Value> statistics = next_statistics(global);
    const Verdict verdict = judge(global, means.front(), sums, norms, clipping, divisor, next_step, learning_rate);
    const Update update = verdict.update ? *verdict.update : [&] {
      // A step that the guard refuses divides by 1. So the gradients depend on the verdict, and no part of the update
      // can be computed before it. The update and the selects that commit it are then fused into one pass over memory,
      // which stores no intermediate values.
      const Value safe_divisor = select(b_, verdict.good, divisor, b_.constant(model_.dtype, 1.0));
      const std::vector<Value> gradients =
          clipped_mean_gradients(b_, optimizer_.options, numbers_, sums.values, safe_divisor, clipping);
      return updated(owned_, gradients, owned_slots_, next_step, learning_rate);
    }();
    const std::vector<Value> next = commit(update, next_step, verdict.good);
    for (std::size_t i = 0; i < statistics_.size(); ++i) {
      const Value old = values_.parameters[statistics_[i]];
      replace(old, select(b_, verdict.good, statistics[i], old));
    }
    update_averages(next, verdict.good);
    accumulate_epoch_sums(global, verdict.good);

    output_measures(means, global.count);
    roles_.grad_norm = output("grad_norm", norms.global);
    roles_.used_learning_rate = output("learning_rate", learning_rate);
    return {finish("building the training step"), std::move(roles_)};
  }

 private:
  // ---- inputs

  // Declares the inputs of a stage without an update.
  void declare_model(std::int64_t rows) {
    values_.parameters = model::declare_parameters(b_, model_, {}).single;
    declare_batch_and_numbers(rows);
  }

  void declare_batch_and_numbers(std::int64_t rows) {
    use_batch(model::declare_batch(b_, model_, options_.data_axes, rows, true));
    const std::vector<equations::Number> numbers = model_.numbers();
    use_numbers(numbers, equations::declare_numbers(b_, numbers));
    values_.dropout_keys = declare_dropout_keys(b_, model_);
  }

  void use_batch(const model::BatchInputs& batch) {
    values_.batch = {batch.inputs, batch.targets, batch.mask, batch.rows};
    if (batch.lengths) values_.batch.push_back(*batch.lengths);
  }

  void use_parameters() {
    if (model::gathers_by_groups(model_, options_.sharding)) {
      values_.parameters = in_.parameters.single;
      values_.shards = in_.parameters.buckets;
      values_.shards.insert(values_.shards.end(), in_.parameters.base.begin(), in_.parameters.base.end());
    } else {
      values_.parameters = model::unpack_parameters(b_, model_, buckets_, in_.parameters);
    }
  }

  // The numbers of the model come first, as in step_numbers().
  void use_numbers(const std::vector<equations::Number>& numbers, const std::vector<Value>& values) {
    numbers_ = {numbers, values};
    values_.numbers.assign(values.begin(), values.begin() + std::ssize(model_.numbers()));
  }

  std::vector<Value> next_statistics(const Sums& global) {
    const Builder::Scope scope(b_, {"statistics", {}});
    std::vector<Value> old;
    for (const std::size_t i : statistics_) old.push_back(values_.parameters[i]);
    return moved_statistics(b_, model_, statistics_, old, global.statistics);
  }

  // ---- what a device updates

  void find_table_rows() {
    for (std::size_t k = 0; k < buckets_.size(); ++k) {
      if (buckets_[k].tokens == 0) continue;
      const Builder::Scope scope(b_, {model_.parameters[buckets_[k].parameters.front()].name, {}});
      tables_[k].emplace(b_, model_, buckets_[k], options_.sharding, in_.batch.inputs);
    }
  }

  // By bucket: what an update reads of what a device stores, all of it or rows of a table.
  std::vector<Value> updated_of(std::vector<Value> stored) {
    for (std::size_t k = 0; k < stored.size(); ++k) {
      if (tables_[k]) stored[k] = tables_[k]->rows_of(stored[k]);
    }
    return stored;
  }

  // Whether devices have whole parameters, and update parts of them.
  bool updates_parts_of_whole() const { return options_.sharding.parameters != options_.sharding.state; }

  // What a device updates of the parameters: buckets, or shards of them.
  std::vector<Value> stored_parameters() {
    if (!updates_parts_of_whole()) return in_.parameters.buckets;
    std::vector<Value> shards;
    for (const Value bucket : in_.parameters.buckets) shards.push_back(global_.own_part(bucket));
    return shards;
  }

  // The divisor of means: the global count of examples, or the sum of their weights, so that uneven shards have the
  // right weight. For a count of 0 it is 1: every mean is then 0, and judge() refuses the update.
  Value divisor_of(const Sums& global) {
    const Builder::Scope scope(b_, {"normalise", {}});
    const Value one = b_.constant(model_.dtype, 1.0);
    if (!model_.weighted) return b_.emit(ops::Max{}, {global.count, one});
    const Value weight = global.measures.back();
    return select(b_, b_.emit(ops::Gt{}, {weight, b_.constant(model_.dtype, 0.0)}), weight, one);
  }

  std::vector<Value> measure_means(const Sums& global, Value divisor) {
    const Builder::Scope scope(b_, {"normalise", {}});
    std::vector<Value> means;
    for (Value sum : global.measures) {
      const Value count = cast(b_, divisor, b_.type(sum).dtype);
      means.push_back(div(b_, sum, count));
    }
    return means;
  }

  // The norms of the mean gradient. They are computed from the sums and then divided, so the mean gradient is never
  // stored.
  Norms gradient_norms(const GradientBuckets& sums, Value divisor) {
    const Builder::Scope scope(b_, {"grad_norm", {}});
    const Norms norms = norms_of(b_, sums, model_.dtype);
    if (sums.values.empty()) return norms;
    const Value count = cast(b_, divisor, DType::f64);
    return {div(b_, norms.global, count), div(b_, norms.max_abs, divisor)};
  }

  struct Verdict {
    Value good;                    // bool[]: whether this step counts
    std::optional<Update> update;  // if the guard had to compute it and it need not be computed again
  };
  // The guard tests the largest magnitude, since the global norm may overflow although all elements are finite.
  Verdict judge(const Sums& global, Value loss, const GradientBuckets& sums, const Norms& norms,
                const Clipping& clipping, Value divisor, Value next_step, Value learning_rate) {
    const Builder::Scope scope(b_, {"guard", {}});
    const Value no = b_.constant(DType::boolean, 0.0);
    std::optional<Update> update;
    const Value weight = model_.weighted ? global.measures.back() : global.count;
    const Value counts = b_.emit(ops::Gt{}, {weight, b_.constant(model_.dtype, 0.0)});
    Value good = counts;
    const auto demand = [&](Value also) { good = select(b_, also, good, no); };
    demand(b_.emit(ops::IsFinite{}, {loss}));
    demand(b_.emit(ops::IsFinite{}, {norms.max_abs}));
    for (const Value bucket : global.statistics) demand(is_finite_bucket(b_, bucket));
    if (optimizer_.may_overflow) {
      const bool twice = computes_update_twice();
      const Update trial = trial_update(sums, divisor, clipping, next_step, learning_rate, twice);
      for (const Value finite : finite_updates(trial)) demand(finite);
      if (!twice) update = trial;
    } else {
      demand(b_.emit(ops::IsFinite{}, {optimizer_.options.rule->slot_bound(b_, clipping.max_abs)}));
    }
    if (in_.finite) demand(*in_.finite);
    if (in_.finite && in_.skipped) {
      const Value skips = select(b_, counts, no, *in_.finite);
      replace(*in_.finite, select(b_, skips, *in_.finite, good));
      replace(*in_.skipped, select(b_, skips, add(b_, *in_.skipped, 1.0), *in_.skipped));
    } else if (in_.finite) {
      replace(*in_.finite, good);
    } else {
      replace(*in_.skipped, select(b_, good, *in_.skipped, add(b_, *in_.skipped, 1.0)));
    }
    return {good, update};
  }

  // Whether an update that the guard has to compute is computed again to be committed. Keeping the new values costs
  // less if all of them fit a cache; otherwise computing them again costs less.
  bool computes_update_twice() const {
    std::int64_t elements = 0;
    for (const Value bucket : owned_) elements += numel(program_.type(bucket));
    return elements > 4096;
  }

  // The update for the guard to judge. If it will be computed again, optimization barriers keep the two apart.
  Update trial_update(const GradientBuckets& sums, Value divisor, const Clipping& clipping, Value next_step,
                      Value learning_rate, bool twice) {
    const auto apart = [&](const std::vector<Value>& values) {
      if (!twice) return values;
      std::vector<Value> copies;
      copies.reserve(values.size());
      for (Value value : values) copies.push_back(b_.emit(ops::OptimizationBarrier{}, {value}));
      return copies;
    };
    const std::vector<Value> parameters = apart(owned_);
    const std::vector<Value> gradients =
        clipped_mean_gradients(b_, optimizer_.options, numbers_, sums.values, divisor, clipping);
    std::vector<std::vector<Value>> slots;
    for (const std::vector<Value>& kind : owned_slots_) slots.push_back(apart(kind));
    return updated(parameters, gradients, slots, next_step, learning_rate);
  }

  // bool[] by bucket: whether all elements of its update are finite, slots included.
  std::vector<Value> finite_updates(const Update& update) {
    // 0 stands for a finite element and 1 for any other, so a maximum tells whether there is any other.
    const Value yes = b_.constant(DType::u8, 0.0), no = b_.constant(DType::u8, 1.0);
    std::vector<Value> found;
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      Value bad = select(b_, b_.emit(ops::IsFinite{}, {update.parameters[i]}), yes, no);
      for (const std::vector<Value>& kind : update.slots) {
        bad = select(b_, b_.emit(ops::IsFinite{}, {kind[i]}), bad, no);
      }
      // The rows of a large bucket are reduced in parallel.
      if (computes_update_twice()) bad = b_.emit(ops::ReduceMax{{1}}, {bucket_as_rows(b_, bad)});
      Value any = b_.emit(ops::ReduceMax{{0}}, {bad});
      if (const AxisSet axes = b_.type(any).varying; !axes.empty()) any = b_.emit(ops::Pmax{axes}, {any});
      found.push_back(b_.emit(ops::Eq{}, {any, yes}));
    }
    return found;
  }

  // A scope for equations of the optimizer: errors about them point to the optimizer in the config.
  Builder::Scope in_optimizer() { return {b_, {rule_name(optimizer_.options), optimizer_.options.place}}; }

  // The rate of this step, of the model's dtype. A schedule is computed in f64.
  Value learning_rate_now() {
    const Builder::Scope scope(b_, {"learning_rate", optimizer_.options.learning_rate.place});
    const Value rate = optimizer_.schedule
                           ? cast(b_, rate_after(b_, *optimizer_.schedule, numbers_, in_.step), model_.dtype)
                           : numbers_["learning_rate"];
    return in_.learning_rate_scale ? equations::mul(b_, rate, *in_.learning_rate_scale) : rate;
  }

  Value incremented(Value step) {
    const Builder::Scope scope = in_optimizer();
    return add(b_, step, 1.0);
  }

  Update updated(const std::vector<Value>& parameters, const std::vector<Value>& gradients,
                 const std::vector<std::vector<Value>>& slots, Value next_step, Value learning_rate) {
    const Builder::Scope scope = in_optimizer();
    std::vector<std::size_t> option_indices;  // by bucket: any of its parameters, since their options are equal
    for (const model::Bucket& bucket : buckets_) option_indices.push_back(bucket.parameters.front());
    return optimizer_update(b_, optimizer_, numbers_, option_indices, parameters, gradients, slots, next_step,
                            learning_rate);
  }

  // Returns what a device stores of the parameters after a good step.
  std::vector<Value> commit(const Update& update, Value next_step, Value good) {
    const Builder::Scope scope = in_optimizer();
    replace(in_.step, select(b_, good, next_step, in_.step));
    // Of bucket k: what is stored, what was read of that, and its new value.
    const auto committed = [&](std::size_t k, Value stored, Value old, Value next) {
      const Value kept = select(b_, good, next, old);
      return tables_[k] ? tables_[k]->with_rows(stored, kept) : kept;
    };
    std::vector<Value> all;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      Value next = committed(i, stored_[i], owned_[i], update.parameters[i]);
      all.push_back(tables_[i] ? next : update.parameters[i]);
      if (updates_parts_of_whole()) {
        const Builder::Scope gather(b_, {"gather", {}});
        next = b_.emit(ops::AllGatherInvariant{options_.sharding.state, 0}, {next});
      }
      replace(in_.parameters.buckets[i], next);
      for (std::size_t k = 0; k < in_.slots.size(); ++k) {
        replace(in_.slots[k][i], committed(i, in_.slots[k][i], owned_slots_[k][i], update.slots[k][i]));
      }
    }
    return all;
  }

  // Updates the averages of the parameters as optax.ema does. An average is finite if the new parameters are.
  void update_averages(const std::vector<Value>& parameters, Value good) {
    if (!options_.ema) return;
    const Builder::Scope scope(b_, {"ema", {}});
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const Value average = in_.ema[i];
      const Value past = equations::mul(b_, average, numbers_["ema/decay"]);
      const Value next = add(b_, past, equations::mul(b_, parameters[i], numbers_["ema/decay/rest"]));
      replace(average, select(b_, good, next, average));
    }
  }

  // Adds the sums of this step to those of the epoch, in f64 because an epoch has many batches. A step that the guard
  // refuses is left out.
  void accumulate_epoch_sums(const Sums& global, Value good) {
    const Builder::Scope scope(b_, {"epoch", {}});
    std::vector<Value> sums = global.measures;
    sums.push_back(global.count);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Value sum = cast(b_, sums[i], DType::f64);
      if (epoch_sums_ == EpochSums::last_step) {
        replace(in_.epoch[i], select(b_, good, sum, b_.constant(DType::f64, 0.0, b_.type(sum).shape)));
      } else {
        replace(in_.epoch[i], select(b_, good, add(b_, in_.epoch[i], sum), in_.epoch[i]));
      }
    }
  }

  // Declares `next` as the value of the input after the step.
  void replace(Value input, Value next) {
    Input& replaced = program_.inputs.at(static_cast<std::size_t>(input.id));
    assert(replaced.value == input);
    replaced.next = next;
  }

  void output_measures(const std::vector<Value>& measures, Value count) {
    const std::vector<metrics::MeasurePart> parts = model::measure_parts(model_);
    for (std::size_t i = 0; i < parts.size(); ++i) roles_.means.push_back(output(parts[i].name, measures[i]));
    roles_.count = output("count", count);
  }

  void output_gradients(const std::vector<Value>& gradients) {
    for (std::size_t i = 0; i < trained_.size(); ++i) {
      b_.output("grad." + model_.parameters[trained_[i]].name, gradients[i]);
    }
  }

  // Returns the index of the output.
  std::size_t output(const std::string& name, Value value) {
    b_.output(name, value);
    return program_.outputs.size() - 1;
  }

  Program finish(std::string_view what) {
    check(program_, what);
    return std::move(program_);
  }

  const model::Model& model_;
  const StepOptions& options_;
  const Optimizer& optimizer_;
  const model::BatchShape batch_;
  const EpochSums epoch_sums_;
  const std::vector<std::size_t> trained_;     // indices of parameters
  const std::vector<std::size_t> statistics_;  // indices of parameters: statistics that a step replaces
  const std::vector<model::Bucket> buckets_;   // of the trained parameters
  Program program_;
  Builder b_;

  DeviceSums device_;
  GlobalSums global_;
  StepInputs in_;                                 // of the finished step
  ModelValues values_;                            // its values, or those of another stage
  std::vector<std::optional<TableRows>> tables_;  // by bucket: in the finished step, of Bucket::tokens
  // By bucket: what a device stores of it as the one that updates it; what the update reads of that, which is all or
  // rows of a table; and this by kind of slot.
  std::vector<Value> stored_, owned_;
  std::vector<std::vector<Value>> owned_slots_;
  equations::Numbers numbers_;
  StepRoles roles_;
};

}  // namespace

Program train_program(const model::Model& model, const StepOptions& options, const Optimizer& optimizer,
                      const model::BatchShape& batch, const OpSet& ops, Stage stage, EpochSums epoch) {
  StepBuilder builder(model, options, optimizer, batch, ops, epoch);
  switch (stage) {
    case Stage::model: return builder.model_stage();
    case Stage::grad: return builder.grad_stage();
    case Stage::synchronised: return builder.synchronised_stage();
    case Stage::final: break;
  }
  return builder.final_stage().program;
}

StepProgram step_program(const model::Model& model, const StepOptions& options, const Optimizer& optimizer,
                         const model::BatchShape& batch, const OpSet& ops, EpochSums epoch) {
  return StepBuilder(model, options, optimizer, batch, ops, epoch).final_stage();
}

std::vector<std::byte> initial_bytes(const Type& type, double initial) {
  std::vector<std::byte> bytes(pmaptrain::bytes(type));
  dispatch(type.dtype, [&]<class T>() {
    const T value = static_cast<T>(initial);
    for (std::size_t i = 0; i < bytes.size(); i += sizeof value) std::memcpy(bytes.data() + i, &value, sizeof value);
  });
  return bytes;
}

}  // namespace pmaptrain::step
