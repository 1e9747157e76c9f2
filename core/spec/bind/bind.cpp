#include "core/spec/bind/bind.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/layers/table_embedding.h"
#include "core/losses/softmax_cross_entropy.h"
#include "core/spec/keys.h"
#include "core/spec/rows/sections.h"
#include "core/spec/types/key.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

// Fills in the default names of layers before they are bound: the kind and its index among that kind in the list.
class LayerNames {
 public:
  explicit LayerNames(const Reporter& reporter) : reporter_(reporter) {}

  void fill_in(Node& list) const {
    std::map<std::string, int> counts;
    std::set<std::string> names;
    for (Node& item : list.items) {
      const Chosen chosen = Choice<layers::LayerKind>::chosen(item);
      if (chosen.name == nullptr) continue;
      const std::string kind = chosen.name->text;
      const std::string automatic = kind + "_" + std::to_string(counts[kind]++);
      const Node* given = item.find("name");
      if (given != nullptr && !given->valid()) continue;
      const std::string name = given != nullptr ? given->text : automatic;
      if (!names.insert(name).second) {
        reporter_.report(given != nullptr ? *given : *chosen.name, "two layers have the name '" + name + "'",
                         "the default name is the kind and its index; give one of them another name");
      }
      if (given == nullptr) {
        item.keys.insert(item.keys.begin(), scalar_at(item, "name"));
        item.items.insert(item.items.begin(), scalar_at(item, name));
      }
      for (Node& value : item.items) fill_in_lists(value);
    }
  }

 private:
  // Lists of layers inside of a layer: its value, or values of its options.
  void fill_in_lists(Node& value) const {
    if (value.is(Kind::sequence) && std::any_of(value.items.begin(), value.items.end(), is_layer)) {
      fill_in(value);
    } else {
      for (Node& option : value.items) fill_in_lists(option);
    }
  }
  static bool is_layer(const Node& item) { return Choice<layers::LayerKind>::chosen(item).name != nullptr; }

  const Reporter& reporter_;
};

// Whether the first layer, inside of any lists, is an embedding.
bool begins_with_embedding(const std::vector<Layer>& layers) {
  const Layer* const first = layers::first_leaf(layers);
  return first != nullptr && first->kind->takes_tokens();
}

class Binder {
 public:
  Binder(Node& config, std::vector<Diagnostic>& errors) : config_(config), reporter_(errors) {}

  Spec bind() {
    Spec spec;
    name_layers();
    Section<Spec>::store(config_, spec);
    const Node* mesh = get_path(&config_, "mesh.axes");
    if (mesh != nullptr) spec.mesh.place = error_place(*mesh);
    bind_roles(config_, reporter_, spec.mesh);
    bind_data(config_, reporter_, spec.data);
    bind_parallelism(config_, reporter_, spec);
    initial_values(spec.model);
    bind_lora(config_, spec);
    if (const Node* loss = get(&config_, "loss")) {
      if (const Chosen chosen = Choice<Loss>::chosen(*loss); chosen.name != nullptr) {
        spec.loss_place = error_place(chosen);
      }
    }
    spec.data.numeric_targets = takes_numbers(spec.loss);
    spec.data.label_maps = spec.loss && spec.loss->outputs() == losses::Outputs::softmax_logits;
    const auto* const softmax = spec.loss.as<losses::SoftmaxCrossEntropy>();
    spec.data.numbers_name_classes = softmax != nullptr && !softmax->ignore_label;
    if (spec.loss) {
      const auto is_balanced = [](const declare::ClassWeights* weights) {
        return weights != nullptr && weights->balanced;
      };
      spec.data.balances_classes = is_balanced(spec.loss->class_weights());
      spec.data.balances_positives = is_balanced(spec.loss->positive_weights());
      spec.data.ignored_label = spec.loss->ignored_label();
    }
    // data.normalize makes numbers of tokens.
    spec.data.token_inputs = begins_with_embedding(spec.model.layers) && !spec.data.normalize;
    spec.data.numbers_categories = layers::begins_with_table_embedding(spec.model.layers);
    check_targets(config_, spec, reporter_);
    metrics(spec);
    bind_optimizer(config_, reporter_, spec);
    bind_train(config_, reporter_, spec);
    spec.train.eval_every_is_default = default_of("train.eval_every");
    return spec;
  }

 private:
  void name_layers() {
    Node* model = config_.is(Kind::map) ? config_.find("model") : nullptr;
    Node* layers = model != nullptr && model->is(Kind::map) ? model->find("layers") : nullptr;
    if (layers != nullptr && layers->valid()) LayerNames(reporter_).fill_in(*layers);
  }

  void initial_values(ModelSpec& out) {
    const Node* init = get_path(&config_, "model.init");
    if (init == nullptr || !init->items.front().valid()) return;
    out.init_place = error_place(Chosen{&init->keys.front(), &init->items.front()});
    std::set<std::string> paths;
    if (const Node* values = get(init, "values")) refuse_repeated(*values, "", paths);
  }

  // {a.b: 1, a: {b: 1}} has one parameter twice.
  void refuse_repeated(const Node& node, const std::string& prefix, std::set<std::string>& paths) {
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const std::string path = path_below(prefix, node.keys[i].text);
      if (node.items[i].is(Kind::map)) {
        refuse_repeated(node.items[i], path, paths);
      } else if (!paths.insert(path).second) {
        reporter_.report(node.keys[i], "duplicate parameter '" + path + "'", "keep one of the two");
      }
    }
  }

  void metrics(Spec& out) {
    const Node* metrics = get(&config_, "metrics");
    if (metrics == nullptr) return;
    out.metrics_place = error_place(*metrics);
    std::set<std::pair<std::string, bool>> seen;
    for (const Node& item : metrics->items) {
      const Chosen chosen = Choice<metrics::MetricKind>::chosen(item);
      if (chosen.name == nullptr) continue;
      Metric metric;
      Section<Metric>::store(item, metric);
      const std::string name = metric.label();
      if (!seen.emplace(name, metric.is_per_class()).second) {
        reporter_.report(*chosen.name, "metrics has " + name + " twice", "keep one of them");
      }
    }
  }

  // Whether a value equals the default of its key, because the resolved config writes out all defaults.
  bool default_of(std::string_view path) const {
    const Node* node = get_path(&config_, path);
    return node == nullptr || node->text == find_key(path)->fallback;
  }

  Node& config_;
  Reporter reporter_;
};

}  // namespace

Spec bind(Node& config, std::vector<Diagnostic>& errors, int processes) {
  Spec spec = Binder(config, errors).bind();
  check_division(spec, config, errors);
  bind_blocks(config, processes, errors, spec);
  const auto alone = [](Node& member, std::vector<Diagnostic>& found) { return spec::bind(member, found); };
  if (spec.ensemble) bind_ensemble(config, alone, errors, spec);
  return spec;
}

}  // namespace pmaptrain::spec
