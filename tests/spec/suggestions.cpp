// Suggestions are themselves valid: what an error says to write is accepted.
#include <map>
#include <sstream>

#include "core/hints/hints.h"
#include "core/spec/keys.h"
#include "core/spec/meant.h"
#include "tests/catch.h"
#include "tests/spec/told.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// The help for a layer in the config.
std::string help_for_layer(const std::string& layer) {
  const std::string text = told("- flatten", "- " + layer);
  const std::string after = "': ";
  return text.substr(std::min(text.find(after) + after.size(), text.size()));
}

// The texts of a help in quotes.
std::vector<std::string> quoted(const std::string& help) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; (at = help.find('\'', at)) != std::string::npos;) {
    const std::size_t end = help.find('\'', at + 1);
    if (end == std::string::npos) break;
    texts.push_back(help.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return texts;
}

// Why the config with these options is refused; "accepted" if it is not.
std::string with_options(const std::vector<std::string>& set) {
  try {
    spec::Overrides overrides;
    overrides.set = set;
    spec::load_text(config, "c.yaml", "/base", overrides);
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  }
  return "accepted";
}

// What follows "For example " in the help of a row, with 1 for what was written.
std::string example_of(const HintRow& row) {
  const std::string help =
      hint_for(row.where.substr(0, row.where.find(' ')), row.words.substr(0, row.words.find(' ')), "1")->help;
  const std::string before = "For example ";
  const std::size_t at = help.find(before);
  return at == std::string::npos ? "" : help.substr(at + before.size());
}

// The key of an example such as "layers: [dense: 10]" that is at or above what a row means.
std::string path_of(const std::string& name, const HintRow& row) {
  const std::string meant(row.meant);
  for (const spec::Key* const key : spec::find_ending(name)) {
    if (row.where != "key" || key->path == meant || meant.starts_with(key->path + ".")) {
      if (row.where == "key" ||
          key->path.find(std::string(row.where.substr(0, row.where.find(' ')))) != std::string::npos) {
        return key->path;
      }
    }
  }
  return "";
}

}  // namespace

TEST_CASE("layers in the syntax of other frameworks are told as they are written here", "[spec]") {
  const std::map<std::string, std::string> written{
      {"nn.Linear: 3", "did you mean 'dense'? For example dense: 8"},
      {"torch.nn.ReLU", "did you mean 'relu'?"},
      {"keras.layers.Dense: 4", "did you mean 'dense'?"},
      {"nn.BatchNorm", "did you mean 'batch_norm'?"},
      {"nn.BatchNorm2d", "did you mean 'batch_norm'?"},
      {"Linear", "did you mean 'dense'? For example dense: 8"},
      {"fc", "did you mean 'dense'? For example dense: 8"},
      {"Linear(64, 8)", "write 'dense: 8'"},
      {"nn.Linear(64, 8)", "write 'dense: 8'"},
      {"nn.Linear(in_features=64, out_features=8, bias=False)", "write 'dense: {features: 8, use_bias: false}'"},
      {"layers.Dense(3, activation=relu)", "write 'dense: 3', then 'relu'"},
      {"Dense(units=3, activation='swish')", "write 'dense: 3', then 'silu'"},
      {"Dense(10)", "write 'dense: 10'"},
      {"Conv2D(32, (3, 3), activation=\"relu\")", "write 'conv: {features: 32, kernel_size: [3, 3]}', then 'relu'"},
      {"nn.Conv2d(3, 8, 3)", "did you mean 'conv'? For example conv: {features: 32, kernel_size: [3, 3]}"},
      {"nn.Dropout(p=0.5)", "write 'dropout: 0.5'"},
      {"nn.Dropout(0.5)", "write 'dropout: 0.5'"},
      {"nn.Embedding(10, 4)", "write 'embedding: {num_embeddings: 10, features: 4}'"},
      {"tf.keras.layers.Flatten()", "write 'flatten'"},
      {"linear 8", "write 'dense: 8'"},
      {"relu 8", "did you mean 'relu'?"},
  };
  for (const auto& [layer, help] : written) {
    CAPTURE(layer);
    CHECK(help_for_layer(layer) == help);
    if (!help.starts_with("write ")) continue;
    std::string layers;
    for (const std::string& one : quoted(help)) layers += (layers.empty() ? "- " : "\n    - ") + one;
    CHECK(told("- flatten", layers) == "accepted");
  }
  CHECK(told("- flatten", "- nn.RNN(10, 20)") ==
        "8: layer 'RNN' is not supported: the recurrent layers are lstm and gru: lstm: 128");
  CHECK(told("- flatten", "- nn.Lambda: x") ==
        "8: layer 'Lambda' is not supported: a config cannot define a layer of its own; pmaptrain help layers lists "
        "those that there are");
}

