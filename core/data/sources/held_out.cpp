#include "core/data/sources/held_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
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

namespace pmaptrain::data {
namespace {

// The hashes of examples of a split: of the first `compared`.
struct Hashes {
  std::vector<std::size_t> of_examples;
  std::int64_t compared = 0;
};

// The hashes of the first examples, as many as `most_bytes` hold.
Hashes hashes_of(const Dataset& dataset) {
  constexpr std::int64_t most_bytes = std::int64_t{512} << 20, chunk = 1024;
  const std::size_t inputs = dataset.input().bytes(), row = inputs + dataset.target().bytes();
  constexpr std::int64_t most_costly = 4096;
  const std::int64_t fitting =
      dataset.is_costly() ? most_costly : most_bytes / static_cast<std::int64_t>(std::max<std::size_t>(row, 1));
  std::vector<std::size_t> hashes(static_cast<std::size_t>(std::clamp<std::int64_t>(fitting, 1, dataset.size())));
  for_each_item((std::ssize(hashes) + chunk - 1) / chunk, [&](std::int64_t part) {
    std::vector<std::byte> bytes(row);
    for (std::int64_t i = part * chunk; i < std::min((part + 1) * chunk, std::ssize(hashes)); ++i) {
      dataset.read(i, bytes.data(), bytes.data() + inputs);
      hashes[static_cast<std::size_t>(i)] = std::hash<std::string_view>()(as_chars(bytes));
    }
  });
  const std::int64_t compared = std::ssize(hashes);
  return {std::move(hashes), compared};
}

using Sizes = std::unordered_set<std::int64_t>;

// The sizes of the files of images that are decoded at each read; empty for others.
Sizes file_sizes_of(const Dataset& dataset) {
  Sizes sizes;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    if (const std::int64_t size = dataset.file_size(i); size >= 0) sizes.insert(size);
  }
  return sizes;
}

// The hashes of files whose size one of the other split has, and of their targets. Such files are read up to
// `most_files`.
Hashes hashes_of_files(const Dataset& dataset, const Sizes& others) {
  constexpr std::int64_t most_files = 4096;
  std::vector<std::int64_t> candidates;
  std::int64_t compared = 0;
  for (; compared < dataset.size(); ++compared) {
    if (!others.contains(dataset.file_size(compared))) continue;
    if (std::ssize(candidates) == most_files) break;
    candidates.push_back(compared);
  }
  std::vector<std::size_t> hashes(candidates.size());
  for_each_item(std::ssize(candidates), [&](std::int64_t item) {
    const std::int64_t i = candidates[static_cast<std::size_t>(item)];
    std::vector<std::byte> bytes = dataset.file_bytes(i);
    const std::size_t file = bytes.size();
    bytes.resize(file + dataset.target().bytes());
    dataset.read(i, nullptr, bytes.data() + file);
    hashes[static_cast<std::size_t>(item)] = std::hash<std::string_view>()(as_chars(bytes));
  });
  return {std::move(hashes), compared};
}

// How many of `held_out` have the hash of one of `train`.
std::int64_t count_shared(std::vector<std::size_t> held_out, const std::vector<std::size_t>& train) {
  std::sort(held_out.begin(), held_out.end());
  std::vector<bool> is_shared(held_out.size());
  for (const std::size_t hash : train) {
    // Marks the first of equal ones, which stands for all of them.
    const auto at = std::lower_bound(held_out.begin(), held_out.end(), hash);
    if (at != held_out.end() && *at == hash) is_shared[static_cast<std::size_t>(at - held_out.begin())] = true;
  }
  std::int64_t count = 0;
  for (std::size_t i = 0, first = 0; i < held_out.size(); ++i) {
    if (held_out[i] != held_out[first]) first = i;
    count += is_shared[first] ? 1 : 0;
  }
  return count;
}

bool are_compared(const spec::Source& source) {
  return !std::holds_alternative<spec::TextFiles>(source) && !std::holds_alternative<spec::SyntheticLinear>(source) &&
         !std::holds_alternative<spec::SyntheticImages>(source);
}

std::map<std::int32_t, std::int64_t> labels_of(const Dataset& dataset, const spec::DataSpec& spec) {
  std::map<std::int32_t, std::int64_t> counts = count_labels(dataset);
  if (spec.ignored_label) counts.erase(static_cast<std::int32_t>(*spec.ignored_label));
  return counts;
}

}  // namespace

void warn_of_shared(Source& source, const Dataset& train, Split held_out, const spec::DataSpec& spec) {
  const std::shared_ptr<const Dataset>& others = source.of(held_out);
  if (!others || !are_compared(spec.source)) return;
  std::int64_t shared = 0, compared = 0;
  try {
    const bool are_files = others->is_costly() && train.is_costly();
    Hashes hashes = are_files ? hashes_of_files(*others, file_sizes_of(train)) : hashes_of(*others);
    compared = hashes.compared;
    const Hashes of_train = are_files ? hashes_of_files(train, file_sizes_of(*others)) : hashes_of(train);
    shared = count_shared(std::move(hashes.of_examples), of_train.of_examples);
  } catch (const Error& error) {
    if (error.status() != ExitStatus::data) throw;
    return;  // an example that cannot be read is told when it is needed
  }
  if (shared == 0) return;
  const std::string_view name = name_of(held_out);
  const bool is_share = held_out == Split::validation && spec.validation.has_value();
  const bool is_train = shared == others->size() && others->size() == train.size();
  std::string what =
      is_train
          ? fmt::format("the {} split is the training split: all of its {} stand there as well", name,
                        counted(shared, "example"))
          : fmt::format("{} of {} {} {} in the training split as well, with the same inputs and target",
                        with_commas(shared), with_commas(compared),
                        fmt::format("{} example{}", name, compared == 1 ? "" : "s"), shared == 1 ? "stands" : "stand");
  if (compared < others->size()) what += fmt::format(" (of the first {})", with_commas(compared));
  const bool is_table = std::holds_alternative<spec::Csv>(spec.source);
  std::string help = fmt::format("{} metrics are better than those of new examples; ", name);
  help += !is_share  ? "take examples that are not trained on"
          : is_table ? "remove repeated rows, or keep rows of one text together with validation: {group: COLUMN}"
                     : "remove repeated examples";
  source.warnings.push_back(
      {"data", is_share ? spec.validation_place : spec.source_place, std::move(what), std::move(help), {}});
}

void warn_of_untrained(Source& source, const spec::DataSpec& spec) {
  if (!source.train) return;
  const Field target = source.train->target();
  if (target.dtype != DType::i32 || !target.shape.empty()) return;
  const auto trained = labels_of(*source.train, spec);
  for (const Split split : {Split::validation, Split::test}) {
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
    const bool is_share = split == Split::validation && spec.validation.has_value();
    std::string what =
        fmt::format("{} of {} {} of {} that no training example has: {}{}", with_commas(examples),
                    counted(source.of(split)->size(), fmt::format("{} example", name_of(split))),
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

}  // namespace pmaptrain::data
