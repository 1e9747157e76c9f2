#include "core/input/held_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/file.h"
#include "core/data/parallel.h"
#include "core/data/statistics.h"
#include "core/data/tables/csv_source.h"
#include "core/data/texts/text_source.h"

namespace pmaptrain::input {
namespace {

// Whether each target is one class, so that equal inputs are one example whatever their targets are.
bool has_classes(const data::Dataset& dataset) {
  const Field target = dataset.target();
  return target.dtype == DType::i32 && target.shape.empty();
}

// What equal examples have in common: a hash of the inputs, and their class. Of other targets than classes, the hash is
// of inputs and targets.
struct Key {
  std::size_t hash = 0;
  std::int32_t label = 0;
  std::int64_t example = 0;
  friend bool operator<(const Key& a, const Key& b) {
    return std::tie(a.hash, a.label, a.example) < std::tie(b.hash, b.label, b.example);
  }
};

// Of some bytes of inputs, with a target after them.
Key key_of(std::span<const std::byte> bytes, bool is_class, std::int64_t example) {
  Key key{0, 0, example};
  if (is_class) {
    std::memcpy(&key.label, bytes.data() + bytes.size() - sizeof key.label, sizeof key.label);
    bytes = bytes.first(bytes.size() - sizeof key.label);
  }
  key.hash = std::hash<std::string_view>()(data::as_chars(bytes));
  return key;
}

// The keys of examples of a split, in order: of the first `compared`.
struct Keys {
  std::vector<Key> of_examples;
  std::int64_t compared = 0;
};

// The keys of the first examples, as many as `most_bytes` hold.
Keys keys_of(const data::Dataset& dataset) {
  constexpr std::int64_t most_bytes = std::int64_t{512} << 20, chunk = 1024;
  const std::size_t inputs = dataset.input().bytes(), row = inputs + dataset.target().bytes();
  constexpr std::int64_t most_costly = 4096;
  const bool is_class = has_classes(dataset);
  const std::int64_t fitting =
      dataset.is_costly() ? most_costly : most_bytes / static_cast<std::int64_t>(std::max<std::size_t>(row, 1));
  std::vector<Key> keys(static_cast<std::size_t>(std::clamp<std::int64_t>(fitting, 1, dataset.size())));
  data::for_each_item((std::ssize(keys) + chunk - 1) / chunk, [&](std::int64_t part) {
    std::vector<std::byte> bytes(row);
    for (std::int64_t i = part * chunk; i < std::min((part + 1) * chunk, std::ssize(keys)); ++i) {
      dataset.read(i, bytes.data(), bytes.data() + inputs);
      keys[static_cast<std::size_t>(i)] = key_of(bytes, is_class, i);
    }
  });
  const std::int64_t compared = std::ssize(keys);
  std::sort(keys.begin(), keys.end());
  return {std::move(keys), compared};
}

using Sizes = std::unordered_set<std::int64_t>;

// The sizes that at least `least` files of a data set have; empty unless its images are decoded at each read.
Sizes file_sizes_of(const data::Dataset& dataset, int least) {
  std::unordered_map<std::int64_t, int> counts;
  Sizes sizes;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const std::int64_t size = dataset.file_size(i);
    if (size >= 0 && ++counts[size] == least) sizes.insert(size);
  }
  return sizes;
}

// The keys of files of these sizes, in which equal ones are. Such files are read up to `most_files`.
Keys keys_of_files(const data::Dataset& dataset, const Sizes& others) {
  constexpr std::int64_t most_files = 4096;
  const bool is_class = has_classes(dataset);
  std::vector<std::int64_t> candidates;
  std::int64_t compared = 0;
  for (; compared < dataset.size(); ++compared) {
    if (!others.contains(dataset.file_size(compared))) continue;
    if (std::ssize(candidates) == most_files) break;
    candidates.push_back(compared);
  }
  std::vector<Key> keys(candidates.size());
  data::for_each_item(std::ssize(candidates), [&](std::int64_t item) {
    const std::int64_t i = candidates[static_cast<std::size_t>(item)];
    std::vector<std::byte> bytes = dataset.file_bytes(i);
    const std::size_t file = bytes.size();
    bytes.resize(file + dataset.target().bytes());
    dataset.read(i, nullptr, bytes.data() + file);
    keys[static_cast<std::size_t>(item)] = key_of(bytes, is_class, i);
  });
  std::sort(keys.begin(), keys.end());
  return {std::move(keys), compared};
}

// How many of `held_out` stand in `train` as well, and of these, how many under other classes alone.
struct Shared {
  std::int64_t examples = 0, of_other_class = 0;
};
Shared count_shared(const std::vector<Key>& held_out, const std::vector<Key>& train) {
  const auto by_hash = [](const Key& a, const Key& b) { return a.hash < b.hash; };
  Shared shared;
  for (const Key& key : held_out) {
    const auto [first, last] = std::equal_range(train.begin(), train.end(), key, by_hash);
    if (first == last) continue;
    ++shared.examples;
    if (std::none_of(first, last, [&, label = key.label](const Key& other) { return other.label == label; }))
      ++shared.of_other_class;
  }
  return shared;
}

// Examples that have equal inputs and different classes.
struct Conflicts {
  std::int64_t examples = 0, first = 0, second = 0;  // the first two of them, which are of different classes
};
Conflicts count_conflicts(std::vector<Key> keys, std::optional<std::int64_t> ignored) {
  if (ignored) std::erase_if(keys, [&](const Key& key) { return key.label == *ignored; });
  Conflicts found;
  for (auto at = keys.begin(); at != keys.end();) {
    const auto end = std::find_if(at, keys.end(), [hash = at->hash](const Key& key) { return key.hash != hash; });
    const auto other = std::find_if(at, end, [label = at->label](const Key& key) { return key.label != label; });
    if (other != end) {
      const auto [first, second] = std::minmax(at->example, other->example);
      if (found.examples == 0 || first < found.first) found.first = first, found.second = second;
      found.examples += end - at;
    }
    at = end;
  }
  return found;
}

// "'cat/1.png'", "'t.csv', line 7" or "example 3", which counts from 0.
std::string name_of_example(const data::Dataset& dataset, std::int64_t example) {
  if (const std::string file = dataset.file_of(example); !file.empty()) return "'" + printable(file) + "'";
  const std::string line = dataset.line_of(example);
  return line.empty() ? fmt::format("example {}", dataset.index_in_source(example)) : line;
}

bool are_compared(const data::SourceKind& source) {
  return source.as<data::TextFiles>() == nullptr && !source->is_drawn();
}

std::map<std::int32_t, std::int64_t> labels_of(const data::Dataset& dataset, const spec::DataSpec& spec) {
  std::map<std::int32_t, std::int64_t> counts = data::count_labels(dataset);
  if (spec.ignored_label) counts.erase(static_cast<std::int32_t>(*spec.ignored_label));
  return counts;
}

}  // namespace

