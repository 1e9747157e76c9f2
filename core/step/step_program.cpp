#include "core/step/step_program.h"

#include <cassert>
#include <cstring>

#include "core/graph/check.h"
#include "core/graph/differentiate.h"
#include "core/graph/passes.h"
#include "core/model/arithmetic.h"
#include "core/ops/bucket/bucket.h"
#include "core/ops/support/rules.h"
#include "core/step/clipping.h"

namespace pmaptrain::train {
namespace {

using model::add;
using model::cast;
using model::div;
using model::select;

// Values that are used together, in the order in which loops and collectives carry them.
struct Sums {
  std::vector<Value> gradients;  // of the unnormalised sum of losses, by trained parameter
  std::vector<Value> measures;   // in the order of measure_parts
  Value count;

  std::vector<Value> flat() const {
    std::vector<Value> values = gradients;
    values.insert(values.end(), measures.begin(), measures.end());
    values.push_back(count);
    return values;
  }
  Sums like(std::span<const Value> values) const {
    const auto split = values.begin() + static_cast<std::ptrdiff_t>(gradients.size());
    return {{values.begin(), split}, {split, values.end() - 1}, values.back()};
  }
};

class StepBuilder {
 public:
  StepBuilder(const model::Model& model, const spec::Spec& spec, const Optimizer& optimizer,
              const model::BatchShape& batch, const OpSet& ops, EpochOf epoch)
      : model_(model),
        spec_(spec),
        optimizer_(optimizer),
        batch_(batch),
        epoch_of_(epoch),
        axes_(spec.data.axes),
        trained_(optimizer.trained()),
        buckets_(buckets_of(model, optimizer)),
        b_(program_, ops) {
    assert(batch.rows_per_device % batch.microbatches == 0);
    program_.mesh = spec.mesh.mesh;
  }

  Program model_stage() {
    program_.name = "model";
    declare_model(batch_.rows_per_device / batch_.microbatches);
    const model::LocalSums sums = forward(parameters_, batch_values_, dropout_keys_, model_values_);
    output_measures(sums.measures, sums.count);
    return finish("building the model");
  }

  Program grad_stage() {
    program_.name = "grad";
    declare_model(batch_.rows_per_device);
    const Sums sums = device_sums();
    output_measures(sums.measures, sums.count);
    output_gradients(sums.gradients);
    return finish("differentiating the model");
  }

  Program synchronised_stage() {
    program_.name = "synchronised";
    declare_model(batch_.rows_per_device);
    Sums global = synchronised(device_sums());
    const Value divisor = divisor_of(global);
    output_measures(measure_means(global, divisor), global.count);
    const Builder::Scope scope(b_, {"normalise", {}});
    for (Value& gradient : global.gradients) gradient = div(b_, gradient, divisor);
    output_gradients(global.gradients);
    return finish("synchronising the gradients");
  }

  StepProgram final_stage() {
    program_.name = "train_step";
    stored_ = model::declare_stored(b_, model_, Group::params, "", buckets_);
    declare_state();
    declare_batch(batch_.rows_per_device);
    declare_numbers(step_numbers(model_, spec_, optimizer_));
    declare_learning_rate_scale();
    declare_dropout();
    name_inputs();
    parameters_ = model::unpacked(b_, model_, buckets_, stored_);

    const Sums global = synchronised(packed(device_sums()));
    const Value divisor = divisor_of(global);
    const std::vector<Value> means = measure_means(global, divisor);
    const GradientBuckets sums = gradient_buckets(model_, trained_, buckets_, global.gradients);
    const Norms norms = gradient_norms(sums, divisor);
    const Clipping clipping = emit_clipping(b_, optimizer_.spec, numbers_, sums, divisor, norms);
    const Value next_step = following(step_);
    const Value learning_rate = learning_rate_now();
    const Judged judged = guard(global, means.front(), sums, norms, clipping, divisor, next_step, learning_rate);
    const Update update = judged.update ? *judged.update : [&] {
      // If the step is not good, divide by 1. The divisor then depends on the verdict, so the update's arithmetic and
      // the selects that commit it form one pass over memory, which stores no intermediate values.
      const Value known_good = select(b_, judged.good, divisor, b_.constant(model_.dtype, 1.0));
      const std::vector<Value> gradients =
          clipped_means(b_, optimizer_.spec, numbers_, sums.values, known_good, clipping);
      return updated(stored_.buckets, gradients, slots_, next_step, learning_rate);
    }();
    commit(update, next_step, judged.good);
    average(update, judged.good);
    accumulate(global, judged.good);

    output_measures(means, global.count);
    roles_.grad_norm = output("grad_norm", norms.global);
    roles_.used_learning_rate = output("learning_rate", learning_rate);
    return {finish("building the training step"), std::move(roles_)};
  }

