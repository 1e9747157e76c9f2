#include "core/data/statistics.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/base/text.h"
#include "core/data/parallel.h"
#include "core/data/subset.h"

namespace pmaptrain::data {
namespace {

// A checkpoint holds the statistics as text.
constexpr std::size_t most_channels = std::size_t{1} << 20;
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;  // of inputs, which stay in a cache
constexpr std::int64_t most_chunks = 4096;                 // each holds its sums

__extension__ using Wide = unsigned __int128;

// The mean of `count` numbers in each channel, and the sum of the squared deviations from it.
struct Moments {
  double count = 0;
  std::vector<double> mean, squares;
};

// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
void combine(Moments& into, const Moments& other) {
  const double count = into.count + other.count;
  for (std::size_t c = 0; c < into.mean.size(); ++c) {
    const double distance = other.mean[c] - into.mean[c];
    into.mean[c] += distance * (other.count / count);
    into.squares[c] += other.squares[c] + distance * distance * (into.count * (other.count / count));
  }
  into.count = count;
}

template <class T>
Moments moments_of(const std::vector<T>& values, std::size_t channels) {
  Moments found{static_cast<double>(values.size() / channels), std::vector<double>(channels),
                std::vector<double>(channels)};
  if (values.empty()) return found;
  const auto for_each = [&](auto&& take) {
    for (std::size_t at = 0; at < values.size(); at += channels) {
      for (std::size_t c = 0; c < channels; ++c) take(c, static_cast<double>(values[at + c]));
    }
  };
  // Sums of f64 are rounded, but not those of distances of 0.
  std::vector<double> from(channels);
  if constexpr (std::is_same_v<T, double>) std::copy_n(values.begin(), channels, from.begin());
  for_each([&](std::size_t c, double value) { found.mean[c] += value - from[c]; });
  for (std::size_t c = 0; c < channels; ++c) found.mean[c] = from[c] + found.mean[c] / found.count;
  for_each([&](std::size_t c, double value) {
    const double deviation = value - found.mean[c];
    found.squares[c] += deviation * deviation;
  });
  return found;
}

// The moments of bytes, whose sums are exact.
Moments moments_of_bytes(const std::vector<std::uint8_t>& values, std::size_t channels) {
  std::vector<std::uint64_t> sums(channels), squares(channels);
  if (channels == 1) {
    // Blocks whose sums fit 32 bits, in which the loop runs on vectors.
    constexpr std::size_t block = 4096;
    for (std::size_t at = 0; at < values.size(); at += block) {
      std::uint32_t sum = 0, square = 0;
      for (std::size_t i = at; i < std::min(at + block, values.size()); ++i) {
        sum += values[i];
        square += std::uint32_t{values[i]} * values[i];
      }
      sums[0] += sum;
      squares[0] += square;
    }
  } else {
    for (std::size_t at = 0; at < values.size(); at += channels) {
      for (std::size_t c = 0; c < channels; ++c) {
        sums[c] += values[at + c];
        squares[c] += std::uint64_t{values[at + c]} * values[at + c];
      }
    }
  }
  Moments found{static_cast<double>(values.size() / channels), {}, {}};
  for (std::size_t c = 0; c < channels; ++c) {
    // n Σx² - (Σx)², exactly.
    const Wide n = values.size() / channels;
    const auto spread = static_cast<double>(n * squares[c] - Wide{sums[c]} * sums[c]);
    found.mean.push_back(static_cast<double>(sums[c]) / (255.0 * found.count));
    found.squares.push_back(spread / (found.count * 255.0 * 255.0));
  }
  return found;
}

// The divisor for values with this variance.
double deviation_of(double variance) {
  const double std = std::sqrt(variance);
  return static_cast<float>(std) > 0 ? std : 1;
}

// Moves the numbers of an example at `from` to `to`, of a sequence those at its own positions. Returns where they end.
template <class T>
std::size_t keep_own(const Dataset& dataset, std::int64_t example, std::vector<T>& values, std::size_t from,
                     std::size_t to) {
  const Shape shape = dataset.input().shape;
  std::size_t count = static_cast<std::size_t>(numel(shape));
  if (dataset.has_lengths() && shape.size() > 1) {
    count = count / static_cast<std::size_t>(shape.front()) * static_cast<std::size_t>(dataset.length(example));
  }
  if (from != to) std::copy_n(values.data() + from, count, values.data() + to);
  return to + count;
}

template <class T>
std::vector<T> read_inputs(const Dataset& dataset, std::int64_t first, std::int64_t last) {
  const auto size = static_cast<std::size_t>(numel(dataset.input().shape));
  std::vector<T> values(size * static_cast<std::size_t>(last - first));
  std::vector<std::byte> target(dataset.target().bytes());
  std::size_t end = 0;
  for (std::int64_t i = first; i < last; ++i) {
    const std::size_t at = size * static_cast<std::size_t>(i - first);
    dataset.read(i, reinterpret_cast<std::byte*>(values.data() + at), target.data());
    end = keep_own(dataset, i, values, at, end);
  }
  values.resize(end);
  dataset.check_intact();
  return values;
}

std::vector<double> read_exact_inputs(const Dataset& dataset, std::int64_t first, std::int64_t last) {
  const auto size = static_cast<std::size_t>(numel(dataset.input().shape));
  std::vector<double> values(size * static_cast<std::size_t>(last - first));
  std::size_t end = 0;
  for (std::int64_t i = first; i < last; ++i) {
    const std::size_t at = size * static_cast<std::size_t>(i - first);
    dataset.read_exact_input(i, values.data() + at);
    end = keep_own(dataset, i, values, at, end);
  }
  values.resize(end);
  dataset.check_intact();
  return values;
}

// The examples of a dataset in chunks of a fixed size.
struct Chunks {
  explicit Chunks(const Dataset& dataset) : examples(dataset.size()) {
    const auto by_size = static_cast<std::int64_t>(
        std::max<std::size_t>(1, chunk_bytes / std::max<std::size_t>(1, dataset.input().bytes())));
    each = std::max(by_size, (examples + most_chunks - 1) / most_chunks);
    count = (examples + each - 1) / each;
  }
  std::int64_t first(std::int64_t chunk) const { return chunk * each; }
  std::int64_t last(std::int64_t chunk) const { return std::min(examples, first(chunk) + each); }

