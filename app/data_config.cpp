#include "app/data_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "app/array_source.h"
#include "app/class_balance.h"
#include "app/data_layers.h"
#include "app/data_sizes.h"
#include "app/table_source.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/statistics.h"
#include "core/data/tables/csv_reader.h"
#include "core/input/inspect.h"
#include "core/input/open.h"
#include "core/setup/advice.h"
#include "core/setup/make_setup.h"
#include "core/setup/setup.h"
#include "core/spec/load.h"
#include "core/spec/print.h"

namespace pmaptrain::app {
namespace {

constexpr double validation_share = 0.1, validation_share_of_few = 0.2;
// With fewer of a rare class among the validation examples, a metric of it is mostly chance.
constexpr std::int64_t least_rare_examples = 50;
// Integers of more values, or of fewer examples each, are rather counts or prices. Images have more classes.
constexpr std::int64_t most_classes = 20, most_classes_of_images = 1000;
constexpr std::int64_t least_examples_of_class = 5;

enum class Task { classes, labels, numbers };  // labels: several at once

class Writer {
 public:
  Writer(DataKind kind, std::string path, const std::string& file, std::vector<std::string> targets)
      : kind_(kind), path_(std::move(path)), asked_(std::move(targets)) {
    folder_ = std::filesystem::absolute(file).parent_path().lexically_normal();
    name_ = std::filesystem::path(file).stem().string();
  }

  // Throws Error (data) for what no config would make good.
  std::string write() {
    try {
      return compose();
    } catch (const Error& error) {
      fail_about_data(error);
    }
  }

  const std::vector<std::string>& notes() const { return source_.comments; }

  // "target: 'y', the last column: classification, 2 classes (0, 1); ..."; of an archive, also what the inputs are.
  std::string target_line() const {
    std::string line;
    bool is_one = true;
    if (kind_ == DataKind::csv) {
      is_one = layout_.targets.size() == 1;
      line = std::string(is_one ? "target" : "targets") + ": '" + in_a_line(join(layout_.targets, "', '")) + "'";
      if (!layout_.target_because.empty()) line += ", " + layout_.target_because;
    } else if (kind_ == DataKind::npz) {
      is_one = numel(found_.train->target().shape) == 1;
      const std::string lengths = lengths_.empty() ? "" : fmt::format("; lengths: '{}'", in_a_line(lengths_));
      line = fmt::format("inputs: '{}', {}{}; target: '{}'", in_a_line(arrays_.inputs), inputs_text(), lengths,
                         in_a_line(arrays_.targets));
    } else {
      line = fmt::format("inputs: {}; target: the {} of each image", inputs_text(), have_masks_ ? "mask" : "folder");
    }
    line += is_label_map()           ? ": classification of pixels, " + classes_text("classes")
            : task_ == Task::classes ? ": classification, " + classes_text("classes")
            : task_ == Task::labels  ? ": several labels at once, " + classes_text("labels")
            : is_one                 ? ": regression, its numbers"
                                     : ": regression, their numbers";
    if (is_label_map() && classes_but_255_) line += "; 255 marks pixels that do not count";
    if (task_ == Task::classes && has_numbers() && !is_label_map()) {
      line += fmt::format("; as numbers: loss: mean_squared_error with dense: 1{}",
                          lists_classes_ ? " and without classes" : "");
    }
    if (task_ == Task::numbers) line += hint_on_counts(*found_.train);
    if (kind_ == DataKind::npz) line += hints_on_arrays(*found_.train, task_ == Task::numbers, lengths_.empty());
    if (!layout_.inputs.empty()) {
      line += fmt::format("; another column: --target {}", shell_quoted(printable(layout_.inputs.back())));
    }
    return line;
  }

 private:
  std::string classes_text(std::string_view kind) const {
    const std::vector<std::string>& names = found_.encoding.classes;
    return fmt::format("{} {}", outputs(), kind) + (names.empty() ? "" : " (" + first_names(names, 4) + ")");
  }

  // "pictures u8[28,28,1]", "numbers f32[3]"
  std::string inputs_text() const {
    const data::Field input = found_.train->input();
    const char* const what = input.shape.size() == 3   ? "pictures"
                             : input.shape.size() == 2 ? "sequences"
                             : tokens_ > 0             ? "tokens"
                                                       : "numbers";
    return fmt::format("{} {}{}", what, to_string(input.dtype), to_string(input.shape));
  }