 private:
  // ---- inputs ---- The inputs of a stage without an update.
  void declare_model(std::int64_t rows) {
    declare_parameters();
    declare_batch(rows);
    declare_numbers(model_.numbers());
    declare_dropout();
  }

  void declare_parameters() {
    for (const model::Parameter& parameter : model_.parameters) {
      parameters_.push_back(b_.input(Group::params, parameter.name, {model_.dtype, parameter.shape, {}}));
    }
  }

  void declare_state() {
    for (const SlotKind& kind : slot_kinds(optimizer_.spec.rule)) {
      slots_.push_back({});
      for (const model::Bucket& bucket : buckets_) {
        slots_.back().push_back(model::declare_bucket(b_, model_, Group::state, kind.name + "/", bucket));
        if (kind.initial != 0.0) initial_.emplace_back(slots_.back().back(), kind.initial);
      }
    }
    if (spec_.train.ema) ema_ = model::declare_stored(b_, model_, Group::state, "ema/", buckets_);
    step_ = b_.input(Group::state, "step", {DType::i64, {}, {}});
    guard_ = halts() ? b_.input(Group::state, "finite", {DType::boolean, {}, {}})
                     : b_.input(Group::state, "skipped", {DType::i64, {}, {}});
    for (const model::MeasurePart& part : model::measure_parts(model_)) {
      epoch_.push_back(b_.input(Group::state, "epoch/" + part.name, {DType::f64, part.shape, {}}));
    }
    epoch_.push_back(b_.input(Group::state, "epoch/examples", {DType::f64, {}, {}}));
  }

  // The numbers of the model come first, as in step_numbers().
  void declare_numbers(const std::vector<model::Number>& numbers) {
    const std::vector<Value> values = model::declare_numbers(b_, numbers);
    numbers_ = {numbers, values};
    model_values_.assign(values.begin(), values.begin() + std::ssize(model_.numbers()));
    number_inputs_ = values;
  }

  void declare_learning_rate_scale() {
    if (!spec_.optimizer.reduce_on_plateau) return;
    learning_rate_scale_ = b_.input(Group::hyper, "learning_rate_scale", {model_.dtype, {}, {}});
  }

  void declare_batch(std::int64_t rows) {
    const model::BatchInputs batch = model::declare_batch(b_, model_, axes_, rows, true);
    batch_values_ = {batch.inputs, batch.targets, batch.mask, batch.rows};
  }

  void declare_dropout() {
    for (const std::string& layer : model_.drawing_layers()) {
      dropout_keys_.push_back(b_.input(Group::hyper, "dropout/" + layer, {DType::u32, {2}, {}}));
    }
  }

  // All inputs are declared before the first equation, so the number of an input's value is its index.
  static std::size_t index_of(Value input) { return static_cast<std::size_t>(input.id); }