void warn_of_shared(data::Source& source, const data::Dataset& train, data::Split held_out,
                    const spec::DataSpec& spec) {
  const std::shared_ptr<const data::Dataset>& others = source.of(held_out);
  if (!others || !are_compared(spec.source)) return;
  Shared found;
  std::int64_t compared = 0;
  try {
    const bool are_files = others->is_costly() && train.is_costly();
    const Keys keys = are_files ? keys_of_files(*others, file_sizes_of(train, 1)) : keys_of(*others);
    compared = keys.compared;
    const Keys of_train = are_files ? keys_of_files(train, file_sizes_of(*others, 1)) : keys_of(train);
    found = count_shared(keys.of_examples, of_train.of_examples);
  } catch (const Error& error) {
    if (error.status() != ExitStatus::data) throw;
    return;  // an example that cannot be read is told when it is needed
  }
  const std::int64_t shared = found.examples;
  if (shared == 0) return;
  const std::string_view name = data::name_of(held_out);
  const bool is_share = held_out == data::Split::validation && spec.validation.has_value();
  const bool is_train = shared == others->size() && others->size() == train.size() && found.of_other_class == 0;
  const std::string how = found.of_other_class == 0        ? "with the same inputs and target"
                          : found.of_other_class == shared ? "with the same inputs and another class"
                                                           : fmt::format(
                                                                 "with the same inputs, {} of them with another "
                                                                 "class",
                                                                 with_commas(found.of_other_class));
  std::string what =
      is_train ? fmt::format("the {} split is the training split: all of its {} stand there as well", name,
                             counted(shared, "example"))
               : fmt::format("{} of {} {} {} in the training split as well, {}", with_commas(shared),
                             with_commas(compared), fmt::format("{} example{}", name, compared == 1 ? "" : "s"),
                             shared == 1 ? "stands" : "stand", how);
  if (compared < others->size()) what += fmt::format(" (of the first {})", with_commas(compared));
  const bool is_table = spec.source.as<data::Csv>() != nullptr;
  std::string help = found.of_other_class == shared
                         ? fmt::format("{} metrics are not those of new examples; ", name)
                         : fmt::format("{} metrics are better than those of new examples; ", name);
  help += !is_share  ? "take examples that are not trained on"
          : is_table ? "remove repeated rows, or keep rows of one text together with validation: {group: COLUMN}"
                     : "remove repeated examples";
  source.warnings.push_back(
      {"data", is_share ? spec.validation_place : spec.source_place, std::move(what), std::move(help), {}});
}

