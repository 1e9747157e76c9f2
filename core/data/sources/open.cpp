#include "core/data/sources/open.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/arrays/array_dataset.h"
#include "core/data/arrays/cifar10.h"
#include "core/data/file.h"
#include "core/data/images/folder.h"
#include "core/data/parallel.h"
#include "core/data/sources/divide.h"
#include "core/data/sources/held_out.h"
#include "core/data/sources/synthetic.h"
#include "core/data/sources/text.h"
#include "core/data/sources/text_files.h"
#include "core/data/statistics.h"
#include "core/data/subset.h"
#include "core/data/tables/csv.h"
#include "core/data/tables/other_rows.h"

namespace pmaptrain::data {
namespace {

// The arguments for opening a source, besides its options.
struct Opening {
  std::uint64_t seed = 0;
  std::int64_t devices = 1;
  Place place;                // of the source in the config
  std::optional<Split> only;  // none: all splits
  const Encoding* known;      // null: that of the training split
  const Skipped& left_out;    // by the run that is continued
  ArrayMeaning meaning = {};
  bool needs_train = false;                                          // to learn from it
  std::map<Split, std::shared_ptr<TableDataset>>* tables = nullptr;  // of a source of tables
  std::optional<spec::ColumnName> group = {};                        // by which a table is divided
  bool names_classes = false;                                        // numbers of a table that are no labels
  bool wants(Split split) const { return !only || *only == split || (needs_train && split == Split::train); }
};

using Notes = std::vector<std::string>;

std::shared_ptr<const Dataset> open_idx(const spec::FilePair& pair, Notes& notes, const Opening& opening) {
  const auto read = [](const std::string& path) { return about_file(path, [&] { return read_idx(path); }); };
  Array inputs = read(pair.inputs);  // first, so that its errors are reported first
  return make_dataset(std::move(inputs), read(pair.targets), notes, opening.place, opening.meaning);
}

std::shared_ptr<const Dataset> open_npz(const spec::Npz::Split& split, Notes& notes, const Opening& opening) {
  return about_file(split.file, [&] {
    Array inputs = read_npz(split.file, split.inputs);
    return make_dataset(std::move(inputs), read_npz(split.file, split.targets), notes, opening.place, opening.meaning);
  });
}

void check_equal(std::string_view what, Split first, const Field& a, Split second, const Field& b) {
  if (a.dtype == b.dtype && a.shape == b.shape) return;
  fail_data(
      fmt::format("the {} split's {} are {}{}, but the {} split's are {}{}", name_of(first), what, to_string(a.dtype),
                  to_string(a.shape), name_of(second), to_string(b.dtype), to_string(b.shape)),
      "the examples of all splits must have the same type and shape");
}

// Reads the splits that are wanted by `read`, at once, and checks that their fields are equal.
template <class Files, class Read>
Source open_splits(const std::map<Split, Files>& splits, const Opening& opening, Read read) {
  Source source;
  std::map<Split, Notes> notes;
  std::vector<Split> wanted;
  for (const auto& [split, files] : splits) {
    if (!opening.wants(split)) continue;
    wanted.push_back(split);
    notes[split];  // before several threads look them up
  }
  for_each_item(std::ssize(wanted), [&](std::int64_t i) {
    const Split split = wanted[static_cast<std::size_t>(i)];
    source.of(split) = read(splits.at(split), notes.at(split), opening);
  });
  std::optional<Split> first;
  for (const auto& [split, own] : notes) {
    for (const std::string& note : own) {
      if (std::find(source.notes.begin(), source.notes.end(), note) == source.notes.end()) source.notes.push_back(note);
    }
    if (!first) first = split;
    check_equal("inputs", *first, source.of(*first)->input(), split, source.of(split)->input());
    check_equal("targets", *first, source.of(*first)->target(), split, source.of(split)->target());
  }
  return source;
}

// "fashion_mnist: 60000 train, 10000 test examples of u8[28,28,1]"
std::string describe(const Source& source, std::string_view name, bool has_test) {
  std::string text = fmt::format("{}:", name);
  std::optional<Field> input;
  for (const Split split : all_splits) {
    if (!source.of(split)) continue;
    text += fmt::format("{} {} {}", input ? "," : "", source.of(split)->size(), name_of(split));
    input = source.of(split)->input();
  }
  text += fmt::format(" examples of {}{}", to_string(input->dtype), to_string(input->shape));
  if (const auto& classes = source.encoding.classes; !classes.empty()) {
    constexpr std::size_t most = 12;  // that are listed
    text += fmt::format(" in {} {}", classes.size(), classes.size() == 1 ? "class" : "classes");
    if (classes.size() <= most) text += fmt::format(" ({})", shown_list(classes, most));
  }
  return has_test ? text : text + "; there is no test split";
}

Source open_source(const spec::FashionMnist& s, const Opening& opening) {
  const auto pair = [&](std::string_view prefix) {
    return spec::FilePair{fmt::format("{}/{}-images-idx3-ubyte.gz", s.dir, prefix),
                          fmt::format("{}/{}-labels-idx1-ubyte.gz", s.dir, prefix)};
  };
  try {
    return open_splits<spec::FilePair>({{Split::train, pair("train")}, {Split::test, pair("t10k")}}, opening, open_idx);
  } catch (const Error& error) {
    if (s.dir != spec::FashionMnist{}.dir) throw;  // the user chose this folder
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    for (Diagnostic& d : diagnostics) {
      d.help =
          "Debian's package dataset-fashion-mnist has these files (apt-get install dataset-fashion-mnist); "
          "data.source.fashion_mnist.dir sets another folder";
    }
    throw Error(error.status(), std::move(diagnostics));
  }
}

// The splits that are configured.
template <class Files>
std::map<Split, Files> given(const Files& train, const std::optional<Files>& validation,
                             const std::optional<Files>& test) {
  std::map<Split, Files> splits{{Split::train, train}};
  if (validation) splits.emplace(Split::validation, *validation);
  if (test) splits.emplace(Split::test, *test);
  return splits;
}

Source open_source(const spec::Idx& s, const Opening& opening) {
  return open_splits(given(s.train, s.validation, s.test), opening, open_idx);
}

Source open_source(const spec::Npz& s, const Opening& opening) {
  const std::map<Split, spec::Npz::Split> splits = given(s.train, s.validation, s.test);
  Opening own = opening;
  own.meaning.channels = s.channels;
  std::optional<spec::Channels> decided;
  std::string note;
  if (s.channels == spec::Channels::automatic) {
    const auto first =
        std::find_if(splits.begin(), splits.end(), [&](const auto& entry) { return opening.wants(entry.first); });
    const spec::Npz::Split split = s.complete(first->second);
    const NpyHead head = about_file(split.file, [&] { return read_npz_head(split.file, split.inputs); });
    const bool tokens = opening.meaning.tokens && !is_floating(head.element);
    decided = channels_of(head.element, head.shape, tokens);
    own.meaning.channels = decided.value_or(spec::Channels::none);
    if (decided && !tokens) note = describe(*decided, head.element, head.shape);
  }
  Source source = open_splits(splits, own, [&](const spec::Npz::Split& split, Notes& notes, const Opening& at) {
    return open_npz(s.complete(split), notes, at);
  });
  source.channels = decided;
  if (!note.empty()) source.notes.push_back(std::move(note));
  return source;
}

Source open_source(const spec::Csv& s, const Opening& opening) {
  CsvSource csv = open_csv(
      s, [&](Split split) { return opening.wants(split); }, opening.known,
      {opening.meaning.numeric_targets, opening.names_classes, opening.group}, opening.left_out);
  Source source;
  std::optional<Split> first;
  for (const auto& [split, table] : csv.splits) {
    source.of(split) = table;
    if (!first) first = split;
    check_equal("targets", *first, source.of(*first)->target(), split, table->target());
  }
  source.encoding = std::move(csv.encoding);
  source.notes = std::move(csv.notes);
  *opening.tables = std::move(csv.splits);
  return source;
}

Source open_source(const spec::ImageFolder& s, const Opening& opening) {
  Source source = open_image_folder(
      s, [&](Split split) { return opening.wants(split); }, opening.known, opening.left_out);
  for (Diagnostic& warning : source.warnings) warning.place = opening.place;
  return source;
}

Source open_source(const spec::Cifar10& s, const Opening& opening) {
  return about_file(s.dir, [&] { return open_cifar10(s, [&](Split split) { return opening.wants(split); }); });
}

Source open_source(const spec::TextFiles& s, const Opening& opening) {
  const std::map<Split, spec::TextFiles::Files> splits = given(s.train, s.validation, s.test);
  Source source =
      open_splits(splits, opening, [&](const spec::TextFiles::Files& files, Notes& notes, const Opening& at) {
        return make_text(s, files, notes, at.place);
      });
  if (!opening.wants(Split::train) || splits.size() == 1) return source;
  const std::vector<TextFile> trained = list_text_files(s.train);
  for (const auto& [split, files] : splits) {
    if (split == Split::train || !opening.wants(split)) continue;
    std::string shared = text_of_shared(trained, list_text_files(files), name_of(split));
    if (shared.empty()) continue;
    source.warnings.push_back({"data",
                               opening.place,
                               std::move(shared),
                               fmt::format("{} metrics are better than those of new text; take files that are not "
                                           "trained on",
                                           name_of(split)),
                               {}});
  }
  return source;
}

Source open_source(const spec::SyntheticLinear& s, const Opening& opening) {
  LinearSource linear = make_linear(s, opening.seed, opening.devices);
  Source source;
  source.train = std::move(linear.dataset);
  source.truths = {{"dense_0.kernel", std::move(linear.w)}, {"dense_0.bias", {linear.b}}};
  return source;
}

Source open_source(const spec::SyntheticImages& s, const Opening& opening) {
  Source source;
  if (opening.wants(Split::train)) source.train = make_images(s, opening.seed, Split::train);
  if (s.test > 0 && opening.wants(Split::test)) source.test = make_images(s, opening.seed, Split::test);
  return source;
}

Source open_source(const spec::Values& s, const Opening&) {
  Source source;
  source.train = make_dataset(s.inputs, s.targets);
  return source;
}

[[noreturn]] void refuse(const Place& place, std::string message, std::string help) {
  throw Error(ExitStatus::usage, Diagnostic{"config", place, std::move(message), std::move(help), {}});
}

// The examples of a full training batch, as far as the config says it.
std::optional<std::int64_t> batch_examples(const spec::DataSpec& spec, std::int64_t devices) {
  if (const auto* each = std::get_if<spec::BatchPerDevice>(&spec.batch_size)) return each->examples * devices;
  if (const auto* whole = std::get_if<std::int64_t>(&spec.batch_size)) return *whole;
  return std::nullopt;
}

void limit(std::shared_ptr<const Dataset>& dataset, const std::optional<spec::Amount>& amount,
           std::optional<std::int64_t> batch) {
  if (!amount || !dataset) return;
  if (amount->batches && !batch) {
    refuse(amount->place, "limit counts batches, but batch_size is all",
           "count examples, such as 1000 examples, or set batch_size to a number");
  }
  const std::int64_t unit = amount->batches ? *batch : 1;
  if (amount->count <= (dataset->size() - 1) / unit) {
    dataset = first_examples(dataset, amount->count * unit);
  }
}

// A mean over examples needs one that counts, in every split that is left.
void check_weights(const Source& source, const Place& place) {
  for (const Split split : all_splits) {
    const std::shared_ptr<const Dataset>& dataset = source.of(split);
    if (!dataset || !dataset->is_weighted()) continue;
    std::int64_t first = 0;
    while (first < dataset->size() && !(dataset->weight(first) > 0)) ++first;
    if (first < dataset->size()) continue;
    throw Error(ExitStatus::data, Diagnostic{"data",
                                             place,
                                             fmt::format("all weights of the {} split are 0", name_of(split)),
                                             "an example of weight 0 does not count",
                                             {}});
  }
}

// Encoding::labels of a training split.
std::int64_t count_of_labels(const Dataset& train, const spec::DataSpec& spec) {
  const auto range = train.label_range();
  if (!range || std::holds_alternative<spec::TextFiles>(spec.source)) return 0;
  if (range->second != spec.ignored_label) return std::max<std::int64_t>(0, range->second + 1);
  std::map<std::int32_t, std::int64_t> counts = count_labels(train);
  counts.erase(static_cast<std::int32_t>(*spec.ignored_label));
  return counts.empty() ? 0 : std::max<std::int64_t>(0, std::int64_t{counts.rbegin()->first} + 1);
}

// Completes the encoding from the training split, after data.validation and data.limit are applied, or from `known`.
void learn(Source& source, const spec::DataSpec& spec, const std::map<Split, std::shared_ptr<TableDataset>>& tables,
           const Encoding* known, bool exact) {
  if (known != nullptr) {
    const std::vector<std::string>& classes = source.encoding.classes;
    if (!classes.empty() && !known->classes.empty() && classes != known->classes) {
      throw Error(ExitStatus::data,
                  Diagnostic{"data",
                             spec.source_place,
                             fmt::format("the classes of the data, {}, are not those of the checkpoint, {}",
                                         shown_list(classes), shown_list(known->classes)),
                             "use data with the classes that the run was trained on, in their order",
                             {}});
    }
    source.encoding = *known;
    return;
  }
  source.encoding.exact = exact;
  try {
    if (source.train && source.encoding.classes.empty()) source.encoding.labels = count_of_labels(*source.train, spec);
    const auto* const csv = std::get_if<spec::Csv>(&spec.source);
    if (csv != nullptr) {
      const std::vector<std::optional<double>> means =
          tables.at(Split::train)->means_of(*source.train, source.encoding, csv->missing);
      for (std::size_t i = 0; i < means.size(); ++i) source.encoding.columns[i].missing = means[i];
      for (const auto& entry : tables) entry.second->fill_missing(source.encoding);
      note_filled(tables, source.encoding, source.notes);
    }
    if (spec.normalize && spec.normalize->automatic) {
      Measurement found = measure(*source.train, source.encoding.columns, exact);
      source.encoding.statistics = std::move(found.statistics);
      source.encoding.wide_inputs = found.needs_exact;
    } else if (spec.normalize && exact) {
      source.encoding.wide_inputs = needs_exact_inputs(*source.train, *spec.normalize);
    }
    if (spec.balances_classes && source.train->target().dtype == DType::i32) {
      std::map<std::int32_t, std::int64_t> counts = count_labels(*source.train);
      if (spec.ignored_label) counts.erase(static_cast<std::int32_t>(*spec.ignored_label));
      source.encoding.class_weights = balanced_weights(counts);
    }
    if (spec.balances_positives) source.encoding.class_weights = balanced_positives(*source.train);
    // Other targets are refused by the model.
    if (spec.normalize_targets && source.train->target().dtype == DType::f32) {
      const std::vector<spec::TargetScale> scales = spec::target_scales(spec, numel(source.train->target().shape));
      source.encoding.targets = measure_targets(*source.train, scales, exact);
      source.encoding.wide_targets = exact && needs_exact_targets(*source.train, scales, *source.encoding.targets);
    }
  } catch (const Error& error) {
    throw_at(spec.source_place, error);
  }
}

// What `f` returns. Errors about a file get the place of the path that names it or its folder, others that of the
// source.
template <class F>
Source at_files(const spec::DataSpec& spec, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    for (Diagnostic& diagnostic : diagnostics) {
      const auto names = [&](const spec::PathAt& at) {
        return diagnostic.file == at.path || diagnostic.file.starts_with(at.path + "/");
      };
      const auto at = std::find_if(spec.files.begin(), spec.files.end(), names);
      if (at != spec.files.end() && !diagnostic.place.known()) diagnostic.place = at->place;
    }
    give_place(diagnostics, spec.source_place);
    throw Error(error.status(), std::move(diagnostics));
  }
}

}  // namespace