  // Sets the roles, which are indices of variables.
  void name_inputs() {
    std::vector<std::size_t> first;  // by input: its first variable
    const std::vector<Variable> variables = variables_of(program_);
    for (std::size_t t = 0; t < variables.size(); ++t) {
      if (variables[t].input == first.size()) first.push_back(t);
    }
    const auto variable_of = [&](Value input) { return first[index_of(input)]; };
    const auto variables_of_inputs = [&](std::span<const Value> inputs) {
      std::vector<std::size_t> indices;
      for (const Value input : inputs) indices.push_back(variable_of(input));
      return indices;
    };
    const auto variables_of_stored = [&](const model::Stored& stored) {
      std::vector<std::size_t> indices(stored.single.size());
      for (std::size_t i = 0; i < indices.size(); ++i) {
        if (stored.single[i].id >= 0) indices[i] = variable_of(stored.single[i]);
      }
      for (std::size_t k = 0; k < stored.buckets.size(); ++k) {
        const std::vector<std::size_t>& parameters = buckets_[k].parameters;
        for (std::size_t j = 0; j < parameters.size(); ++j) {
          indices[parameters[j]] = variable_of(stored.buckets[k]) + j;
        }
      }
      return indices;
    };
    roles_.parameters = variables_of_stored(stored_);
    if (spec_.train.ema) roles_.ema = variables_of_stored(ema_);
    roles_.step = variable_of(step_);
    (halts() ? roles_.finite : roles_.skipped) = variable_of(guard_);
    roles_.epoch_sums = variables_of_inputs(std::span(epoch_).first(epoch_.size() - 1));
    roles_.epoch_examples = variable_of(epoch_.back());
    if (learning_rate_scale_) roles_.learning_rate_scale = variable_of(*learning_rate_scale_);
    roles_.numbers = variables_of_inputs(number_inputs_);
    roles_.dropout_keys = variables_of_inputs(dropout_keys_);
    for (const auto& [input, value] : initial_) roles_.initial[index_of(input)] = value;
    if (halts()) roles_.initial[index_of(guard_)] = 1.0;
  }

  bool halts() const { return spec_.train.on_nonfinite == spec::OnNonfinite::halt; }

  // ---- one device ---- `batch` has inputs, targets, mask and rows; `values` has the model's numbers.
  model::LocalSums forward(std::span<const Value> parameters, std::span<const Value> batch, std::span<const Value> keys,
                           std::span<const Value> values) {
    const model::Numbers numbers(model_.numbers(), values);
    const Value output = model::apply(b_, model_, {batch[0], parameters, true, keys, batch[3], numbers});
    return model::local_sums(b_, model_, output, batch[1], batch[2], numbers);
  }

  // Sums and gradients of one microbatch. The parameters already vary over the data axes, so their cotangents vary too,
  // and the loop needs no reduction.
  Sums microbatch_sums(std::span<const Value> parameters, std::span<const Value> batch, std::span<const Value> keys,
                       std::span<const Value> values) {
    const model::LocalSums sums = forward(parameters, batch, keys, values);
    const Value loss = sums.measures.front();
    const Value seed = b_.vary(b_.constant(model_.dtype, 1.0), b_.type(loss).varying);
    return {differentiate(b_, loss, seed, trained_of(parameters)), sums.measures, sums.count};
  }

  // The sums over all microbatches.
  Sums device_sums() {
    std::vector<Value> varying;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const Builder::Scope scope(b_, {model_.parameters[i].name, model_.parameters[i].place});
      varying.push_back(b_.vary(parameters_[i], axes_));
    }
    if (batch_.microbatches == 1) return microbatch_sums(varying, batch_values_, dropout_keys_, model_values_);

    const Builder::Scope scope(b_, {"microbatches", spec_.data.microbatches_place});
    Sums zeros;
    for (const std::size_t i : trained_) {
      zeros.gradients.push_back(zero(model_.parameters[i].shape, model_.dtype));
    }
    for (const model::MeasurePart& part : model::measure_parts(model_)) {
      zeros.measures.push_back(zero(part.shape, part.wide ? DType::f64 : model_.dtype));
    }
    zeros.count = zero({}, model_.dtype);

    std::vector<Value> constants = varying;
    constants.insert(constants.end(), dropout_keys_.begin(), dropout_keys_.end());
    constants.insert(constants.end(), model_values_.begin(), model_values_.end());
    const auto body = [&](std::span<const Value> consts, std::span<const Value> carries,
                          std::span<const Value> slices) {
      const Sums sums =
          microbatch_sums(consts.first(varying.size()), slices, consts.subspan(varying.size(), dropout_keys_.size()),
                          consts.last(model_values_.size()));
      std::vector<Value> next = sums.flat();
      for (std::size_t i = 0; i < next.size(); ++i) next[i] = add(b_, carries[i], next[i]);
      return next;
    };
    return zeros.like(ops::loop(b_, batch_.microbatches, constants, zeros.flat(), batch_values_, body));
  }

