// Random access to examples. A dataset is immutable after it is opened, and several threads may read it at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/base/field.h"
#include "core/base/shape.h"
#include "core/data/channels.h"
#include "core/data/encoding.h"

namespace pmaptrain::tokenizers {
class Tokenizer;
}  // namespace pmaptrain::tokenizers

namespace pmaptrain::data {

using pmaptrain::Field;

// The target of examples without targets.
inline Field no_target() { return {DType::f32, {0}}; }

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  virtual Field input() const = 0;
  // Class labels are i32 scalars (shape []); regression targets are f32[N], or f64[N] (Encoding::wide_targets). Of
  // inputs without targets it is no_target(), and read() writes none.
  virtual Field target() const = 0;
  // Writes example `index` (0 <= index < size()) as row-major elements; without `input`, only the target. Throws Error
  // (data) for a NaN or an infinity.
  virtual void read(std::int64_t index, std::byte* input, std::byte* target) const = 0;
  // Whether float32 may round the numbers that read() gives, and what the files have: the inputs or the targets of an
  // example.
  virtual bool rounds_inputs() const { return false; }
  virtual bool rounds_targets() const { return false; }
  virtual void read_exact_input(std::int64_t index, double* input) const { (void)index, (void)input; }
  virtual void read_exact_target(std::int64_t index, double* target) const { (void)index, (void)target; }
  // For windows into a sequence: the number of offsets at which they may begin. 1 for independent examples.
  virtual std::int64_t offsets() const { return 1; }
  // read() of the window that begins `offset` elements later, 0 <= offset < offsets().
  virtual void read_at(std::int64_t offset, std::int64_t index, std::byte* input, std::byte* target) const {
    (void)offset;
    read(index, input, target);
  }
  // The dataset of examples `first` to first + count - 1, if it differs from a plain subset, as for windows into a
  // sequence; else null.
  virtual std::shared_ptr<const Dataset> part(std::int64_t first, std::int64_t count) const {
    (void)first, (void)count;
    return nullptr;
  }
  // Whether reading an example is so much work that several threads share the examples of a batch.
  virtual bool is_costly() const { return false; }
  // Whether examples have weights, and how much example `index` counts in loss, gradient and metrics: at least 0.
  virtual bool is_weighted() const { return false; }
  virtual float weight(std::int64_t index) const {
    (void)index;
    return 1;
  }
  // Whether examples are sequences of different lengths, and how many positions of example `index` are its own. The
  // others are zeros, also of targets that are numbers of positions; labels of positions are those that are ignored.
  virtual bool has_lengths() const { return false; }
  virtual std::int32_t length(std::int64_t index) const {
    (void)index;
    return 0;
  }
  // The index of example `index` in the source's own order, for messages.
  virtual std::int64_t index_in_source(std::int64_t index) const { return index; }
  // The file that has example `index`, relative to the folder of the split; empty unless each has one of its own.
  virtual std::string file_of(std::int64_t index) const {
    (void)index;
    return {};
  }
  // Of an image that was resized when it was read, its own height and width; else empty.
  virtual Shape stored_size(std::int64_t index) const {
    (void)index;
    return {};
  }
  // Where a text file has example `index`, for messages: "'t.csv', line 7"; empty unless the source is one of lines.
  virtual std::string line_of(std::int64_t index) const {
    (void)index;
    return {};
  }
  // Of an example that is a text, as far as its inputs have it; else empty.
  virtual std::string text_of(std::int64_t index) const {
    (void)index;
    return {};
  }
  // Where is_costly() because examples are files that are decoded at each read: the size of the file of example
  // `index`, and its bytes, by which equal examples are found without decoding them. Else -1, and none.
  virtual std::int64_t file_size(std::int64_t index) const {
    (void)index;
    return -1;
  }
  virtual std::vector<std::byte> file_bytes(std::int64_t index) const {
    (void)index;
    return {};
  }
  // Throws Error (data) if a file was truncated or could not be read, so that examples may have been read as zeros.
  // fill() calls it once per batch.
  virtual void check_intact() const {}
  // Like check_intact(), and throws if a file that examples are read from was modified. A run calls it at the end of
  // each epoch and before each checkpoint.
  virtual void check_unchanged() const {}
  // The smallest and largest label (for i32 targets), to be checked against the classes of the model. It is known when
  // the dataset has been opened.
  virtual std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const { return std::nullopt; }
};

// The true parameters of a synthetic source, shown beside the learned ones at the end of a run.
struct Truth {
  std::string parameter;       // the parameter that should converge to it: "dense_0.kernel"
  std::vector<double> values;  // row-major
};

// The numbers are part of the random streams of synthetic data.
enum class Split : std::uint32_t { train = 0, test = 1, validation = 2 };
inline constexpr Split all_splits[] = {Split::train, Split::validation, Split::test};
// "train", "validation", "test"
std::string_view name_of(Split split);
std::optional<Split> split_named(std::string_view name);

struct Source {
  std::string description;  // "fashion_mnist: 60000 train, 10000 test examples of u8[28,28,1]"
  std::shared_ptr<const Dataset> train, validation, test;  // null if there is none, or if it was not to be opened
  std::vector<Truth> truths;
  std::vector<std::string> notes;          // "inputs are f64 and become f32"
  std::vector<Diagnostic> warnings;        // of splits on which a measurement means less than it seems to
  std::vector<std::string> empty_folders;  // of images: those of classes that have none for training
  Encoding encoding;
  std::shared_ptr<const tokenizers::Tokenizer> tokenizer;  // of texts; null where bytes are tokens
  std::optional<Channels> channels;                        // of npz, where `auto` was decided
  // Of a table that is divided by groups: the group of each example of the training split.
  std::shared_ptr<const std::vector<std::uint32_t>> groups;
  // Completes the encoding by what only the examples tell that are trained on, without those that are kept aside.
  std::function<void(Source& source)> learn;

  std::shared_ptr<const Dataset>& of(Split split);
  const std::shared_ptr<const Dataset>& of(Split split) const;
};

}  // namespace pmaptrain::data
