#include "core/step/optimizer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "core/base/text.h"
#include "core/equations/arithmetic.h"
#include "core/model/gathers.h"
#include "core/schedules/making.h"
#include "core/step/clipping.h"
#include "core/step/timetable.h"

namespace pmaptrain::step {
namespace {

[[noreturn]] void refuse(const Place& place, std::string message, std::string help) {
  throw Error(ExitStatus::usage, Diagnostic{"config", place, std::move(message), std::move(help), {}});
}

// Refuses a rate that f32 cannot hold: with 0 nothing would be trained, with infinity training would diverge.
void check_scaled_rate(const optimizers::Options& optimizer, double rate, double factor, std::int64_t global_batch) {
  if (!optimizer.base_batch_size) return;  // core/spec has checked a rate that is not scaled
  const bool vanishes = rate != 0 && std::abs(rate) < std::numeric_limits<float>::denorm_min();
  if (!vanishes && !(std::abs(rate) > std::numeric_limits<float>::max())) return;
  const std::string base = std::to_string(*optimizer.base_batch_size);
  refuse(optimizer.base_batch_size_place,
         "base_batch_size " + base + " makes the learning rate " + exact(rate / factor) + " × " +
             std::to_string(global_batch) + " / " + base + " = " + exact(rate) +
             (vanishes ? ", which is 0 in f32" : ", which is infinite in f32"),
         "the batch size that the learning rate was chosen for");
}

bool matches_any(const std::vector<declare::Pattern>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const declare::Pattern& pattern) { return matches(pattern.text, name); });
}

// A hint for a pattern that matches nothing: the most similar parameter name or, without one, the first names.
std::string parameters_like(const declare::Pattern& pattern, const std::vector<std::string>& names) {
  std::string plain = pattern.text;
  std::erase(plain, '*');
  if (const std::string near = nearest(plain, names); !near.empty()) return "did you mean '" + near + "'?";
  constexpr std::size_t most = 8;
  const std::size_t shown = std::min(most, names.size());
  const std::vector<std::string> some(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown));
  const std::string more = names.size() > most ? " and " + std::to_string(names.size() - most) + " more" : "";
  return "the parameters are " + join(some, ", ") + more;
}

// Refuses a weight_decay_exclude in which no pattern matches. Single patterns may match nothing, because one list may
// serve several models.
void check_exclude(const optimizers::Options& optimizer, const std::vector<std::string>& names) {
  const std::vector<declare::Pattern>& exclude = optimizer.weight_decay_exclude;
  if (exclude.empty() ||
      std::any_of(names.begin(), names.end(), [&](const std::string& name) { return matches_any(exclude, name); })) {
    return;
  }
  refuse(exclude.front().place, "no parameter of this model matches weight_decay_exclude",
         parameters_like(exclude.front(), names));
}

[[noreturn]] void refuse_frozen(const optimizers::ParameterGroup& group, const model::Parameter& adapter) {
  refuse(group.parameters.front().place, "this group freezes the adapter '" + adapter.name + "'",
         "adapters are what lora trains: let the patterns leave them out, or lora.parameters its kernel");
}

// Refuses a group of parameters that lora leaves as they are.
void refuse_untrained(const optimizers::ParameterGroup& group, const model::Model& model) {
  std::string of_base;
  for (const model::Parameter& parameter : model.parameters) {
    if (parameter.is_state || !matches_any(group.parameters, parameter.name)) continue;
    if (parameter.lora != layers::LoraRole::base) return;
    if (of_base.empty()) of_base = parameter.name;
  }
  refuse(group.parameters.front().place,
         "this group has parameters of the base alone, such as '" + of_base + "', which lora leaves as they are",
         "lora.also_train names those that are trained beside adapters; or remove this group");
}

