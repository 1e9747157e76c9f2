#include "core/spec/bind.h"

#include <cassert>
#include <set>

#include "core/spec/scalar.h"
#include "core/spec/values.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

class Binder {
 public:
  Binder(Node& config, std::vector<Diagnostic>& errors) : config_(config), reporter_(errors) {}

  Spec bind() {
    Spec spec;
    store(get(&config_, "name"), spec.name);
    if (const Node* seed = get(&config_, "seed")) spec.seed = parse_seed(seed->text).value;
    mesh(spec.mesh);
    bind_data(config_, spec.mesh.mesh, reporter_, spec.data);
    model(spec.model);
    loss(spec);
    optimizer(spec.optimizer);
    train(spec.train);
    return spec;
  }

 private:
  void mesh(MeshSpec& out) {
    const Node* mesh = get(&config_, "mesh");
    if (const Node* axes = get(mesh, "axes")) {
      std::vector<Axis> list;
      for (const Node& item : axes->items) {
        list.push_back(Axis{item.keys.front().text, parse_integer(item.items.front().text).value});
      }
      out.mesh = Mesh(std::move(list));
      out.place = error_place(*axes);
    }
    if (const Node* backend = get(mesh, "backend")) {
      out.backend = backend->text == "auto" ? Backend::automatic : Backend::cpu;
    }
    if (const Node* workers = get(mesh, "workers"); workers != nullptr && workers->text != "auto") {
      out.workers = static_cast<int>(parse_integer(workers->text).value);
    }
  }

  void model(ModelSpec& out) {
    const Node* model = get(&config_, "model");
    Node* layers = model != nullptr ? config_.find("model")->find("layers") : nullptr;
    if (layers != nullptr && layers->valid()) add_layers(*layers, "", out.layers);
    const Node* init = get(model, "init");
    const Chosen choice = chosen(init, "model.init");
    if (choice.name == nullptr) return;
    out.init_place = error_place(choice);
    if (choice.name->text == "from") {
      out.initial_file = choice.options->text;
    } else {
      tensors(*choice.options, "", out.initial_values);
    }
  }

  // The layers of one list, whose names begin with `prefix`.
  void add_layers(Node& list, const std::string& prefix, std::vector<Layer>& out) {
    std::map<std::string, int> counts;
    std::set<std::string> names;
    for (Node& item : list.items) add_layer(item, prefix, counts, names, out);
  }

  void add_layer(Node& item, const std::string& prefix, std::map<std::string, int>& counts,
                 std::set<std::string>& names, std::vector<Layer>& out) {
    const Chosen choice = chosen(&item, "model.layers");
    if (choice.name == nullptr) return;
    Layer layer;
    const std::string kind = choice.name->text;
    layer.place = error_place(choice);
    const std::string automatic = kind + "_" + std::to_string(counts[kind]++);
    const Node* given = item.find("name");
    layer.name = given != nullptr ? given->text : automatic;
    if (given != nullptr && !given->valid()) return;
    if (!names.insert(layer.name).second) {
      const Node at = given != nullptr ? *given : *choice.name;
      reporter_.report(at, "two layers are called '" + layer.name + "'",
                       "a layer without a name is its kind and its index; give one of them another name");
    }
    if (given == nullptr) {
      item.keys.insert(item.keys.begin(), scalar_at(item, "name"));
      item.items.insert(item.items.begin(), scalar_at(item, layer.name));
    }
    if (kind == "layers") return add_layers(*item.find(kind), prefix + layer.name + ".", out);
    layer.kind = layer_kind(kind, item.find(kind));
    layer.name = prefix + layer.name;
    out.push_back(std::move(layer));
  }

