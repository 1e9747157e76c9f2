#include "core/data/sources/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/data/file.h"

namespace pmaptrain::data {
namespace {

// A sequence of tokens, and where it is from.
struct Sequence {
  Bytes bytes;
  std::size_t width = 1;  // bytes of a token
  std::string origin;     // for messages
  std::pair<std::int64_t, std::int64_t> range;
  Place place;

  std::int64_t tokens() const { return static_cast<std::int64_t>(bytes.size() / width); }

  // Tokens `first` to first + count - 1.
  void read(std::int64_t first, std::int64_t count, std::byte* to) const {
    const std::byte* from = bytes.data() + static_cast<std::size_t>(first) * width;
    for (std::int64_t i = 0; i < count; ++i, from += width, to += sizeof(std::int32_t)) {
      auto token = std::to_integer<std::int32_t>(from[0]);
      if (width == 2) token |= std::to_integer<std::int32_t>(from[1]) << 8;
      std::memcpy(to, &token, sizeof(token));
    }
  }
};

class TextDataset : public Dataset {
 public:
  // Windows `first_window` to first_window + windows - 1, in the tokens up to `end`.
  TextDataset(std::shared_ptr<const Sequence> sequence, std::int64_t length, std::int64_t first_window,
              std::int64_t windows, std::int64_t end)
      : sequence_(std::move(sequence)), length_(length), first_window_(first_window), windows_(windows), end_(end) {
    assert(windows_ >= 1 && (first_window_ + windows_) * length_ < end_ && end_ <= sequence_->tokens());
  }

  std::int64_t size() const override { return windows_; }
  Field input() const override { return {DType::i32, {length_}, sequence_->origin}; }
  Field target() const override { return {DType::i32, {length_}, sequence_->origin}; }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    read_at(0, index, input, target);
  }

  std::int64_t offsets() const override { return length_; }
  void read_at(std::int64_t offset, std::int64_t index, std::byte* input, std::byte* target) const override {
    const std::int64_t first = std::min((first_window_ + index) * length_ + offset, end_ - 1 - length_);
    if (input != nullptr) sequence_->read(first, length_, input);
    sequence_->read(first + 1, length_, target);
  }

  // The windows of a part that is not the last have no token of the windows after it but one, their last target.
  std::shared_ptr<const Dataset> part(std::int64_t first, std::int64_t count) const override {
    const bool last = first + count == windows_;
    const std::int64_t begin = first_window_ + first, end = last ? end_ : (begin + count) * length_ + 1;
    return std::make_shared<TextDataset>(sequence_, length_, begin, count, end);
  }

  std::int64_t index_in_source(std::int64_t index) const override { return first_window_ + index; }
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override { return sequence_->range; }

  void check_intact() const override {
    checked([&] { sequence_->bytes.check_intact(); });
  }
  void check_unchanged() const override {
    checked([&] { sequence_->bytes.check_unchanged(); });
  }

 private:
  template <class F>
  void checked(const F& check) const {
    try {
      check();
    } catch (const Error& error) {
      throw_at(sequence_->place, error);
    }
  }

  std::shared_ptr<const Sequence> sequence_;
  std::int64_t length_, first_window_, windows_;
  std::int64_t end_;  // of the tokens that this part may read
};

Bytes read_all(const spec::TextFiles::Files& files, std::size_t width) {
  std::vector<Bytes> parts;
  std::uint64_t total = 0;
  for (const std::string& path : files) {
    parts.push_back(map_file(path));
    total += parts.back().size();
    if (parts.back().size() % width == 0) continue;
    fail_data(
        fmt::format("'{}' has {} bytes, which are not whole tokens of {} bytes", path, parts.back().size(), width),
        "tokens: uint16 takes a flat array of 16-bit integers; tokens: bytes takes any file");
  }
  if (parts.size() == 1) return parts.front();
  Memory memory = allocate(total, fmt::format("'{}' and {} more", files.front(), files.size() - 1));
  std::byte* to = memory.view.data();
  for (const Bytes& part : parts) {
    std::memcpy(to, part.data(), part.size());
    part.check_intact();
    to += part.size();
  }
  return Bytes(std::move(memory.owner), memory.view);
}

std::pair<std::int64_t, std::int64_t> range_of(const Sequence& sequence) {
  constexpr std::int64_t chunk = 4096;
  std::vector<std::int32_t> values(chunk);
  std::pair<std::int32_t, std::int32_t> range{0xffff, 0};
  for (std::int64_t first = 0; first < sequence.tokens(); first += chunk) {
    const std::int64_t count = std::min(chunk, sequence.tokens() - first);
    sequence.read(first, count, reinterpret_cast<std::byte*>(values.data()));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t value = values[static_cast<std::size_t>(i)];
      range = {std::min(range.first, value), std::max(range.second, value)};
    }
  }
  return range;
}

}  // namespace

std::shared_ptr<const Dataset> make_text(const spec::TextFiles::Files& files, spec::Tokens tokens, std::int64_t length,
                                         const Place& place) {
  auto sequence = std::make_shared<Sequence>();
  sequence->width = tokens == spec::Tokens::bytes ? 1 : 2;
  sequence->bytes = read_all(files, sequence->width);
  sequence->origin = fmt::format("'{}'", files.front());
  if (files.size() > 1) sequence->origin += fmt::format(" and {} more", files.size() - 1);
  sequence->place = place;
  const std::int64_t windows = (sequence->tokens() - 1) / length;
  if (windows < 1) {
    fail_data(fmt::format("{} has {} {}, but an example of length {} takes {}: its own and the one that follows",
                          sequence->origin, sequence->tokens(), sequence->tokens() == 1 ? "token" : "tokens", length,
                          length + 1),
              "use a smaller length, or more text");
  }
  sequence->range = range_of(*sequence);
  sequence->bytes.check_intact();
  const std::int64_t end = sequence->tokens();
  return std::make_shared<TextDataset>(std::move(sequence), length, 0, windows, end);
}

}  // namespace pmaptrain::data