std::string_view name_of(Split split) {
  switch (split) {
    case Split::train: return "train";
    case Split::validation: return "validation";
    case Split::test: break;
  }
  return "test";
}

std::optional<Split> split_named(std::string_view name) {
  for (const Split split : all_splits) {
    if (name_of(split) == name) return split;
  }
  return std::nullopt;
}

std::shared_ptr<const Dataset>& Source::of(Split split) {
  return split == Split::train ? train : split == Split::validation ? validation : test;
}
const std::shared_ptr<const Dataset>& Source::of(Split split) const {
  return split == Split::train ? train : split == Split::validation ? validation : test;
}

bool has_split(const spec::DataSpec& spec, Split split) {
  if (split == Split::validation) return spec.validation || spec::has_own_validation(spec.source);
  return split == Split::train || spec::has_own_test(spec.source);
}

std::uint64_t seed_of(const spec::DataSpec& spec, std::uint64_t seed) { return spec.seed.value_or(seed); }

Source open(const spec::DataSpec& spec, std::uint64_t seed, std::int64_t devices, std::optional<Split> only,
            const Encoding* known, const Encoding* continued) {
  const Skipped left_out = continued != nullptr ? continued->skipped : Skipped();
  const bool from_train = only == Split::validation && spec.validation;
  const auto* const csv = std::get_if<spec::Csv>(&spec.source);
  const bool measures =
      (spec.normalize && spec.normalize->automatic) || spec.normalize_targets || spec.balances_classes;
  std::map<Split, std::shared_ptr<TableDataset>> tables;
  Opening opening{seed_of(spec, seed), devices, spec.source_place, from_train ? Split::train : only, known, left_out};
  opening.meaning = {spec.numeric_targets, spec.token_inputs};
  opening.needs_train = known == nullptr && (csv != nullptr || measures);
  opening.tables = &tables;
  if (spec.validation) opening.group = spec.validation->group;
  opening.names_classes = spec.numbers_name_classes;
  Source source = at_files(spec, [&] {
    return std::visit(
        [&](const auto& s) {
          static_assert(
              requires { open_source(s, opening); }, "this source has no open_source() in core/data/sources/open.cpp");
          return open_source(s, opening);
        },
        spec.source);
  });
  if (source.train) check_augment(spec.augment, source.train->input());
  const bool is_whole = !only && known == nullptr;
  const std::shared_ptr<const Dataset> all = source.train;  // before validation takes its share
  if (is_whole) warn_of_shared(source, *all, Split::test, spec);
  if (spec.validation && source.train) {
    static const std::vector<std::uint32_t> no_groups;
    const auto table = tables.find(Split::train);
    divide(source, spec, table == tables.end() ? no_groups : table->second->groups());
  }
  if (is_whole) {
    warn_of_shared(source, *source.train, Split::validation, spec);
    warn_of_untrained(source, spec);
    if (all) warn_of_conflicts(source, *all, spec);
  }
  const std::optional<std::int64_t> batch = batch_examples(spec, devices);
  limit(source.train, spec.limit.train, batch);
  limit(source.validation, spec.limit.validation, batch);
  limit(source.test, spec.limit.test, batch);
  check_weights(source, spec.source_place);
  learn(source, spec, tables, known, continued == nullptr || continued->exact);
  for (std::string& note : source.notes) {
    const bool stay = (source.encoding.wide_inputs && note.starts_with("inputs are ")) ||
                      (source.encoding.wide_targets && note.starts_with("targets are "));
    constexpr std::string_view become = " and become f32";
    if (stay && note.ends_with(become))
      note.replace(note.size() - become.size(), become.size(), ", and f64 until they are normalised");
  }
  for (const Split split : all_splits) {
    std::shared_ptr<const Dataset>& dataset = source.of(split);
    if (dataset) dataset = exact_numbers(dataset, source.encoding.wide_inputs, source.encoding.wide_targets);
    if (only && split != *only && opening.needs_train) source.of(split).reset();
  }
  source.description = describe(source, spec::to_string(spec.source), has_split(spec, Split::test));
  return source;
}

Sampler training_sampler(const spec::DataSpec& spec, std::uint64_t seed, std::int64_t examples) {
  const bool shuffle = spec.shuffle && !std::holds_alternative<spec::BatchAll>(spec.batch_size);
  return shuffle ? Sampler::shuffled(examples, seed_of(spec, seed)) : Sampler::in_order(examples);
}

Stream training_stream(const spec::DataSpec& spec, std::uint64_t seed, const Dataset& train) {
  const std::uint64_t own = seed_of(spec, seed);
  Stream stream(training_sampler(spec, seed, train.size()), Augmenter(spec.augment, train.input(), own),
                Mixer(spec.augment, train.input(), own));
  if (spec.shuffle && train.offsets() > 1) stream.draw_offsets(train.offsets(), own);
  return stream;
}

}  // namespace pmaptrain::data