  std::int64_t examples, each = 1, count = 0;
};

double rounding_of(double value) { return std::abs(value - static_cast<double>(static_cast<float>(value))); }

// How much f32 rounds the numbers of each channel, and what range they have.
struct Rounding {
  double largest = 0, low = std::numeric_limits<double>::infinity(), high = -low;
  bool of_integer = false;
  void add(const Rounding& other) {
    largest = std::max(largest, other.largest);
    low = std::min(low, other.low);
    high = std::max(high, other.high);
    of_integer = of_integer || other.of_integer;
  }
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
    const double rounding = rounding_of(value);
    if (!(rounding > 0)) return;
    largest = std::max(largest, rounding);
    of_integer = of_integer || value == std::trunc(value);
  }
  bool matters(double unit) const { return of_integer || largest > least_rounding * unit; }
  static constexpr double least_rounding = 1e-5;
};

using Roundings = std::vector<Rounding>;  // by channel

void add(Roundings& into, const std::vector<double>& values) {
  for (std::size_t at = 0; at < values.size(); at += into.size()) {
    for (std::size_t c = 0; c < into.size(); ++c) into[c].take(values[at + c]);
  }
}

bool is_channel_rounded(const Rounding& channel) { return channel.matters(channel.high - channel.low); }

Roundings sum_of(std::vector<Roundings> chunks) {
  for (std::size_t i = 1; i < chunks.size(); ++i) {
    for (std::size_t c = 0; c < chunks[i].size(); ++c) chunks.front()[c].add(chunks[i][c]);
  }
  return std::move(chunks.front());
}

std::size_t channels_of(const Field& input) {
  return input.shape.empty() ? 1 : static_cast<std::size_t>(input.shape.back());
}

Collapsed collapsed_of(std::size_t channel, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto count = [&values] {
    return static_cast<std::size_t>(std::distance(values.begin(), std::unique(values.begin(), values.end())));
  };
  Collapsed one{channel, count(), 0};
  values.resize(one.numbers);
  for (double& value : values) value = static_cast<double>(static_cast<float>(value));
  one.in_float = count();
  return one;
}

// `read` appends the exact numbers of examples [first, last), each example `channels` numbers or a multiple. They are
// read once, by chunks. A chunk in which f32 rounds a channel too much keeps its numbers, as far as they fit into
// memory; a channel that is rounded too much among all examples is so in at least one chunk, and the others are then
// read again.
template <class Read>
std::vector<Collapsed> collapsed(const Dataset& dataset, std::size_t channels, Read&& read) {
  constexpr std::size_t most = 100;                     // that are told
  constexpr std::int64_t room = std::int64_t{1} << 25;  // numbers that are kept, and that are sorted at once
  const Chunks chunks(dataset);
  std::vector<Roundings> rounding(static_cast<std::size_t>(chunks.count), Roundings(channels));
  std::vector<std::vector<double>> kept(rounding.size());
  std::atomic<std::int64_t> total = 0, in_memory = 0;  // numbers
  for_each_item(chunks.count, [&](std::int64_t chunk) {
    const auto i = static_cast<std::size_t>(chunk);
    std::vector<double> values = read(chunks.first(chunk), chunks.last(chunk));
    add(rounding[i], values);
    total += std::ssize(values);
    if (std::none_of(rounding[i].begin(), rounding[i].end(), is_channel_rounded)) return;
    if ((in_memory += std::ssize(values)) <= room) kept[i] = std::move(values);
  });
  const Roundings all = sum_of(std::move(rounding));
  std::vector<std::size_t> rounded;
  for (std::size_t c = 0; c < channels; ++c) {
    if (is_channel_rounded(all[c])) rounded.push_back(c);
  }
  const std::int64_t of_channel = std::max<std::int64_t>(1, total / static_cast<std::int64_t>(channels));
  const auto at_once = static_cast<std::size_t>(std::max<std::int64_t>(1, room / of_channel));
  std::vector<Collapsed> found;
  for (std::size_t first = 0; first < rounded.size() && found.size() < most; first += at_once) {
    const std::span<const std::size_t> some =
        std::span(rounded).subspan(first, std::min(at_once, rounded.size() - first));
    std::vector<std::vector<double>> of_channels(some.size());
    for (std::int64_t chunk = 0; chunk < chunks.count; ++chunk) {
      const std::vector<double>& known = kept[static_cast<std::size_t>(chunk)];
      const std::vector<double> again =
          known.empty() ? read(chunks.first(chunk), chunks.last(chunk)) : std::vector<double>();
      const std::vector<double>& values = known.empty() ? again : known;
      for (std::size_t k = 0; k < some.size(); ++k) {
        for (std::size_t at = some[k]; at < values.size(); at += channels) of_channels[k].push_back(values[at]);
      }
    }
    for (std::size_t k = 0; k < some.size() && found.size() < most; ++k) {
      const Collapsed one = collapsed_of(some[k], std::move(of_channels[k]));
      const std::size_t lost = one.numbers - one.in_float;
      if (lost > (all[one.channel].of_integer ? 0 : one.numbers / 100)) found.push_back(one);
    }
  }
  return found;
}

std::vector<double> read_exact_targets(const Dataset& dataset, std::int64_t first, std::int64_t last) {
  const auto size = static_cast<std::size_t>(numel(dataset.target().shape));
  std::vector<double> values(size * static_cast<std::size_t>(last - first));
  for (std::int64_t i = first; i < last; ++i) {
    dataset.read_exact_target(i, values.data() + size * static_cast<std::size_t>(i - first));
  }
  dataset.check_intact();
  return values;
}

// `read` as in collapsed().
template <class Read>
Roundings rounding_of(const Dataset& dataset, std::size_t channels, Read&& read) {
  const Chunks chunks(dataset);
  std::vector<Roundings> found(static_cast<std::size_t>(chunks.count), Roundings(channels));
  for_each_item(chunks.count, [&](std::int64_t chunk) {
    add(found[static_cast<std::size_t>(chunk)], read(chunks.first(chunk), chunks.last(chunk)));
  });
  return sum_of(std::move(found));
}

bool matters(const Roundings& rounding, const std::vector<double>& deviations) {
  for (std::size_t c = 0; c < rounding.size(); ++c) {
    if (rounding[c].matters(deviations[std::min(c, deviations.size() - 1)])) return true;
  }
  return false;
}

}  // namespace

