#include "app/pretrained_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/pretrained_layers.h"
#include "app/table_source.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/file.h"
#include "core/input/open.h"
#include "core/spec/load.h"
#include "core/spec/print.h"
#include "core/tokenizers/file.h"
#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t shorter_length = 256;  // of a step's sequences, where the model takes longer ones

class PretrainedWriter {
 public:
  PretrainedWriter(PretrainedModel model, std::string path, const std::string& file, std::optional<std::string> data)
      : model_(std::move(model)), path_(std::move(path)), data_(std::move(data)) {
    folder_ = fs::absolute(file).parent_path().lexically_normal();
    name_ = fs::path(file).stem().string();
    std::error_code ignored;
    const fs::path tokenizer = fs::path(path_) / "tokenizer.json";
    if (model_.is_language_model() && fs::exists(tokenizer, ignored)) tokenizer_ = tokenizer.string();
  }

  PretrainedConfig write() {
    if (tokenizer_) check_tokenizer();
    source_ = model_.is_language_model() ? texts() : images();
    if (!model_.is_language_model()) count_classes();
    const std::string config = text();
    try {
      spec::load_text(config, name_ + ".yaml", folder_.string(), {});
    } catch (const Error& error) {  // nobody sees the config, so only what it says of the model is told
      fail_data(fmt::format("no config would have the model of '{}': {}", path_, error.diagnostics().front().message));
    }
    return {config, std::move(notes_)};
  }

 private:
  std::string shown(const std::string& path, const std::string& given) const {
    return shown_path(fs::absolute(path).lexically_normal().string(), folder_, given);
  }

  void check_tokenizer() {
    const data::Bytes file = data::map_file(*tokenizer_);
    const std::string_view content(reinterpret_cast<const char*>(file.view().data()), file.size());
    const tokenizers::Tokenizer tokenizer(tokenizers::read_definition(content, *tokenizer_));
    if (tokenizer.size() <= model_.tokens) return;
    fail_data(fmt::format("'{}' has {} tokens, and the model {}", *tokenizer_, with_commas(tokenizer.size()),
                          with_commas(model_.tokens)),
              "they do not belong together; for a model without the added tokens, remove tokenizer.json");
  }

  // ---- data ----

  std::string texts() {
    constexpr std::string_view example = "/usr/share/common-licenses/GPL-3";
    std::string yaml = "    text:\n";
    yaml += data_ ? "      train: " + shown(*data_, *data_) + "\n"
                  : commented(fmt::format("      train: {}", example), "a file, a folder, or a list of them");
    const std::int64_t length = std::min(model_.positions, shorter_length);
    yaml += commented(fmt::format("      length: {}", length),
                      fmt::format("tokens of an example: at most {}", with_commas(model_.positions)));
    if (model_.end_token && tokenizer_) {
      yaml += commented(fmt::format("      end_token: {}", *model_.end_token), "stands behind each document");
    }
    if (tokenizer_) {
      yaml += fmt::format("  tokenizer: {{file: {}}}\n", shown(*tokenizer_, *tokenizer_));
    } else {
      notes_.push_back(fmt::format(
          "{} has no tokenizer.json, so each byte of a text is a token, which are not those that the model was trained "
          "on: data.tokenizer names its file, or data.source.text.tokens reads files of ids",
          path_));
    }
    return yaml;
  }

  std::string images() {
    const std::int64_t height = model_.image[0], width = model_.image[1];
    if (!data_) {
      return fmt::format(
          "    # Replace this by your images, a folder for each class:\n"
          "    # image_folder: {{train: photos, size: [{0}, {1}]}}\n"
          "    synthetic_images: {{height: {0}, width: {1}, channels: {2}, classes: {3}, train: 256, test: 64}}\n",
          height, width, model_.image[2], std::max<std::int64_t>(model_.classes, 2));
    }
    return fmt::format("    image_folder:\n      train: {}\n", shown(*data_, *data_)) +
           commented(fmt::format("      size: [{}, {}]", height, width), "that of the images which the model knows");
  }

