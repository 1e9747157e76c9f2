// Binds a checked `data` to a DataSpec.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/data/arrays/values.h"
#include "core/data/synthetic/synthetic.h"
#include "core/data/tables/csv_source.h"
#include "core/data/texts/text_source.h"
#include "core/losses/poisson.h"
#include "core/losses/softmax_cross_entropy.h"
#include "core/spec/bind/bind.h"
#include "core/spec/keys/paths.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

class DataBinder {
 public:
  DataBinder(Node& config, const Reporter& reporter) : config_(config), reporter_(reporter) {}

  void bind(DataSpec& out) {
    Node* data = config_.is(Kind::map) ? config_.find("data") : nullptr;
    if (data == nullptr || !data->is(Kind::map)) return;
    out.source_place = error_place(data, "source");
    out.remainder_place = error_place(data, "remainder");
    out.microbatches_place = error_place(data, "microbatches");
    batch_size(*data, out);
    if (const Node* normalize = get(data, "normalize")) {
      out.normalize_place = error_place(*normalize);
      out.normalize->automatic = normalize->is(Kind::scalar);
      check_normalize(*normalize, *out.normalize);
    }
    out.normalize_targets_place = error_place(data, "normalize_targets");
    splits(*data, out);
    if (const Node* buckets = get(data, "bucket_by_length")) check_buckets(*buckets, out);
    if (const Node* source = data->find("source")) out.files = paths_in("data.source", *source);
    if (const Node* npz = get_path(data, "source.npz")) check_npz(*get(data, "source"), *npz);
    if (const auto* csv = out.source.as<data::Csv>()) check_csv(*get_path(data, "source.csv"), *csv);
    if (const auto* text = out.source.as<data::TextFiles>()) check_text(*get_path(data, "source.text"), *text, out);
    if (const Node* tokenizer = get(data, "tokenizer")) {
      check_tokenizer(*tokenizer, out);
      const std::vector<PathAt> files = paths_in("data.tokenizer", *data->find("tokenizer"));
      out.files.insert(out.files.end(), files.begin(), files.end());
    }
    if (const auto* values = out.source.as<data::Values>()) check_values(*data, *values);
  }

 private:
  // Refuses a share of train if the source has a validation split, and limits of splits that the data does not have.
  void splits(Node& data, DataSpec& out) {
    const Node* share = get(&data, "validation");
    const bool own = has_own(out.source, data::Split::validation);
    if (share != nullptr) {
      out.validation_place = error_place(*share);
      if (out.source.as<data::TextFiles>() != nullptr) share_of_text(*data.find("validation"));
      if (const Node* group = get(share, "group")) check_group(*group, *share, data, out);
      if (const Node* stratify = get(share, "stratify"); stratify != nullptr && stratify->text == "true") {
        if (out.source.as<data::TextFiles>() != nullptr) {
          reporter_.report(*stratify, "the validation share of a text is its end, and has no classes", "remove it");
        } else if (!out.validation->shuffle) {
          reporter_.report(*stratify, "stratify chooses examples of each class, but shuffle: false takes the last ones",
                           "remove one of the two");
        }
      }
      if (own) {
        const std::string kind = get(&data, "source")->keys.front().text;
        reporter_.report(*share, "the source has a validation split of its own: data.source." + kind + ".validation",
                         "remove this key, or that one");
      }
    }
    const auto refuse = [&](const char* split, const std::optional<Amount>& limit, bool exists, std::string help) {
      const Node* given = get_path(&data, std::string("limit.") + split);
      if (given == nullptr || !limit || exists || get(&data, "source") == nullptr) return;
      reporter_.report(*given, std::string("the data has no ") + split + " split to limit", std::move(help));
    };
    refuse("validation", out.limit.validation, own || share != nullptr || data.find("validation") != nullptr,
           "data.validation: 0.1 would keep a tenth of the training examples aside");
    refuse("test", out.limit.test, has_own(out.source, data::Split::test), "remove the limit");
  }

