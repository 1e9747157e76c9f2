#include "core/step/step_inputs.h"

namespace pmaptrain::step {
namespace {

// All inputs are declared before the first equation, so the number of an input's value is its index.
std::size_t index_of(Value input) { return static_cast<std::size_t>(input.id); }

void declare_state(Builder& b, const model::Model& model, const StepOptions& options, const Optimizer& optimizer,
                   std::span<const model::Bucket> buckets, StepInputs& inputs) {
  for (const optimizers::SlotKind& kind : optimizer.options.rule->slots()) {
    std::vector<Value>& slots = inputs.slots.emplace_back();
    for (const model::Bucket& bucket : buckets) {
      slots.push_back(model::declare_bucket(b, model, Group::state, kind.name + "/", bucket, options.sharding));
      if (kind.initial != 0.0) inputs.initial.emplace_back(slots.back(), kind.initial);
    }
  }
  if (options.ema) {
    for (const model::Bucket& bucket : buckets) {
      inputs.ema.push_back(model::declare_bucket(b, model, Group::state, "ema/", bucket, options.sharding));
    }
  }
  inputs.step = b.input(Group::state, "step", {DType::i64, {}, {}});
  if (options.halts) {
    inputs.finite = b.input(Group::state, "finite", {DType::boolean, {}, {}});
    inputs.initial.emplace_back(*inputs.finite, 1.0);
  }
  if (!options.halts || model.may_count_nothing())
    inputs.skipped = b.input(Group::state, "skipped", {DType::i64, {}, {}});
  for (const metrics::MeasurePart& part : model::measure_parts(model)) {
    inputs.epoch.push_back(b.input(Group::state, "epoch/" + part.name, {DType::f64, part.shape, {}}));
  }
  inputs.epoch.push_back(b.input(Group::state, "epoch/examples", {DType::f64, {}, {}}));
}

// Finds indices of variables. A variable is an input, or a part of an input that is a bucket.
class FirstVariables {
 public:
  explicit FirstVariables(const Program& program) {
    const std::vector<Variable> variables = variables_of(program);
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (variables[i].input == first_.size()) first_.push_back(i);
    }
  }

  // The variable of an input; the first one of a bucket.
  std::size_t of(Value input) const { return first_[index_of(input)]; }
  std::vector<std::size_t> of(std::span<const Value> inputs) const {
    std::vector<std::size_t> indices;
    indices.reserve(inputs.size());
    for (const Value input : inputs) indices.push_back(of(input));
    return indices;
  }
  // Sets the variables of the parameters in `buckets`, whose inputs are `stored`.
  void find_parts(std::span<const Value> stored, std::span<const model::Bucket> buckets,
                  std::vector<std::size_t>& by_parameter) const {
    for (std::size_t k = 0; k < stored.size(); ++k) {
      const std::vector<std::size_t>& parameters = buckets[k].parameters;
      for (std::size_t j = 0; j < parameters.size(); ++j) by_parameter[parameters[j]] = of(stored[k]) + j;
    }
  }

 private:
  std::vector<std::size_t> first_;  // by input
};

}  // namespace

std::vector<equations::Number> step_numbers(const model::Model& model, const StepOptions& options,
                                            const Optimizer& optimizer) {
  std::vector<equations::Number> all = model.numbers();
  const std::vector<equations::Number> of_optimizer = optimizer_numbers(optimizer, model.dtype);
  all.insert(all.end(), of_optimizer.begin(), of_optimizer.end());
  if (const auto& ema = options.ema) {
    all.push_back({"ema/decay", ema->decay, model.dtype});
    all.push_back({"ema/decay/rest", 1.0 - ema->decay, model.dtype});
  }
  return all;
}

StepInputs declare_step(Builder& b, const model::Model& model, const StepOptions& options, const Optimizer& optimizer,
                        std::span<const model::Bucket> buckets, std::int64_t rows) {
  StepInputs inputs;
  inputs.parameters = model::declare_parameters(b, model, buckets, options.sharding);
  declare_state(b, model, options, optimizer, buckets, inputs);
  inputs.batch = model::declare_batch(b, model, options.data_axes, rows, true);
  inputs.numbers = equations::declare_numbers(b, step_numbers(model, options, optimizer));
  if (optimizer.options.reduce_on_plateau) {
    inputs.learning_rate_scale = b.input(Group::hyper, "learning_rate_scale", {model.dtype, {}, {}});
  }
  inputs.dropout_keys = declare_dropout_keys(b, model);
  return inputs;
}

std::vector<Value> declare_dropout_keys(Builder& b, const model::Model& model) {
  std::vector<Value> keys;
  for (const std::string& layer : model.drawing_layers()) {
    keys.push_back(b.input(Group::hyper, "dropout/" + layer, {DType::u32, {2}, {}}));
  }
  return keys;
}

StepRoles input_roles(const Program& program, const StepInputs& inputs, const StepOptions& options,
                      std::span<const model::Bucket> buckets) {
  const FirstVariables first(program);
  StepRoles roles;
  roles.parameters.resize(inputs.parameters.single.size());
  for (std::size_t i = 0; i < roles.parameters.size(); ++i) {
    if (inputs.parameters.single[i].id >= 0) roles.parameters[i] = first.of(inputs.parameters.single[i]);
  }
  first.find_parts(inputs.parameters.buckets, buckets, roles.parameters);
  first.find_parts(inputs.parameters.base, inputs.parameters.base_of, roles.parameters);
  if (options.ema) {
    roles.ema = roles.parameters;
    first.find_parts(inputs.ema, buckets, roles.ema);
  }
  roles.step = first.of(inputs.step);
  if (inputs.finite) roles.finite = first.of(*inputs.finite);
  if (inputs.skipped) roles.skipped = first.of(*inputs.skipped);
  roles.epoch_sums = first.of(std::span(inputs.epoch).first(inputs.epoch.size() - 1));
  roles.epoch_examples = first.of(inputs.epoch.back());
  if (inputs.learning_rate_scale) roles.learning_rate_scale = first.of(*inputs.learning_rate_scale);
  roles.numbers = first.of(inputs.numbers);
  roles.dropout_keys = first.of(inputs.dropout_keys);
  for (const auto& [input, value] : inputs.initial) roles.initial[index_of(input)] = value;
  return roles;
}

}  // namespace pmaptrain::step
