// A validated config as plain values, after defaults and options have been applied.
//
// The meaning and the range of each field are stated once, in its row (rows/row.h). Validation, `help`, the schema,
// docs/config.md, the resolved config and the binding are derived from the rows. The default of an optional key is the
// default member initializer of its field.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/mesh/mesh.h"
#include "core/spec/optimizer.h"

namespace pmaptrain::spec {

// ---- mesh ----------------------------------------------------------------------------------------------------------
enum class Backend { cpu, cuda, automatic, reference };

struct MeshSpec {
  Mesh mesh;
  Backend backend = Backend::cpu;
  bool deterministic = false;            // on GPUs: the same bits on any number of them
  bool tf32 = false;                     // on GPUs: operands of products may be rounded to TF32
  std::optional<MemorySize> gpu_memory;  // of each GPU; none: all that it has
  std::optional<int> workers;            // none: automatic
  Place place;                           // of mesh.axes or --devices
};

// ---- data ----------------------------------------------------------------------------------------------------------
struct FilePair {
  std::string inputs, targets;  // absolute paths
};
struct Idx {
  FilePair train;
  std::optional<FilePair> validation, test;
};
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
struct Csv {
  using Files = std::vector<std::string>;  // absolute paths; their rows follow one another
  Files train;
  std::optional<Files> validation, test;
  std::optional<std::vector<ColumnName>> inputs;  // none: all columns but target and weight
  std::vector<ColumnName> target;                 // at least one; several are the outputs of a regression
  std::optional<ColumnName> weight;
  bool header = true;  // false: columns are named by their number, from 0
  std::string delimiter = ",";
  std::vector<ColumnName> categorical;
  MissingCells missing;
  Unknown unknown = Unknown::error;
  OnError on_error = OnError::error;
};
struct SyntheticLinear {
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
  std::vector<std::vector<double>> inputs, targets;
};
// The IDX files of Debian's dataset-fashion-mnist. The resolved config keeps the name `fashion_mnist`.
struct FashionMnist {
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
  std::string dir;  // absolute
};
// Windows of `length` tokens; the targets are the tokens that follow.
enum class Tokens { bytes, uint16 };
struct TextFiles {
  using Files = std::vector<std::string>;  // absolute paths; the files follow one another
  Files train;
  std::optional<Files> validation, test;
  Tokens tokens = Tokens::bytes;  // uint16: in little-endian order
  std::int64_t length = 64;
};
using Source = std::variant<FashionMnist, Idx, Npz, Csv, ImageFolder, Cifar10, TextFiles, SyntheticLinear,
                            SyntheticImages, Values>;

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

}  // namespace augment

using AugmentationKind = std::variant<augment::RandomCrop, augment::RandomResizedCrop, augment::RandomFlip,
                                      augment::RandomRotation, augment::ColorJitter, augment::Cutout>;
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
  std::uint64_t seed = 0;  // of its own: the seed of the run does not change the split
  bool shuffle = true;     // false: the last examples
  bool stratify = false;   // the share of each class
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

enum class NormalizeTargets { automatic };  // of the training split

struct DataSpec {
  Source source;
  BatchSize batch_size;
  AxisSet axes;  // of MeshSpec::mesh: all that no ensemble uses
  Remainder remainder = Remainder::drop;
  bool shuffle = true;
  std::int64_t microbatches = 1;
  std::optional<ValidationShare> validation;
  Limit limit;
  std::optional<Normalize> normalize;
  std::optional<NormalizeTargets> normalize_targets;
  std::vector<Augmentation> augment;  // in the order in which they are applied
  std::optional<std::uint64_t> seed;  // none: use the top-level seed
  bool numeric_targets = false;       // the loss takes numbers: integers of a file are not labels
  bool balances_classes = false;      // the loss takes the class weights that balance the training split
  Place source_place, batch_size_place, microbatches_place, normalize_place, normalize_targets_place, remainder_place,
      validation_place;
};

// Whether the source has such a split of its own.
bool has_own_validation(const Source& source);
bool has_own_test(const Source& source);
// Whether rows and files that cannot be read are left out.
bool skips_errors(const Source& source);
// Whether examples have weights.
bool has_weights(const Source& source);

