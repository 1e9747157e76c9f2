#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/data/arrays/array.h"
#include "core/data/arrays/zip.h"
#include "core/input/inspect.h"

namespace pmaptrain::input {
namespace {

// Tokens are below this.
constexpr std::int64_t most_tokens = 65536;

// The least and the most of an array of integers; none where one has 64 bits.
std::optional<std::pair<std::int64_t, std::int64_t>> range_of(const data::Array& array) {
  std::optional<std::pair<std::int64_t, std::int64_t>> range;
  for (std::int64_t i = 0; i < numel(array.shape); ++i) {
    const std::optional<std::int64_t> number = data::read_integer(array, i);
    if (!number) return std::nullopt;
    if (!range) range = {*number, *number};
    range = {std::min(range->first, *number), std::max(range->second, *number)};
  }
  return range;
}

data::Split split_in(std::string_view name) {
  data::Split split = data::Split::train;
  for (const std::string& word : words_of(name)) split = split_of(word).value_or(split);
  return split;
}

// The arrays of a split of an archive.
struct Arrays {
  std::string path;
  ArrayNames names;
  data::NpyHead inputs, targets;

  Arrays(std::string in, ArrayNames of)
      : path(std::move(in)),
        names(std::move(of)),
        inputs(data::read_npz_head(path, names.inputs)),
        targets(data::read_npz_head(path, names.targets)) {}

  // Whether an array has an integer for each example, from 0 to the number of positions of the inputs.
  bool may_be_lengths(const std::string& name) const {
    if (!is_integer_of_each(data::read_npz_head(path, name)) || inputs.shape.size() < 2) return false;
    const auto range = range_of(data::read_npz(path, name));
    return range && range->first >= 0 && range->second <= inputs.shape[1];
  }

  bool is_integer_of_each(const data::NpyHead& head) const {
    if (inputs.shape.empty() || is_floating(head.element) || head.element == data::Element::boolean) return false;
    return head.shape == Shape{inputs.shape[0]} || head.shape == Shape{inputs.shape[0], 1};
  }

  bool are_tokens() const { return inputs.shape.size() == 2 && !is_floating(inputs.element); }

  // Why an array that is called so is not taken as lengths; empty if it is.
  std::string refusal(const std::string& name) const {
    const std::string x = fmt::format("'{}' {}", names.inputs, to_string(inputs.shape));
    if (inputs.shape.size() < 2) return fmt::format("{} has no sequences", x);
    if (!is_integer_of_each(data::read_npz_head(path, name))) {
      return fmt::format("lengths are integers, one for each of the {} examples of {}", inputs.shape[0], x);
    }
    if (!may_be_lengths(name))
      return fmt::format("it has numbers that are not from 0 to the {} positions of {}", inputs.shape[1], x);
    if (are_tokens()) {
      const auto range = range_of(data::read_npz(path, names.inputs));
      if (!range || range->first < 0 || range->second >= most_tokens) {
        return fmt::format("{} has integers that are no tokens, which are from 0 to {}", x, most_tokens - 1);
      }
    } else if (inputs.shape.size() != 3) {
      return fmt::format("sequences of numbers are (N, T, C), and {} is not: in NumPy, x.reshape(N, T, -1)", x);
    }
    if (targets.shape.size() > 2 || (targets.shape.size() == 2 && targets.shape[1] == inputs.shape[1])) {
      return fmt::format("'{}' {} has targets for each position, for which init writes no model of lengths",
                         names.targets, to_string(targets.shape));
    }
    return "";
  }
};

}  // namespace

bool is_called_lengths(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word == "n" || word.find("len") != std::string::npos; });
}

OtherArrays find_other_arrays(const std::string& path, const std::map<data::Split, ArrayNames>& arrays) {
  OtherArrays found;
  std::set<std::string> used;
  std::map<data::Split, Arrays> splits;
  for (const auto& [split, names] : arrays) {
    used.insert({names.inputs, names.targets});
    splits.emplace(split, Arrays(path, names));
  }
  std::map<data::Split, std::vector<std::string>> called;
  const auto leave_out = [&](const std::string& name, const std::string& why) {
    found.notes.push_back(
        fmt::format("The array '{}' {} is left out: {}.", name, to_string(data::read_npz_head(path, name).shape), why));
  };
  const data::ZipArchive archive(path);
  for (const data::ZipArchive::Entry& entry : archive.entries()) {
    if (!entry.name.ends_with(".npy")) continue;
    const std::string name = entry.name.substr(0, entry.name.size() - 4);
    const auto split = splits.find(split_in(name));
    if (used.contains(name)) continue;
    if (split == splits.end()) {
      leave_out(name, fmt::format("there are no inputs and targets of {}", data::name_of(split_in(name))));
    } else if (is_called_lengths(name)) {
      called[split->first].push_back(name);
    } else if (split->second.may_be_lengths(name)) {
      leave_out(name, fmt::format("if it has the lengths of the sequences, write {}: {{inputs: {}, targets: {}, "
                                  "lengths: {}}}, and layers that take lengths",
                                  data::name_of(split->first), split->second.names.inputs, split->second.names.targets,
                                  name));
    } else {
      leave_out(name, "it is neither inputs nor targets by its name");
    }
  }
  for (const auto& [split, names] : called) {
    for (const std::string& name : names) {
      std::string why = splits.at(split).refusal(name);
      if (names.size() > 1) why = fmt::format("which one has lengths is not clear: '{}'", join(names, "', '"));
      if (called.size() < splits.size()) why = "another split has no lengths";
      if (why.empty()) {
        found.lengths.emplace(split, name);
      } else {
        leave_out(name, why);
      }
    }
  }
  if (found.lengths.size() < splits.size()) {
    for (const auto& [split, name] : found.lengths) leave_out(name, "those of another split are");
    found.lengths.clear();
  }
  if (found.lengths.empty()) return found;
  for (const auto& [split, of] : splits) {
    if (of.are_tokens())
      found.tokens = std::max(found.tokens, range_of(data::read_npz(path, of.names.inputs))->second + 1);
  }
  return found;
}

}  // namespace pmaptrain::input
