// The section `data` of a config: sources, splits, batches and augmentation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/augment/augmentation.h"
#include "core/base/error.h"
#include "core/data/source.h"
#include "core/data/statistics.h"
#include "core/data/tokenizer.h"
#include "core/mesh/mesh.h"

namespace pmaptrain::data {
class TokenCache;
}  // namespace pmaptrain::data

namespace pmaptrain::spec {

using data::TargetScale;
using declare::ColumnName;

// A file or a folder that the config names.
struct PathAt {
  std::string key;   // dotted, items of lists by index: "data.source.csv.train.0"
  std::string path;  // absolute
  Place place;
};

enum class Remainder { drop, mask, error };

struct BatchAll {
  friend bool operator==(BatchAll, BatchAll) = default;
};
struct BatchPerDevice {
  std::int64_t examples = 1;
};
using BatchSize = std::variant<std::int64_t, BatchAll, BatchPerDevice>;

// Examples of the training split that are kept aside for evaluation.
struct ValidationShare {
  double share = 0.1;
  std::uint64_t seed = 0;                          // of its own: the seed of the run does not change the split
  bool shuffle = true;                             // false: the last examples
  bool stratify = false;                           // the share of each class
  std::optional<ColumnName> group = std::nullopt;  // a column of a table: rows with one text there stay together
};

// A number of examples of a split.
struct Amount {
  std::int64_t count = 0;
  bool batches = false;  // the count is of training batches, not of examples
  Place place = {};
};
// The first examples of each split; none: all.
struct Limit {
  std::optional<Amount> train, validation, test;
};

struct Normalize {
  std::vector<double> mean, std;  // one value for each channel, or one for all
  bool automatic = false;         // of the training split, in place of these
};

struct NormalizeTargets {
  TargetScale others = TargetScale::none;  // of outputs that are not named
  std::vector<std::pair<ColumnName, TargetScale>> outputs;
};

struct DataSpec {
  data::SourceKind source;
  data::TokenizerKind tokenizer;                  // of texts; none: bytes
  std::string kept_tokenizer;                     // a file: the copy of the run folder that the config is of
  std::shared_ptr<data::TokenCache> token_cache;  // set by those that keep encoded texts; null: none is kept
  BatchSize batch_size;
  Remainder remainder = Remainder::drop;
  bool shuffle = true;
  std::optional<std::int64_t> bucket_by_length;  // windows of so many batches are sorted by length
  std::int64_t microbatches = 1;
  std::optional<ValidationShare> validation;
  Limit limit;
  std::optional<Normalize> normalize;
  std::optional<NormalizeTargets> normalize_targets;
  std::vector<augment::Augmentation> augment;  // in the order in which they are applied
  std::optional<std::uint64_t> seed;           // none: use the top-level seed
  bool numeric_targets = false;                // the loss takes numbers: integers of a file are not labels
  bool label_maps = false;                     // the loss takes classes by softmax: see data::ArrayMeaning
  bool numbers_name_classes = false;           // 1.0 and -1 in a table, which are no labels, may be classes
  bool token_inputs = false;                   // the model begins with an embedding: integers of a file are tokens
  bool numbers_categories = false;             // the model begins with table_embedding
  std::optional<std::int64_t> ignored_label;   // of the loss
  bool balances_classes = false;               // the loss takes the class weights that balance the training split
  bool balances_positives = false;             // the loss takes the positive weights that do
  Place source_place, batch_size_place, microbatches_place, normalize_place, normalize_targets_place, remainder_place,
      validation_place, bucket_by_length_place;
  std::vector<PathAt> files;  // of the source, in the order of its keys, and of the tokenizer
};

// How each of `outputs` numbers of a target is normalised. Throws Error (usage) at a name that is no output's.
std::vector<TargetScale> target_scales(const DataSpec& data, std::int64_t outputs);

// Whether the source has such a split of its own; false without a source, which a config with errors may lack.
inline bool has_own(const data::SourceKind& source, data::Split split) { return source && source->has(split); }

}  // namespace pmaptrain::spec
