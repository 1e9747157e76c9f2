#include "core/input/divide.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/base/text.h"
#include "core/data/statistics.h"
#include "core/data/subset.h"
#include "core/data/texts/text_source.h"

namespace pmaptrain::input {
namespace {

[[noreturn]] void refuse_share(const Place& place, std::string message, std::string help) {
  throw Error(ExitStatus::usage, Diagnostic{"config", place, std::move(message), std::move(help), {}});
}

std::int64_t share_of(double share, std::int64_t examples) {
  return std::max<std::int64_t>(1, std::llround(share * static_cast<double>(examples)));
}

// The label of each example.
std::vector<std::int32_t> labels_of(const data::Dataset& dataset, const Place& place) {
  const Field target = dataset.target();
  if (target.dtype != DType::i32 || !target.shape.empty()) {
    refuse_share(place,
                 fmt::format("stratify takes a class label for each example; the targets are {}{}",
                             to_string(target.dtype), to_string(target.shape)),
                 "remove it; of a table, classes: [...] makes classes of numbers");
  }
  std::vector<std::int32_t> labels(static_cast<std::size_t>(dataset.size()));
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    dataset.read(i, nullptr, reinterpret_cast<std::byte*>(&labels[static_cast<std::size_t>(i)]));
  }
  return labels;
}

// Takes whole groups. Says how many.
data::Division divide_groups(data::Source& source, const spec::DataSpec& spec, const std::vector<std::uint32_t>& groups,
                             std::int64_t count) {
  const declare::ColumnName& column = *spec.validation->group;
  const std::uint32_t all = 1 + *std::max_element(groups.begin(), groups.end());
  if (all == 1) {
    refuse_share(spec.validation_place,
                 fmt::format("validation: all {} are of one group, by column '{}', so none is left to train on",
                             counted(std::ssize(groups), "training example"), column.text),
                 "name another column, or remove group");
  }
  const std::vector<bool> taken = data::choose_groups(groups, count, spec.validation->seed);
  data::Division parts = data::divide_by_group(source.train, groups, taken);
  source.notes.push_back(
      fmt::format("validation: {} of {} of column '{}' {} kept aside, {} of {}; no group is in both splits",
                  with_commas(std::count(taken.begin(), taken.end(), true)), counted(all, "group"), column.text,
                  std::count(taken.begin(), taken.end(), true) == 1 ? "is" : "are", with_commas(parts.taken->size()),
                  counted(std::ssize(groups), "example")));
  return parts;
}

}  // namespace

void divide(data::Source& source, const spec::DataSpec& spec, const std::vector<std::uint32_t>& groups) {
  const spec::ValidationShare& validation = *spec.validation;
  const std::int64_t examples = source.train->size();
  std::int64_t count = share_of(validation.share, examples);
  std::vector<std::int32_t> labels;
  std::map<std::int32_t, std::int64_t> of_classes;
  if (validation.stratify) {
    labels = labels_of(*source.train, spec.validation_place);
    of_classes = data::count_labels(*source.train);
    count = 0;
    for (auto& entry : of_classes) count += entry.second = share_of(validation.share, entry.second);
  }
  if (count >= examples) {
    refuse_share(
        spec.validation_place,
        fmt::format("validation: a share of {} is {} of the {} training {}, so none is left to train on",
                    exact(validation.share), count, examples, examples == 1 ? "example" : "examples"),
        examples == 1 ? "remove it"
        : validation.stratify
            ? "stratify takes at least one example of each class: leave it out, or add examples"
            : fmt::format("at most {} can be kept aside: use a smaller share", counted(examples - 1, "example")));
  }
  // Windows overlap, so only a contiguous part of them is independent of the others.
  const bool shuffle = validation.shuffle && spec.source.as<data::TextFiles>() == nullptr;
  if (shuffle) demand_memory(static_cast<std::size_t>(count) * sizeof(std::int64_t), "data.validation");
  data::Division parts = validation.group ? divide_groups(source, spec, groups, count)
                         : validation.stratify
                             ? data::divide_by_class(source.train, of_classes, labels, validation.seed)
                         : shuffle ? data::divide_shuffled(source.train, count, validation.seed)
                                   : data::divide_in_order(source.train, count);
  source.train = std::move(parts.rest);
  source.validation = std::move(parts.taken);
}

}  // namespace pmaptrain::input