  // Groups are of the rows of a table, and choose the examples alone.
  void check_group(const Node& group, const Node& share, const Node& data, const DataSpec& out) {
    const auto* const csv = out.source.as<data::Csv>();
    if (csv == nullptr) {
      if (get(&data, "source") == nullptr) return;
      reporter_.report(group, "group names a column of a table, but the source is " + out.source->name(),
                       "remove it; csv reads tables");
      return;
    }
    for (const auto& [key, chosen] : {std::pair("shuffle", "false"), std::pair("stratify", "true")}) {
      const Node* const other = get(&share, key);
      if (other == nullptr || other->text != chosen) continue;
      reporter_.report(*other, std::string(key) + ": " + chosen + " chooses single rows, but group keeps rows together",
                       "remove one of the two");
    }
    const auto is_group = [&](const declare::ColumnName& name) { return name.text == group.text; };
    const bool is_target = std::any_of(csv->target.begin(), csv->target.end(), is_group);
    if (!is_target && !(csv->weight && is_group(*csv->weight))) return;
    reporter_.report(group,
                     "the column '" + group.text + "' is " + (is_target ? "a target" : "the weight") +
                         "; a group is of rows that belong together, such as those of a patient",
                     "name another column; stratify: true takes the share of each class");
  }

  // The end of the text: nothing chooses its examples. Defaults that say otherwise leave the resolved config, which is
  // read like any other.
  void share_of_text(Node& share) {
    for (const char* key : {"seed", "shuffle"}) {
      const Node* const given = get(&share, key);
      if (given == nullptr) continue;
      if (given->fallback) {
        share.erase(key);
      } else if (given->text != "false") {
        reporter_.report(*given, std::string(key) + " has no effect: the validation share of a text is its end",
                         "remove it");
      }
    }
  }

  void check_buckets(const Node& buckets, DataSpec& out) {
    out.bucket_by_length_place = error_place(buckets);
    const bool is_whole = std::holds_alternative<BatchAll>(out.batch_size);
    if (!out.shuffle || is_whole) {
      reporter_.report(buckets,
                       "bucket_by_length sorts parts of a shuffled order; with " +
                           std::string(is_whole ? "batch_size: all" : "shuffle: false") +
                           " the examples keep that of the file",
                       "remove one of the two");
    } else if (!out.augment.empty()) {
      reporter_.report(buckets, "bucket_by_length is for sequences, and augment changes images",
                       "remove one of the two");
    } else if (out.source && !out.source->has_lengths()) {
      reporter_.report(buckets,
                       "bucket_by_length needs sequences with lengths, and the examples of this source have none",
                       "remove it, or name an array of lengths: npz: {file: data.npz, train: {inputs: x, targets: y, "
                       "lengths: n}}");
    }
  }

  void check_normalize(const Node& node, const Normalize& normalize) {
    if (normalize.mean.size() <= 1 || normalize.std.size() <= 1) return;
    if (normalize.mean.size() == normalize.std.size()) return;
    reporter_.report(*get(&node, "std"),
                     "normalize has " + std::to_string(normalize.mean.size()) + " means but " +
                         std::to_string(normalize.std.size()) + " standard deviations",
                     "give one for each channel, or one for all");
  }

  // A column of texts is the only input.
  template <class TakePart>
  void check_column_of_texts(const Node& options, const data::Csv& csv, const TakePart& take) {
    const Node* const text = get(&options, "text");
    if (text != nullptr) take(*text, "the text");
    for (const char* const key : {"max_length", "truncate", "special_tokens"}) {
      const Node* const given = get(&options, key);
      if (text == nullptr && given != nullptr) {
        reporter_.report(*given, std::string(key) + " is of a column of texts, and text names none",
                         "text: COLUMN makes its tokens the inputs; else remove it");
      }
    }
    if (text == nullptr) return;
    const bool fills = csv.missing.numbers != data::Missing::error || csv.missing.texts != data::Missing::error ||
                       !csv.missing.columns.empty();
    for (const auto& [key, is_given] :
         {std::pair("inputs", csv.inputs.has_value()), std::pair("categorical", !csv.categorical.empty()),
          std::pair("missing", fills), std::pair("missing_values", !csv.missing_values.empty()),
          std::pair("missing_categories", !csv.missing_categories.empty())}) {
      if (!is_given) continue;
      reporter_.report(*get(&options, key), std::string(key) + " is of other inputs, and text is the only one",
                       "remove it, or text; texts beside numbers are not supported");
    }
  }