Measurement measure(const Dataset& dataset, const std::vector<Encoding::Column>& columns, bool exact) {
  const Field input = dataset.input();
  const std::size_t channels = channels_of(input);
  if (channels > most_channels) {
    fail_data("normalize: auto takes inputs of at most " + with_commas(most_channels) + " channels, not " +
                  with_commas(static_cast<std::int64_t>(channels)),
              "normalise the data before it is saved");
  }
  const Chunks chunks(dataset);
  const bool is_rounded = exact && dataset.rounds_inputs();
  const std::size_t of_channel = 2 * sizeof(double) + (is_rounded ? sizeof(Rounding) : 0);
  demand_memory(static_cast<std::size_t>(chunks.count) * channels * of_channel, "normalize: auto");
  std::vector<Moments> found(static_cast<std::size_t>(chunks.count));
  std::vector<Roundings> rounding(is_rounded ? found.size() : 0, Roundings(channels));
  for_each_item(chunks.count, [&](std::int64_t chunk) {
    const std::int64_t first = chunks.first(chunk), last = chunks.last(chunk);
    Moments& into = found[static_cast<std::size_t>(chunk)];
    if (input.dtype == DType::u8) {
      into = moments_of_bytes(read_inputs<std::uint8_t>(dataset, first, last), channels);
    } else if (input.dtype == DType::i32) {  // tokens
      into = moments_of(read_inputs<std::int32_t>(dataset, first, last), channels);
    } else if (is_rounded) {
      const std::vector<double> values = read_exact_inputs(dataset, first, last);
      into = moments_of(values, channels);
      add(rounding[static_cast<std::size_t>(chunk)], values);
    } else {
      into = moments_of(read_inputs<float>(dataset, first, last), channels);
    }
  });
  std::erase_if(found, [](const Moments& chunk) { return chunk.count == 0; });
  if (found.empty()) fail_data("normalize: auto has nothing to measure: all sequences have the length 0");
  Moments& all = found.front();
  for (std::size_t i = 1; i < found.size(); ++i) combine(all, found[i]);
  Encoding::Statistics statistics{std::move(all.mean), std::move(all.squares)};
  for (double& std : statistics.std) {
    std = deviation_of(std / all.count);
  }
  std::size_t at = 0;
  for (const Encoding::Column& column : columns) {
    const std::size_t width = column.width();
    for (std::size_t c = at; c < at + width && !column.categories.empty(); ++c) {
      statistics.mean[c] = 0;
      statistics.std[c] = 1;
    }
    at += width;
  }
  const bool needs_exact = is_rounded && matters(sum_of(std::move(rounding)), statistics.std);
  return {std::move(statistics), needs_exact};
}

