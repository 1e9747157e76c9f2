// Checks of the keys of `optimizer` against each other, and the default length of its schedule. What depends on the
// model or on the number of steps is checked by step::make_optimizer.
#include "core/base/text.h"
#include "core/spec/bind/bind.h"
#include "core/spec/keys.h"
#include "core/spec/rows/sections.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {
namespace {

// "sgd, adamw, lion"
std::string rules_with_decay() {
  std::vector<std::string> names;
  for (const Key* rule : alternatives(*find_key("optimizer"))) {
    if (child(*rule, "weight_decay") != nullptr) names.emplace_back(rule->name());
  }
  return join(names, ", ");
}

class OptimizerBinder {
 public:
  OptimizerBinder(const Node& optimizer, const Reporter& reporter) : optimizer_(optimizer), reporter_(reporter) {}

  void check(optimizers::Options& out) const {
    const Chosen rule = Choice<optimizers::Rule>::chosen(optimizer_);
    if (rule.name != nullptr) {
      check_nesterov(*rule.options);
      check_decay(rule.name->text);
    }
    if (const Node* base = get(&optimizer_, "base_batch_size")) out.base_batch_size_place = place_of(*base);
    if (const Node* groups = get(&optimizer_, "groups")) {
      for (const Node& group : groups->items) check_frozen(group);
    }
  }

 private:
  void check_nesterov(const Node& rule) const {
    const Node* nesterov = get(&rule, "nesterov");
    const Node* momentum = get(&rule, "momentum");
    if (nesterov == nullptr || nesterov->text != "true" || momentum == nullptr) return;
    if (parsed_as<double>(*momentum) > 0.0) return;
    reporter_.report(*nesterov, "nesterov needs a momentum greater than 0", "add momentum: 0.9, or remove nesterov");
  }

  void check_decay(const std::string& rule) const {
    if (child(*find_key("optimizer." + rule), "weight_decay") != nullptr) return;
    const auto refuse = [&](const Node& at, const std::string& key) {
      reporter_.report(at, key + ": " + rule + " has no weight decay",
                       "the rules with weight decay are " + rules_with_decay() + "; or remove this key");
    };
    const Node* exclude = get(&optimizer_, "weight_decay_exclude");
    if (exclude != nullptr && !exclude->items.empty()) refuse(*exclude, "weight_decay_exclude");
    const Node* groups = get(&optimizer_, "groups");
    if (groups == nullptr) return;
    for (const Node& group : groups->items) {
      if (const Node* decay = get(&group, "weight_decay")) refuse(*decay, "weight_decay");
    }
  }

  void check_frozen(const Node& group) const {
    const Node* freeze = get(&group, "freeze");
    if (freeze == nullptr || freeze->text != "true") return;
    for (const char* key : {"learning_rate_scale", "weight_decay"}) {
      const Node* given = get(&group, key);
      if (given == nullptr) continue;
      reporter_.report(*given, std::string(key) + " has no effect on parameters with freeze: true",
                       "remove " + std::string(key) + ", or remove freeze");
    }
  }

  const Node& optimizer_;
  const Reporter& reporter_;
};

void bind_plateau(const Node& config, const Node& section, Spec& spec, const Reporter& reporter) {
  optimizers::ReduceOnPlateau& plateau = *spec.optimizer.reduce_on_plateau;
  plateau.place = bind_measure(config, &section, spec, reporter);
  if (plateau.rtol > 0.0 || plateau.atol > 0.0) return;
  const Node* const rtol = get(&section, "rtol");
  reporter.report(rtol != nullptr ? *rtol : section, "rtol and atol are both 0, and one of them must be more",
                  "atol: 1.0e-12 counts every improvement");
}

}  // namespace

// Writes the default down, so that the resolved config has the same schedule even with another duration. Inside `join`,
// the default is the rest of the run after the boundary, which no text can express.
void fill_in_length(Node& learning_rate, const Node& length) {
  if (!learning_rate.is(Node::Kind::map) || !learning_rate.items.front().is(Node::Kind::map)) return;
  Node& schedule = learning_rate.items.front();
  std::ptrdiff_t at = 0;  // in the order of the table, so that the resolved config reads back unchanged
  for (const Key* key : children(*find_key("optimizer.learning_rate." + learning_rate.keys.front().text))) {
    if (schedule.find(key->name()) == nullptr && key->type == Type::duration && key->need == Need::optional) {
      Node label = scalar_at(schedule, std::string(key->name())), value = length;
      move_to(value, schedule);
      label.fallback = value.fallback = true;
      schedule.keys.insert(schedule.keys.begin() + at, std::move(label));
      schedule.items.insert(schedule.items.begin() + at, std::move(value));
    }
    if (schedule.find(key->name()) != nullptr) ++at;
  }
}

void bind_optimizer(Node& config, const Reporter& reporter, Spec& spec) {
  Node* const optimizer = config.is(Node::Kind::map) ? config.find("optimizer") : nullptr;
  if (optimizer == nullptr || !optimizer->is(Node::Kind::map)) return;
  OptimizerBinder(*optimizer, reporter).check(spec.optimizer);
  if (spec.optimizer.reduce_on_plateau) {
    bind_plateau(config, *get(optimizer, "reduce_on_plateau"), spec, reporter);
  }
  const Node* const duration = get_path(&config, "train.duration");
  Node* const rate = optimizer->find("learning_rate");
  if (duration != nullptr && rate != nullptr) fill_in_length(*rate, *duration);
}

}  // namespace pmaptrain::spec
