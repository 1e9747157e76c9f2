#include "core/input/open.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/file.h"
#include "core/data/opening.h"
#include "core/data/statistics.h"
#include "core/data/subset.h"
#include "core/data/texts/text_source.h"
#include "core/input/divide.h"
#include "core/input/held_out.h"
#include "core/spec/run_format.h"

namespace pmaptrain::input {
namespace {

// "fashion_mnist: 60000 train, 10000 test examples of u8[28,28,1]"
std::string describe(const data::Source& source, std::string_view name, bool has_test) {
  std::string text = fmt::format("{}:", name);
  std::optional<Field> input;
  for (const data::Split split : data::all_splits) {
    if (!source.of(split)) continue;
    text += fmt::format("{} {} {}", input ? "," : "", source.of(split)->size(), data::name_of(split));
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

[[noreturn]] void refuse(const Place& place, std::string message, std::string help) {
  throw Error(ExitStatus::usage, Diagnostic{"config", place, std::move(message), std::move(help), {}});
}

// The examples of a full training batch, as far as the config says it.
std::optional<std::int64_t> batch_examples(const spec::DataSpec& spec, std::int64_t devices) {
  if (const auto* each = std::get_if<spec::BatchPerDevice>(&spec.batch_size)) return each->examples * devices;
  if (const auto* whole = std::get_if<std::int64_t>(&spec.batch_size)) return *whole;
  return std::nullopt;
}

void limit(std::shared_ptr<const data::Dataset>& dataset, const std::optional<spec::Amount>& amount,
           std::optional<std::int64_t> batch) {
  if (!amount || !dataset) return;
  if (amount->batches && !batch) {
    refuse(amount->place, "limit counts batches, but batch_size is all",
           "count examples, such as 1000 examples, or set batch_size to a number");
  }
  const std::int64_t unit = amount->batches ? *batch : 1;
  if (amount->count <= (dataset->size() - 1) / unit) {
    dataset = data::first_examples(dataset, amount->count * unit);
  }
}

// A mean over examples needs one that counts, in every split that is left.
void check_weights(const data::Source& source, const Place& place) {
  for (const data::Split split : data::all_splits) {
    const std::shared_ptr<const data::Dataset>& dataset = source.of(split);
    if (!dataset || !dataset->is_weighted()) continue;
    std::int64_t first = 0;
    while (first < dataset->size() && !(dataset->weight(first) > 0)) ++first;
    if (first < dataset->size()) continue;
    throw Error(ExitStatus::data, Diagnostic{"data",
                                             place,
                                             fmt::format("all weights of the {} split are 0", data::name_of(split)),
                                             "an example of weight 0 does not count",
                                             {}});
  }
}

// Encoding::labels of a training split.
std::int64_t count_of_labels(const data::Dataset& train, const spec::DataSpec& spec) {
  const auto range = train.label_range();
  if (!range || spec.source.as<data::TextFiles>() != nullptr) return 0;
  if (range->second != spec.ignored_label) return std::max<std::int64_t>(0, range->second + 1);
  std::map<std::int32_t, std::int64_t> counts = data::count_labels(train);
  counts.erase(static_cast<std::int32_t>(*spec.ignored_label));
  return counts.empty() ? 0 : std::max<std::int64_t>(0, std::int64_t{counts.rbegin()->first} + 1);
}

// Whether the files have tokens, which a tokenizer only decodes.
bool has_tokens(const spec::DataSpec& spec) {
  const auto* const text = spec.source.as<data::TextFiles>();
  return text != nullptr && text->tokens != data::Tokens::bytes;
}

// What `f` returns. Errors about a file get the place of the path that names it or its folder, others that of the
// source.
template <class F>
auto at_files(const spec::DataSpec& spec, F&& f) {
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
    data::give_place(diagnostics, spec.source_place);
    throw Error(error.status(), std::move(diagnostics));
  }
}

// Without the run's copy, the file itself is needed.
void check_is_there(const data::TokenizerFile& tokenizer) {
  std::error_code ignored;
  if (std::filesystem::exists(tokenizer.path, ignored)) return;
  throw Error(ExitStatus::data, Diagnostic{"data",
                                           {},
                                           fmt::format("the run folder has no {}, and there is no '{}'",
                                                       spec::kept_tokenizer, tokenizer.path),
                                           "copy it from where the run was trained",
                                           {},
                                           tokenizer.path});
}

// That of the config; of a run that is there already, its copy, since the file may have moved, and the texts that words
// were learned from.
data::TokenizerKind tokenizer_kind(const spec::DataSpec& spec, const data::Encoding* known,
                                   const data::Encoding* continued) {
  const bool is_file = spec.tokenizer.as<data::TokenizerFile>() != nullptr;
  const bool is_run = known != nullptr || continued != nullptr;
  if ((is_run || is_file) && !spec.kept_tokenizer.empty()) return data::TokenizerFile{spec.kept_tokenizer};
  if (is_run && is_file) check_is_there(*spec.tokenizer.as<data::TokenizerFile>());
  if (known != nullptr && !known->tokenizer.empty() && spec.tokenizer && !is_file &&
      spec.tokenizer.as<data::ByteTokens>() == nullptr) {
    throw Error(
        ExitStatus::data,
        Diagnostic{"data", spec.source_place,
                   fmt::format("the run folder has no {}, which has the words of its tokenizer", spec::kept_tokenizer),
                   "copy it from where the run was trained"});
  }
  return spec.tokenizer;
}

void check_tokenizer(const std::string& hash, const data::Encoding& run, const spec::DataSpec& spec) {
  // One may come later that only decodes.
  if (hash == run.tokenizer || (run.tokenizer.empty() && has_tokens(spec))) return;
  throw Error(ExitStatus::data,
              Diagnostic{"data", spec.source_place, "data.tokenizer is not the one that the run was trained with",
                         fmt::format("a run folder keeps it as {}", spec::kept_tokenizer)});
}

// Completes the encoding from the training split, after data.validation and data.limit are applied, or from `known`.
void learn(data::Source& source, const spec::DataSpec& spec, const data::Encoding* known, bool exact) {
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
    check_tokenizer(source.encoding.tokenizer, *known, spec);
    source.encoding = *known;
    return;
  }
  source.encoding.exact = exact;
  try {
    if (source.train && source.encoding.classes.empty()) source.encoding.labels = count_of_labels(*source.train, spec);
    if (source.learn) source.learn(source);
    if (spec.normalize && spec.normalize->automatic) {
      data::Measurement found = data::measure(*source.train, source.encoding.columns, exact);
      source.encoding.statistics = std::move(found.statistics);
      source.encoding.wide_inputs = found.needs_exact;
    } else if (spec.normalize && exact) {
      source.encoding.wide_inputs = data::needs_exact_inputs(*source.train, spec.normalize->std);
    }
    if (spec.balances_classes && source.train->target().dtype == DType::i32) {
      std::map<std::int32_t, std::int64_t> counts = data::count_labels(*source.train);
      if (spec.ignored_label) counts.erase(static_cast<std::int32_t>(*spec.ignored_label));
      source.encoding.class_weights = data::balanced_weights(counts);
    }
    if (spec.balances_positives) source.encoding.class_weights = data::balanced_positives(*source.train);
    // Other targets are refused by the model.
    if (spec.normalize_targets && source.train->target().dtype == DType::f32) {
      const std::vector<data::TargetScale> scales = spec::target_scales(spec, data::numbers_of_target(*source.train));
      source.encoding.targets = data::measure_targets(*source.train, scales, exact);
      source.encoding.wide_targets =
          exact && data::needs_exact_targets(*source.train, scales, *source.encoding.targets);
    }
  } catch (const Error& error) {
    data::throw_at(spec.source_place, error);
  }
}

}  // namespace

bool has_split(const spec::DataSpec& spec, data::Split split) {
  return (split == data::Split::validation && spec.validation) || spec.source->has(split);
}

std::uint64_t seed_of(const spec::DataSpec& spec, std::uint64_t seed) { return spec.seed.value_or(seed); }

data::Source open(const spec::DataSpec& spec, std::uint64_t seed, std::int64_t devices, std::optional<data::Split> only,
                  const data::Encoding* known, const data::Encoding* continued) {
  const data::Skipped left_out = continued != nullptr ? continued->skipped : data::Skipped();
  const bool from_train = only == data::Split::validation && spec.validation;
  const bool measures =
      (spec.normalize && spec.normalize->automatic) || spec.normalize_targets || spec.balances_classes;
  data::Opening opening{
      seed_of(spec, seed), devices, spec.source_place, from_train ? data::Split::train : only, known, left_out};
  opening.needs_train = known == nullptr && (spec.source->learns() || measures);
  opening.numeric_targets = spec.numeric_targets;
  opening.token_inputs = spec.token_inputs;
  opening.numbers_categories = spec.numbers_categories;
  opening.label_maps = spec.label_maps;
  opening.ignored_label = spec.ignored_label;
  if (spec.validation) opening.group = spec.validation->group;
  opening.names_classes = spec.numbers_name_classes;
  const data::TokenizerKind tokenizer = at_files(spec, [&] { return tokenizer_kind(spec, known, continued); });
  if (tokenizer) opening.tokenizer = tokenizer.operator->();
  opening.token_cache = spec.token_cache.get();
  data::Source source = at_files(spec, [&] { return spec.source->open(opening); });
  if (source.train)
    augment::check_augment(spec.augment, source.train->input(), source.train->target(), spec.ignored_label);
  const bool is_whole = !only && known == nullptr;
  const std::shared_ptr<const data::Dataset> all = source.train;  // before validation takes its share
  if (is_whole) warn_of_shared(source, *all, data::Split::test, spec);
  if (spec.validation && source.train) {
    static const std::vector<std::uint32_t> no_groups;
    divide(source, spec, source.groups ? *source.groups : no_groups);
  }
  if (is_whole) {
    warn_of_shared(source, *source.train, data::Split::validation, spec);
    warn_of_untrained(source, spec);
    if (all) warn_of_conflicts(source, *all, spec);
  }
  const std::optional<std::int64_t> batch = batch_examples(spec, devices);
  limit(source.train, spec.limit.train, batch);
  limit(source.validation, spec.limit.validation, batch);
  limit(source.test, spec.limit.test, batch);
  check_weights(source, spec.source_place);
  learn(source, spec, known, continued == nullptr || continued->exact);
  for (std::string& note : source.notes) {
    const bool stay = (source.encoding.wide_inputs && note.starts_with("inputs are ")) ||
                      (source.encoding.wide_targets && note.starts_with("targets are "));
    constexpr std::string_view become = " and become f32";
    if (stay && note.ends_with(become))
      note.replace(note.size() - become.size(), become.size(), ", and f64 until they are normalised");
  }
  for (const data::Split split : data::all_splits) {
    std::shared_ptr<const data::Dataset>& dataset = source.of(split);
    if (dataset) dataset = data::exact_numbers(dataset, source.encoding.wide_inputs, source.encoding.wide_targets);
    if (only && split != *only && opening.needs_train) source.of(split).reset();
  }
  source.learn = nullptr;
  source.groups.reset();
  source.description = describe(source, spec.source->name(), has_split(spec, data::Split::test));
  return source;
}

std::shared_ptr<const tokenizers::Tokenizer> tokenizer_of(const spec::DataSpec& spec, const data::Encoding& encoding) {
  std::shared_ptr<const tokenizers::Tokenizer> tokenizer =
      at_files(spec, [&]() -> std::shared_ptr<const tokenizers::Tokenizer> {
        const data::TokenizerKind kind = tokenizer_kind(spec, &encoding, nullptr);
        return kind ? kind->open([](const auto&) {}) : nullptr;
      });
  check_tokenizer(tokenizer != nullptr ? data::hash_of(*tokenizer) : std::string(), encoding, spec);
  return tokenizer;
}

data::Sampler training_sampler(const spec::DataSpec& spec, std::uint64_t seed, std::int64_t examples) {
  const bool shuffle = spec.shuffle && !std::holds_alternative<spec::BatchAll>(spec.batch_size);
  return shuffle ? data::Sampler::shuffled(examples, seed_of(spec, seed)) : data::Sampler::in_order(examples);
}

Stream training_stream(const spec::DataSpec& spec, std::uint64_t seed, const data::Dataset& train, std::int64_t batch) {
  const std::uint64_t own = seed_of(spec, seed);
  const auto order = [&] {
    if (!spec.bucket_by_length) return training_sampler(spec, seed, train.size());
    // With the order of an epoch, and the lengths once more, sorted.
    demand_memory(product_of(static_cast<std::size_t>(train.size()), 2 * sizeof(std::int32_t) + sizeof(std::int64_t)),
                  "data.bucket_by_length");
    std::vector<std::int32_t> lengths(static_cast<std::size_t>(train.size()));
    for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = train.length(static_cast<std::int64_t>(i));
    return data::Sampler::by_length(std::move(lengths), own, batch, *spec.bucket_by_length);
  };
  Stream stream(order(), augment::Augmenter(spec.augment, train.input(), own, train.target(), spec.ignored_label),
                augment::Mixer(spec.augment, train.input(), own));
  if (spec.shuffle && train.offsets() > 1) stream.draw_offsets(train.offsets(), own);
  return stream;
}

}  // namespace pmaptrain::input