  // Whether the targets are numbers, which a regression could predict as well.
  bool has_numbers() const {
    if (found_.encoding.classes.empty()) return found_.train->label_range().has_value();
    return kind_ == DataKind::csv && are_numbers();
  }

  // Whether a class is predicted for each pixel, or for each place of another array of several dimensions.
  bool is_label_map() const {
    return task_ == Task::classes && found_.train && found_.train->target().dtype == DType::i32 &&
           found_.train->target().shape.size() > 1;
  }

  // Whether the classes are numbers.
  bool are_numbers() const {
    return std::all_of(found_.encoding.classes.begin(), found_.encoding.classes.end(), is_number);
  }

  std::string compose() {
    source_ = kind_ == DataKind::npz ? npz() : kind_ == DataKind::csv ? csv() : images();
    // Opened as for a classifier, whose targets are labels where they can be.
    const bool are_labels = !layout_.label_separator.empty() || layout_.are_labels;
    task_ = are_labels ? Task::labels : layout_.targets.size() > 1 ? Task::numbers : Task::classes;
    open();
    if (have_masks_) {
      const MaskClasses classes = classes_of_masks(found_, path_);
      classes_of_masks_ = classes.count;
      if (classes.has_255) classes_but_255_ = classes.count;
      source_.yaml += names_of_masks(classes.count);
    } else if (is_label_map()) {
      classes_but_255_ = classes_beside_255(*found_.train);
    }
    check();
    choose_task();
    std::string config = text(layers());
    setup::make_setup(load(config));  // whether everything fits together
    return config;
  }

  // What is predicted, by the targets.
  void choose_task() {
    if (task_ == Task::classes && has_classes()) return count_classes();
    if (task_ == Task::labels) return;
    const bool are_labels = input::kind_of_rows(*found_.train) != input::TargetRows::numbers;
    task_ = are_labels ? Task::labels : Task::numbers;
    found_ = input::open(load(text(layers())).spec.data, 0, 1);
    has_long_tail_ = !are_labels && input::has_long_tail(*found_.train) &&
                     (!is_divided() || input::has_long_tail(*found_.validation) || found_.validation->size() < 30);
  }

  // The data as the config describes it so far.
  data::Source opened() const {
    return input::open(load(text(first_layer() + "    - flatten\n    - dense: 1\n")).spec.data, 0, 1);
  }

  void open() {
    const auto try_to_open = [&] { found_ = opened(); };
    try {
      try_to_open();
    } catch (const Error& error) {
      if (error.status() != ExitStatus::data || kind_ == DataKind::npz || have_masks_ || skips()) throw;
      if (!opens_without_few(try_to_open)) throw;
    }
    if (has_text()) tokens_ = found_.train->input().tokens;
    if (found_.channels) {
      source_.yaml += commented("      channels: " + declare::word_of(*found_.channels),
                                choices_of_channels(*found_.channels, found_.train->input().shape, lengths_.empty()));
    }
    const auto& skipped = found_.encoding.skipped;
    if (skipped.empty()) return;
    source_.comments.push_back(fmt::format("{} cannot be read and {} left out; the first: {}.",
                                           counted(std::ssize(skipped), kind_ == DataKind::csv ? "row" : "file"),
                                           skipped.size() == 1 ? "is" : "are", skipped.front().reason));
  }

  // Whether a few rows or files alone are to blame, which are then left out.
  bool opens_without_few(const std::function<void()>& try_to_open) {
    const std::string before = source_.yaml;
    source_.yaml += skipping();
    try {
      try_to_open();
      if (std::ssize(found_.encoding.skipped) * input::least_for_one_skipped <= examples()) return true;
    } catch (const Error&) {
    }
    source_.yaml = before;
    found_ = {};
    return false;
  }

  // Whether the inputs are the words of a column of texts.
  bool has_text() const { return !layout_.text.empty(); }

  bool skips() const { return source_.yaml.find("      on_error:") != std::string::npos; }