std::vector<ParameterOptions> make_parameter_options(const optimizers::Options& optimizer, const model::Model& model) {
  std::vector<std::string> names;
  for (const model::Parameter& parameter : model.parameters) {
    if (!parameter.is_state) names.push_back(parameter.name);
  }
  for (const optimizers::ParameterGroup& group : optimizer.groups) {
    for (const declare::Pattern& pattern : group.parameters) {
      const bool found =
          std::any_of(names.begin(), names.end(), [&](const std::string& name) { return matches(pattern.text, name); });
      if (!found) {
        refuse(pattern.place, "no parameter of this model matches '" + pattern.text + "'",
               parameters_like(pattern, names));
      }
    }
  }
  check_exclude(optimizer, names);
  std::vector<ParameterOptions> options;
  std::vector<bool> applies(optimizer.groups.size(), false);
  for (const model::Parameter& parameter : model.parameters) {
    const std::string& name = parameter.name;
    ParameterOptions& own = options.emplace_back();
    own.trained = !parameter.is_state && parameter.lora != layers::LoraRole::base;
    if (!own.trained) continue;
    own.weight_decay = {"weight_decay", optimizer.rule->weight_decay().value_or(0.0), model.dtype};
    const auto group = std::find_if(
        optimizer.groups.begin(), optimizer.groups.end(),
        [&](const optimizers::ParameterGroup& candidate) { return matches_any(candidate.parameters, name); });
    if (group != optimizer.groups.end()) {
      applies[static_cast<std::size_t>(group - optimizer.groups.begin())] = true;
      if (group->freeze && parameter.lora == layers::LoraRole::adapter) refuse_frozen(*group, parameter);
      const std::string at = "groups/" + std::to_string(group - optimizer.groups.begin()) + "/";
      if (group->learning_rate_scale) {
        own.learning_rate_scale = {at + "learning_rate_scale", *group->learning_rate_scale, model.dtype};
      }
      if (group->weight_decay) own.weight_decay = {at + "weight_decay", *group->weight_decay, model.dtype};
      own.trained = !group->freeze;
    }
    if (own.weight_decay.value == 0.0 || matches_any(optimizer.weight_decay_exclude, name))
      own.weight_decay = {"", 0.0};
  }
  for (std::size_t i = 0; i < applies.size(); ++i) {
    if (applies[i]) continue;
    if (model.lora) refuse_untrained(optimizer.groups[i], model);
    refuse(optimizer.groups[i].parameters.front().place,
           "this group applies to no parameter: groups before it match all that its patterns match",
           "the first group that matches a parameter applies to it: move this group up, or remove it");
  }
  const bool any = std::any_of(options.begin(), options.end(), [](const ParameterOptions& own) { return own.trained; });
  if (!any && !names.empty()) {
    refuse(optimizer.groups.front().parameters.front().place, "groups freeze every parameter of the model",
           "leave at least one parameter to train");
  }
  return options;
}

// The gradient of a table is known by rows if a step changes no others, and if these are few: they are gathered, summed
// by token and written back by one worker each time, while all workers share passes over a whole table.
void choose_tables_by_rows(std::vector<ParameterOptions>& options, const optimizers::Options& optimizer,
                           const model::Model& model, const BatchPlan& batch) {
  if (batch.microbatches > 1 || !optimizer.rule->keeps_without_gradient()) return;
  const std::vector<bool> tables = model.lookup_tables();
  const std::int64_t tokens = batch.rows() * numel(model.input.shape);
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (!model.parameters[i].divided.empty()) continue;
    const bool keeps = tables[i] && options[i].trained && options[i].weight_decay.name.empty();
    if (keeps && tokens <= model.parameters[i].shape.front() / 16) options[i].tokens = tokens;
  }
}

// The largest magnitude of an element of the gradient after clipping.
double largest_gradient(const optimizers::Options& optimizer) {
  const double most = static_cast<double>(std::numeric_limits<float>::max());
  const double norm = optimizer.clip_by_global_norm.value_or(most) * (1.0 + 1e-5);  // allows for rounding
  return std::min({most, optimizer.clip.value_or(most), norm});
}

}  // namespace

std::vector<std::size_t> Optimizer::trained() const {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < parameter_options.size(); ++i) {
    if (parameter_options[i].trained) indices.push_back(i);
  }
  return indices;
}

Optimizer make_optimizer(const optimizers::Options& options, const model::Model& model, const BatchPlan& batch,
                         std::int64_t schedule_steps, std::optional<std::int64_t> schedule_began) {
  Optimizer optimizer{options, 0.0, {}, make_parameter_options(options, model), true};
  const double factor =
      options.base_batch_size ? static_cast<double>(batch.global) / static_cast<double>(*options.base_batch_size) : 1.0;
  optimizer.learning_rate = options.base_batch_size ? options.learning_rate.value * static_cast<double>(batch.global) /
                                                          static_cast<double>(*options.base_batch_size)
                                                    : options.learning_rate.value;
  if (options.learning_rate.schedule) {
    const auto steps_of = [&](const declare::Duration& duration, const std::string& key) {
      return to_steps(duration, batch, key);
    };
    optimizer.schedule = schedules::make_schedule(options.learning_rate, steps_of, schedule_steps, factor);
    optimizer.schedule->began_at = schedule_began;
    optimizer.learning_rate = schedules::largest_rate(*optimizer.schedule);
  }
  check_scaled_rate(options, optimizer.learning_rate, factor, batch.global);
  choose_tables_by_rows(optimizer.parameter_options, options, model, batch);
  optimizer.may_overflow = may_overflow(optimizer);
  return optimizer;
}