std::map<std::int32_t, std::int64_t> count_labels(const Dataset& dataset) {
  std::map<std::int32_t, std::int64_t> counts;
  std::vector<std::int32_t> labels(static_cast<std::size_t>(numel(dataset.target().shape)));
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    dataset.read(i, nullptr, reinterpret_cast<std::byte*>(labels.data()));
    // Of label maps, neighbours are mostly equal.
    for (auto first = labels.begin(); first != labels.end();) {
      const auto last = std::find_if(first, labels.end(), [&](std::int32_t label) { return label != *first; });
      counts[*first] += last - first;
      first = last;
    }
  }
  if (dataset.has_lengths()) counts.erase(static_cast<std::int32_t>(label_of_padding));
  dataset.check_intact();
  return counts;
}

std::vector<double> balanced_weights(const std::map<std::int32_t, std::int64_t>& counts) {
  std::vector<double> weights;
  if (counts.empty() || counts.begin()->first < 0) return weights;  // which is refused by the model
  std::int64_t examples = 0;
  for (const auto& entry : counts) examples += entry.second;
  const std::int32_t last = counts.rbegin()->first;
  if (static_cast<std::size_t>(last) >= most_channels) {
    fail_data("class_weights: balanced takes at most " + with_commas(most_channels) +
                  " classes; the largest label is " + with_commas(last),
              "number the classes from 0");
  }
  weights.assign(static_cast<std::size_t>(last) + 1, 1.0);
  for (const auto& [label, count] : counts) {
    weights[static_cast<std::size_t>(label)] =
        static_cast<double>(examples) / (static_cast<double>(counts.size()) * static_cast<double>(count));
  }
  return weights;
}

