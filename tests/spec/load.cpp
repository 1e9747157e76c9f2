// What a config becomes: the Spec, the resolved config, and the help that is read off the same table.
#include "core/spec/load.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "core/data/arrays/idx_source.h"
#include "core/data/synthetic/synthetic.h"
#include "core/layers/conv.h"
#include "core/layers/dense.h"
#include "core/layers/nested.h"
#include "core/losses/huber.h"
#include "core/losses/softmax_cross_entropy.h"
#include "core/optimizers/adam.h"
#include "core/optimizers/adamw.h"
#include "core/optimizers/sgd.h"
#include "core/spec/keys.h"
#include "core/spec/yaml/parse.h"
#include "core/spec/yaml/scalar.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/golden.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::spec;
using test::contains;

namespace {

const std::string complete = R"(mesh: {axes: {devices: 8}}
data: {source: fashion_mnist, batch_size: 128}
model: {layers: [flatten, {name: head, dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {b1: 0.8}, learning_rate: 1e-3}
train: {duration: 2 epochs}
)";

Loaded with(std::vector<std::string> set, const std::string& text = complete) {
  Overrides overrides;
  overrides.set = std::move(set);
  return load_text(text, "dir/run.yaml", "/base", overrides);
}

std::string error_of(const std::string& text) {
  try {
    with({}, text);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("every shipped config loads, and its resolved config resolves to itself", "[spec]") {
  for (const std::string name : {"fashion_mnist", "linear_regression", "gradient_averaging", "cnn"}) {
    const Loaded loaded = load("configs/" + name + ".yaml", {});
    CHECK(loaded.spec.name == name);
    const Loaded again = load_text(loaded.resolved, "config.yaml", "/elsewhere", {});
    CHECK(again.resolved == loaded.resolved);
    CHECK(again.spec.mesh.mesh == loaded.spec.mesh.mesh);
    CHECK(again.spec.name == name);
  }
}

TEST_CASE("a config becomes a Spec with its defaults", "[spec]") {
  const Spec spec = with({}).spec;
  CHECK(spec.name == "run");
  CHECK(spec.seed == 0);
  CHECK(spec.mesh.mesh.devices() == 8);
  CHECK_FALSE(spec.mesh.workers.has_value());
  CHECK(spec.data.source.as<data::FashionMnist>()->dir == "/usr/share/datasets/fashion-mnist");
  CHECK(std::get<std::int64_t>(spec.data.batch_size) == 128);
  CHECK(spec.mesh.roles.data == spec.mesh.mesh.all());
  REQUIRE(spec.model.layers.size() == 2);
  CHECK(spec.model.layers[0].name == "flatten_0");
  CHECK(spec.model.layers[1].name == "head");
  CHECK(spec.model.layers[1].kind.as<layers::Dense>()->features == 10);
  CHECK(spec.optimizer.rule.as<optimizers::Adam>()->b1 == 0.8);
  CHECK(spec.optimizer.rule.as<optimizers::Adam>()->b2 == 0.999);
  CHECK(spec.optimizer.learning_rate.value == 0.001);
  CHECK(spec.train.duration.count == 2);
  CHECK(spec.train.duration.unit == Unit::epochs);
  REQUIRE(spec.train.log_every);
  CHECK(spec.train.log_every->count == 100);
  CHECK_FALSE(spec.train.verify_replicas.has_value());
}

TEST_CASE("the resolved config spells out every default", "[spec]") {
  test::check_golden("resolved.yaml", with({}).resolved);
}

TEST_CASE("nested lists of layers are kept, and default names count within each list", "[spec]") {
  const auto spec_of = [](std::vector<std::string> set) {
    return with(std::move(set), R"(data: {source: fashion_mnist, batch_size: 8}
model:
  layers:
    - layers:
        - conv: {features: 4, kernel_size: [3, 3]}
        - layers: [relu, relu]
    - {name: tail, layers: [flatten, {name: head, dense: 10}]}
    - layers: [tanh]
loss: softmax_cross_entropy
optimizer: {sgd: {}, learning_rate: 0.1}
train: {duration: 1 step}
)")
        .spec;
  };
  const std::function<std::string(const std::vector<Layer>&)> names = [&](const std::vector<Layer>& layers) {
    std::string text;
    for (const Layer& layer : layers) {
      const auto* nested = layer.kind.as<layers::Layers>();
      text += (text.empty() ? "" : " ") + layer.name + (nested != nullptr ? "(" + names(nested->layers) + ")" : "");
    }
    return text;
  };
  CHECK(names(spec_of({}).model.layers) ==
        "layers_0(conv_0 layers_0(relu_0 relu_1)) tail(flatten_0 head) layers_2(tanh_0)");
  const auto nested = [](const Spec& spec, std::size_t at) {
    return spec.model.layers[at].kind.as<layers::Layers>()->layers;
  };
  CHECK(nested(spec_of({"model.layers.tail.layers.head.dense=7"}), 1)[1].kind.as<layers::Dense>()->features == 7);
  CHECK(nested(spec_of({"model.layers.0.layers.0.conv.features=9"}), 0)[0].kind.as<layers::Conv>()->features == 9);
}

TEST_CASE("the layers of residual and repeat have names of their own, and paths through their options", "[spec]") {
  const auto spec_of = [](const std::vector<std::string>& set) {
    Overrides overrides;
    overrides.set = set;
    return load_text(R"(data: {source: fashion_mnist, batch_size: 128}
model:
  layers:
    - residual: {layers: [{conv: {features: 1, kernel_size: [3, 3]}}, relu, relu]}
    - repeat: {times: 2, layers: [{residual: {layers: [tanh], shortcut: [{name: side, dense: 28}]}}]}
    - residual: {layers: [relu]}
    - flatten
    - dense: 10
loss: softmax_cross_entropy
optimizer: {sgd: {}, learning_rate: 0.1}
train: {duration: 1 step}
)",
                     "config.yaml", "/base", overrides);
  };
  const Loaded loaded = spec_of({});
  const auto& layers = loaded.spec.model.layers;
  CHECK(layers[2].name == "residual_1");
  const auto& first = *layers[0].kind.as<layers::Residual>();
  CHECK(first.layers[2].name == "relu_1");
  CHECK(first.layers[1].place.line == 4);
  CHECK(first.shortcut.empty());
  const auto& repeat = *layers[1].kind.as<layers::Repeat>();
  CHECK(repeat.times == 2);
  const auto& inner = *repeat.layers.front().kind.as<layers::Residual>();
  CHECK(repeat.layers.front().name == "residual_0");
  CHECK(inner.layers.front().name == "tanh_0");
  CHECK(inner.shortcut.front().name == "side");
  const auto changed = spec_of({"model.layers.1.repeat.layers.0.residual.shortcut.side.dense=7"});
  const auto& changed_repeat = *changed.spec.model.layers[1].kind.as<layers::Repeat>();
  const auto& changed_inner = *changed_repeat.layers.front().kind.as<layers::Residual>();
  CHECK(changed_inner.shortcut.front().kind.as<layers::Dense>()->features == 7);
  // The resolved config is a config of the same layers.
  const Loaded again = load_text(loaded.resolved, "resolved.yaml", "/base", {});
  CHECK(again.resolved == loaded.resolved);
}

TEST_CASE("options of losses and metrics are stored, and metrics are resolved as written", "[spec]") {
  const auto loaded = [](const std::string& loss, const std::string& metrics) {
    return with(
        {}, "data: {source: fashion_mnist, batch_size: 8}\nmodel: {layers: [flatten, {dense: 10}]}\nloss: " + loss +
                "\nmetrics: " + metrics + "\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 1 step}\n");
  };
  const Spec spec = loaded("{softmax_cross_entropy: {label_smoothing: 0.1, class_weights: [1, 2]}}", "[]").spec;
  CHECK(spec.loss.as<losses::SoftmaxCrossEntropy>()->label_smoothing == 0.1);
  CHECK(spec.loss.as<losses::SoftmaxCrossEntropy>()->class_weights.each == std::vector<double>{1, 2});
  CHECK(loaded("huber", "[]").spec.loss.as<losses::Huber>()->delta == 1.0);
  CHECK(loaded("{huber: 2.5}", "[]").spec.loss.as<losses::Huber>()->delta == 2.5);
  const Loaded metrics =
      loaded("sigmoid_cross_entropy", "[accuracy, top_k_accuracy: 3, recall: {average: none}, recall]");
  REQUIRE(metrics.spec.metrics.size() == 4);
  CHECK(metrics.spec.metrics[1].label() == "top_3_accuracy");
  CHECK(metrics.spec.metrics[2].is_per_class());
  CHECK_FALSE(metrics.spec.metrics[3].is_per_class());
  CHECK(contains(metrics.resolved, "loss: sigmoid_cross_entropy\n"));
  CHECK(contains(metrics.resolved,
                 "metrics: [{accuracy: {average: micro, threshold: 0.5}}, {top_k_accuracy: {k: 3}}, "
                 "{recall: {average: none, threshold: 0.5}}, {recall: {average: macro, threshold: 0.5}}]\n"));
  CHECK(with({"metrics.accuracy=r2"}, metrics.resolved).spec.metrics[0].label() == "r2");
  CHECK(with({"metrics.top_k_accuracy.top_k_accuracy.k=7"}, metrics.resolved).spec.metrics[1].label() ==
        "top_7_accuracy");
}

TEST_CASE("every source, layer and optimizer is unchanged by resolving", "[spec]") {
  const std::string rest =
      "mesh: {axes: [{model_replicas: 2}, {data_shards: 4}]}\n"
      "model:\n"
      "  layers:\n"
      "    - conv: {features: 4, kernel_size: [3, 1], strides: [2, 1], padding: [[1, 2], [0, 3]], use_bias: false}\n"
      "    - avg_pool: {window_shape: [2, 1], strides: [1, 1], count_include_pad: false}\n"
      "    - conv: {features: 4, kernel_size: [1, 1], kernel_dilation: [2, 1], feature_group_count: 2}\n"
      "    - {name: block, layers: [silu, {layers: [softplus, {name: last, elu: 2.0}]}, {leaky_relu: {}}]}\n"
      "    - sigmoid\n    - softmax\n    - reshape: [2, -1, 4]\n    - global_avg_pool\n"
      "    - gelu\n    - tanh: {}\n    - dropout: 0.25\n    - flatten\n    - dense: 3\n"
      "  init: {from: a/b.safetensors}\n"
      "loss: {huber: 0.5}\nmetrics: [mean_absolute_error, {top_k_accuracy: 3}, {f1: {average: none}}, f1, r2]\n"
      "optimizer: {adamw: {weight_decay: 0.01}, learning_rate: 0.1, base_batch_size: 32}\n"
      "train: {duration: 80 examples, verify_replicas: 1 step, on_nonfinite: skip}\n";
  for (const std::string source :
       {"idx: {train: [i.gz, l.gz], test: [/t/i.gz, ../l.gz]}", "npz: {file: f, train: [a, \"1\"], test: [c, d]}",
        "npz: {train: f.npz, test: g.npz, inputs: x, targets: y}", "synthetic_linear: {features: 7, noise: 0}",
        "synthetic_images: {train: 1e3, test: 0}", "values: {inputs: [1, 2], targets: [[3], [4]]}"}) {
    const std::string data = "data: {source: {" + source +
                             "}, batch_size_per_device: 2, remainder: mask, normalize: {mean: 0.5, std: [1, 2]}, "
                             "seed: 18446744073709551615}\n";
    const Loaded loaded = with({}, data + rest);
    CHECK(load_text(loaded.resolved, "config.yaml", "/elsewhere", {}).resolved == loaded.resolved);
    CHECK(loaded.spec.data.seed == 18446744073709551615u);
    CHECK(loaded.spec.model.initial_from->path == "/base/a/b.safetensors");
    const auto& conv = *loaded.spec.model.layers[0].kind.as<layers::Conv>();
    CHECK(conv.padding.amounts == std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 2}, {0, 3}});
    CHECK(conv.strides == std::vector<std::int64_t>{2, 1});
    CHECK(loaded.spec.optimizer.rule.as<optimizers::AdamW>()->weight_decay == 0.01);
    if (const auto* idx = loaded.spec.data.source.as<data::Idx>()) {
      CHECK(idx->train.inputs == "/base/i.gz");
      CHECK(idx->test->inputs == "/t/i.gz");
      CHECK(idx->test->targets == "/l.gz");
    }
    if (const auto* images = loaded.spec.data.source.as<data::SyntheticImages>()) CHECK(images->train == 1000);
  }
}

TEST_CASE("initial values keep their shapes", "[spec]") {
  const Spec spec = with({"model.init={values: {head: {kernel: [[1, 2, 3], [4, 5, 6]], scale: 7}}}"}).spec;
  const auto& values = spec.model.initial_values;
  REQUIRE(values.size() == 2);
  CHECK(values.at("head.kernel").shape == std::vector<std::int64_t>{2, 3});
  CHECK(values.at("head.kernel").values == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(values.at("head.scale").shape.empty());
}

TEST_CASE("empty initial values are unchanged by resolving", "[spec]") {
  const Loaded loaded = with({"model.init={values: {}}"});
  CHECK(load_text(loaded.resolved, "config.yaml", "/elsewhere", {}).resolved == loaded.resolved);
}

TEST_CASE("aliases repeat the anchored value, and x- keys are ignored", "[spec]") {
  const Spec spec = load_text(
                        "x-size: &size 3\nx-block: &block {features: *size, kernel_size: [3, 3]}\n"
                        "data: {source: fashion_mnist, batch_size: 8}\n"
                        "model: {layers: [{conv: *block}, {conv: *block}, flatten, {dense: *size}]}\n"
                        "loss: softmax_cross_entropy\noptimizer: {sgd: {}, learning_rate: 1}\ntrain: {duration: 5}\n",
                        "a.yaml", "/", {})
                        .spec;
  CHECK(spec.model.layers[1].kind.as<layers::Conv>()->features == 3);
  CHECK(spec.model.layers[1].name == "conv_1");
  CHECK(spec.model.layers[3].kind.as<layers::Dense>()->features == 3);
}

TEST_CASE("later options win, and null restores the default", "[spec]") {
  const Spec spec = with({"seed=5", "seed=6", "optimizer.adam.b1=null", "model.layers.head.dense.features=12",
                          "mesh.axes.devices=4", "name=010", "train.log_every=5epochs"})
                        .spec;
  CHECK(spec.seed == 6);
  CHECK(spec.optimizer.rule.as<optimizers::Adam>()->b1 == 0.9);
  CHECK(spec.model.layers[1].kind.as<layers::Dense>()->features == 12);
  CHECK(spec.mesh.mesh.devices() == 4);
  CHECK(spec.name == "010");
  CHECK(spec.train.log_every->unit == Unit::epochs);
  CHECK(with({"model.layers.1.dense.features=7"}).spec.model.layers[1].name == "head");
  CHECK(with({"\"optimizer\".'learning_rate'=0.5"}).spec.optimizer.learning_rate.value == 0.5);
}

TEST_CASE("an option over a choice replaces it and adds a note", "[spec]") {
  const Loaded loaded = with({"optimizer.sgd.momentum=0.9", "data.batch_size_per_device=2"});
  CHECK(loaded.spec.optimizer.rule.as<optimizers::Sgd>()->momentum == 0.9);
  CHECK(std::get<BatchPerDevice>(loaded.spec.data.batch_size).examples == 2);
  CHECK(loaded.notes == std::vector<std::string>{"optimizer.sgd replaces optimizer.adam",
                                                 "data.batch_size_per_device replaces data.batch_size"});
}

TEST_CASE("--devices, --workers, --seed and --name are applied after --set", "[spec]") {
  Overrides overrides;
  overrides.set = {"seed=1", "name=a"};
  overrides.devices = 4;
  overrides.workers = 3;
  overrides.seed = 18446744073709551615u;
  overrides.name = "7";
  const Loaded loaded = load_text(complete, "c.yaml", "/base", overrides);
  CHECK(loaded.spec.mesh.mesh.axes() == std::vector<Axis>{{"devices", 4}});
  CHECK(loaded.spec.mesh.place.file == "--devices");
  CHECK(loaded.spec.mesh.workers == 3);
  CHECK(loaded.spec.seed == 18446744073709551615u);
  CHECK(loaded.spec.name == "7");
}

TEST_CASE("the memory of a GPU is a number of MiB, GiB or TiB", "[spec]") {
  const auto memory = [](const std::string& text) { return with({"mesh.gpu_memory=" + text}).spec.mesh.gpu_memory; };
  CHECK_FALSE(with({}).spec.mesh.gpu_memory.has_value());
  CHECK(memory("80GiB")->bytes == std::size_t{80} << 30);
  CHECK(memory("512 MiB")->bytes == std::size_t{512} << 20);
  CHECK(memory("2TiB")->bytes == std::size_t{2} << 40);
  for (const std::string wrong : {"80", "80GB", "0GiB", "-1GiB", "1.5GiB", "80  GiB", "GiB", "1000000GiB", "80GiBs"}) {
    INFO(wrong);
    try {
      memory(wrong);
      FAIL("it was taken");
    } catch (const Error& error) {
      CHECK(error.status() == ExitStatus::usage);
      CHECK(std::string(error.what()).find("gpu_memory takes a whole number of MiB, GiB or TiB such as '80GiB'") !=
            std::string::npos);
      CHECK(std::string(error.what()).find("for example gpu_memory: 80GiB") != std::string::npos);
    }
  }
}

TEST_CASE("mask allows a batch that does not divide", "[spec]") {
  CHECK(std::get<std::int64_t>(with({"data.batch_size=100", "data.remainder=mask"}).spec.data.batch_size) == 100);
}

TEST_CASE("paths of an option are relative to the current directory", "[spec]") {
  const Spec spec = with({"data.source.fashion_mnist.dir=here"}).spec;
  CHECK(spec.data.source.as<data::FashionMnist>()->dir == (std::filesystem::current_path() / "here").string());
}

TEST_CASE("a run folder can be used in place of its config.yaml", "[spec]") {
  const test::TemporaryFolder folder;
  folder.write("config.yaml", std::string(complete) + "name: kept\n");
  CHECK(load(folder.path().string(), {}).spec.name == "kept");
  CHECK_THROWS_WITH(load("configs", {}),
                    "configs: error: this folder has no config.yaml; it is not a run folder\n"
                    "  help: name a YAML file, or a folder that pmaptrain run wrote\n");
  CHECK_THROWS_WITH(load("configs/cn.yaml", {}),
                    "configs/cn.yaml: error: there is no such file\n  help: did you mean configs/cnn.yaml?\n");
  const std::string large = folder.write("large.yaml", std::string(5 << 20, '#'));
  CHECK_THROWS_WITH(load(large, {}), large +
                                         ": error: the config is larger than 4 MiB\n"
                                         "  help: store data in separate files and name them in data.source\n");
  CHECK_THROWS_WITH(load("/proc/self/mem", {}), "/proc/self/mem: error: the file cannot be read: Input/output error\n");
}

TEST_CASE("null over the chosen alternative restores the defaults of its options", "[spec]") {
  CHECK(with({"optimizer.adam=null"}).spec.optimizer.rule.as<optimizers::Adam>()->b1 == optimizers::Adam{}.b1);
  CHECK(with({"optimizer.sgd=null"}).resolved == with({}).resolved);
}

TEST_CASE("YAML that yaml-cpp would expand without bound or accept silently is refused", "[spec]") {
  std::string bomb = "a: &a [1,1,1,1,1,1,1,1,1,1]\n";
  for (char c = 'b'; c < 'j'; ++c) {
    const std::string one = std::string("*") + static_cast<char>(c - 1);
    bomb += std::string(1, c) + ": &" + c + " [" + one;
    for (int i = 0; i < 9; ++i) bomb += "," + one;
    bomb += "]\n";
  }
  CHECK(contains(error_of(bomb), "expand to more than 100,000 values"));
  CHECK(contains(error_of("a: " + std::string(70, '[') + std::string(70, ']')), "64 levels"));
  CHECK(contains(error_of(std::string(max_text_bytes + 1, '#')), "larger than 4 MiB"));
  CHECK(contains(error_of("name: \xC3(\n"), "run.yaml:1:7: error: this byte is not valid UTF-8"));
  CHECK(contains(error_of(""), "the config is empty"));
  CHECK(with({}, "\xEF\xBB\xBF" + complete).spec.mesh.mesh.devices() == 8);
}

TEST_CASE("numbers follow YAML 1.2's core schema", "[spec]") {
  CHECK(parse_integer("1e3").value == 1000);
  CHECK(parse_integer("+7").value == 7);
  CHECK(parse_integer("9223372036854775808").error == NumberError::overflow);
  CHECK(parse_integer("1.5").error == NumberError::fraction);
  CHECK(parse_integer("-10.50e1").value == -105);
  CHECK(parse_integer("0e9999999999999999999").value == 0);
  CHECK(parse_integer("1e-9999999999999999999").error == NumberError::fraction);
  CHECK(parse_integer("1e9999999999999999999").error == NumberError::overflow);
  CHECK(parse_integer("-9223372036854775808").value == std::numeric_limits<std::int64_t>::min());
  CHECK(parse_integer("010").error == NumberError::octal);
  CHECK(parse_number(".5").value == 0.5);
  CHECK(parse_number("5.").value == 5.0);
  CHECK(parse_number("1e-400").error == NumberError::underflow);
  CHECK(parse_number("1e400").error == NumberError::overflow);
  CHECK(parse_number("-.inf").error == NumberError::not_finite);
  CHECK(parse_number("1_0").error == NumberError::underscore);
  CHECK(parse_number("--1").error == NumberError::not_a_number);
  CHECK(parse_number("e5").error == NumberError::not_a_number);
  CHECK(parse_number("").error == NumberError::not_a_number);
}

TEST_CASE("an integer with a point or an exponent is exact, however large", "[spec]") {
  CHECK(parse_seed("9007199254740993.0").value == 9007199254740993u);
  CHECK(parse_seed("1.8446744073709551615e19").value == 18446744073709551615u);
  CHECK(parse_seed("1.8446744073709551616e19").error == NumberError::overflow);
  CHECK(parse_seed("184467440737095516150e-1").value == 18446744073709551615u);
  CHECK(parse_seed("-0.0").value == 0);
  CHECK(parse_seed("-1e1").error == NumberError::overflow);
}

TEST_CASE("a path with control characters is unchanged by resolving, and escaped in its YAML", "[spec]") {
  const std::string path = "/data/\x1b[31m\x7f";
  const Loaded loaded = with({R"(data.source.fashion_mnist.dir="/data/\e[31m\x7F")"});
  CHECK(contains(loaded.resolved, R"("/data/\x1b[31m\x7f")"));
  const Loaded again = load_text(loaded.resolved, "config.yaml", "/base", {});
  CHECK(again.spec.data.source.as<data::FashionMnist>()->dir == path);
}

TEST_CASE("a path with the reserved characters is resolved to YAML that reads back", "[spec]") {
  const std::string folder = "/data/${USER}/a$b";
  std::string text = complete;
  text.replace(text.find("fashion_mnist"), 13, "{fashion_mnist: {dir: files}}");
  const Loaded loaded = load_text(text, folder + "/x.yaml", folder, {});
  CHECK(contains(loaded.resolved, R"("/data/\x24{USER}/a$b/files")"));
  const Loaded again = load_text(loaded.resolved, "config.yaml", "/base", {});
  CHECK(again.spec.data.source.as<data::FashionMnist>()->dir == folder + "/files");
  CHECK(again.resolved == loaded.resolved);
}

TEST_CASE("the default and the example of every key are valid values", "[spec]") {
  for (const Key& key : keys()) {
    INFO(key.path);
    CHECK_FALSE(key.meaning.empty());
    CHECK_FALSE(key.example.empty());
    const auto dot = key.path.rfind('.');
    if (dot != std::string_view::npos) CHECK(find_key(key.path.substr(0, dot)) != nullptr);
    if (!key.example.starts_with("axes:") && !key.example.starts_with("source: {npz")) {
      CHECK_NOTHROW(parse_own(std::string(key.example)));
    }
  }
}

TEST_CASE("help finds a key by its path or its end", "[spec]") {
  CHECK(help("model.layers.max_pool") == help("max_pool"));
  CHECK(help("layers") == help("model.layers"));
  CHECK(contains(help("optimizer.adam"), "default 1.0e-08"));
  CHECK(contains(help("data.source"), "synthetic_images"));
  CHECK(contains(help(""), "optimizer.adam"));
  CHECK(contains(help("features"), "model.layers.conv.features"));
  CHECK_THROWS_WITH(help("optimzer"), "error: there is no config key 'optimzer'\n  help: did you mean 'optimizer'?\n");
}

TEST_CASE("docs/config.md is generated from the table of keys", "[spec][golden]") {
  const char* update = std::getenv("PMAPTRAIN_UPDATE_GOLDENS");
  if (update != nullptr && std::string(update) == "1") test::write_text("docs/config.md", reference_markdown());
  CHECK(test::read_text("docs/config.md") == reference_markdown());
}

TEST_CASE("errors about a value set by an option are placed in the option", "[spec]") {
  const std::string text = R"(data: {source: fashion_mnist, batch_size: 128}
model:
  layers:
    - max_pool: {window_shape: [2, 2], strides: [2, 2]}
    - flatten
    - {name: head, dense: 10}
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer: {adam: {}, learning_rate: 1e-3}
train: {duration: 2 epochs}
)";
  // "file:column: excerpt", which begins at the column.
  const auto shown = [](const Place& place) {
    return place.file + ":" + std::to_string(place.column) + " " +
           std::string(place.excerpt.text().substr(static_cast<std::size_t>(place.column) - 1));
  };
  const auto changed = [&](const std::string& set) { return with({set}, text).spec; };
  CHECK(changed("seed=1").metrics_place.file == "dir/run.yaml");
  CHECK(shown(changed("metrics.0=mean_absolute_error").metrics_place) == "--set:11 mean_absolute_error");
  CHECK(shown(changed("metrics.0=mean_absolute_error").metrics.front().place) == "--set:11 mean_absolute_error");
  CHECK(shown(changed("metrics=[accuracy, f1: {average: none}]").metrics.back().place) ==
        "--set:20 f1: {average: none}]");
  CHECK(shown(changed("data.source={synthetic_linear: {features: 3}}").data.source_place) ==
        "--set:14 synthetic_linear: {features: 3}}");
  CHECK(shown(changed("data.source={fashion_mnist: {dir: /nope}}").data.source_place) ==
        "--set:14 fashion_mnist: {dir: /nope}}");
  CHECK(shown(changed("data.source.fashion_mnist.dir=/nope").data.source_place) == "--set:31 /nope");
  CHECK(shown(changed("model.layers.0.max_pool.window_shape.0=99").model.layers[0].place) == "--set:40 99");
  CHECK(changed("model.layers.0.max_pool.window_shape.0=99").model.layers[1].place.line == 5);
  CHECK(shown(changed("loss=mean_squared_error").loss_place) == "--set:6 mean_squared_error");
  CHECK(shown(changed("optimizer.adam.b1=0.5").optimizer.place) == "--set:19 0.5");
  CHECK(shown(changed("model.init.from=w.safetensors").model.init_place) == "--set:12 from=w.safetensors");
}

// Each of thousands of layers with a copy of its line would take memory that grows with their square.
TEST_CASE("the places on one line share its text", "[spec]") {
  std::string layers = "flatten", wrong;
  for (int i = 0; i < 1000; ++i) layers += ", {dense: 4}, relu";
  for (int i = 0; i < 1000; ++i) wrong += ", {dense: 0}";
  const auto text = [](const std::string& list) {
    return "data: {source: fashion_mnist, batch_size: 128}\nmodel: {layers: [" + list +
           "]}\nloss: softmax_cross_entropy\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 1 epoch}\n";
  };
  std::set<const char*> lines;
  const Spec spec = with({}, text(layers)).spec;
  for (const Layer& layer : spec.model.layers) lines.insert(layer.place.excerpt.text().data());
  CHECK(spec.model.layers.size() == 2001);
  CHECK(lines.size() == 1);
  lines.clear();
  try {
    with({}, text("flatten" + wrong));
    FAIL("it was accepted");
  } catch (const Error& error) {
    CHECK(error.diagnostics().size() == 1000);
    for (const Diagnostic& diagnostic : error.diagnostics()) lines.insert(diagnostic.place.excerpt.text().data());
  }
  CHECK(lines.size() == 1);
}