  // Checks that each column has one role, and that categorical columns are inputs.
  void check_csv(const Node& options, const data::Csv& csv) {
    if (csv.delimiter.size() != 1 || csv.delimiter.find_first_of("\"\r\n") != std::string::npos ||
        static_cast<unsigned char>(csv.delimiter.front()) >= 0x80) {
      const bool tab = csv.delimiter == "\\t" || csv.delimiter == "tab";
      reporter_.report(
          *get(&options, "delimiter"), "delimiter takes one character, not '" + csv.delimiter + "'",
          tab ? "in double quotes \\t is a tab: delimiter: \"\\t\"" : "for example \",\", \";\" or \"\\t\"");
    }
    std::map<std::string, std::string> parts;
    const auto take = [&](const Node& node, const std::string& part) {
      const auto [at, is_new] = parts.emplace(node.text, part);
      if (is_new) return;
      reporter_.report(node, "the column '" + node.text + "' is already " + at->second, "remove it here, or there");
    };
    if (const Node* target = get(&options, "target")) {
      for (const Node& item : target->items) take(item, target->items.size() == 1 ? "the target" : "a target");
    }
    if (const Node* weight = get(&options, "weight")) take(*weight, "the weight");
    const Node* inputs = get(&options, "inputs");
    if (inputs != nullptr) {
      if (inputs->items.empty())
        reporter_.report(*inputs, "inputs is empty", "name the columns, for example inputs: [age]");
      for (const Node& item : inputs->items) take(item, "an input");
    }
    if (const Node* exclude = get(&options, "exclude")) {
      for (const Node& item : exclude->items) {
        if (inputs == nullptr) {
          take(item, "excluded");
        } else if (parts.contains(item.text)) {
          take(item, "");  // which reports the other part
        } else {
          reporter_.report(item, "exclude leaves '" + item.text + "' out of the inputs, but inputs does not have it",
                           "remove it: inputs names all inputs");
        }
      }
    }
    check_column_of_texts(options, csv, take);
    const Node* categorical = get(&options, "categorical");
    if (categorical == nullptr) return;
    if (const Node* missing = get(&options, "missing")) check_missing(*missing, csv, parts, inputs != nullptr);
    std::set<std::string> seen;
    for (const Node& item : categorical->items) {
      const auto part = parts.find(item.text);
      if (!seen.insert(item.text).second) {
        reporter_.report(item, "categorical has '" + item.text + "' twice", "keep one of them");
      } else if (part != parts.end() && part->second != "an input") {
        reporter_.report(
            item, "the column '" + item.text + "' is " + part->second + "; categorical lists inputs",
            part->second.ends_with("target") ? "a target of text is classes without being listed" : "remove it");
      } else if (part == parts.end() && inputs != nullptr) {
        reporter_.report(item, "the column '" + item.text + "' is categorical, but no input",
                         "add it to inputs, or remove it here");
      }
    }
  }

  // Checks that each column that `missing` names is an input, and that its treatment fits its content.
  void check_missing(const Node& missing, const data::Csv& csv, const std::map<std::string, std::string>& parts,
                     bool inputs_are_named) {
    for (std::size_t i = 0; i < missing.keys.size(); ++i) {
      const std::string &column = missing.keys[i].text, &word = missing.items[i].text;
      const auto part = parts.find(column);
      const bool is_categorical = std::any_of(csv.categorical.begin(), csv.categorical.end(),
                                              [&](const declare::ColumnName& name) { return name.text == column; });
      if (part != parts.end() ? part->second != "an input" : inputs_are_named) {
        const std::string what = part != parts.end() ? part->second : "no input";
        reporter_.report(missing.keys[i], fmt::format("the column '{}' is {}; missing is for inputs", column, what),
                         "remove it");
      } else if (word == "mean" && is_categorical) {
        reporter_.report(missing.items[i], "the column '" + column + "' is categorical, and categories have no mean",
                         "write category: empty cells are then a category of their own");
      } else if (word == "category" && !is_categorical) {
        reporter_.report(missing.items[i], "the column '" + column + "' has numbers, and no categories",
                         "write mean; or list the column in categorical");
      }
    }
  }

  void check_text(const Node& options, const data::TextFiles& text, const DataSpec& out) {
    // A token's text is looked up when the tokenizer is there.
    const bool are_bytes = !out.tokenizer || out.tokenizer.as<data::ByteTokens>() != nullptr;
    if (const Node* const end = get(&options, "end_token"); end != nullptr && are_bytes) {
      try {
        text.end_id(nullptr);
      } catch (const Error& error) {
        const Diagnostic& found = error.diagnostics().front();
        reporter_.report(*end, found.message, found.help);
      }
    }
    const Node* const field = get(&options, "field");
    if (field != nullptr && text.tokens != data::Tokens::bytes) {
      const std::string tokens = declare::word_of(text.tokens);
      reporter_.report(*field,
                       "field is for JSON lines, which have texts, and tokens: " + tokens + " takes files of tokens",
                       "remove it; tokens: bytes trains on the bytes of the texts");
    }
  }