// ---- model ---------------------------------------------------------------------------------------------------------
struct Dense {
  std::int64_t features = 1;
  bool use_bias = true;
};
enum class PaddingKind { same, valid, explicit_ };
struct Padding {
  PaddingKind kind = PaddingKind::same;
  std::vector<std::pair<std::int64_t, std::int64_t>>
      amounts;  // explicit_: padding before and after, of height and of width
};
struct Conv {
  std::int64_t features = 1;
  std::vector<std::int64_t> kernel_size;       // height, width
  std::vector<std::int64_t> strides = {1, 1};  // height, width
  Padding padding;
  bool use_bias = true;
  std::vector<std::int64_t> kernel_dilation = {1, 1};  // height, width
  std::int64_t feature_group_count = 1;
};
struct MaxPool {
  std::vector<std::int64_t> window_shape, strides;
  Padding padding{PaddingKind::valid, {}};
};
struct AvgPool {
  std::vector<std::int64_t> window_shape, strides;
  Padding padding{PaddingKind::valid, {}};
  bool count_include_pad = true;
};
struct GlobalAvgPool {};
struct Reshape {
  std::vector<std::int64_t> shape;  // of one example; one size may be -1
};
struct Flatten {};
struct Dropout {
  double rate = 0.5;
};
struct Relu {};
struct Tanh {};
struct Gelu {};  // the tanh approximation
struct Sigmoid {};
struct Silu {};
struct Softmax {};  // along the last dimension
struct LeakyRelu {
  double negative_slope = 0.01;
};
struct Elu {
  double alpha = 1.0;
};
struct Softplus {};
struct Layer;
struct Layers {
  std::vector<Layer> layers;
};
using LayerKind = std::variant<Dense, Conv, MaxPool, AvgPool, GlobalAvgPool, Reshape, Layers, Flatten, Dropout, Relu,
                               Tanh, Gelu, Sigmoid, Silu, Softmax, LeakyRelu, Elu, Softplus>;

// What is computed in which element type: all in f32; or the operands of products, activations and their cotangents in
// bf16 (Micikevicius et al., "Mixed Precision Training", 2018).
enum class PrecisionPolicy { float32, mixed_bfloat16 };

struct Layer {
  std::string name;  // unique in its list; default: the kind and its index among that kind (conv_0)
  LayerKind kind;
  Place place;
  std::optional<PrecisionPolicy> precision = {};  // default: that of the list around it
};

// A tensor of `model.init.values`: a rectangular nested list, flattened row-major.
struct Tensor {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  Place place;
};

enum class Weights { ema, raw };

// Whose names and order of elements the parameters in a file have.
enum class ParameterLayout { flax, torch };

// Another name for tensors of a file. Each * of `from` stands for any characters, which take the place of the * of the
// same number in `to`.
struct Rename {
  Pattern from;
  std::string to;
};

// What initial values are read from.
struct InitialFrom {
  std::string path;                                   // absolute: a safetensors file, or a run folder
  std::string checkpoint = "last";                    // of a run folder: last, best or a step
  Weights weights = Weights::ema;                     // of a run folder whose checkpoint has both
  std::optional<std::int64_t> member = std::nullopt;  // of an ensemble; none: each member of this one takes its own
  std::vector<Pattern> include = {{"*"}}, exclude = {};
  ParameterLayout layout = ParameterLayout::flax;                // of a file
  std::vector<Rename> rename = {};                               // the first that matches a tensor applies
  std::optional<std::vector<Pattern>> transpose = std::nullopt;  // none: what `layout` stores transposed
};

struct ModelSpec {
  std::vector<Layer> layers;
  std::map<std::string, Tensor> initial_values;  // by parameter path: dense_0.kernel
  std::optional<InitialFrom> initial_from;
  Place init_place;
};

// ---- loss, metrics --------------------------------------------------------------------------------------------------
struct ClassWeights {
  std::vector<double> each;  // one for each class; empty: all 1
  bool balanced = false;     // those that balance the training split, in place of these
};
struct SoftmaxCrossEntropy {
  double label_smoothing = 0.0;
  ClassWeights class_weights;
};
struct SigmoidCrossEntropy {
  ClassWeights class_weights;
};
struct MeanSquaredError {};
struct MeanAbsoluteError {};
struct Huber {
  double delta = 1.0;
};
using Loss = std::variant<SoftmaxCrossEntropy, SigmoidCrossEntropy, MeanSquaredError, MeanAbsoluteError, Huber>;

// Whether the targets are numbers whatever their type; other losses read integers as labels.
bool takes_numbers(const Loss& loss);
// Whether its class weights are those that balance the training split.
bool balances_classes(const Loss& loss);

