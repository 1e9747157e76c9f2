#include "bench/limits/linear_regression.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>

#include "core/base/error.h"

namespace pmaptrain::limits {
namespace {

constexpr int features = linear_features;
constexpr int lanes = 16;
constexpr int blocks = 2;  // whatever the number of workers, so that the bits are the same
constexpr float learning_rate = 0.05f;
constexpr std::array<float, features> true_weights = {1.5f, -2.0f, 0.5f, 3.0f, -1.0f};
constexpr float true_bias = 0.25f;

typedef float Lanes __attribute__((vector_size(lanes * sizeof(float)), aligned(alignof(float)), may_alias));
typedef std::int32_t Places __attribute__((vector_size(lanes * sizeof(std::int32_t))));

struct Inputs {
  Lanes of[features];
};

struct Parameters {
  std::array<float, features> weights{};
  float bias = 0;
};

// The sums of one block, on a cache line of their own.
struct alignas(64) Sums {
  std::array<float, features> weights{};
  float bias = 0;
  float loss = 0;
};

struct Data {
  std::vector<float> rows, columns;  // of the block, in both layouts
  std::vector<float> targets;
};

float sum(const Lanes& values) {
  // Halves are added to halves: four additions deep instead of sixteen.
  typedef float Eight __attribute__((vector_size(32)));
  typedef float Four __attribute__((vector_size(16)));
  std::array<Eight, 2> eights;
  std::memcpy(eights.data(), &values, sizeof(values));
  const Eight eight = eights[0] + eights[1];
  std::array<Four, 2> fours;
  std::memcpy(fours.data(), &eight, sizeof(eight));
  const Four four = fours[0] + fours[1];
  return (four[0] + four[2]) + (four[1] + four[3]);
}

// A function that returned a vector would depend on the instruction set.
const Lanes& lanes_at(const float* from) { return *reinterpret_cast<const Lanes*>(from); }

// Where feature f of 16 rows lies: element 5 * lane + f of the 80 that five vectors hold. Merge m takes what lies in
// vector m + 1 and keeps the others; a place from 16 on is in the second operand of a permutation.
constexpr auto places = [] {
  std::array<std::array<std::array<std::int32_t, lanes>, features - 1>, features> table{};
  for (int f = 0; f < features; ++f) {
    for (int merge = 0; merge + 1 < features; ++merge) {
      for (int lane = 0; lane < lanes; ++lane) {
        const int element = features * lane + f;
        int place = merge == 0 ? element % lanes : lane;
        if (element / lanes == merge + 1) place = lanes + element % lanes;
        table[static_cast<std::size_t>(f)][static_cast<std::size_t>(merge)][static_cast<std::size_t>(lane)] = place;
      }
    }
  }
  return table;
}();

// Examples i to i + 15, one feature a vector.
template <Layout layout>
Inputs inputs(const Data& data, std::size_t i) {
  Inputs x;
  if constexpr (layout == Layout::columns) {
    for (std::size_t f = 0; f < features; ++f) x.of[f] = lanes_at(&data.columns[f * data.targets.size() + i]);
  } else {
    const float* rows = &data.rows[i * features];
    for (std::size_t f = 0; f < features; ++f) {
      x.of[f] = lanes_at(rows);
      for (std::size_t merge = 0; merge + 1 < features; ++merge) {
        Places from;
        std::memcpy(&from, places[f][merge].data(), sizeof(from));
        x.of[f] = __builtin_shuffle(x.of[f], Lanes(lanes_at(rows + (merge + 1) * lanes)), from);
      }
    }
  }
  return x;
}

template <Layout layout>
Sums gradient(const Data& data, const Parameters& parameters) {
  Lanes weights[features] = {};
  Lanes bias{}, loss{};
  for (std::size_t i = 0; i < data.targets.size(); i += lanes) {
    const Inputs x = inputs<layout>(data, i);
    Lanes error = parameters.bias - lanes_at(&data.targets[i]);
    for (std::size_t f = 0; f < features; ++f) error += x.of[f] * parameters.weights[f];
    for (std::size_t f = 0; f < features; ++f) weights[f] += x.of[f] * error;
    bias += error;
    loss += error * error;
  }
  Sums sums;
  for (std::size_t f = 0; f < features; ++f) sums.weights[f] = sum(weights[f]);
  sums.bias = sum(bias);
  sums.loss = sum(loss);
  return sums;
}

class Trainer {
 public:
  explicit Trainer(const LinearRegression& work) : work_(work) {
    const auto per_block = static_cast<std::size_t>(work.devices / blocks * work.examples);
    if (work.devices % blocks != 0 || per_block % lanes != 0) {
      fail_running("the hand-written loop takes blocks of whole vectors of " + std::to_string(lanes) + " examples");
    }
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (Data& block : data_) {
      block.rows.resize(per_block * features);
      block.columns.resize(per_block * features);
      block.targets.resize(per_block);
      for (std::size_t i = 0; i < per_block; ++i) {
        block.targets[i] = true_bias;
        for (std::size_t f = 0; f < features; ++f) {
          const float x = normal(random);
          block.rows[i * features + f] = block.columns[f * per_block + i] = x;
          block.targets[i] += x * true_weights[f];
        }
      }
    }
  }