  // The same with the gradients in buckets.
  Sums packed(Sums sums) {
    std::vector<std::size_t> position(model_.parameters.size());  // among the trained parameters
    for (std::size_t i = 0; i < trained_.size(); ++i) position[trained_[i]] = i;
    std::vector<Value> buckets;
    for (const model::Bucket& bucket : buckets_) {
      std::vector<Value> gradients;
      for (const std::size_t i : bucket.parameters) gradients.push_back(sums.gradients[position[i]]);
      buckets.push_back(b_.emit(ops::Pack{}, gradients));
    }
    sums.gradients = std::move(buckets);
    return sums;
  }

  std::vector<Value> trained_of(std::span<const Value> parameters) const {
    std::vector<Value> trained;
    trained.reserve(trained_.size());
    for (const std::size_t i : trained_) trained.push_back(parameters[i]);
    return trained;
  }

  Value zero(const Shape& shape, DType dtype) { return b_.vary(b_.constant(dtype, 0.0, shape), axes_); }

  // ---- all devices ----
  Sums synchronised(const Sums& local) {
    const Builder::Scope scope(b_, {"synchronise", {}});
    std::vector<Synchronised> values;
    for (Value value : local.flat()) values.push_back({value, {}});
    return local.like(synchronise(b_, values));
  }

  // The divisor of means: the global count of examples, or the sum of their weights, so that uneven shards have the
  // right weight. For a count of 0 it is 1: every mean is then 0, and guard() refuses the update.
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

  // The norms are computed from the sums and divided by the count, so that the mean gradient is never stored.
  Norms gradient_norms(const GradientBuckets& sums, Value divisor) {
    const Builder::Scope scope(b_, {"grad_norm", {}});
    const Norms norms = norms_of(b_, sums, model_.dtype);
    if (sums.values.empty()) return norms;
    const Value count = cast(b_, divisor, DType::f64);
    return {div(b_, norms.global, count), div(b_, norms.largest, divisor)};
  }

  // bool[]: whether this step counts; and the update, if the guard had to compute it.
  struct Judged {
    Value good;
    std::optional<Update> update;
  };
  // The guard looks at the largest element, since a norm may overflow although all elements are finite.
  Judged guard(const Sums& global, Value loss, const GradientBuckets& sums, const Norms& norms,
               const Clipping& clipping, Value divisor, Value next_step, Value learning_rate) {
    const Builder::Scope scope(b_, {"guard", {}});
    const Value no = b_.constant(DType::boolean, 0.0);
    std::optional<Update> update;
    Value good = b_.emit(ops::Gt{}, {global.count, b_.constant(model_.dtype, 0.0)});
    const auto demand = [&](Value also) { good = select(b_, also, good, no); };
    demand(b_.emit(ops::IsFinite{}, {loss}));
    demand(b_.emit(ops::IsFinite{}, {norms.largest}));
    if (optimizer_.overflows) {
      const bool twice = is_updated_twice();
      const Update tried = tried_update(sums, divisor, clipping, next_step, learning_rate, twice);
      for (const Value finite : finite_updates(tried)) demand(finite);
      if (!twice) update = tried;
    } else {
      demand(b_.emit(ops::IsFinite{}, {squares_bound(b_, optimizer_.spec.rule, clipping.largest)}));
    }
    if (halts()) {
      demand(guard_);
      replace(guard_, good);
    } else {
      replace(guard_, select(b_, good, guard_, add(b_, guard_, 1.0)));
    }
    return {good, update};
  }

  // Whether the update is computed once to be judged and once more to be committed. If all of it fits a cache, keeping
  // the new values costs less; otherwise computing them again does.
  bool is_updated_twice() const {
    std::int64_t elements = 0;
    for (const Value bucket : stored_.buckets) elements += numel(program_.type(bucket));
    return elements > 4096;
  }