  // Nobody sees the configs that were tried, so only what they say of the data is told, without a place in them.
  [[noreturn]] void fail_about_data(const Error& error) const {
    if (error.status() == ExitStatus::data) {
      std::vector<Diagnostic> diagnostics = error.diagnostics();
      for (Diagnostic& diagnostic : diagnostics) diagnostic.place = {};
      throw Error(error.status(), std::move(diagnostics));
    }
    if (error.status() != ExitStatus::usage) throw error;
    fail_data(fmt::format("no config would train on '{}': {}", path_, error.diagnostics().front().message));
  }

  spec::Loaded load(const std::string& yaml) const {
    return spec::load_text(yaml, name_ + ".yaml", folder_.string(), {});
  }

  // As the config names it.
  std::string shown(const std::string& path) const { return shown_path(path, folder_, path_); }

  // ---- sources ----

  SourceText npz() {
    ArraySource found = array_source(path_, [&](const std::string& path) { return shown(path); });
    arrays_ = std::move(found.arrays);
    lengths_ = std::move(found.lengths);
    tokens_ = found.tokens;
    return std::move(found.text);
  }

  SourceText csv() {
    layout_ = input::find_columns(path_, asked_);
    return table_source(layout_, shown(path_));
  }

  SourceText images() {
    ImageSource found = image_source(path_, [&](const std::string& path) { return shown(path); });
    have_masks_ = found.have_masks;
    return std::move(found.text);
  }

  // ---- what the data is ----

  std::int64_t examples() const { return found_.train->size() + (is_divided() ? found_.validation->size() : 0); }

  // What no config would make good.
  void check() {
    const auto classes = static_cast<std::int64_t>(found_.encoding.classes.size());
    if (task_ == Task::classes && classes * 2 > examples() && !are_numbers()) {
      fail_data(fmt::format("{} has {} different texts in {}, so nearly every row would be a class of its own",
                            shown_target(), classes, counted(examples(), "row")),
                "write numbers without units, or name another column: --target NAME");
    }
    if (classes == 1) {
      fail_data(fmt::format("{} is {} in every example, so there is nothing to learn", shown_target(),
                            data::shown_cell(found_.encoding.classes.front())));
    }
    if (input::has_one_target(*found_.train, is_divided() ? found_.validation.get() : nullptr)) {
      fail_data(shown_target() + " is the same in every example, so there is nothing to learn");
    }
    if (std::string warning = setup::channels_first_warning(found_.train->input().shape); !warning.empty()) {
      source_.comments.push_back(std::move(warning));
    }
  }

  // "the target of 't.csv', 'y', the last column,"
  std::string shown_target() const {
    std::string text = "the target of '" + path_ + "'";
    if (kind_ == DataKind::csv) text += ", '" + in_a_line(join(layout_.targets, "', '")) + "'";
    return text + (layout_.target_because.empty() ? "" : ", " + layout_.target_because + ",");
  }

  bool has_classes() const {
    const data::Dataset& train = *found_.train;
    if ((!found_.encoding.classes.empty() && !are_numbers()) ||
        input::kind_of_rows(train) == input::TargetRows::one_hot) {
      return true;
    }
    if (train.target().shape.size() == 1 && train.target().shape.front() > 1) return false;
    const auto range = train.label_range();  // of numbers that name classes, their positions
    if (!range) return false;
    if (train.target().shape.size() > 1)
      return range->first >= 0 && outputs() >= 2 && outputs() <= most_classes_of_pixels;
    if (kind_ == DataKind::csv && balance_of(found_, is_divided()).counts.size() == 2) return true;
    if (range->first < 0) return false;
    const std::int64_t classes = range->second + 1;
    const bool images = train.input().shape.size() == 3;
    return classes >= 2 && classes <= (images ? most_classes_of_images : most_classes) &&
           classes * least_examples_of_class <= train.size();
  }

  std::int64_t outputs() const {
    if (classes_of_masks_) return *classes_of_masks_;
    if (task_ != Task::classes) return numel(found_.train->target().shape);
    if (!found_.encoding.classes.empty()) return static_cast<std::int64_t>(found_.encoding.classes.size());
    if (!found_.train->label_range()) return numel(found_.train->target().shape);
    if (classes_but_255_) return *classes_but_255_;
    return found_.train->label_range()->second + 1;
  }

