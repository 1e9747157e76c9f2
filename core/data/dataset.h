// Random access to examples, whatever they are read from. A dataset is immutable after it is opened and may be read by
// several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace pmaptrain::data {

// What one example holds of inputs or of targets: element type and shape without the example dimension.
struct Field {
  DType dtype = DType::f32;
  Shape shape;
  std::string origin = {};  // for messages: "array 'y' of 'file'"; empty where nothing was read
  std::size_t bytes() const { return size_of(dtype) * static_cast<std::size_t>(numel(shape)); }
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  virtual Field input() const = 0;
  // Class labels are i32 scalars (shape []); regression targets are f32[N].
  virtual Field target() const = 0;
  // Writes example `index` (0 <= index < size()) as row-major elements. With no `input`, its target alone.
  virtual void read(std::int64_t index, std::byte* input, std::byte* target) const = 0;
  // Throws Error (data) when examples that were read are not what the file held when it was opened. fill() asks once a
  // batch.
  virtual void check_intact() const {}
  // The same, and when a file that examples are still read from was written into. A run asks at the end of each epoch
  // and before each checkpoint.
  virtual void check_unchanged() const {}
  // The smallest and largest label (for i32 targets), to be checked against the model's classes. Datasets that know
  // theirs without a scan say so; others scan once when opened.
  virtual std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const { return std::nullopt; }
};

// A 1-D regression target of a file becomes [1] a row, and images without a channel dimension get one of size 1.

// True values that a synthetic source was made from, shown beside the learned ones at the end of a run.
struct Truth {
  std::string parameter;       // the learned parameter that should approach it: "dense_0.kernel"
  std::vector<double> values;  // row-major
};

struct Source {
  std::string description;  // "fashion_mnist: 60000 train, 10000 test examples of u8[28,28,1]"
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;  // may be null
  std::vector<Truth> truths;
  std::vector<std::string> notes;  // "inputs are f64 and become f32", said once
  std::string test_name = "test";
};

}  // namespace pmaptrain::data
