// What sources are opened with, and what most of them do then.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data/parallel.h"
#include "core/data/skipped.h"
#include "core/data/source.h"

namespace pmaptrain::data {

class TokenCache;
class TokenizerRules;

struct Opening {
  std::uint64_t seed = 0;
  std::int64_t devices = 1;
  Place place;                                     // of the source in the config
  std::optional<Split> only;                       // none: all splits
  const Encoding* known;                           // null: that of the training split
  const Skipped& left_out;                         // by the run that is continued
  bool needs_train = false;                        // to learn from it
  bool numeric_targets = false;                    // the loss takes numbers: integers of a file are not labels
  bool token_inputs = false;                       // integers of a file are tokens
  bool label_maps = false;                         // integers of a file may be labels of pixels
  std::optional<std::int64_t> ignored_label = {};  // of label maps and of positions, a number that is no class
  bool numbers_categories = false;                 // of a table one number each: Encoding::Column::numbered
  bool names_classes = false;                      // numbers of a table that are no labels are classes
  std::optional<ColumnName> group = {};            // by which a table is divided
  const TokenizerRules* tokenizer = nullptr;       // of texts; null: bytes
  TokenCache* token_cache = nullptr;               // of encoded texts; null: none is kept

  bool wants(Split split) const { return !only || *only == split || (needs_train && split == Split::train); }
};

// The key of such a split, for a source whose key `train` says what it is.
inline declare::Key split_key(Split split, std::string_view example) {
  return {.path = std::string(name_of(split)),
          .meaning = split == Split::test ? "As train, for the test split." : "As train, for the validation split.",
          .example = example};
}

using Notes = std::vector<std::string>;

// Throws Error (data) if the inputs, or the targets, of two splits differ.
void check_equal(std::string_view what, Split first, const Field& a, Split second, const Field& b);

// The splits that are configured.
template <class Files>
std::map<Split, Files> given(const Files& train, const std::optional<Files>& validation,
                             const std::optional<Files>& test) {
  std::map<Split, Files> splits{{Split::train, train}};
  if (validation) splits.emplace(Split::validation, *validation);
  if (test) splits.emplace(Split::test, *test);
  return splits;
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
    source.of(split) = read(splits.at(split), notes.at(split));
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

template <class Kind>
class Held final : public declare::Holds<SourceRules, Kind> {
  using declare::Holds<SourceRules, Kind>::kind_;
  static_assert(
      requires(const Kind& kind, const Opening& opening) { kind.open(opening); }, "this source has no open()");

 public:
  using declare::Holds<SourceRules, Kind>::Holds;

  bool has(Split split) const override {
    if (split == Split::train) return true;
    if (split == Split::validation) {
      if constexpr (requires { kind_.validation.has_value(); }) return kind_.validation.has_value();
      return false;
    }
    if constexpr (requires { kind_.test.has_value(); }) {
      return kind_.test.has_value();
    } else if constexpr (requires { kind_.test > 0; }) {
      return kind_.test > 0;
    } else {
      static_assert(
          requires { bool{Kind::has_test}; }, "this source does not say whether it has a test split");
      return Kind::has_test;
    }
  }
  bool skips_errors() const override {
    if constexpr (requires { kind_.on_error; }) return kind_.on_error == OnError::skip;
    return false;
  }
  bool has_weights() const override {
    if constexpr (requires { kind_.weight.has_value(); }) return kind_.weight.has_value();
    return false;
  }
  bool has_lengths() const override {
    if constexpr (requires { kind_.has_lengths(); }) return kind_.has_lengths();
    return false;
  }
  bool learns() const override {
    if constexpr (requires { Kind::learns; }) return Kind::learns;
    return false;
  }
  bool is_drawn() const override {
    if constexpr (requires { Kind::is_drawn; }) return Kind::is_drawn;
    return false;
  }
  std::vector<std::string> target_names() const override {
    std::vector<std::string> names;
    if constexpr (requires { kind_.target.front().text; }) {
      for (const ColumnName& column : kind_.target) names.push_back(column.text);
    }
    return names;
  }
  Source open(const Opening& opening) const override { return kind_.open(opening); }
  std::string assignment([[maybe_unused]] std::string_view split) const override {
    if constexpr (requires { kind_.assignment(split); }) return kind_.assignment(split);
    if constexpr (requires { kind_.dir; }) return "dir=DIR";
    if constexpr (requires { kind_.test.has_value(); }) return std::string(split) + "=FILE";
    return {};
  }
};

}  // namespace pmaptrain::data