  // Whether a class has so few examples that accuracy says little of it. Each class has two.
  void count_classes() {
    if (found_.train->target().dtype != DType::i32 || !found_.train->target().shape.empty()) return;
    ClassBalance balance = balance_of(found_, is_divided());
    if (kind_ == DataKind::csv && list_classes(listed_classes(balance, found_.encoding.classes))) {
      balance = balance_of(found_, is_divided());
    }
    const auto& counts = balance.counts;
    for (std::size_t label = 0; label < found_.encoding.classes.size(); ++label) {
      if (counts.contains(static_cast<std::int32_t>(label))) continue;
      source_.comments.push_back(fmt::format("The class {} has no example: add some, or remove it.",
                                             data::shown_cell(found_.encoding.classes[label])));
    }
    is_rare_ = balance.is_rare;
    is_stratified_ = is_rare_ && balance.least >= 2 && layout_.dated_by.empty();
    // Of two classes, those metrics have no value where validation has one of them alone.
    const bool has_all =
        is_stratified_ || (found_.validation && data::count_labels(*found_.validation).size() == counts.size());
    is_rare_ = is_rare_ && (counts.size() > 2 || has_all);
    if (is_rare_) count_rare(balance);
    if (is_of_rare_class() && balance.rarest == 0) {
      source_.comments.push_back(
          fmt::format("{} is rare, and f1 and average_precision are of {}: with the names or "
                      "numbers of the classes exchanged they are of the rare one.",
                      class_text(0), class_text(1)));
    }
  }

  // Reads the targets again as these classes, if there are any.
  bool list_classes(const std::vector<std::string>& classes) {
    if (classes.empty()) return false;
    source_.yaml += commented("      classes: " + list_of(classes),
                              classes.size() == 2 ? "in order: f1 and a threshold are of the second" : "in order");
    lists_classes_ = true;
    found_ = opened();
    return true;
  }

  // Where validation would have few examples of the rare class, it takes a larger share; not where it is chance which
  // it has.
  void count_rare(const ClassBalance& balance) {
    rare_class_ = class_text(static_cast<std::size_t>(balance.rarest));
    const auto in = [&](double share) {
      return std::max<std::int64_t>(1, std::llround(share * static_cast<double>(balance.least)));
    };
    const bool is_known = is_divided() && (is_stratified_ || !layout_.dated_by.empty());
    rare_examples_ = is_known ? in(share_) : data::count_labels(*found_.validation)[balance.rarest];
    has_few_rare_ = *rare_examples_ < least_rare_examples;
    if (!is_known || !has_few_rare_) return;
    share_ = validation_share_of_few;
    rare_examples_ = in(share_);
  }

  // Whether it is predicted if an example is of class 1, and one of the two classes is rare: by one probability, for
  // which a threshold can be chosen.
  bool is_of_rare_class() const { return task_ == Task::classes && is_rare_ && outputs() == 2; }

  std::string class_text(std::size_t number) const {
    const std::vector<std::string>& names = found_.encoding.classes;
    return "class " + (number < names.size() ? data::shown_cell(names[number]) : std::to_string(number));
  }

  // What selects a checkpoint and stops a run. Accuracy has few values on a small split, and f1 of rare labels is 0 for
  // the first epochs: the loss also tells evaluations apart that are equal by them.
  std::string_view metric() const {
    if (task_ == Task::numbers) return "mean_absolute_error";
    if (task_ == Task::labels || !is_rare_ || has_few_rare_) return "loss";
    return is_of_rare_class() ? "roc_auc" : "f1";
  }

  std::string metrics() const {
    if (task_ == Task::numbers) return "[mean_absolute_error, r2]";
    const bool are_masks = found_.train && found_.train->target().shape.size() > 1;
    if (task_ == Task::labels) return are_masks ? "[]" : "[f1]";
    if (is_label_map()) return "[accuracy, mean_iou]";
    if (!is_rare_) return "[accuracy]";
    return is_of_rare_class() ? "[accuracy, f1, roc_auc, average_precision]" : "[accuracy, f1]";
  }

  // Whether validation examples are taken out of the training split.
  bool is_divided() const { return source_.yaml.find("      validation:") == std::string::npos; }

  // ---- the config ----