  void check_tokenizer(const Node& tokenizer, const DataSpec& out) {
    const auto* const text = out.source.as<data::TextFiles>();
    const auto* const csv = out.source.as<data::Csv>();
    if (out.source && text == nullptr && (csv == nullptr || !csv->text)) {
      reporter_.report(tokenizer,
                       "tokenizer is for texts, and the source is " + out.source->name() +
                           (csv != nullptr ? " without a column of texts" : ""),
                       csv != nullptr ? "remove it, or name the column: csv: {text: review, ...}" : "remove it");
    } else if (text != nullptr && text->tokens != data::Tokens::bytes && out.tokenizer &&
               out.tokenizer.as<data::TokenizerFile>() == nullptr) {
      reporter_.report(tokenizer,
                       "the files have tokens (tokens: " + declare::word_of(text->tokens) + "), which " +
                           out.tokenizer->name() + " did not make",
                       "remove it, or name the tokenizer that made them: {file: tokenizer.json}");
    }
  }

  void check_values(const Node& data, const data::Values& values) {
    if (values.inputs.empty() || values.targets.empty() || values.inputs.size() == values.targets.size()) return;
    reporter_.report(*get_path(&data, "source.values.targets"),
                     "there are " + std::to_string(values.inputs.size()) + " inputs but " +
                         std::to_string(values.targets.size()) + " targets",
                     "list one entry of inputs and one entry of targets for each example");
  }

  // Whether splits name arrays of lengths. Reports it if only some do.
  bool names_lengths(const Node& options) {
    const Node *with = nullptr, *without = nullptr;
    for (const char* key : {"train", "validation", "test"}) {
      const Node* split = get(&options, key);
      if (split == nullptr || split->is(Kind::scalar)) continue;
      (split->find("lengths") != nullptr ? with : without) = split;
    }
    if (with != nullptr && without != nullptr) {
      reporter_.report(*without, "this split has no lengths, and another one has",
                       "name the array in each split: {inputs: x, targets: y, lengths: n}");
    }
    return with != nullptr;
  }

  // One archive for all splits, or one for each.
  void check_npz(const Node& source, const Node& options) {
    const Node& name = source.keys.front();
    const Node* file = get(&options, "file");
    if (file == nullptr && options.find("file") != nullptr) return;  // already reported
    for (const char* key : {"train", "validation", "test"}) {
      const Node* split = get(&options, key);
      if (split == nullptr) continue;
      if (file != nullptr && split->is(Kind::scalar)) {
        reporter_.report(*split, "with file, a split is a list of two array names, not a path",
                         "for example train: [x_train, y_train]");
      } else if (file == nullptr && !split->is(Kind::scalar)) {
        reporter_.report(*split, "without file, a split is the path of an archive, not two names",
                         "add file: archive.npz, or write train: train.npz, inputs: x, targets: y");
      }
    }
    const Node* padding = options.find("padding_token");
    const bool has_lengths = options.find("lengths") != nullptr || names_lengths(options);
    if (padding != nullptr && has_lengths) {
      reporter_.report(*padding, "padding_token cannot be combined with lengths: both say where sequences end",
                       "remove one of them");
    }
    for (const std::string key : {"inputs", "targets", "lengths"}) {
      const Node* given = options.find(key);
      if (file != nullptr && given != nullptr) {
        reporter_.report(*given, key + " cannot be combined with file, where each split names its arrays",
                         "remove " + key + ", or file");
      } else if (file == nullptr && given == nullptr && key != "lengths") {
        reporter_.report(name, key + " is missing in npz",
                         "name the arrays: npz: {train: train.npz, inputs: x, targets: y}");
      }
    }
  }

  void batch_size(const Node& data, DataSpec& out) {
    const Node* whole = data.find("batch_size");
    const Node* per_device = data.find("batch_size_per_device");
    if (whole != nullptr && per_device != nullptr) {
      reporter_.report(*per_device, "data has both batch_size and batch_size_per_device; it takes exactly one",
                       "remove one of them");
    } else if (whole == nullptr && per_device == nullptr) {
      reporter_.report(data, "batch_size is missing in data", "add it, for example:\nbatch_size: 128");
    }
    out.batch_size_place = error_place(&data, whole != nullptr ? "batch_size" : "batch_size_per_device");
    if (whole != nullptr && whole->valid()) {
      if (whole->text == "all") {
        out.batch_size = BatchAll{};
      } else {
        out.batch_size = parsed_as<std::int64_t>(*whole);
      }
    } else if (per_device != nullptr && per_device->valid()) {
      out.batch_size = BatchPerDevice{parsed_as<std::int64_t>(*per_device)};
    }
  }