  static LayerKind layer_kind(const std::string& kind, const Node* options) {
    if (kind == "dense") {
      Dense dense;
      store(get(options, "features"), dense.features);
      store(get(options, "use_bias"), dense.use_bias);
      return dense;
    }
    if (kind == "conv") {
      Conv conv;
      store(get(options, "features"), conv.features);
      store(get(options, "kernel_size"), conv.kernel_size);
      store(get(options, "strides"), conv.strides);
      padding(get(options, "padding"), conv.padding);
      store(get(options, "use_bias"), conv.use_bias);
      store(get(options, "kernel_dilation"), conv.kernel_dilation);
      store(get(options, "feature_group_count"), conv.feature_group_count);
      return conv;
    }
    if (kind == "max_pool") return pooling<MaxPool>(options);
    if (kind == "avg_pool") {
      auto pool = pooling<AvgPool>(options);
      store(get(options, "count_include_pad"), pool.count_include_pad);
      return pool;
    }
    if (kind == "reshape") {
      Reshape reshape;
      store(get(options, "shape"), reshape.shape);
      return reshape;
    }
    if (kind == "leaky_relu") {
      LeakyRelu leaky;
      store(get(options, "negative_slope"), leaky.negative_slope);
      return leaky;
    }
    if (kind == "elu") {
      Elu elu;
      store(get(options, "alpha"), elu.alpha);
      return elu;
    }
    if (kind == "dropout") {
      Dropout dropout;
      store(get(options, "rate"), dropout.rate);
      return dropout;
    }
    if (kind == "flatten") return Flatten{};
    if (kind == "relu") return Relu{};
    if (kind == "tanh") return Tanh{};
    if (kind == "gelu") return Gelu{};
    if (kind == "global_avg_pool") return GlobalAvgPool{};
    if (kind == "sigmoid") return Sigmoid{};
    if (kind == "silu") return Silu{};
    if (kind == "softmax") return Softmax{};
    assert(kind == "softplus");
    return Softplus{};
  }

  template <class Pool>
  static Pool pooling(const Node* options) {
    Pool pool;
    store(get(options, "window_shape"), pool.window_shape);
    store(get(options, "strides"), pool.strides);
    padding(get(options, "padding"), pool.padding);
    return pool;
  }

  static void padding(const Node* node, Padding& out) {
    if (node == nullptr) return;
    out.amounts.clear();
    if (node->is(Kind::scalar)) {
      out.kind = node->text == "SAME" ? PaddingKind::same : PaddingKind::valid;
      return;
    }
    out.kind = PaddingKind::explicit_;
    for (const Node& amounts : node->items) {
      auto& [low, high] = out.amounts.emplace_back();
      store(&amounts.items[0], low);
      store(&amounts.items[1], high);
    }
  }