void warn_of_conflicts(data::Source& source, const data::Dataset& train, const spec::DataSpec& spec) {
  if (!has_classes(train) || !are_compared(spec.source)) return;
  Conflicts found;
  std::int64_t compared = 0;
  try {
    Keys keys = train.is_costly() ? keys_of_files(train, file_sizes_of(train, 2)) : keys_of(train);
    compared = keys.compared;
    found = count_conflicts(std::move(keys.of_examples), spec.ignored_label);
  } catch (const Error& error) {
    if (error.status() != ExitStatus::data) throw;
    return;
  }
  if (found.examples == 0) return;
  std::string what =
      fmt::format("{} of {} have the inputs of another one with another class; the first two are {} and {}",
                  with_commas(found.examples), counted(compared, "training example"),
                  name_of_example(train, found.first), name_of_example(train, found.second));
  if (compared < train.size()) what += fmt::format(" (of the first {})", with_commas(compared));
  source.warnings.push_back({"data",
                             spec.source_place,
                             std::move(what),
                             "equal inputs get one prediction, so some of them stay wrong; correct their classes, or "
                             "remove repeated examples",
                             {}});
}

void warn_of_untrained(data::Source& source, const spec::DataSpec& spec) {
  if (!source.train) return;
  const Field target = source.train->target();
  if (target.dtype != DType::i32 || !target.shape.empty()) return;
  const auto trained = labels_of(*source.train, spec);
  for (const data::Split split : {data::Split::validation, data::Split::test}) {
    if (!source.of(split)) continue;
    std::vector<std::string> names;
    std::int64_t examples = 0;
    constexpr std::size_t most_names = 8;
    std::size_t classes = 0;
    for (const auto& [label, count] : labels_of(*source.of(split), spec)) {
      if (trained.contains(label)) continue;
      examples += count;
      const auto at = static_cast<std::size_t>(label);
      const std::vector<std::string>& known = source.encoding.classes;
      if (++classes <= most_names) {
        names.push_back(label >= 0 && at < known.size() ? "'" + printable(known[at]) + "'" : std::to_string(label));
      }
    }
    if (classes == 0) continue;
    const bool is_share = split == data::Split::validation && spec.validation.has_value();
    std::string what =
        fmt::format("{} of {} {} of {} that no training example has: {}{}", with_commas(examples),
                    counted(source.of(split)->size(), fmt::format("{} example", data::name_of(split))),
                    examples == 1 ? "is" : "are", classes == 1 ? "a class" : fmt::format("{} classes", classes),
                    join(names, ", "), classes > most_names ? ", ..." : "");
    std::string help = "a class that is not trained on is never predicted; ";
    help += !is_share ? "add examples of it to the training split"
            : spec.validation->stratify
                ? "stratify takes one example of each class, also its only one; add examples, or leave these out"
            : spec.validation->group ? "another validation.seed divides groups otherwise"
            : spec.validation->shuffle
                ? "validation: {stratify: true} takes a share of each class; add examples of classes that have one"
                : "shuffle: false takes the last examples, and these are sorted: shuffle: true, "
                  "with stratify: true, takes a share of each class";
    source.warnings.push_back(
        {"data", is_share ? spec.validation_place : spec.source_place, std::move(what), std::move(help), {}});
  }
}

}  // namespace pmaptrain::input
