// The section `data` of a config: sources, splits, batches and augmentation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/mesh/mesh.h"

namespace pmaptrain::spec {

// A file or a folder that the config names.
struct PathAt {
  std::string key;   // dotted, items of lists by index: "data.source.csv.train.0"
  std::string path;  // absolute
  Place place;
};

struct FilePair {
  std::string inputs, targets;  // absolute paths
};
struct Idx {
  FilePair train;
  std::optional<FilePair> validation, test;
};
// Where an array (N, A, B) has the channels of its examples. `none`: nowhere, an example is a picture [A, B, 1];
// `first`: it is transposed to [B, A] when it is read.
enum class Channels { automatic, last, none, first };
std::string_view to_string(Channels channels);
// One archive with separate arrays for each split, or one archive per split with the same array names in each.
struct Npz {
  struct Split {
    std::string file;             // absolute path, if there is one archive per split
    std::string inputs, targets;  // array names, if one archive has all splits
  };
  std::optional<std::string> file;  // absolute path of the archive with all splits
  Split train;
  std::optional<Split> validation, test;
  std::optional<std::string> inputs, targets;  // array names in the archive of each split
  Channels channels = Channels::automatic;

  // `split` with its file and its array names.
  Split complete(const Split& split) const;
};
// Tables of text, one row per example.
struct ColumnName {
  std::string text;
  Place place = {};
};
// What stands for an empty cell of an input: the mean of the column's numbers, or a category of its own.
enum class Missing { error, mean, category };
struct MissingCells {
  Missing numbers = Missing::error, texts = Missing::error;  // of columns that are not named
  std::vector<std::pair<ColumnName, Missing>> columns;
  Missing of(std::string_view column, bool categorical) const;
};
// A category that the training split does not have.
enum class Unknown { error, ignore };
// Rows and files that cannot be read.
enum class OnError { error, skip };
// How the characters of a text file are stored.
enum class TextEncoding { utf8, latin1, windows1252, utf16 };
struct Csv {
  using Files = std::vector<std::string>;  // absolute paths; their rows follow one another
  Files train;
  std::optional<Files> validation, test;
  std::optional<std::vector<ColumnName>> inputs;  // none: all columns but those of another part, and `exclude`
  std::vector<ColumnName> exclude;
  std::vector<ColumnName> target;              // at least one; several are the outputs of a regression
  std::vector<ColumnName> classes;             // in order; none: those of the training split, sorted
  std::optional<std::string> label_separator;  // the target is a text of labels: "a;b"
  std::optional<ColumnName> weight;
  bool header = true;  // false: columns are named by their number, from 0
  std::string delimiter = ",";
  TextEncoding encoding = TextEncoding::utf8;
  std::vector<ColumnName> categorical;
  MissingCells missing;
  std::vector<ColumnName> missing_values;      // texts, of which each means a missing number
  std::vector<ColumnName> missing_categories;  // texts, of which each means an empty cell of a categorical input
  Unknown unknown = Unknown::error;
  OnError on_error = OnError::error;
};
struct SyntheticLinear {
  static constexpr bool has_test = false;
  std::int64_t features = 5;
  std::int64_t examples_per_device = 100;
  double noise = 0.1;
};
struct SyntheticImages {
  std::int64_t height = 32, width = 32, channels = 3, classes = 10;
  std::int64_t train = 50000, test = 10000;
  double noise = 0.3;
};
struct Values {
  static constexpr bool has_test = false;
  std::vector<std::vector<double>> inputs, targets;
};
// The IDX files of Debian's dataset-fashion-mnist. The resolved config keeps the name `fashion_mnist`.
struct FashionMnist {
  static constexpr bool has_test = true;
  std::string dir = "/usr/share/datasets/fashion-mnist";
};
// A folder for each split, in which each class has a folder of PNG and JPEG files.
struct ImageFolder {
  std::string train;                              // absolute paths
  std::optional<std::string> validation, test;    // of the same classes
  std::optional<std::vector<std::int64_t>> size;  // height and width; none: that of the images, which all have one
  OnError on_error = OnError::error;
};
// The binary version of CIFAR-10.
struct Cifar10 {
  static constexpr bool has_test = true;
  std::string dir;  // absolute
};
// Windows of `length` tokens; the targets are the tokens that follow.
enum class Tokens { bytes, uint16 };
struct TextFiles {
  using Files = std::vector<std::string>;  // absolute paths of files and folders, which follow one another
  Files train;
  std::optional<Files> validation, test;
  Tokens tokens = Tokens::bytes;  // uint16: in little-endian order
  std::int64_t length = 64;
  std::optional<std::int64_t> end_token;  // follows each document
  std::optional<std::string> field;       // of JSON lines; none: "text"
};
// A source has a member `test`, its test split or the number of its examples, or says in has_test whether it has one.
using Source = std::variant<FashionMnist, Idx, Npz, Csv, ImageFolder, Cifar10, TextFiles, SyntheticLinear,
                            SyntheticImages, Values>;
// The key of the source: "fashion_mnist".
std::string to_string(const Source& source);

// Numbers from `low` to `high`.
struct Range {
  double low = 0.0, high = 0.0;
};
// A range; or, written as one number, all that is at most `distance` away from where nothing changes.
struct Spread {
  double distance = 0.0;
  std::optional<Range> range = std::nullopt;  // in place of the distance
};

// Random changes of training images.
namespace augment {

struct RandomCrop {
  std::int64_t padding = 4;  // pixels of zeros on each side
};
struct RandomResizedCrop {
  Range scale{0.08, 1.0};         // area of the part, as a share of the image's
  Range ratio{3.0 / 4, 4.0 / 3};  // width by height of the part
};
struct RandomFlip {};
struct RandomRotation {
  Spread degrees;
};
struct ColorJitter {
  Spread brightness, contrast, saturation;  // factors, around 1
  Spread hue;                               // turns of the colour circle, around 0
};
struct Cutout {
  std::int64_t size = 8;  // of the side of the square, in pixels
};
// Of these two a list has at most one, as its last element. `alpha` is that of the distribution Beta(alpha, alpha).
struct Mixup {
  double alpha = 0.2;
};
struct Cutmix {
  double alpha = 1.0;
};

}  // namespace augment

using AugmentationKind =
    std::variant<augment::RandomCrop, augment::RandomResizedCrop, augment::RandomFlip, augment::RandomRotation,
                 augment::ColorJitter, augment::Cutout, augment::Mixup, augment::Cutmix>;
std::string to_string(const AugmentationKind& kind);
struct Augmentation {
  AugmentationKind kind;
  Place place = {};
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

// What brings an output's targets near 0 and 1: the mean and the standard deviation of the training split; `log`: those
// of log(1 + target).
enum class TargetScale { none, automatic, log };
struct NormalizeTargets {
  TargetScale others = TargetScale::none;  // of outputs that are not named
  std::vector<std::pair<ColumnName, TargetScale>> outputs;
};

struct DataSpec {
  Source source;
  BatchSize batch_size;
  Remainder remainder = Remainder::drop;
  bool shuffle = true;
  std::int64_t microbatches = 1;
  std::optional<ValidationShare> validation;
  Limit limit;
  std::optional<Normalize> normalize;
  std::optional<NormalizeTargets> normalize_targets;
  std::vector<Augmentation> augment;          // in the order in which they are applied
  std::optional<std::uint64_t> seed;          // none: use the top-level seed
  bool numeric_targets = false;               // the loss takes numbers: integers of a file are not labels
  bool numbers_name_classes = false;          // 1.0 and -1 in a table, which are no labels, may be classes
  bool token_inputs = false;                  // the model begins with an embedding: integers of a file are tokens
  std::optional<std::int64_t> ignored_label;  // of the loss
  bool balances_classes = false;              // the loss takes the class weights that balance the training split
  bool balances_positives = false;            // the loss takes the positive weights that do
  Place source_place, batch_size_place, microbatches_place, normalize_place, normalize_targets_place, remainder_place,
      validation_place;
  std::vector<PathAt> files;  // of the source, in the order of its keys
};

// How each of `outputs` numbers of a target is normalised. Throws Error (usage) at a name that is no output's.
std::vector<TargetScale> target_scales(const DataSpec& data, std::int64_t outputs);

// Whether the source has such a split of its own.
bool has_own_validation(const Source& source);
bool has_own_test(const Source& source);
// Whether rows and files that cannot be read are left out.
bool skips_errors(const Source& source);
// Whether examples have weights.
bool has_weights(const Source& source);

}  // namespace pmaptrain::spec