TEST_CASE("keys in the words of other frameworks are told with keys that take what is meant", "[spec]") {
  const std::string source = "source: fashion_mnist\n";
  const std::string table = told(source, "train: x.csv\n  target: y\n");
  CHECK(test::contains(table,
                       "3: unknown key 'train' in data: did you mean 'source'? A file is an option of what reads "
                       "it: source: {csv: {train: x.csv, target: y}}"));
  CHECK(test::contains(table,
                       "4: unknown key 'target' in data: did you mean 'source'? The target is an option of a "
                       "table: source: {csv: {train: FILE, target: y}}"));
  CHECK(told(source, "source: {csv: {train: x.csv, target: y}}\n") == "accepted");

  const std::string freeze =
      "': did you mean 'optimizer.groups'? Parameters are named by patterns: groups: [{parameters: \"dense_0.*\", "
      "freeze: true}]";
  CHECK(told("train:\n", "train:\n  freeze: [conv_0]\n") == "16: unknown key 'freeze' in train" + freeze.substr(1));
  CHECK(told("model:\n", "model:\n  freeze: true\n") == "6: unknown key 'freeze' in model" + freeze.substr(1));
  CHECK(with_options({"optimizer.groups=[{parameters: \"dense_0.*\", freeze: true}]"}) == "accepted");

  CHECK(told("loss:", "gpus: 1\nloss:") ==
        "10: unknown key 'gpus': did you mean 'mesh.backend'? For example mesh: {backend: cuda, workers: 1}");
  CHECK(
      test::contains(told("learning_rate: 0.001", "learning_rate: {StepLR: {step_size: 30}}"),
                     "unknown key 'step_size' in piecewise_constant: did you mean 'boundaries_and_scales'? For example "
                     "boundaries_and_scales: [[30 epochs, 0.1], [60 epochs, 0.1]]"));
  CHECK(told("duration: 2 epochs", "duration: 10k steps").ends_with("did you mean '10000 steps'?"));
  CHECK(told("duration: 2 epochs", "duration: 1.5k").ends_with("did you mean '1500 steps'?"));
  CHECK(told("duration: 2 epochs", "duration: 1M examples").ends_with("did you mean '1000000 examples'?"));
}

TEST_CASE("values in the words of other programs are told as their key takes them", "[spec]") {
  const auto meant = [](const char* key, const std::string& value) {
    const spec::Meant found = spec::meant_value(*spec::find_key(key), value);
    return found.refused.empty() ? found.value : found.refused;
  };
  CHECK(meant("optimizer", "Adam") == "adam");
  CHECK(meant("optimizer", "momentum") == "sgd");
  CHECK(meant("optimizer", "lamb") == "optimizer 'lamb' is not supported: the nearest are adam and adamw");
  CHECK(meant("loss", "mse") == "mean_squared_error");
  CHECK(meant("metrics", "top5") == "top_k_accuracy");
  CHECK(meant("mesh.backend", "gpu") == "cuda");
  CHECK(meant("precision", "fp32") == "float32");
  CHECK(meant("train.duration", "10k steps") == "10000 steps");
  CHECK(meant("train.duration", "2 epochs") == "2 epochs");
  CHECK(meant("optimizer.learning_rate", "0.1") == "0.1");
}

TEST_CASE("every example in a hint is accepted where it stands", "[spec]") {
  for (const HintRow& row : hint_rows()) {
    const std::string example = example_of(row);
    if (example.empty()) continue;
    CAPTURE(row.where, row.words, example);
    if (row.where == "layer") {
      CHECK(told("- flatten", "- " + example) == "accepted");
    } else if (row.where == "learning_rate") {
      CHECK(told("learning_rate: 0.001", "learning_rate: {" + example + "}") == "accepted");
    } else if (row.where == "attention") {
      CHECK(told("- flatten", "- attention: {heads: 4, " + example + "}") == "accepted");
    } else if (row.where == "metric") {
      CHECK(told("[accuracy]", "[" + example + "]") == "accepted");
    } else if (row.where == "augmentation") {
      CHECK(with_options({"data.augment=[" + example + "]"}) == "accepted");
    } else {
      const std::size_t colon = example.find(':');
      REQUIRE(colon != std::string::npos);
      const std::string path = path_of(example.substr(0, colon), row);
      REQUIRE_FALSE(path.empty());
      std::vector<std::string> set{path + "=" + example.substr(colon + 2)};
      if (path.starts_with("optimizer.learning_rate.piecewise_constant.")) {
        set.insert(set.begin(), "optimizer.learning_rate.piecewise_constant.init_value=0.1");
      }
      if (path == "optimizer.weight_decay_exclude") set.insert(set.begin(), "optimizer.adamw={}");
      CHECK(with_options(set) == "accepted");
    }
  }
}

TEST_CASE("every --set in a hint for an option is accepted", "[spec]") {
  // What is written with an option; else 1.
  const std::map<std::string, std::string> values{
      {"loss", "huber"},        {"optimizer", "adam"}, {"metrics", "accuracy"},      {"duration", "2 epochs"},
      {"precision", "float32"}, {"backend", "cuda"},   {"dataset", "fashion_mnist"}, {"momentum", "0.9"},
      {"batch_size", "16"}};
  for (const HintRow& row : hint_rows()) {
    if (row.where != "option") continue;
    const std::string word(row.words.substr(0, row.words.find(' ')));
    const std::string help = hint_for("option", word, values.contains(word) ? values.at(word) : "1")->help;
    for (std::size_t at = 0; (at = help.find("--set ", at)) != std::string::npos;) {
      at += 6;
      const bool is_quoted = help[at] == '\'';
      const std::size_t begin = at + (is_quoted ? 1 : 0);
      const std::size_t end = std::min(help.find_first_of(is_quoted ? "'" : " ;", begin), help.size());
      const std::string set = help.substr(begin, end - begin);
      CAPTURE(row.words, set);
      if (set != "KEY=VALUE") CHECK(with_options({set}) == "accepted");
    }
  }
}
