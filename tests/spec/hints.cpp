// What people of other frameworks write: each mistake with the one line that helps.
#include "core/hints/hints.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/ops/all.h"
#include "core/spec/keys.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/spec/errors_of.h"
#include "tests/spec/told.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

std::vector<std::string> names_below(std::string_view path) {
  const spec::Key* const key = path.empty() ? &spec::root_key() : spec::find_key(path);
  REQUIRE(key != nullptr);
  std::vector<std::string> names;
  for (const spec::Key* other : spec::children(*key)) names.emplace_back(other->name());
  names.insert(names.end(), key->words.begin(), key->words.end());
  return names;
}

std::vector<std::string> names_of_ops() {
  std::vector<std::string> names{"pmean"};
  for (const OpRules* op : all_ops().all) names.emplace_back(op->name);
  return names;
}

std::vector<std::string> words_of(std::string_view list) {
  std::istringstream words{std::string(list)};
  return {std::istream_iterator<std::string>(words), {}};
}

// What may be written at the place of a row; empty where it is not of a config.
std::vector<std::string> names_at(std::string_view where) {
  if (where == "layer") return names_below("model.layers");
  if (where == "metric") return names_below("metrics");
  if (where == "augmentation") return names_below("data.augment");
  if (where == "duration")
    return {"step",   "steps",   "epoch",  "epochs",  "example", "examples",
            "second", "seconds", "minute", "minutes", "hour",    "hours"};
  if (where == "op") return names_of_ops();
  if (where == "option" || where == "command" || where == "collective" || where == "format" || where == "key")
    return {};
  std::vector<std::string> names;
  auto found = spec::find_ending(where);
  for (const spec::Key& key : spec::keys()) {
    if (found.empty() && key.name() == where) found.push_back(&key);  // described at another key, which it is like
  }
  REQUIRE_FALSE(found.empty());
  for (const spec::Key* key : found) {
    for (std::string& name : names_below(key->path)) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

TEST_CASE("names of other frameworks are told their own name here", "[spec]") {
  const std::string loss = "loss: softmax_cross_entropy";
  CHECK(told(loss, "loss: mse") == "10: unknown loss 'mse': did you mean 'mean_squared_error'?");
  CHECK(told(loss, "loss: cross_entropy") ==
        "10: unknown loss 'cross_entropy': did you mean 'softmax_cross_entropy'? It takes logits; for labels 0 and 1 "
        "and one output there is sigmoid_cross_entropy");
  CHECK(told(loss, "criterion: softmax_cross_entropy") == "10: unknown key 'criterion': did you mean 'loss'?");
  CHECK(told("- flatten", "- ReLU") == "8: unknown layer 'ReLU': did you mean 'relu'?");
  CHECK(told("- flatten", "- Flatten()") == "8: unknown layer 'Flatten()': write 'flatten'");
  CHECK(told("- flatten", "- swish") == "8: unknown layer 'swish': did you mean 'silu'?");
  CHECK(told("dense: 10", "linear: 10") == "9: unknown layer 'linear': did you mean 'dense'? For example dense: 8");
  CHECK(told("- conv:", "- Conv2d:") == "7: unknown layer 'Conv2d': did you mean 'conv'?");
  CHECK(told("features: 8", "filters: 8") == "7: unknown key 'filters' in conv: did you mean 'features'?");
  CHECK(told("learning_rate", "lr") == "14: unknown key 'lr' in optimizer: did you mean 'learning_rate'?");
  CHECK(told("adam: {}", "adam: {lr: 0.1}") == "13: unknown key 'lr' in adam: did you mean 'optimizer.learning_rate'?");
  CHECK(told("duration: 2 epochs", "epochs: 2") ==
        "16: unknown key 'epochs' in train: did you mean 'duration'? For epochs write duration: 2 epochs");
  CHECK(told("axes: {devices: 8}", "devices: 8") ==
        "1: unknown key 'devices' in mesh: did you mean 'axes'? For example axes: {devices: 8}");
  CHECK(told("axes: {devices: 8}", "backend: gpu") ==
        "1: backend takes one of cpu, cuda, auto, reference, not 'gpu': did you mean 'cuda'?");
  CHECK(told("batch_size", "batch") == "4: unknown key 'batch' in data: did you mean 'batch_size'?");
  const std::string batch = "  batch_size: 128";
  const auto augmentation = [&](const std::string& one) { return told(batch, batch + "\n  augment: [" + one + "]"); };
  CHECK(augmentation("RandomRotation: 15") ==
        "5: unknown augmentation 'RandomRotation': did you mean 'random_rotation'?");
  CHECK(augmentation("RandomRotation(15)") ==
        "5: unknown augmentation 'RandomRotation(15)': write 'random_rotation: 15'");
  CHECK(augmentation("ColorJitter: {hue: 0.1}") ==
        "5: unknown augmentation 'ColorJitter': did you mean 'color_jitter'?");
  CHECK(augmentation("RandomResizedCrop") ==
        "5: unknown augmentation 'RandomResizedCrop': did you mean 'random_resized_crop'?");
  CHECK(augmentation("rotate: 15") ==
        "5: unknown augmentation 'rotate': did you mean 'random_rotation'? Its angles are in degrees");
  CHECK(augmentation("random_brightness: 0.2") ==
        "5: unknown augmentation 'random_brightness': did you mean 'color_jitter'? For example color_jitter: "
        "{brightness: 0.2}");
  CHECK(augmentation("zoom: {}") == "5: unknown augmentation 'zoom': did you mean 'random_resized_crop'?");
  CHECK(told("[accuracy]", "[acc]") == "11: unknown metric 'acc': did you mean 'accuracy'?");
  CHECK(told(loss, loss + "\nfsdp: {stage: 3}") == "11: unknown key 'fsdp': did you mean 'parallelism.fsdp'?");
  CHECK(told(loss, loss + "\nzero: {stage: 3}") == "11: unknown key 'zero': did you mean 'parallelism.fsdp'?");
}

TEST_CASE("of a key that is set without its maps, or below other ones, the whole path is told", "[spec]") {
  const auto help = [](const std::string& set) {
    const std::string text = errors_of(base, {set});
    const std::size_t begin = std::min(text.find("help: "), text.size());
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  CHECK(help("fsdp=3") == "help: did you mean 'parallelism.fsdp'?");
  CHECK(help("fsdp.stage=3") == "help: did you mean 'parallelism.fsdp.stage'?");
  CHECK(help("settings.batch_size=3") == "help: did you mean 'data.batch_size'?");
  CHECK(help("best=accuracy") == "help: did you mean 'train.checkpoint.best'?");
  CHECK(help("lr=0.1") == "help: did you mean 'optimizer.learning_rate'?");
}

TEST_CASE("what there is not is refused as not supported, with the nearest thing that there is", "[spec]") {
  CHECK(told("- flatten", "- rnn: 10") ==
        "8: layer 'rnn' is not supported: the recurrent layers are lstm and gru: lstm: 128");
  CHECK(told("adam: {}", "lamb: {}") == "13: optimizer 'lamb' is not supported: the nearest are adam and adamw");
  CHECK(told("adam: {}", "adam: {weight_decay: 0.1}") ==
        "13: 'weight_decay' is not supported in adam: adamw has weight_decay, decoupled from the gradient; adam has "
        "none");
  CHECK(told("features: 8", "features: 8, activation: relu") ==
        "7: 'activation' is not supported in conv: an activation is a layer of its own: add '- relu' after this one; "
        "losses of logits apply softmax and sigmoid themselves");
  const std::string batch = "  batch_size: 128";
  const auto augmentation = [&](const std::string& one) { return told(batch, batch + "\n  augment: [" + one + "]"); };
  CHECK(augmentation("augmix") ==
        "5: augmentation 'augmix' is not supported: there are random_crop, random_resized_crop, random_flip, "
        "random_rotation, color_jitter, cutout, mixup and cutmix");
  CHECK(augmentation("random_resized_crop: {size: 32}") ==
        "5: 'size' is not supported in random_resized_crop: the result has the size of the images; the source sets it: "
        "image_folder: {size: [32, 32]}");
  CHECK(augmentation("random_rotation: {degrees: 15, fill: 0}") ==
        "5: 'fill' is not supported in random_rotation: what is outside of the image is zero");
  CHECK(augmentation("random_rotation: {degrees: 15, expand: true}") ==
        "5: 'expand' is not supported in random_rotation: images keep their size, and what is turned out of them is "
        "lost");
  CHECK(told("axes: {devices: 8}", "backend: tpu") == "1: backend tpu is not supported: the backends are cpu and cuda");
  CHECK(told("loss: softmax", "precision: 16-mixed\nloss: softmax") ==
        "10: precision 16-mixed is not supported: the nearest is mixed_bfloat16, which needs no loss scaling");
  CHECK(told("train:", "callbacks: []\ntrain:") ==
        "15: 'callbacks' is not supported: what runs beside training is in train: checkpoint, early_stopping, ema, "
        "eval_every");
}

TEST_CASE("what new users write of layers, data and training is told in one error", "[spec]") {
  CHECK(told("conv: {features: 8, kernel_size: [3, 3]}", "conv2d: {features: 8}") ==
        "7: unknown layer 'conv2d': did you mean 'conv'?");
  CHECK(told("conv: {features: 8, kernel_size: [3, 3]}", "conv2d: {filters: 8, kernel_size: [3, 3]}") ==
        "7: unknown layer 'conv2d': did you mean 'conv'?\n7: unknown key 'filters' in conv: did you mean 'features'?");
  CHECK(told("conv: {features: 8, kernel_size: [3, 3]}", "{type: Conv2d, filters: 8}") ==
        "7: layer 'type' is not supported: the kind is itself the key: write 'conv:' in its place");
  CHECK(told("adam: {}", "type: Adam") ==
        "13: optimizer 'type' is not supported: the kind is itself the key: write 'adam:' in its place");
  CHECK(told("- flatten", "- deconv: {features: 8}")
            .starts_with("8: unknown layer 'deconv': did you mean 'conv_transpose'? For example conv_transpose: "));
  CHECK(told("duration: 2 epochs", "duration: 2 epochs\n  accumulate: 4") ==
        "17: unknown key 'accumulate' in train: did you mean 'data.microbatches'? The batch is computed in so many "
        "parts, and their gradients are added");
  CHECK(told("model:", "pretrained: runs/a\nmodel:") ==
        "5: unknown key 'pretrained': did you mean 'model.init.from'? It takes a run folder or a safetensors file: "
        "init: {from: runs/NAME}");
  CHECK(told("model:", "model:\n  pretrained: runs/a")
            .starts_with("6: unknown key 'pretrained' in model: did you mean "));
  const auto source = [](const std::string& one) { return told("source: fashion_mnist", "source: " + one); };
  CHECK(source("{parquet: {train: a.parquet}}").starts_with("3: source 'parquet' is not supported: write it as CSV, "));
  CHECK(source("data/a.parquet").starts_with("3: unknown source 'data/a.parquet': write it as CSV, which csv reads: "));
  CHECK(source("data/a.csv") ==
        "3: unknown source 'data/a.csv': a file is an option of what reads it: `pmaptrain help data.source`");
}

TEST_CASE("what other tools do by themselves is told with what does it here", "[spec]") {
  const std::string finder =
      "there is no finder of learning rates; a sweep does it, with parameters: {optimizer.learning_rate: {log_uniform: "
      "[1.0e-4, 1.0e-1]}}: pmaptrain sweep run SWEEP.yaml";
  CHECK(told("learning_rate: 0.001", "learning_rate: auto") == "14: learning_rate auto is not supported: " + finder);
  const std::string duration = "duration: 2 epochs";
  const auto train = [&](const std::string& line) { return told(duration, duration + "\n  " + line); };
  CHECK(train("lr_finder: true") == "17: 'lr_finder' is not supported in train: " + finder);
  CHECK(train("auto_lr_find: true") == "17: 'auto_lr_find' is not supported in train: " + finder);
  CHECK(train("save_best: true") ==
        "17: unknown key 'save_best' in train: did you mean 'train.checkpoint.best'? For example checkpoint: {best: "
        "{metric: loss}}");
  CHECK(hint_for("command", "lr-find")->help == finder);
  for (const char* const word : {"tune", "search", "hpo"}) CHECK(hint_for("command", word)->meant == "sweep");

  const std::string loss = "loss: softmax_cross_entropy";
  const std::string own = "a config cannot define a loss of its own; pmaptrain help loss lists those that there are";
  CHECK(told(loss, "loss: custom") == "10: loss 'custom' is not supported: " + own);
  CHECK(told(loss, "loss: my_loss") == "10: loss 'my_loss' is not supported: " + own);
  CHECK(told(loss, "loss: {python: loss.py}") == "10: loss 'python' is not supported: " + own);
  CHECK(told(loss, "loss: dice").starts_with("10: loss 'dice' is not supported: the nearest are focal, "));
  CHECK(told(loss, "loss: ctc").starts_with("10: loss 'ctc' is not supported: nothing aligns sequences; the nearest "));
  CHECK(told(loss, "loss: triplet").starts_with("10: loss 'triplet' is not supported: there is no loss of pairs "));
  CHECK(told(loss, "loss: giou").starts_with("10: loss 'giou' is not supported: nothing finds boxes of objects; the "));
  CHECK(told(loss, "loss: gan").starts_with("10: loss 'gan' is not supported: a run trains one model by one "));

  const auto layer = [](const std::string& one) { return told("- flatten", "- " + one); };
  CHECK(layer("unet").starts_with("8: layer 'unet' is not supported: its levels are parallel with join: concat, "));
  CHECK(
      layer("yolo").starts_with("8: layer 'yolo' is not supported: nothing finds boxes of objects; the nearest is a "));
  CHECK(layer("siamese").starts_with("8: layer 'siamese' is not supported: a model is one network with one input; "));
  CHECK(layer("conv3d") ==
        "8: unknown layer 'conv3d': did you mean 'conv'? For example conv: {features: 8, kernel_size: [3, 3, 3]}");
  CHECK(layer("concat").starts_with("8: unknown layer 'concat': did you mean 'parallel'? For example parallel: {"));
  CHECK(layer("interpolate").starts_with("8: unknown layer 'interpolate': did you mean 'upsample'? For example "));
  CHECK(
      layer("skip").starts_with("8: unknown layer 'skip': did you mean 'residual'? It adds what two lists of layers "));
  CHECK(layer("adaptive_avg_pool2d: 1") == "8: unknown layer 'adaptive_avg_pool2d': did you mean 'global_avg_pool'?");
  CHECK(told("dense: 10", "dense: {features: 10, trainable: false}") ==
        "9: unknown key 'trainable' in dense: did you mean 'optimizer.groups'? Parameters are named by patterns: "
        "groups: [{parameters: \"dense_0.*\", freeze: true}]");
  CHECK(told("source: fashion_mnist", "source: {text: {train: a.txt, length: 8, tokens: chars}}") ==
        "3: tokens takes one of bytes, uint16, uint32, not 'chars': did you mean 'bytes'?");
}

TEST_CASE("weights of classes are a list in their order, and not all 0", "[spec]") {
  const auto weights = [](const std::string& given) {
    return told("loss: softmax_cross_entropy", "loss: {softmax_cross_entropy: {class_weights: " + given + "}}");
  };
  CHECK(weights("[0, 0.0, 0]") ==
        "10: class_weights are all 0, so nothing would count: at least one must be above 0; balanced finds them in the "
        "training split");
  CHECK(weights("0").starts_with("10: class_weights are all 0"));
  CHECK(weights("[0, 1]") == "accepted");
  CHECK(
      weights("{0: 1, 1: 2.5}") ==
      "10: class_weights takes a list of numbers of at least 0 or 'balanced', not a map: write [1, 2.5], in the order "
      "of the classes");
  CHECK(
      weights("{cat: 1, dog: 2}") ==
      "10: class_weights takes a list of numbers of at least 0 or 'balanced', not a map: one weight for each class, in "
      "their order: for example class_weights: [1.0, 5.0]");
  CHECK(told("loss: softmax_cross_entropy", "loss: {sigmoid_cross_entropy: {positive_weights: [0]}}")
            .starts_with("10: positive_weights are all 0"));
}

TEST_CASE("an unknown alternative lists the alternatives alone", "[spec]") {
  std::vector<std::string> rules;
  for (const spec::Key* const rule : spec::alternatives(*spec::find_key("optimizer"))) rules.emplace_back(rule->name());
  CHECK(told("adam: {}", "qqqq: {}") == "13: unknown optimizer 'qqqq': valid choices: " + join(rules, ", "));
  CHECK(told("adam: {}", "adam: {}\n  qqqq: 1")
            .starts_with("14: unknown key 'qqqq' in optimizer: valid keys: learning_rate, base_batch_size, "));
}

TEST_CASE("a layer without its colon is told with it", "[spec]") {
  CHECK(told("dense: 10", "dense 10") == "9: unknown layer 'dense 10': write 'dense: 10'");
  CHECK(told("dense: 10", "dense:10") == "9: unknown layer 'dense:10': write 'dense: 10'");
  CHECK(told("    - conv: {features: 8, kernel_size: [3, 3]}\n    - flatten\n    - dense: 10", "    -dense: 10") ==
        "7: there is no space after the '-' of '-dense': write '- dense: 10'");
  CHECK(told("  duration: 2 epochs", "  duration:2") ==
        "16: there is no space after the ':' of 'duration': write 'duration: 2'");
  CHECK(told("[accuracy]", "accuracy") == "11: metrics takes a list of metrics, not 'accuracy': write [accuracy]");
}

TEST_CASE("the unit of a duration may be meant when another one is written", "[spec]") {
  const auto duration = [](const std::string& value) {
    const std::string text = told("duration: 2 epochs", "duration: " + value);
    return text.substr(text.rfind(": ") + 2);
  };
  CHECK(duration("3ep") == "did you mean '3 epochs'?");
  CHECK(duration("1 epocs") == "did you mean '1 epoch'?");
  CHECK(duration("3 epocs") == "did you mean '3 epochs'?");
  CHECK(duration("100 iters") == "did you mean '100 steps'?");
  CHECK(duration("1 batches") == "did you mean '1 step'?");
  CHECK(duration("500 samples") == "did you mean '500 examples'?");
  CHECK(duration("12s") == "train.max_time limits the time of a run");
  CHECK(duration("12 hours") == "train.max_time limits the time of a run");
  const auto time = [](const std::string& value) {
    const std::string text = told("duration: 2 epochs", "duration: 2 epochs\n  max_time: " + value);
    return text.substr(text.rfind(": ") + 2);
  };
  CHECK(time("12s") == "did you mean '12 seconds'?");
  CHECK(time("1h") == "did you mean '1 hour'?");
  CHECK(time("1 min") == "did you mean '1 minute'?");
  CHECK(time("30 minuts") == "did you mean '30 minutes'?");
  CHECK(time("2 d") == "a day has 24 hours");
  CHECK(time("3 epochs") == "30 minutes");  // for example
}

TEST_CASE("help finds a key by what other frameworks call it, and says what there is not", "[spec]") {
  const auto refused = [](const std::string& word) -> std::string {
    try {
      return spec::help(word);
    } catch (const Error& error) {
      CHECK(error.status() == ExitStatus::usage);
      return error.diagnostics().front().help;
    }
  };
  CHECK(refused("lr") == "did you mean 'optimizer.learning_rate'?");
  CHECK(refused("optimizer.lr") == "did you mean 'optimizer.learning_rate'?");
  CHECK(refused("epochs") == "did you mean 'train.duration'? For epochs write duration: N epochs");
  CHECK(refused("mse") == "did you mean 'mean_squared_error'?");
  CHECK(refused("Conv2d") == "did you mean 'conv'?");
  CHECK(refused("maxpool") == "did you mean 'max_pool'?");
  CHECK(refused("simple_rnn") == "the recurrent layers are lstm and gru: lstm: 128");
  CHECK(refused("gpu").starts_with("no key is named 'gpu': did you mean 'cuda'? pmaptrain help backend\nthese have "));
  CHECK(refused("learning_rate_finder").starts_with("there is no finder of learning rates; a sweep does it"));
  CHECK(refused("custom_loss").starts_with("a config cannot define a loss of its own"));
  CHECK(refused("lora_linear")
            .starts_with("adapters stand beside kernels of other layers: the section lora of the config"));
  for (const char* const word : {"tensor_parallel", "tp", "megatron", "model_parallel_size", "tp_plan"}) {
    CHECK(refused(word) ==
          "did you mean 'parallelism.tensor'? It divides layers along an axis of the mesh: tensor: {axis: model}");
  }
  CHECK(refused("ColumnParallelLinear") == "did you mean 'dense'? parallelism.tensor divides pairs of dense layers");
  CHECK(refused("pipeline_parallel")
            .starts_with("devices divide batches (data.axes), parameters (parallelism.fsdp) and layers "));
  CHECK(refused("Lambda").starts_with("a config cannot define a layer of its own"));
  for (const char* const word : {"inputs", "moe", "gan", "ppo", "gym", "pipeline", "Rescaling", "ZeroPadding2D"}) {
    CHECK(hint_in_config(word).has_value());
  }
  CHECK(refused("qqqq") == "pmaptrain help lists all keys");
}

TEST_CASE("every hint leads to something that exists, and none hides what exists", "[spec]") {
  for (const HintRow& row : hint_rows()) {
    for (const std::string& where : words_of(row.where)) {
      CAPTURE(where, row.words);
      const std::vector<std::string> names = names_at(where);
      const std::string meant(row.meant);
      if (where == "key" && !meant.empty()) CHECK(spec::find_key(meant) != nullptr);
      if (!names.empty() && !meant.empty()) CHECK(std::find(names.begin(), names.end(), meant) != names.end());
      if (meant.empty()) CHECK_FALSE(row.help.empty());
      for (const std::string& word : words_of(row.words)) {
        CAPTURE(word);
        CHECK(std::find(names.begin(), names.end(), word) == names.end());
        // The first row that has a word decides.
        CHECK(hint_for(where, word, "")->meant == row.meant);
      }
    }
  }
}