  // Of the images; a head for others is trained anew.
  void count_classes() {
    std::int64_t classes = std::max<std::int64_t>(model_.classes, 2);
    if (data_) {
      const spec::Loaded loaded = spec::load_text(text(), name_ + ".yaml", folder_.string(), {});
      const data::Source found = input::open(loaded.spec.data, 0, 1);
      classes = std::ssize(found.encoding.classes);
      if (found.train->input().shape != model_.image) {
        fail_data(fmt::format("the images of '{}' are {}, and the model takes {}", *data_,
                              to_string(found.train->input().shape), to_string(model_.image)),
                  "images have 1 channel where all of them are grey, else 3");
      }
    }
    new_head_ = !model_.has_head || classes != model_.classes;
    classes_ = classes;
  }

  // ---- text ----

  std::string text() const {
    const bool speaks = model_.is_language_model();
    std::string out = fmt::format("# Trains a model of {} further. {}.\n#\n", shown_origin(), in_a_line(model_.what));
    out += "# `pmaptrain help KEY` describes a key, for example: pmaptrain help model.init.from\n\n";
    out +=
        "name: " + spec::print_text(name_) + "\nseed: 0\n\nmesh:\n  axes: {devices: 1}\n\ndata:\n  source:\n" + source_;
    out += fmt::format("  batch_size: {}\n", speaks ? 8 : 32);
    out += speaks ? "  remainder: drop\n" : "  remainder: mask\n";
    if (!speaks && !model_.mean.empty()) {
      out += commented(fmt::format("  normalize: {{mean: [{}], std: [{}]}}", list(model_.mean), list(model_.std)),
                       "as the model was trained");
    }
    if (speaks || data_) out += commented("  validation: 0.1", "of the training data, kept aside");
    out += "\nmodel:\n  init:\n    from:\n";
    out += fmt::format("      path: {}\n      layout: {}\n", shown(path_, path_), declare::word_of(model_.layout));
    const bool speaks_anew = speaks && !model_.has_head && model_.head.find("head") != std::string::npos;
    if (new_head_ || speaks_anew) {
      out += commented("      exclude: [\"head.*\"]",
                       new_head_ && model_.has_head
                           ? fmt::format("a new head: the file's has {} classes", with_commas(model_.classes))
                           : "a new head: the file has none");
    }
    out += "  layers:\n" + model_.layers;
    out += speaks ? model_.head : fmt::format("    - {{name: head, dense: {}}}\n", classes_);
    out += fmt::format("\nloss: softmax_cross_entropy\nmetrics: [{}]\n", speaks ? "perplexity" : "accuracy");
    out += "\noptimizer:\n  adamw: {weight_decay: 0.01}\n  clip_by_global_norm: 1.0\n";
    out += commented("  learning_rate: {linear: {init_value: 5.0e-05}}", "small: the weights are good already");
    out += fmt::format("\ntrain:\n  duration: {}\n  log_every: 10 steps\n", speaks ? "1 epoch" : "3 epochs");
    if (speaks || data_) {
      out += speaks ? "  eval_every: 1 epoch\n" : "  eval_every: 1 epoch\n  checkpoint: {best: {metric: accuracy}}\n";
    }
    return out;
  }

  std::string shown_origin() const {
    return model_.layout == model::ParameterLayout::torchvision_resnet ? "torchvision" : "transformers";
  }

  static std::string list(const std::vector<double>& numbers) {
    std::vector<std::string> texts;
    texts.reserve(numbers.size());
    for (const double number : numbers) texts.push_back(fmt::format("{}", number));
    return join(texts, ", ");
  }

  PretrainedModel model_;
  std::string path_, name_;
  std::optional<std::string> data_, tokenizer_;
  fs::path folder_;
  std::string source_;
  std::vector<std::string> notes_;
  std::int64_t classes_ = 2;
  bool new_head_ = false;
};

}  // namespace

PretrainedConfig pretrained_config(Pretrained kind, const std::string& path, const std::string& file,
                                   const std::optional<std::string>& data) {
  PretrainedModel model = kind == Pretrained::hf ? read_transformers(path) : read_torchvision(path);
  return PretrainedWriter(std::move(model), path, file, data).write();
}

}  // namespace pmaptrain::app