namespace metric {

enum class Average { macro, none };  // the mean over the classes, or one value for each class

struct Accuracy {};
struct TopKAccuracy {
  std::int64_t k = 5;
};
struct Precision {
  Average average = Average::macro;
};
struct Recall {
  Average average = Average::macro;
};
struct F1 {
  Average average = Average::macro;
};
struct Perplexity {};
struct MeanAbsoluteError {};
struct MeanSquaredError {};
struct RootMeanSquaredError {};
struct R2 {};
struct RocAuc {
  Average average = Average::macro;
};
struct ConfusionMatrix {};

}  // namespace metric

using MetricKind = std::variant<metric::Accuracy, metric::TopKAccuracy, metric::Precision, metric::Recall, metric::F1,
                                metric::RocAuc, metric::ConfusionMatrix, metric::Perplexity, metric::MeanAbsoluteError,
                                metric::MeanSquaredError, metric::RootMeanSquaredError, metric::R2>;
struct Metric {
  MetricKind kind;
  Place place = {};
};

// ---- train ---------------------------------------------------------------------------------------------------------
enum class OnNonfinite { halt, skip };

struct BestSpec {
  std::string metric = "loss";  // or the name of one of `metrics`
  std::optional<Mode> mode;     // none: mode_of(metric)
  Place place = {};
};

struct CheckpointSpec {
  Interval every;  // of steps, or of time
  std::int64_t keep = 3;
  std::optional<BestSpec> best;
};

struct EarlyStoppingSpec {
  std::string metric = "loss";
  std::optional<Mode> mode;
  std::int64_t patience = 5;  // in evaluations
  double min_delta = 0.0;
  Place place = {};
};

// optax.ema of the parameters.
struct EmaSpec {
  double decay = 0.999;
  bool debias = true;
};

enum class SpikeAction { warn, halt };
struct LossSpikeSpec {
  double factor = 3.0;
  Duration window;
  SpikeAction action = SpikeAction::warn;
};

struct TrainSpec {
  Duration duration;
  Interval log_every, eval_every, verify_replicas;
  bool eval_every_is_default = true;  // then a missing test split gives no note
  CheckpointSpec checkpoint;
  std::optional<EarlyStoppingSpec> early_stopping;
  std::optional<EmaSpec> ema;
  OnNonfinite on_nonfinite = OnNonfinite::halt;
  std::optional<LossSpikeSpec> loss_spike;
  bool tensorboard = true;
  std::optional<Duration> max_time;  // from the start of the process
};

// ---- ensemble ------------------------------------------------------------------------------------------------------
// A key whose values differ between members, and these values as YAML, by member.
struct Varied {
  std::string path;  // dotted; items of lists by index
  std::vector<std::string> values;
  Place place;  // of the key
};

struct Spec;

// Independent members along one axis of the mesh, trained as one program.
struct Ensemble {
  std::string axis;
  std::vector<Varied> vary;
  std::vector<Spec> alone;  // by member: see member_spec()
  Place place;              // of the name of the axis
};

struct Spec {
  std::string name;
  std::uint64_t seed = 0;
  PrecisionPolicy precision = PrecisionPolicy::float32;
  MeshSpec mesh;
  DataSpec data;
  ModelSpec model;
  Loss loss;
  Place loss_place;
  std::vector<Metric> metrics;
  Place metrics_place;
  OptimizerSpec optimizer;
  TrainSpec train;
  std::optional<Ensemble> ensemble;
};

// The number of members: 1 without an ensemble.
std::int64_t members(const Spec& spec);
// What a run of this member alone would have: its own values, the member's mesh, no ensemble, and, where `seed` varies
// but data.seed does not, the data.seed that all members share. Without an ensemble `spec` itself, as member 0.
const Spec& member_spec(const Spec& spec, std::int64_t member);
// The mesh without the axis of the ensemble: what the program of every member is written for. One device where that is
// the only axis.
Mesh member_mesh(const Spec& spec);

// The key of the alternative: "fashion_mnist", "softmax_cross_entropy", "conv", "adam".
std::string to_string(const Source& source);
std::string to_string(const Loss& loss);
std::string to_string(const LayerKind& kind);
std::string to_string(const AugmentationKind& kind);
std::string to_string(const OptimizerRule& rule);
std::string to_string(const Schedule& schedule);
std::string to_string(PrecisionPolicy precision);
// "accuracy", "top_5_accuracy"
std::string to_string(const Metric& metric);
// Whether the metric has one value for each class.
bool is_per_class(const Metric& metric);
// Whether it is one value, by which the best checkpoint and the like may be selected.
bool is_single_value(const Metric& metric);

}  // namespace pmaptrain::spec