  double steps(Team& team, int count) {
    return work_.layout == Layout::columns ? steps<Layout::columns>(team, count) : steps<Layout::rows>(team, count);
  }

  const Parameters& parameters() const { return parameters_; }

 private:
  template <Layout layout>
  double steps(Team& team, int count) {
    SpinBarrier barrier(team.size());
    return team.run([&](int worker) {
      const bool alone = team.size() == 1;
      for (int step = 0; step < count; ++step) {
        for (int block = worker; block < blocks; block += team.size()) {
          const auto b = static_cast<std::size_t>(block);
          sums_[b] = gradient<layout>(data_[b], parameters_);
        }
        if (!alone) barrier.arrive_and_wait();
        if (worker == 0) update();
        if (!alone) barrier.arrive_and_wait();
      }
    });
  }

  void update() {
    Sums total = sums_[0];
    for (std::size_t b = 1; b < blocks; ++b) {
      for (std::size_t f = 0; f < features; ++f) total.weights[f] += sums_[b].weights[f];
      total.bias += sums_[b].bias;
      total.loss += sums_[b].loss;
    }
    const float count = static_cast<float>(work_.devices * work_.examples);
    loss_ = total.loss / count;
    const float scale = learning_rate * 2.0f / count;
    for (std::size_t f = 0; f < features; ++f) parameters_.weights[f] -= scale * total.weights[f];
    parameters_.bias -= scale * total.bias;
  }

  LinearRegression work_;
  std::array<Data, blocks> data_;
  std::array<Sums, blocks> sums_;
  alignas(64) Parameters parameters_;
  float loss_ = 0;
};

// The parameters after as many steps as it takes to learn them.
Parameters learned(LinearRegression work, int workers) {
  work.workers = workers;
  Team team(workers);
  Trainer trainer(work);
  trainer.steps(team, 400);
  return trainer.parameters();
}

void expect_right(const LinearRegression& work) {
  const Parameters one = learned(work, 1);
  const Parameters two = learned(work, 2);
  float error = std::abs(one.bias - true_bias);
  for (std::size_t f = 0; f < features; ++f) error = std::max(error, std::abs(one.weights[f] - true_weights[f]));
  if (!(error < 1e-3f)) {
    fail_running("the hand-written loop is wrong: it ends " + std::to_string(error) + " from the true weights");
  }
  if (one.weights != two.weights || one.bias != two.bias) {
    fail_running("the hand-written loop is wrong: two workers end with other bits than one");
  }
}

}  // namespace

Seconds measure(const LinearRegression& work, double seconds) {
  expect_right(work);
  Team team(work.workers);
  Trainer trainer(work);
  constexpr int group = 2000;
  const Seconds groups = repeat(seconds, [&] { return trainer.steps(team, group); });
  return {groups.median / group, groups.min / group};
}

}  // namespace pmaptrain::limits
