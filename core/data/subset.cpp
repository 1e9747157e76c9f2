#include "core/data/subset.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

#include "core/data/sampler.h"

namespace pmaptrain::data {
namespace {

class Subset : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> whole, std::int64_t size) : whole_(std::move(whole)), size_(size) {
    assert(size_ >= 1 && size_ <= whole_->size());
  }

  std::int64_t size() const override { return size_; }
  Field input() const override { return whole_->input(); }
  Field target() const override { return whole_->target(); }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    whole_->read(index_in_whole(index), input, target);
  }
  bool is_costly() const override { return whole_->is_costly(); }
  bool is_weighted() const override { return whole_->is_weighted(); }
  float weight(std::int64_t index) const override { return whole_->weight(index_in_whole(index)); }
  bool has_lengths() const override { return whole_->has_lengths(); }
  std::int32_t length(std::int64_t index) const override { return whole_->length(index_in_whole(index)); }
  std::int64_t index_in_source(std::int64_t index) const override {
    return whole_->index_in_source(index_in_whole(index));
  }
  std::string file_of(std::int64_t index) const override { return whole_->file_of(index_in_whole(index)); }
  std::string line_of(std::int64_t index) const override { return whole_->line_of(index_in_whole(index)); }
  std::string text_of(std::int64_t index) const override { return whole_->text_of(index_in_whole(index)); }
  Shape stored_size(std::int64_t index) const override { return whole_->stored_size(index_in_whole(index)); }
  std::int64_t file_size(std::int64_t index) const override { return whole_->file_size(index_in_whole(index)); }
  std::vector<std::byte> file_bytes(std::int64_t index) const override {
    return whole_->file_bytes(index_in_whole(index));
  }
  bool rounds_inputs() const override { return whole_->rounds_inputs(); }
  bool rounds_targets() const override { return whole_->rounds_targets(); }
  void read_exact_input(std::int64_t index, double* input) const override {
    whole_->read_exact_input(index_in_whole(index), input);
  }
  void read_exact_target(std::int64_t index, double* target) const override {
    whole_->read_exact_target(index_in_whole(index), target);
  }
  void check_intact() const override { whole_->check_intact(); }
  void check_unchanged() const override { whole_->check_unchanged(); }
  // The range of the whole dataset, since labels that no example of this part has are still labels of the data.
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override { return whole_->label_range(); }

 private:
  virtual std::int64_t index_in_whole(std::int64_t index) const = 0;

  std::shared_ptr<const Dataset> whole_;
  std::int64_t size_;
};

class Range : public Subset {
 public:
  Range(std::shared_ptr<const Dataset> whole, std::int64_t first, std::int64_t size)
      : Subset(std::move(whole), size), first_(first) {}

 private:
  std::int64_t index_in_whole(std::int64_t index) const override { return first_ + index; }

  std::int64_t first_;
};

// All examples, with numbers of f64: those that the files have.
class Exact : public Subset {
 public:
  Exact(const std::shared_ptr<const Dataset>& whole, bool inputs, bool targets)
      : Subset(whole, whole->size()), inputs_(inputs), targets_(targets) {}

  Field input() const override { return as_f64(Subset::input(), inputs_); }
  Field target() const override { return as_f64(Subset::target(), targets_); }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    const Field of_inputs = Subset::input(), of_targets = Subset::target();
    std::vector<float> inputs(inputs_ && input != nullptr ? static_cast<std::size_t>(numel(of_inputs.shape)) : 0);
    std::vector<float> targets(targets_ ? static_cast<std::size_t>(numel(of_targets.shape)) : 0);
    const bool reads_input = input != nullptr && !(inputs_ && rounds_inputs());
    Subset::read(index,
                 !reads_input ? nullptr
                 : inputs_    ? bytes_of(inputs)
                              : input,
                 targets_ ? bytes_of(targets) : target);
    if (!inputs.empty()) put(inputs, rounds_inputs(), input, [&](double* to) { read_exact_input(index, to); });
    if (!targets.empty()) put(targets, rounds_targets(), target, [&](double* to) { read_exact_target(index, to); });
  }

 private:
  static Field as_f64(Field field, bool exact) {
    if (exact) field.dtype = DType::f64;
    return field;
  }
  static std::byte* bytes_of(std::vector<float>& numbers) { return reinterpret_cast<std::byte*>(numbers.data()); }
  template <class Read>
  static void put(const std::vector<float>& rounded, bool has_exact, std::byte* to, Read&& read) {
    auto* const numbers = reinterpret_cast<double*>(to);
    if (has_exact) {
      read(numbers);
    } else {
      std::copy(rounded.begin(), rounded.end(), numbers);
    }
  }
  std::int64_t index_in_whole(std::int64_t index) const override { return index; }

  bool inputs_, targets_;
};

