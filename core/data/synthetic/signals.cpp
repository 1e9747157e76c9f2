#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <string>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/data/opening.h"
#include "core/data/synthetic/synthetic.h"

namespace pmaptrain::data {
namespace {

class SignalDataset : public Dataset {
 public:
  SignalDataset(const SyntheticSignals& o, std::uint64_t seed, Split split)
      : positions_(o.positions),
        shortest_(o.shortest.value_or(o.positions)),
        classes_(o.classes),
        size_(split == Split::train ? o.train : o.test),
        noise_(o.noise),
        key_(stream_key(seed, "data/signals")),
        lane_(2 * static_cast<std::uint32_t>(split)) {}

  std::int64_t size() const override { return size_; }
  Field input() const override { return {DType::f32, {positions_, 1}}; }
  Field target() const override { return {DType::i32, {}}; }
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override {
    return std::pair<std::int64_t, std::int64_t>{0, classes_ - 1};
  }
  bool has_lengths() const override { return shortest_ < positions_; }
  std::int32_t length(std::int64_t index) const override { return static_cast<std::int32_t>(drawn(index).length); }

  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    const Drawn of = drawn(index);
    const auto label = static_cast<std::int32_t>(of.label);
    std::memcpy(target, &label, sizeof label);
    if (input == nullptr) return;
    const double frequency = static_cast<double>(of.label + 1) / static_cast<double>(2 * (classes_ + 1));
    std::array<std::uint32_t, 4> words = {};
    for (std::int64_t t = 0; t < positions_; ++t) {
      float value = 0;
      if (t < of.length) {
        if (t % 2 == 0) {
          const auto pair = static_cast<std::uint32_t>(t / 2);
          const auto row = static_cast<std::uint64_t>(index);
          words = philox4x32(key_,
                             {pair, lane_ + 1, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(row >> 32)});
        }
        const double normal = normal_pair(words[0], words[1])[static_cast<std::size_t>(t % 2)];
        const double angle = 2 * std::numbers::pi * (frequency * static_cast<double>(t) + of.phase);
        value = static_cast<float>(std::sin(angle) + noise_ * normal);
      }
      std::memcpy(input + static_cast<std::size_t>(t) * sizeof value, &value, sizeof value);
    }
  }

 private:
  struct Drawn {
    std::int64_t label = 0, length = 0;
    double phase = 0;  // in turns
  };
  Drawn drawn(std::int64_t index) const {
    std::array<std::uint32_t, 3> words;
    philox_row(key_, static_cast<std::uint64_t>(index), lane_, words);
    const auto below = [](std::uint32_t word, std::int64_t count) {
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(count) >> 32);
    };
    return {below(words[0], classes_), shortest_ + below(words[1], positions_ - shortest_ + 1),
            static_cast<double>(words[2]) * 0x1p-32};
  }

  std::int64_t positions_, shortest_, classes_, size_;
  double noise_;
  PhiloxKey key_;
  std::uint32_t lane_;
};

}  // namespace

std::shared_ptr<const Dataset> make_signals(const SyntheticSignals& options, std::uint64_t seed, Split split) {
  if (options.shortest.value_or(1) > options.positions) {
    fail_data(fmt::format("synthetic_signals: shortest is {}, and signals have {} positions", *options.shortest,
                          options.positions),
              "shortest is at most positions");
  }
  return std::make_shared<SignalDataset>(options, seed, split);
}

Declaration<SyntheticSignals> SyntheticSignals::declaration() {
  constexpr double most = 1 << 20, most_examples = 1LL << 40;
  return declare::kind<SyntheticSignals>(
      {.path = "synthetic_signals",
       .meaning = "Synthetic signals [positions, 1]: a tone whose frequency is the class, of amplitude 1 and of random "
                  "phase, plus normal noise. Each signal is generated from the seed when it is read.",
       .example = "source: synthetic_signals\nsource: {synthetic_signals: {positions: 96, shortest: 16}}"},
      field(&SyntheticSignals::positions, {.path = "positions",
                                           .low = 2,
                                           .high = most,
                                           .meaning = "Positions of a signal.",
                                           .example = "positions: 64"}),
      field(&SyntheticSignals::shortest, {.path = "shortest",
                                          .low = 1,
                                          .high = most,
                                          .meaning = "Signals then have lengths from this to positions, all alike "
                                                     "likely. By default all have as many positions.",
                                          .example = "shortest: 16"}),
      field(&SyntheticSignals::classes, {.path = "classes",
                                         .low = 2,
                                         .high = 65536,
                                         .meaning = "Number of classes: frequencies from 0 to half a turn a position, "
                                                    "equally far apart, without these two.",
                                         .example = "classes: 4"}),
      field(&SyntheticSignals::train, {.path = "train",
                                       .low = 1,
                                       .high = most_examples,
                                       .meaning = "Number of training examples.",
                                       .example = "train: 4000"}),
      field(&SyntheticSignals::test, {.path = "test",
                                      .low = 0,
                                      .high = most_examples,
                                      .meaning = "Number of test examples; 0 for no test split.",
                                      .example = "test: 1000"}),
      field(&SyntheticSignals::noise, {.path = "noise",
                                       .high = 1000,
                                       .meaning = "Standard deviation of the noise at each position.",
                                       .example = "noise: 2.0"}));
}

Source SyntheticSignals::open(const Opening& opening) const {
  Source source;
  if (opening.wants(Split::train)) source.train = make_signals(*this, opening.seed, Split::train);
  if (test > 0 && opening.wants(Split::test)) source.test = make_signals(*this, opening.seed, Split::test);
  return source;
}

}  // namespace pmaptrain::data