  Node& config_;
  const Reporter& reporter_;
};

// The classes that are listed in order.
void check_classes(const Node& config, const Spec& spec, const Reporter& reporter) {
  const Node* const list = get_path(&config, "data.source.csv.classes");
  const auto* const csv = spec.data.source.as<data::Csv>();
  if (list == nullptr || csv == nullptr || csv->classes.empty()) return;
  std::set<std::string> named;
  for (const declare::ColumnName& name : csv->classes) {
    if (!named.insert(name.text).second) {
      reporter.report(*list, "classes has '" + name.text + "' twice", "name each class once");
    }
  }
  if (csv->classes.size() < 2) {
    reporter.report(*list, "classes has one class", "list all of them, in order; without the list they are sorted");
  }
  if (csv->target.size() > 1) {
    reporter.report(*list, "classes are those of one target; there are several", "remove the list");
  }
  if (get(&config, "loss") != nullptr && takes_numbers(spec.loss)) {
    reporter.report(*list, "classes is for losses of classes; the loss, " + spec.loss->name() + ", takes numbers",
                    "remove it, or use softmax_cross_entropy or sigmoid_cross_entropy");
  }
}

}  // namespace

void check_targets(const Node& config, const Spec& spec, const Reporter& reporter) {
  check_classes(config, spec, reporter);
  const Node* columns = get_path(&config, "data.source.csv.target");
  const bool several = columns != nullptr && columns->items.size() > 1;
  const bool has_loss = spec.loss_place.known();  // else it is missing or refused, and its default says nothing
  if (several && has_loss && spec.loss.as<losses::SoftmaxCrossEntropy>() != nullptr) {
    reporter.report(*columns,
                    "several targets are numbers or labels; the loss, " + spec.loss->name() + ", takes one class",
                    "name one column, use sigmoid_cross_entropy for labels 0 and 1, or a loss of numbers, such as "
                    "mean_squared_error");
  }
  const Node* separator = get_path(&config, "data.source.csv.label_separator");
  const auto* const csv = spec.data.source.as<data::Csv>();
  if (separator != nullptr && csv != nullptr && csv->label_separator) {
    if (several) {
      reporter.report(*separator, "label_separator divides the cells of one target; there are several",
                      "name the column with lists of labels, or remove label_separator: columns of 0 and 1 are labels");
    } else if (csv->label_separator->empty()) {
      reporter.report(*separator, "label_separator is empty", "write the text between two labels, such as \";\"");
    } else if (has_loss && (takes_numbers(spec.loss) || spec.loss.as<losses::SoftmaxCrossEntropy>() != nullptr)) {
      reporter.report(*separator,
                      "label_separator gives examples several labels; the loss, " + spec.loss->name() + ", takes " +
                          (takes_numbers(spec.loss) ? "numbers" : "one class"),
                      "use sigmoid_cross_entropy");
    }
  }
  const Node* stratify = get_path(&config, "data.validation.stratify");
  if (stratify != nullptr && stratify->text == "true" && has_loss && takes_numbers(spec.loss)) {
    reporter.report(*stratify, "stratify is for classes; the loss, " + spec.loss->name() + ", takes numbers",
                    "remove it");
  }
  const Node* node = get_path(&config, "data.normalize_targets");
  if (node == nullptr || !spec.data.normalize_targets) return;
  if (has_loss && !takes_numbers(spec.loss)) {
    reporter.report(
        *node,
        "normalize_targets is for targets that are numbers; the loss, " + spec.loss->name() + ", is one of classes",
        "remove it, or use a loss of numbers, such as mean_squared_error");
  }
  if (spec.loss.as<losses::Poisson>() != nullptr) {
    reporter.report(*node,
                    "normalize_targets does not go with poisson, whose outputs are logarithms of rates of counts",
                    "remove it, or use another loss of numbers, such as mean_squared_error");
  }
  if (spec.data.source.as<data::SyntheticLinear>() != nullptr) {
    reporter.report(*node,
                    "normalize_targets does not go with synthetic_linear, whose true parameters are those of its "
                    "targets as they are",
                    "remove it");
  }
}

void bind_data(Node& config, const Reporter& reporter, DataSpec& out) { DataBinder(config, reporter).bind(out); }

}  // namespace pmaptrain::spec