  std::string first_layer() const {
    if (has_text()) {
      return commented(
          fmt::format("    - embedding: {{num_embeddings: {}, features: 64}}", std::max<std::int64_t>(tokens_, 3)),
          "one row for each word");
    }
    if (tokens_ > 0) {
      return commented(fmt::format("    - embedding: {{num_embeddings: {}, features: 64}}", tokens_),
                       "one more than the largest token");
    }
    if (!embeds_categories(layout_)) return "";
    return commented("    - table_embedding", "learns a few numbers for each text, in place of an input for each");
  }

  std::string layers() const { return first_layer() + further_layers(); }

  std::string further_layers() const {
    const Shape input = found_.train->input().shape, target = found_.train->target().shape;
    if (is_of_rare_class()) return layers_to(1, "one logit, of " + class_text(1));
    if (have_masks_) return unet_layers(input, outputs(), "one logit for each class, at each pixel");
    if (is_label_map()) {
      Shape logits = target;
      logits.push_back(outputs());
      return layers_for(input, logits, numel(logits), "one logit for each class, at each pixel");
    }
    return layers_to(outputs(), task_ == Task::classes  ? "one logit for each class"
                                : task_ == Task::labels ? "one logit for each label"
                                                        : "one output for each number of a target");
  }

  std::string layers_to(std::int64_t outputs, const std::string& what) const {
    if (has_text()) {
      return commented("    - global_avg_pool", "over the words of each text") + "    - dropout: 0.3\n" +
             commented(fmt::format("    - dense: {}", outputs), what);
    }
    if (!lengths_.empty()) return sequence_layers(outputs, what);
    return layers_for(found_.train->input().shape, found_.train->target().shape, outputs, what);
  }

  std::int64_t devices() const { return found_.train ? devices_for(found_.train->size()) : most_devices; }
  std::int64_t batch_size() const { return found_.train ? batch_size_for(found_.train->size()) : devices(); }
  std::int64_t epochs() const { return found_.train ? epochs_for(found_.train->size(), has_images()) : 1; }

  bool has_images() const { return found_.train && found_.train->input().shape.size() == 3; }

  std::string head() const {
    std::string out = "# Training on " + in_a_line(std::filesystem::path(path_).filename().string());
    if (found_.train) {
      const data::Field input = found_.train->input();
      out +=
          fmt::format(": {} of {}{}", counted(examples(), "example"), to_string(input.dtype), to_string(input.shape));
    }
    out += ".\n";
    for (const std::string& comment : source_.comments) out += "# " + in_a_line(comment) + "\n";
    out += names_comment(task_ == Task::labels ? "Labels" : "Classes", found_.encoding.classes);
    return out + "#\n# `pmaptrain help KEY` describes a key, for example: pmaptrain help optimizer.adam\n\n";
  }

  std::string_view loss() const {
    if (is_label_map() && classes_but_255_) return "\nloss: {softmax_cross_entropy: {ignore_label: 255}}\n";
    return task_ == Task::classes  ? "\nloss: softmax_cross_entropy\n"
           : task_ == Task::labels ? "\nloss: sigmoid_cross_entropy\n"
                                   : "\nloss: mean_squared_error\n";
  }