Encoding::Statistics measure_targets(const Dataset& dataset, const std::vector<TargetScale>& scales, bool exact) {
  const std::size_t width = scales.size(), all = static_cast<std::size_t>(numel(dataset.target().shape));
  const bool by_position = has_numbers_of_positions(dataset);
  std::vector<float> rounded(all);
  std::vector<double> target(all);
  const auto positions = [&](std::int64_t i) {
    return by_position ? static_cast<std::size_t>(dataset.length(i)) : std::size_t{1};
  };
  const auto read = [&](std::int64_t i) {
    if (exact && dataset.rounds_targets()) {
      dataset.read_exact_target(i, target.data());
    } else {
      dataset.read(i, nullptr, reinterpret_cast<std::byte*>(rounded.data()));
      std::copy(rounded.begin(), rounded.end(), target.begin());
    }
    for (std::size_t c = 0; c < all; ++c) {
      if (scales[c % width] == TargetScale::log) target[c] = std::log1p(target[c]);
    }
  };
  const auto for_each = [&](auto&& take) {
    for (std::int64_t i = 0; i < dataset.size(); ++i) {
      read(i);
      for (std::size_t c = 0; c < positions(i) * width; ++c) take(c % width, target[c], dataset.weight(i));
    }
  };
  // Sums of the distances from one of the targets that count: where all are equal, they are exactly 0, whatever the
  // weights.
  std::int64_t counting = 0;
  const auto counts = [&](std::int64_t i) { return dataset.weight(i) > 0 && positions(i) > 0; };
  while (counting + 1 < dataset.size() && !counts(counting)) ++counting;
  read(counting);
  const std::vector<double> first = target;
  Encoding::Statistics statistics{std::vector<double>(width), std::vector<double>(width)};
  double total = 0;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    total += static_cast<double>(dataset.weight(i)) * static_cast<double>(positions(i));
  }
  for_each([&](std::size_t c, double value, double weight) { statistics.mean[c] += weight * (value - first[c]); });
  for (std::size_t c = 0; c < width; ++c) statistics.mean[c] = first[c] + statistics.mean[c] / total;
  for_each([&](std::size_t c, double value, double weight) {
    const double distance = value - statistics.mean[c];
    statistics.std[c] += weight * distance * distance;
  });
  for (double& std : statistics.std) std = deviation_of(std / total);
  dataset.check_intact();
  for (std::size_t c = 0; c < width; ++c) {
    if (scales[c] != TargetScale::none) continue;
    statistics.mean[c] = 0;
    statistics.std[c] = 1;
  }
  return statistics;
}

bool needs_exact_inputs(const Dataset& dataset, const std::vector<double>& deviations) {
  if (!dataset.rounds_inputs()) return false;
  const Roundings found =
      rounding_of(dataset, channels_of(dataset.input()),
                  [&](std::int64_t first, std::int64_t last) { return read_exact_inputs(dataset, first, last); });
  return matters(found, deviations);
}

bool needs_exact_targets(const Dataset& dataset, const std::vector<TargetScale>& scales,
                         const Encoding::Statistics& statistics) {
  if (!dataset.rounds_targets()) return false;
  const Roundings found = rounding_of(dataset, scales.size(), [&](std::int64_t first, std::int64_t last) {
    return read_exact_targets(dataset, first, last);
  });
  for (std::size_t c = 0; c < found.size(); ++c) {
    if (scales[c] == TargetScale::automatic && found[c].matters(statistics.std[c])) return true;
  }
  return false;
}

std::vector<Collapsed> collapsed_inputs(const Dataset& dataset) {
  if (!dataset.rounds_inputs()) return {};
  return collapsed(dataset, channels_of(dataset.input()),
                   [&](std::int64_t first, std::int64_t last) { return read_exact_inputs(dataset, first, last); });
}

std::vector<Collapsed> collapsed_targets(const Dataset& dataset) {
  if (!dataset.rounds_targets()) return {};
  const auto width = static_cast<std::size_t>(numel(dataset.target().shape));
  return collapsed(dataset, width,
                   [&](std::int64_t first, std::int64_t last) { return read_exact_targets(dataset, first, last); });
}

std::vector<double> balanced_positives(const Dataset& dataset) {
  const Field target = dataset.target();
  const bool integers = target.dtype == DType::i32;
  std::vector<std::int32_t> row(static_cast<std::size_t>(numel(target.shape)));
  std::vector<double> positives(row.size());
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    dataset.read(i, nullptr, reinterpret_cast<std::byte*>(row.data()));
    for (std::size_t l = 0; l < row.size(); ++l)
      positives[l] += integers ? static_cast<double>(row[l]) : static_cast<double>(std::bit_cast<float>(row[l]));
  }
  const auto all = static_cast<double>(dataset.size());
  for (double& count : positives) count = count > 0 && count < all ? (all - count) / count : 1.0;
  return positives;
}

}  // namespace pmaptrain::data