  // The update before it is judged. If it will be computed again, barriers keep the two apart.
  Update tried_update(const GradientBuckets& sums, Value divisor, const Clipping& clipping, Value next_step,
                      Value learning_rate, bool twice) {
    const auto apart = [&](const std::vector<Value>& values) {
      if (!twice) return values;
      std::vector<Value> copies;
      copies.reserve(values.size());
      for (Value value : values) copies.push_back(b_.emit(ops::OptimizationBarrier{}, {value}));
      return copies;
    };
    const std::vector<Value> parameters = apart(stored_.buckets);
    const std::vector<Value> gradients =
        clipped_means(b_, optimizer_.spec, numbers_, sums.values, divisor, clipping);
    std::vector<std::vector<Value>> slots;
    for (const std::vector<Value>& kind : slots_) slots.push_back(apart(kind));
    return updated(parameters, gradients, slots, next_step, learning_rate);
  }

  // bool[] by bucket: whether all elements of its update are finite, slots included.
  std::vector<Value> finite_updates(const Update& update) {
    const Value yes = b_.constant(DType::u8, 0.0), no = b_.constant(DType::u8, 1.0);
    std::vector<Value> found;
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      Value bad = select(b_, b_.emit(ops::IsFinite{}, {update.parameters[i]}), yes, no);
      for (const std::vector<Value>& kind : update.slots) {
        bad = select(b_, b_.emit(ops::IsFinite{}, {kind[i]}), bad, no);
      }
      // The rows of a large bucket are reduced in parallel.
      if (is_updated_twice()) bad = b_.emit(ops::ReduceMax{{1}}, {rows_of_bucket(b_, bad)});
      found.push_back(b_.emit(ops::Eq{}, {b_.emit(ops::ReduceMax{{0}}, {bad}), yes}));
    }
    return found;
  }

  // Equations that the optimizer appends have the place of the optimizer in the config.
  Builder::Scope in_optimizer() { return {b_, {rule_name(optimizer_.spec), optimizer_.spec.place}}; }

  // The rate of this step, of the model's dtype. A schedule is computed in f64.
  Value learning_rate_now() {
    const Builder::Scope scope(b_, {"learning_rate", optimizer_.spec.learning_rate.place});
    const Value rate = optimizer_.schedule
                           ? cast(b_, rate_after(b_, *optimizer_.schedule, numbers_, step_), model_.dtype)
                           : numbers_["learning_rate"];
    return learning_rate_scale_ ? model::mul(b_, rate, *learning_rate_scale_) : rate;
  }

  Value following(Value step) {
    const Builder::Scope scope = in_optimizer();
    return add(b_, step, 1.0);
  }

  Update updated(const std::vector<Value>& parameters, const std::vector<Value>& gradients,
                 const std::vector<std::vector<Value>>& slots, Value next_step, Value learning_rate) {
    const Builder::Scope scope = in_optimizer();
    std::vector<std::size_t> tuned;  // a bucket's parameters are tuned alike
    for (const model::Bucket& bucket : buckets_) tuned.push_back(bucket.parameters.front());
    return optimizer_update(b_, optimizer_, numbers_, tuned, parameters, gradients, slots, next_step, learning_rate);
  }