  std::string text(const std::string& layers) const {
    std::string out = head();
    out += "name: " + spec::print_text(name_) + "\nseed: 0\n\nmesh:\n";
    out +=
        commented(fmt::format("  axes: {{devices: {}}}", devices()), "logical devices; one core can run all of them");
    out += "\ndata:\n  source:\n" + source_.yaml;
    if (has_text()) {
      out += commented("  tokenizer: {words: {size: 20000}}", "at most so many words, those that occur most often");
    }
    out += commented(fmt::format("  batch_size: {}", batch_size()),
                     fmt::format("examples a step: {} on each device", batch_size() / devices()));
    if (has_text()) {
      out += commented("  bucket_by_length: 20", "a step has texts of similar length");
      out += commented("  remainder: mask", "the last batch of an epoch may have fewer");
    }
    if (is_divided()) out += validation();
    if (tokens_ == 0 && !has_text()) {
      out += commented("  normalize: auto", "inputs of mean 0 and standard deviation 1, by the training examples");
    }
    if (task_ == Task::numbers) {
      out += has_long_tail_ ? commented("  normalize_targets: log",
                                        "a few targets are much larger than the others: "
                                        "predictions are nearer a median than a mean")
                            : commented("  normalize_targets: auto",
                                        "the loss is of targets like that; metrics and predictions are not");
    }
    out += "\nmodel:\n  layers:\n" + layers;
    const bool are_integers = found_.train && found_.encoding.classes.empty() && found_.train->label_range();
    if (task_ == Task::classes && are_integers && !is_label_map()) {
      out += "\n# The targets, integers, are taken as classes. For numbers: dense: 1, loss: mean_squared_error.";
    }
    if (is_of_rare_class()) {
      out += fmt::format(
          "\n# `pmaptrain eval RUN --tune-threshold f1` chooses the probability from which on {} is\n"
          "# predicted, and `pmaptrain predict RUN --threshold run` takes it.\n",
          class_text(1));
      out += commented("loss: sigmoid_cross_entropy",
                       "{sigmoid_cross_entropy: {class_weights: balanced}} weighs both classes alike");
    } else {
      out += loss();
    }
    out += is_rare_ ? commented(fmt::format("metrics: {}", metrics()), "a class is rare, so accuracy says little of it")
                    : fmt::format("metrics: {}\n", metrics());
    out += "\noptimizer:\n";
    if (has_images() || has_text()) {
      out += "  adam: {}\n";
    } else {
      out += commented("  adamw: {weight_decay: 0.3}", "small tables are soon learnt by heart: this holds against it");
    }
    out += fmt::format("  learning_rate: {}\n\ntrain:\n", has_text() ? "0.005" : "0.001");
    out += fmt::format("  duration: {} epochs\n", epochs());
    if (found_.train && found_.train->size() / batch_size() < 100) out += "  log_every: 1 epoch\n";
    out += commented("  eval_every: 1 epoch", "on the validation examples");
    out += commented(fmt::format("  checkpoint: {{best: {{metric: {}}}}}", metric()),
                     has_few_rare_ ? "checkpoints/best: rare examples are few, so by the loss"
                                   : "checkpoints/best is the best of them");
    out += commented(fmt::format("  early_stopping: {{metric: {}, patience: 10}}", metric()),
                     "after 10 evaluations without a better one");
    return out;
  }

  std::string validation() const {
    const std::string rare = rare_examples_
                                 ? fmt::format("; {} {} of {}", layout_.dated_by.empty() ? "it has" : "it has about",
                                               with_commas(*rare_examples_), rare_class_)
                                 : "";
    if (!layout_.dated_by.empty()) {
      return commented(fmt::format("  validation: {{share: {}, shuffle: false}}", share_),
                       "the last rows, which are the latest" + rare);
    }
    if (is_stratified_) {
      return commented(fmt::format("  validation: {{share: {}, stratify: true}}", share_),
                       "of the training examples of each class" + rare);
    }
    return commented(fmt::format("  validation: {}", share_), "of the training examples, kept aside" + rare);
  }

  DataKind kind_;
  std::string path_, name_;
  std::filesystem::path folder_;
  SourceText source_;
  data::Source found_;
  std::vector<std::string> asked_;  // the targets
  input::TableLayout layout_;       // of a table
  input::ArrayNames arrays_;        // of the training split of an archive
  std::string lengths_;             // those of its sequences
  std::int64_t tokens_ = 0;         // of sequences of different lengths: how many different tokens there are
  bool have_masks_ = false;         // images have masks, of so many classes
  std::optional<std::int64_t> classes_of_masks_;
  Task task_ = Task::classes;
  bool is_rare_ = false, is_stratified_ = false, has_long_tail_ = false, lists_classes_ = false;
  std::optional<std::int64_t> classes_but_255_;  // of a label map where 255 is none
  bool has_few_rare_ = false;                    // so that a metric of the rare class says little
  double share_ = validation_share;
  std::string rare_class_;
  std::optional<std::int64_t> rare_examples_;  // among the validation examples, where a class is rare
};

}  // namespace

std::optional<DataKind> data_kind(std::string_view name) {
  if (name == "npz") return DataKind::npz;
  if (name == "csv") return DataKind::csv;
  if (name == "images") return DataKind::images;
  return std::nullopt;
}

DataConfig config_for(DataKind kind, const std::string& path, const std::string& file,
                      const std::vector<std::string>& targets) {
  Writer writer(kind, path, file, targets);
  std::string text = writer.write();
  return {std::move(text), writer.notes(), writer.target_line()};
}

}  // namespace pmaptrain::app
