#include "core/step/device_sums.h"

#include <cassert>
#include <map>

#include "core/base/error.h"
#include "core/equations/arithmetic.h"
#include "core/graph/differentiate.h"
#include "core/model/gathers.h"
#include "core/ops/bucket/bucket.h"
#include "core/ops/collective/collective.h"
#include "core/ops/loop/loop.h"
#include "core/step/statistics.h"

namespace pmaptrain::step {

std::vector<Value> Sums::flat() const {
  std::vector<Value> values = gradients;
  values.insert(values.end(), statistics.begin(), statistics.end());
  values.insert(values.end(), measures.begin(), measures.end());
  values.push_back(count);
  return values;
}

Sums Sums::unflattened(std::span<const Value> values) const {
  const auto first = values.begin() + std::ssize(gradients), second = first + std::ssize(statistics);
  return {{values.begin(), first}, {first, second}, {second, values.end() - 1}, values.back()};
}

DeviceSums::DeviceSums(Builder& b, const model::Model& model, const StepOptions& options, const Optimizer& optimizer,
                       std::span<const std::size_t> statistics, std::span<const model::Bucket> buckets)
    : b_(b),
      model_(model),
      options_(options),
      trained_(optimizer.trained()),
      is_trained_(model.parameters.size(), false),
      statistics_(statistics),
      buckets_(buckets),
      gathered_(model::with_base(buckets, model, options.sharding)) {
  for (const std::size_t i : trained_) is_trained_[i] = true;
}

Sums DeviceSums::packed(Sums sums, bool by_rows) {
  std::vector<std::size_t> position(model_.parameters.size());  // among the trained parameters
  for (std::size_t i = 0; i < trained_.size(); ++i) position[trained_[i]] = i;
  std::vector<Value> buckets;
  for (const model::Bucket& bucket : buckets_) {
    if (by_rows && bucket.tokens > 0) {
      buckets.push_back(sums.gradients[position[bucket.parameters.front()]]);
      continue;
    }
    std::vector<Value> gradients;
    for (const std::size_t i : bucket.parameters) gradients.push_back(sums.gradients[position[i]]);
    const std::int64_t elements = model::elements_of(model_, bucket, options_.sharding, b_.mesh());
    buckets.push_back(b_.emit(ops::Pack{options_.sharding.state.empty() ? 0 : elements}, gradients));
  }
  sums.gradients = std::move(buckets);
  if (!statistics_.empty()) sums.statistics = {b_.emit(ops::Pack{}, sums.statistics)};
  return sums;
}

Sums DeviceSums::forward(const ModelValues& values) {
  std::vector<std::vector<Value>> read;
  return forward(values, read);
}

Sums DeviceSums::forward(ModelValues values, std::vector<std::vector<Value>>& read, bool by_rows) {
  const equations::Numbers numbers(model_.numbers(), values.numbers);
  const Value inputs = values.batch[0], targets = values.batch[1], mask = values.batch[2], rows = values.batch[3];
  std::vector<model::StatisticSum> statistics;
  model::Forward forward{inputs, values.parameters, true,       values.dropout_keys, rows, numbers,
                         mask,   &is_trained_,      &statistics};
  if (values.batch.size() > 4) forward.lengths = values.batch[4];
  model::Gathers gathers(b_, model_, gathered_, values.shards, values.parameters,
                         [this](std::size_t i, Value whole) { return gathered_parameter(i, whole); });
  std::vector<Value> looked_up(model_.parameters.size());
  forward.looked_up = &looked_up;
  const Value output = model::apply(b_, model_, forward, values.shards.empty() ? nullptr : &gathers);
  read = gathers.read();
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i].empty()) read[i] = {values.parameters[i]};
  }
  for (const model::Bucket& bucket : buckets_) {
    if (!by_rows || bucket.tokens == 0) continue;
    const std::size_t table = bucket.parameters.front();
    read[table] = {looked_up[table]};
  }
  std::map<std::size_t, model::StatisticSum> by_parameter;
  for (const model::StatisticSum& found : statistics) by_parameter[found.parameter] = found;
  model::LocalSums local = model::local_sums(b_, model_, output, targets, mask, numbers, forward.lengths);
  Sums sums{{}, {}, std::move(local.measures), local.count};
  for (const std::size_t i : statistics_) sums.statistics.push_back(by_parameter.at(i).sum);
  for (const std::size_t i : statistics_) sums.statistics.push_back(by_parameter.at(i).weight);
  return sums;
}

// The parameters already vary over the data axes, so their cotangents vary too, and the loop needs no reduction.
Sums DeviceSums::of_microbatch(const ModelValues& values, bool by_rows) {
  std::vector<std::vector<Value>> read;
  Sums sums = forward(values, read, by_rows);
  sums.gradients = gradients(sums.measures.front(), read);
  check_measures(sums);
  sums.statistics = varied(std::move(sums.statistics));
  return sums;
}

