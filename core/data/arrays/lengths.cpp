#include "core/data/arrays/lengths.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "core/data/file.h"

namespace pmaptrain::data {
namespace {

std::int64_t positions_of(const Array& inputs) {
  if (inputs.shape.size() > 1) return inputs.shape[1];
  fail_data(fmt::format("{} has the shape {}, and lengths are those of sequences (N, T, ...)", inputs.name,
                        to_string(inputs.shape)),
            "leave the lengths out, or store a sequence for each example");
}

}  // namespace

std::vector<std::int32_t> read_lengths(const Array& lengths, const Array& inputs) {
  const std::int64_t positions = positions_of(inputs), examples = inputs.shape[0];
  const bool is_list = lengths.shape == Shape{examples} || lengths.shape == Shape{examples, 1};
  if (!is_list || is_floating(lengths.element)) {
    fail_data(fmt::format("the lengths in {} are {}{}, expected an integer for each of the {} examples of {}",
                          lengths.name, name_of(lengths.element), to_string(lengths.shape), examples, inputs.name),
              "for example n = np.array([len(s) for s in sequences])");
  }
  std::vector<std::int32_t> found;
  for (std::int64_t i = 0; i < examples; ++i) {
    const std::optional<std::int64_t> length = read_integer(lengths, i);
    if (!length || *length < 0 || *length > positions) {
      fail_data(fmt::format("the length of example {} in {} is {}, but its sequence in {} has {} positions", i,
                            lengths.name, length ? std::to_string(*length) : "2^63 or more", inputs.name, positions),
                "a length is from 0 to the number of positions; longer sequences are cut off before they are saved");
    }
    found.push_back(static_cast<std::int32_t>(*length));
  }
  return found;
}

std::vector<std::int32_t> lengths_before_padding(const Array& tokens, std::int64_t padding) {
  if (tokens.shape.size() != 2 || is_floating(tokens.element)) {
    fail_data(fmt::format("{} is {}{}, and padding_token is for integers (N, T)", tokens.name, name_of(tokens.element),
                          to_string(tokens.shape)),
              "name an array of lengths for other sequences");
  }
  const std::int64_t positions = tokens.shape[1];
  std::vector<std::int32_t> found;
  for (std::int64_t i = 0; i < tokens.shape[0]; ++i) {
    std::int64_t length = positions;
    while (length > 0 && read_integer(tokens, i * positions + length - 1) == padding) --length;
    found.push_back(static_cast<std::int32_t>(length));
  }
  return found;
}

Array without_padding(const Array& array, const std::vector<std::int32_t>& lengths) {
  const Memory copy = allocate(array.bytes.size(), array.name);
  std::memcpy(copy.view.data(), array.bytes.data(), array.bytes.size());
  const std::size_t row = array.bytes.size() / lengths.size();
  const std::size_t position = row / static_cast<std::size_t>(array.shape[1]);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::size_t own = static_cast<std::size_t>(lengths[i]) * position;
    std::memset(copy.view.data() + i * row + own, 0, row - own);
  }
  Array made = array;
  made.bytes = Bytes(copy.owner, copy.view);
  return made;
}

}  // namespace pmaptrain::data
