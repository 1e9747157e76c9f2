// Sources of data.
//
// A source is one file of a subfolder and one line of core/data/sources/list.cpp: a struct of its options, which
// declares their keys (core/declare/kind.h), and
//
//   Source open(const Opening& opening) const                 reads and checks the splits that are wanted (opening.h)
//   std::string assignment(std::string_view split) const      "test=DIR", which would give it another split; without
//                                                             it "dir=DIR" of a source with a member `dir`, "test=FILE"
//                                                             of one with a member `test` that is optional, else none
//
// Its members say the rest: `validation` and `test` which splits it has (an optional, or a number of examples; else
// `has_test` does), `on_error` whether it leaves out what cannot be read, `weight` whether examples have weights,
// `target` the names of its targets, has_lengths() whether they are sequences of different lengths; a constant `learns`
// that other splits are read by what the training split has, and one `is_drawn` that examples are drawn from the seed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/declare/kind.h"

namespace pmaptrain::data {

using declare::ColumnName;
using declare::Declaration;
using declare::field;
using declare::Need;

struct Opening;

// The interface of all kinds.
class SourceRules {
 public:
  virtual ~SourceRules() = default;

  // The name in the config: "csv".
  virtual const std::string& name() const = 0;
  // Whether it has such a split of its own.
  virtual bool has(Split split) const = 0;
  // Whether rows and files that cannot be read are left out.
  virtual bool skips_errors() const = 0;
  // Whether examples have weights.
  virtual bool has_weights() const = 0;
  // Whether examples are sequences of different lengths.
  virtual bool has_lengths() const = 0;
  virtual bool learns() const = 0;
  // Whether examples are drawn from data.seed.
  virtual bool is_drawn() const = 0;
  // Of columns that are the targets; else empty.
  virtual std::vector<std::string> target_names() const = 0;
  virtual Source open(const Opening& opening) const = 0;
  virtual std::string assignment(std::string_view split) const = 0;
};

// The interface for a source of one kind (opening.h).
template <class Kind>
class Held;

// A source of any kind.
struct SourceKind : declare::Any<SourceRules, Held> {
  using Any::Any;
};
// The list of all kinds: sources/list.cpp.
const std::vector<declare::AnyKind>& family(declare::Tag<SourceKind>);

}  // namespace pmaptrain::data