void DeviceSums::check_measures(const Sums& sums) const {
  const std::vector<metrics::MeasurePart> parts = model::measure_parts(model_);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Type& type = b_.type(sums.measures[i]);
    const AxisSet extra = type.varying - options_.data_axes;
    if (extra.empty()) continue;
    const std::string axes = b_.mesh().to_string(extra);
    throw Error(ExitStatus::usage,
                Diagnostic{"program",
                           i == 0 ? model_.loss_place : Place(),
                           "'" + parts[i].name + "' would differ on the devices along " + axes +
                               ", which have the same examples: a device's sum is " + to_string(type, b_.mesh()),
                           "a reduction is missing in its equations: psum over " + axes,
                           {}});
  }
}

std::vector<Value> DeviceSums::gradients(Value loss, const std::vector<std::vector<Value>>& read) {
  const Value seed = b_.vary(b_.constant(model_.dtype, 1.0), b_.type(loss).varying);
  std::vector<Value> values;
  for (const std::size_t i : trained_) values.insert(values.end(), read[i].begin(), read[i].end());
  const std::vector<Value> of_values = differentiate(b_, loss, seed, values);
  std::vector<Value> sums;
  auto next = of_values.begin();
  for (const std::size_t i : trained_) {
    // From the last group that reads it to the first, as the backward pass adds them.
    const auto end = next + std::ssize(read[i]);
    Value sum = *(end - 1);
    for (auto each = end - 1; each != next; --each) sum = equations::add(b_, sum, *(each - 1));
    sums.push_back(sum);
    next = end;
  }
  return sums;
}

Value DeviceSums::varied_parameter(std::size_t parameter, Value value) {
  const Builder::Scope scope(b_, {model_.parameters[parameter].name, model_.parameters[parameter].place});
  return b_.vary(value, options_.data_axes | model_.parameters[parameter].read_along);
}

// A gather waits for the input of its layers, so without this a base would seem to depend on what is trained.
Value DeviceSums::gathered_parameter(std::size_t parameter, Value value) {
  const Value varied = varied_parameter(parameter, value);
  return is_trained_[parameter] ? varied : b_.emit(ops::StopGradient{}, {varied});
}

Sums DeviceSums::with_gradients(const ModelValues& values, std::int64_t microbatches, bool by_rows) {
  ModelValues varying = values;
  for (std::size_t i = 0; i < varying.parameters.size(); ++i) {
    // Of those that layers gather there is no value yet.
    if (varying.parameters[i] != Value{}) varying.parameters[i] = varied_parameter(i, varying.parameters[i]);
  }
  if (microbatches == 1) return of_microbatch(varying, by_rows);
  assert(values.shards.empty());  // see Sharding::by_groups

  const Builder::Scope scope(b_, {"microbatches", options_.microbatches_place});
  Sums zeros;
  for (const std::size_t i : trained_) {
    const model::Parameter& parameter = model_.parameters[i];
    const AxisSet axes = options_.data_axes | parameter.layout().axes() | parameter.read_along;
    zeros.gradients.push_back(zero(local_shape(parameter.layout(), b_.mesh()), model_.dtype, axes));
  }
  for (const Shape& shape : statistic_shapes(model_, statistics_)) {
    zeros.statistics.push_back(zero(shape, model_.dtype));
  }
  for (const metrics::MeasurePart& part : model::measure_parts(model_)) {
    zeros.measures.push_back(zero(part.shape, part.is_f64 ? DType::f64 : model_.dtype));
  }
  zeros.count = zero({}, model_.dtype);

  std::vector<Value> constants = varying.parameters;
  constants.insert(constants.end(), values.dropout_keys.begin(), values.dropout_keys.end());
  constants.insert(constants.end(), values.numbers.begin(), values.numbers.end());
  const auto body = [&](std::span<const Value> consts, std::span<const Value> carries, std::span<const Value> slices) {
    const auto taken = [&](std::size_t count) {
      std::vector<Value> first(consts.begin(), consts.begin() + static_cast<std::ptrdiff_t>(count));
      consts = consts.subspan(count);
      return first;
    };
    ModelValues inner;
    inner.parameters = taken(varying.parameters.size());
    inner.dropout_keys = taken(values.dropout_keys.size());
    inner.numbers = taken(values.numbers.size());
    inner.batch.assign(slices.begin(), slices.end());
    std::vector<Value> next = of_microbatch(inner, false).flat();
    for (std::size_t i = 0; i < next.size(); ++i) next[i] = equations::add(b_, carries[i], next[i]);
    return next;
  };
  return zeros.unflattened(ops::loop(b_, microbatches, constants, zeros.flat(), values.batch, body));
}

std::vector<Value> DeviceSums::varied(std::vector<Value> values) {
  for (Value& value : values) value = b_.vary(value, options_.data_axes);
  return values;
}

Value DeviceSums::zero(const Shape& shape, DType dtype) { return zero(shape, dtype, options_.data_axes); }

Value DeviceSums::zero(const Shape& shape, DType dtype, AxisSet axes) {
  return b_.vary(b_.constant(dtype, 0.0, shape), axes);
}

}  // namespace pmaptrain::step