// All examples, as sequences of these lengths. Labels of positions behind them are `ignored`.
class OfLengths : public Subset {
 public:
  OfLengths(const std::shared_ptr<const Dataset>& whole, std::vector<std::int32_t> lengths, std::int64_t ignored)
      : Subset(whole, whole->size()), lengths_(std::move(lengths)), ignored_(static_cast<std::int32_t>(ignored)) {}

  bool has_lengths() const override { return true; }
  std::int32_t length(std::int64_t index) const override { return lengths_[static_cast<std::size_t>(index)]; }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    Subset::read(index, input, target);
    const Field field = Subset::target();
    if (field.dtype != DType::i32 || field.shape != Shape{Subset::input().shape.front()}) return;
    auto* const labels = reinterpret_cast<std::int32_t*>(target);
    std::fill(labels + length(index), labels + numel(field.shape), ignored_);
  }

 private:
  std::int64_t index_in_whole(std::int64_t index) const override { return index; }

  std::vector<std::int32_t> lengths_;
  std::int32_t ignored_;
};

class FirstPositions final : public Subset {
 public:
  FirstPositions(const std::shared_ptr<const Dataset>& whole, std::int64_t count, bool by_position)
      : Subset(whole, whole->size()),
        input_(first_of(whole->input(), count)),
        target_(by_position ? first_of(whole->target(), count) : whole->target()),
        whole_input_(whole->input().bytes()),
        whole_target_(by_position ? whole->target().bytes() : 0) {}

  Field input() const override { return input_; }
  Field target() const override { return target_; }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    thread_local std::vector<std::byte> inputs, targets;
    inputs.resize(input != nullptr ? whole_input_ : 0);
    targets.resize(whole_target_);
    Subset::read(index, input != nullptr ? inputs.data() : nullptr, targets.empty() ? target : targets.data());
    if (!inputs.empty()) std::memcpy(input, inputs.data(), input_.bytes());
    if (!targets.empty()) std::memcpy(target, targets.data(), target_.bytes());
  }

 private:
  static Field first_of(Field field, std::int64_t count) {
    assert(count <= field.shape.front());
    field.shape.front() = count;
    return field;
  }
  std::int64_t index_in_whole(std::int64_t index) const override { return index; }

  Field input_, target_;
  std::size_t whole_input_, whole_target_;  // bytes that are read of each; no targets unless they are by position
};

using Indices = std::shared_ptr<const std::vector<std::int64_t>>;  // ascending

class Taken : public Subset {
 public:
  Taken(std::shared_ptr<const Dataset> whole, Indices taken)
      : Subset(std::move(whole), static_cast<std::int64_t>(taken->size())), taken_(std::move(taken)) {}

 private:
  std::int64_t index_in_whole(std::int64_t index) const override { return (*taken_)[static_cast<std::size_t>(index)]; }

  Indices taken_;
};

// All examples but those taken. There are (*taken_)[i] - i others before the i-th that was taken.
class Rest : public Subset {
 public:
  Rest(const std::shared_ptr<const Dataset>& whole, Indices taken)
      : Subset(whole, whole->size() - static_cast<std::int64_t>(taken->size())), taken_(std::move(taken)) {}

 private:
  std::int64_t index_in_whole(std::int64_t index) const override {
    std::int64_t low = 0, high = static_cast<std::int64_t>(taken_->size());  // how many were taken before the example
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if ((*taken_)[static_cast<std::size_t>(middle)] - middle <= index) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return index + low;
  }

  Indices taken_;
};

std::shared_ptr<const Dataset> range(const std::shared_ptr<const Dataset>& whole, std::int64_t first,
                                     std::int64_t count) {
  if (std::shared_ptr<const Dataset> own = whole->part(first, count)) return own;
  return std::make_shared<Range>(whole, first, count);
}

}  // namespace