  void tensors(const Node& node, const std::string& prefix, std::map<std::string, Tensor>& out) {
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const std::string path = prefix.empty() ? node.keys[i].text : prefix + "." + node.keys[i].text;
      const Node& value = node.items[i];
      if (value.is(Kind::map)) {
        tensors(value, path, out);
        continue;
      }
      Tensor tensor;
      tensor.place = overridden(value) != nullptr ? error_place(value) : place_of(node.keys[i]);
      for (const Node* at = &value; at->is(Kind::sequence); at = &at->items.front()) {
        tensor.shape.push_back(static_cast<std::int64_t>(at->items.size()));
      }
      flatten(value, tensor.values);
      if (!out.emplace(path, std::move(tensor)).second) {
        reporter_.report(node.keys[i], "'" + path + "' stands here a second time", "keep one of the two");
      }
    }
  }

  static void flatten(const Node& node, std::vector<double>& out) {
    if (node.is(Kind::scalar)) {
      store(&node, out.emplace_back());
      return;
    }
    for (const Node& item : node.items) flatten(item, out);
  }

  void loss(Spec& out) {
    const Chosen choice = chosen(get(&config_, "loss"), "loss");
    if (choice.name != nullptr) {
      out.loss = loss_of(choice.name->text, choice.options);
      out.loss_place = error_place(choice);
    }
    const Node* metrics = get(&config_, "metrics");
    if (metrics == nullptr) return;
    out.metrics_place = error_place(*metrics);
    std::set<std::pair<std::string, bool>> seen;
    for (const Node& item : metrics->items) {
      const Chosen metric = chosen(&item, "metrics");
      if (metric.name == nullptr) continue;
      out.metrics.push_back(metric_of(metric.name->text, metric.options));
      out.metrics.back().place = error_place(metric);
      const std::string name = to_string(out.metrics.back());
      if (!seen.emplace(name, out.metrics.back().per_class).second) {
        reporter_.report(*metric.name, "metrics has " + name + " twice", "keep one of them");
      }
    }
  }

  static Loss loss_of(const std::string& name, const Node* options) {
    if (name == "sigmoid_cross_entropy") return SigmoidCrossEntropy{};
    if (name == "mean_squared_error") return MeanSquaredError{};
    if (name == "mean_absolute_error") return MeanAbsoluteError{};
    if (name == "huber") {
      Huber huber;
      store(get(options, "delta"), huber.delta);
      return huber;
    }
    SoftmaxCrossEntropy softmax;
    store(get(options, "label_smoothing"), softmax.label_smoothing);
    store(get(options, "class_weights"), softmax.class_weights);
    return softmax;
  }

  static Metric metric_of(const std::string& name, const Node* options) {
    Metric metric;
    for (const MetricKind kind :
         {MetricKind::accuracy, MetricKind::precision, MetricKind::recall, MetricKind::f1, MetricKind::perplexity,
          MetricKind::mean_absolute_error, MetricKind::mean_squared_error, MetricKind::r2}) {
      if (to_string(Metric{kind}) == name) metric.kind = kind;
    }
    if (name == "top_k_accuracy") metric.kind = MetricKind::top_k_accuracy;
    store(get(options, "k"), metric.k);
    const Node* average = get(options, "average");
    metric.per_class = average != nullptr && average->text == "none";
    return metric;
  }

  template <class Rule>
  static void adam_options(const Node* options, Rule& rule) {
    store(get(options, "b1"), rule.b1);
    store(get(options, "b2"), rule.b2);
    store(get(options, "eps"), rule.eps);
  }

  void optimizer(OptimizerSpec& out) {
    const Node* node = get(&config_, "optimizer");
    const Chosen choice = chosen(node, "optimizer");
    if (choice.name == nullptr) return;
    out.place = error_place(choice);
    if (choice.name->text == "sgd") {
      Sgd& sgd = out.rule.emplace<Sgd>();
      store(get(choice.options, "momentum"), sgd.momentum);
      store(get(choice.options, "nesterov"), sgd.nesterov);
      if (sgd.nesterov && !(sgd.momentum > 0.0)) {
        reporter_.report(*get(choice.options, "nesterov"), "nesterov needs a momentum; it is 0",
                         "add momentum: 0.9, or remove nesterov");
      }
    } else if (choice.name->text == "adam") {
      adam_options(choice.options, out.rule.emplace<Adam>());
    } else {
      AdamW& adamw = out.rule.emplace<AdamW>();
      adam_options(choice.options, adamw);
      store(get(choice.options, "weight_decay"), adamw.weight_decay);
    }
    store(get(node, "learning_rate"), out.learning_rate);
    if (const Node* base = get(node, "base_batch_size")) {
      store(base, out.base_batch_size.emplace());
      out.base_batch_size_place = place_of(*base);
    }
  }

  static void duration(const Node* node, Duration& out) {
    if (node == nullptr) return;
    const std::size_t space = node->text.find(' ');
    out.count = parse_integer(node->text.substr(0, space)).value;
    const std::string unit = node->text.substr(space + 1);
    out.unit = unit.starts_with("step") ? Unit::steps : unit.starts_with("epoch") ? Unit::epochs : Unit::examples;
    out.place = place_of(*node);
  }

  static void interval(const Node* node, Interval& out) {
    out.reset();
    if (node != nullptr && node->text != "never") duration(node, out.emplace());
  }

  // Whether a value is its key's default, written or not: the resolved config writes every default.
  static bool default_of(std::string_view path, const Node* node) {
    return node == nullptr || node->text == find_key(path)->fallback;
  }

  void train(TrainSpec& out) {
    const Node* train = get(&config_, "train");
    duration(get(train, "duration"), out.duration);
    interval(get(train, "log_every"), out.log_every);
    interval(get(train, "eval_every"), out.eval_every);
    out.eval_every_is_default = default_of("train.eval_every", get(train, "eval_every"));
    interval(get(train, "verify_replicas"), out.verify_replicas);
    if (const Node* on = get(train, "on_nonfinite")) {
      out.on_nonfinite = on->text == "skip" ? OnNonfinite::skip : OnNonfinite::halt;
    }
  }

  Node& config_;
  Reporter reporter_;
};

}  // namespace

Spec bind(Node& config, std::vector<Diagnostic>& errors) {
  Spec spec = Binder(config, errors).bind();
  check_division(spec, config, errors);
  return spec;
}

}  // namespace pmaptrain::spec