double learning_rate_at(const Optimizer& optimizer, std::int64_t update) {
  return optimizer.schedule ? rate_after(*optimizer.schedule, update - 1) : optimizer.learning_rate;
}

std::string rule_name(const optimizers::Options& optimizer) { return optimizer.rule->name(); }

std::vector<equations::Number> optimizer_numbers(const Optimizer& optimizer, DType dtype) {
  std::vector<equations::Number> all;
  const auto append = [&](const std::vector<equations::Number>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  if (optimizer.schedule) {
    append(schedules::schedule_numbers(*optimizer.schedule));
  } else {
    all.push_back({"learning_rate", optimizer.learning_rate, dtype});
  }
  append(clipping_numbers(optimizer.options, dtype));
  append(optimizer.options.rule->numbers(dtype));
  std::set<std::string> known{""};
  for (const std::size_t i : optimizer.trained()) {
    for (const equations::Number& number :
         {optimizer.parameter_options[i].learning_rate_scale, optimizer.parameter_options[i].weight_decay}) {
      if (known.insert(number.name).second) all.push_back(number);
    }
  }
  return all;
}

std::vector<model::Bucket> buckets_of(const model::Model& model, const Optimizer& optimizer,
                                      const model::Sharding& sharding) {
  std::vector<model::Bucket> buckets;
  const std::vector<std::size_t> groups = model::groups_of_parameters(model, sharding);
  // By group, the options' names, the axes of Bucket, and for a table by rows its number.
  using Key = std::tuple<std::size_t, std::string, std::string, std::uint32_t, std::uint32_t, std::size_t>;
  std::map<Key, std::size_t> known;
  for (std::size_t i = model.parameters.size(); i-- > 0;) {
    const ParameterOptions& options = optimizer.parameter_options[i];
    if (!options.trained) continue;
    const std::size_t table = options.tokens > 0 ? i + 1 : 0;
    const AxisSet divided = model.parameters[i].layout().axes(), read_along = model.parameters[i].read_along;
    const auto [bucket, is_new] =
        known.try_emplace({groups[i], options.learning_rate_scale.name, options.weight_decay.name, divided.bits(),
                           read_along.bits(), table},
                          buckets.size());
    if (is_new) {
      buckets.push_back({"bucket_" + std::to_string(buckets.size()), {}, divided, read_along, options.tokens});
    }
    buckets[bucket->second].parameters.push_back(i);
  }
  return buckets;
}

Update optimizer_update(Builder& b, const Optimizer& optimizer, const equations::Numbers& numbers,
                        std::span<const std::size_t> option_indices, std::span<const Value> parameters,
                        std::span<const Value> gradients, const std::vector<std::vector<Value>>& slots, Value step,
                        Value learning_rate) {
  assert(parameters.size() == option_indices.size() && gradients.size() == option_indices.size());
  assert(slots.size() == optimizer.options.rule->slots().size());
  Update update{{}, slots};
  if (parameters.empty()) return update;
  const optimizers::BiasCorrections shared =
      optimizer.options.rule->corrections(b, numbers, step, b.type(parameters.front()).dtype);
  std::map<std::string, Value> rates{{"", learning_rate}};  // by the name of the scale
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ParameterOptions& options = optimizer.parameter_options[option_indices[i]];
    const std::string& scale = options.learning_rate_scale.name;
    if (!rates.contains(scale)) rates[scale] = equations::mul(b, learning_rate, numbers[scale]);
    std::optional<Value> decay;
    if (!options.weight_decay.name.empty()) decay = numbers[options.weight_decay.name];
    std::vector<Value> own;
    own.reserve(slots.size());
    for (const std::vector<Value>& kind : slots) own.push_back(kind[i]);
    optimizers::RuleCall call{b, parameters[i], gradients[i], own, rates[scale], decay, shared, numbers};
    update.parameters.push_back(optimizer.options.rule->update(call));
    for (std::size_t k = 0; k < own.size(); ++k) update.slots[k][i] = own[k];
  }
  return update;
}

bool may_overflow(const Optimizer& optimizer) {
  const double gradient = largest_gradient(optimizer.options);
  return std::any_of(optimizer.parameter_options.begin(), optimizer.parameter_options.end(),
                     [&](const ParameterOptions& options) {
                       if (!options.trained) return false;
                       const double rate = optimizer.learning_rate * options.learning_rate_scale.value;
                       return !(optimizer.options.rule->largest_change({rate, options.weight_decay.value, gradient}) <=
                                1e30);  // a bound of NaN counts as too large
                     });
}

}  // namespace pmaptrain::step