std::shared_ptr<const Dataset> exact_numbers(std::shared_ptr<const Dataset> dataset, bool inputs, bool targets) {
  inputs = inputs && dataset->input().dtype == DType::f32;
  targets = targets && dataset->target().dtype == DType::f32 && numel(dataset->target().shape) > 0;
  if (!inputs && !targets) return dataset;
  return std::make_shared<Exact>(dataset, inputs, targets);
}

std::shared_ptr<const Dataset> first_positions(const std::shared_ptr<const Dataset>& dataset, std::int64_t count,
                                               bool by_position) {
  return std::make_shared<FirstPositions>(dataset, count, by_position);
}

bool has_numbers_of_positions(const Dataset& dataset) {
  const Field input = dataset.input(), target = dataset.target();
  if (!dataset.has_lengths() || !is_floating(target.dtype) || target.shape.empty() || input.shape.empty()) return false;
  return target.shape.front() == input.shape.front();
}

std::int64_t numbers_of_target(const Dataset& dataset) {
  const Shape shape = dataset.target().shape;
  return numel(shape) / (has_numbers_of_positions(dataset) ? shape.front() : 1);
}

std::shared_ptr<const Dataset> with_lengths(const std::shared_ptr<const Dataset>& dataset,
                                            std::vector<std::int32_t> lengths, std::int64_t ignored) {
  return std::make_shared<OfLengths>(dataset, std::move(lengths), ignored);
}

std::shared_ptr<const Dataset> first_examples(const std::shared_ptr<const Dataset>& dataset, std::int64_t count) {
  return range(dataset, 0, count);
}

Division divide_shuffled(const std::shared_ptr<const Dataset>& dataset, std::int64_t count, std::uint64_t seed) {
  const Sampler permutation = Sampler::shuffled(dataset->size(), seed, "data/validation");
  auto taken = std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) (*taken)[static_cast<std::size_t>(i)] = permutation.index(0, i);
  std::sort(taken->begin(), taken->end());
  return {std::make_shared<Taken>(dataset, taken), std::make_shared<Rest>(dataset, taken)};
}

Division divide_by_class(const std::shared_ptr<const Dataset>& dataset, std::map<std::int32_t, std::int64_t> counts,
                         const std::vector<std::int32_t>& labels, std::uint64_t seed) {
  const Sampler permutation = Sampler::shuffled(dataset->size(), seed, "data/validation");
  auto taken = std::make_shared<std::vector<std::int64_t>>();
  for (std::int64_t i = 0; i < dataset->size(); ++i) {
    const std::int64_t example = permutation.index(0, i);
    std::int64_t& left = counts[labels[static_cast<std::size_t>(example)]];
    if (left == 0) continue;
    --left;
    taken->push_back(example);
  }
  std::sort(taken->begin(), taken->end());
  return {std::make_shared<Taken>(dataset, taken), std::make_shared<Rest>(dataset, taken)};
}

std::vector<bool> choose_groups(const std::vector<std::uint32_t>& groups, std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> sizes(1 + *std::max_element(groups.begin(), groups.end()));
  for (const std::uint32_t group : groups) ++sizes[group];
  const Sampler permutation = Sampler::shuffled(std::ssize(sizes), seed, "data/validation");
  std::vector<bool> chosen(sizes.size());
  std::size_t smallest = static_cast<std::size_t>(permutation.index(0, 0));
  std::int64_t taken = 0;
  for (std::int64_t i = 0; i < std::ssize(sizes); ++i) {
    const auto group = static_cast<std::size_t>(permutation.index(0, i));
    if (sizes[group] < sizes[smallest]) smallest = group;
    if (taken + sizes[group] > count) continue;
    taken += sizes[group];
    chosen[group] = true;
  }
  if (taken == 0) chosen[smallest] = true;
  return chosen;
}

Division divide_by_group(const std::shared_ptr<const Dataset>& dataset, const std::vector<std::uint32_t>& groups,
                         const std::vector<bool>& chosen) {
  auto taken = std::make_shared<std::vector<std::int64_t>>();
  for (std::int64_t i = 0; i < dataset->size(); ++i) {
    if (chosen[groups[static_cast<std::size_t>(i)]]) taken->push_back(i);
  }
  return {std::make_shared<Taken>(dataset, taken), std::make_shared<Rest>(dataset, taken)};
}

Division divide_in_order(const std::shared_ptr<const Dataset>& dataset, std::int64_t count) {
  const std::int64_t rest = dataset->size() - count;
  return {range(dataset, rest, count), range(dataset, 0, rest)};
}

}  // namespace pmaptrain::data