  void commit(const Update& update, Value next_step, Value good) {
    const Builder::Scope scope = in_optimizer();
    replace(step_, select(b_, good, next_step, step_));
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const Value bucket = stored_.buckets[i];
      replace(bucket, select(b_, good, update.parameters[i], bucket));
      for (std::size_t k = 0; k < slots_.size(); ++k) {
        replace(slots_[k][i], select(b_, good, update.slots[k][i], slots_[k][i]));
      }
    }
  }

  // Appends optax.ema of the new parameters. An average is finite if the new parameters are.
  void average(const Update& update, Value good) {
    if (!spec_.train.ema) return;
    const Builder::Scope scope(b_, {"ema", {}});
    for (std::size_t i = 0; i < buckets_.size(); ++i) average(ema_.buckets[i], update.parameters[i], good);
    for (std::size_t i = 0; i < ema_.single.size(); ++i) {
      if (ema_.single[i].id >= 0) average(ema_.single[i], parameters_[i], good);  // a frozen parameter
    }
  }
  void average(Value ema, Value parameter, Value good) {
    const Value past = model::mul(b_, ema, numbers_["ema/decay"]);
    const Value next = add(b_, past, model::mul(b_, parameter, numbers_["ema/decay/rest"]));
    replace(ema, select(b_, good, next, ema));
  }

  // Adds to the sums of the epoch, in f64 because they run over many batches. A step that does not count is left out.
  void accumulate(const Sums& global, Value good) {
    const Builder::Scope scope(b_, {"epoch", {}});
    std::vector<Value> sums = global.measures;
    sums.push_back(global.count);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Value sum = cast(b_, sums[i], DType::f64);
      if (epoch_of_ == EpochOf::one_step) {
        replace(epoch_[i], select(b_, good, sum, b_.constant(DType::f64, 0.0, b_.type(sum).shape)));
      } else {
        replace(epoch_[i], select(b_, good, add(b_, epoch_[i], sum), epoch_[i]));
      }
    }
  }

  void replace(Value input, Value next) {
    Input& replaced = program_.inputs.at(index_of(input));
    assert(replaced.value == input);
    replaced.next = next;
  }

  void output_measures(const std::vector<Value>& measures, Value count) {
    const std::vector<model::MeasurePart> parts = model::measure_parts(model_);
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
  const spec::Spec& spec_;
  const Optimizer& optimizer_;
  const model::BatchShape batch_;
  const EpochOf epoch_of_;
  const AxisSet axes_;
  const std::vector<std::size_t> trained_;    // indices of parameters
  const std::vector<model::Bucket> buckets_;  // of the trained parameters
  Program program_;
  Builder b_;

  std::vector<Value> parameters_, batch_values_, dropout_keys_, epoch_, number_inputs_;
  model::Stored stored_;                   // the parameters, of the finished step
  std::vector<std::vector<Value>> slots_;  // by kind, then by bucket
  model::Stored ema_;
  std::vector<std::pair<Value, double>> initial_;  // state inputs whose elements are not 0 at the start
  Value step_, guard_;
  model::Numbers numbers_;
  std::vector<Value> model_values_;  // the values of the model's numbers
  std::optional<Value> learning_rate_scale_;
  StepRoles roles_;
};

}  // namespace

std::vector<model::Number> step_numbers(const model::Model& model, const spec::Spec& spec, const Optimizer& optimizer) {
  std::vector<model::Number> all = model.numbers();
  const std::vector<model::Number> of_optimizer = optimizer_numbers(optimizer, model.dtype);
  all.insert(all.end(), of_optimizer.begin(), of_optimizer.end());
  if (const auto& ema = spec.train.ema) {
    all.push_back({"ema/decay", ema->decay, model.dtype});
    all.push_back({"ema/decay/rest", 1.0 - ema->decay, model.dtype});
  }
  return all;
}

Program train_program(const model::Model& model, const spec::Spec& spec, const Optimizer& optimizer,
                      const model::BatchShape& batch, const OpSet& ops, Stage stage, EpochOf epoch) {
  StepBuilder builder(model, spec, optimizer, batch, ops, epoch);
  switch (stage) {
    case Stage::model: return builder.model_stage();
    case Stage::grad: return builder.grad_stage();
    case Stage::synchronised: return builder.synchronised_stage();
    case Stage::final: break;
  }
  return builder.final_stage().program;
}

StepProgram step_program(const model::Model& model, const spec::Spec& spec, const Optimizer& optimizer,
                         const model::BatchShape& batch, const OpSet& ops, EpochOf epoch) {
  return StepBuilder(model, spec, optimizer, batch, ops, epoch).final_stage();
}

std::vector<std::byte> initial_elements(const Program& program, const StepRoles& roles, std::size_t input) {
  const Type& type = program.type(program.inputs[input].value);
  std::vector<std::byte> bytes(pmaptrain::bytes(type));
  const auto initial = roles.initial.find(input);
  if (initial == roles.initial.end()) return bytes;
  dispatch(type.dtype, [&]<class T>() {
    const T value = static_cast<T>(initial->second);
    for (std::size_t i = 0; i < bytes.size(); i += sizeof value) std::memcpy(bytes.data() + i, &value, sizeof value);
  });
  return bytes;
}

}  // namespace pmaptrain::train
