// Whole runs in tests: a config, shortened, trained in a temporary folder; and what it left there.
#pragma once

#include <filesystem>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/evaluate/evaluator.h"
#include "core/run/files/safetensors.h"
#include "core/train/session.h"
#include "tests/files.h"

namespace pmaptrain::testing {

using test::read_text;
using test::TemporaryFolder;

// Keeps every event; those by member one by one.
class Recording : public run::Consumer {
 public:
  void on(const run::Event& event) override { events.push_back(event); }
  template <class E>
  std::vector<E> of() const {
    std::vector<E> found;
    constexpr bool by_member = requires(E e) { e.member; };
    using Kept = std::conditional_t<by_member, std::vector<E>, E>;
    for (const run::Event& event : events) {
      const Kept* kept = std::get_if<Kept>(&event);
      if (kept == nullptr) continue;
      if constexpr (by_member) {
        found.insert(found.end(), kept->begin(), kept->end());
      } else {
        found.push_back(*kept);
      }
    }
    return found;
  }
  std::vector<run::Event> events;
};

struct Trained {
  run::Ended ended;
  Recording recording;
  run::Tensors parameters, state;    // of the last checkpoint
  std::vector<std::string> metrics;  // lines of metrics.jsonl without the times

  template <class E>
  std::vector<E> of() const {
    return recording.of<E>();
  }
  // Of the only member.
  const run::MemberEnded& result() const { return ended.members.front(); }
  // Everything that must be the same bits.
  bool same_bits(const Trained& other) const {
    return parameters == other.parameters && state == other.state && metrics == other.metrics;
  }
};

// A config of configs/, or text, with --set options.
setup::Setup setup_of_config(const std::string& name, std::vector<std::string> set = {});
setup::Setup setup_of_text(const std::string& text, std::vector<std::string> set = {});

// The --set option of each backend in turn, as Catch2's GENERATE makes them.
std::string any_backend();

// The names of the configs that are shipped; not those whose data is not installed, and not the residual networks,
// which are too large to be trained again and again: their layers are tested one by one.
std::vector<std::string> shipped_configs();
// Three steps of one. What is large is made small: images, and for reference kernels the features.
setup::Setup shortened(const std::string& config, KernelChoice kernels);

// Images of 6x6 in 3 classes on 4 devices, a small convolutional network, adam: three steps of 16 to an epoch.
extern const std::string small_images;

// Options of a session that takes no step after `steps`.
inline train::SessionOptions until(std::int64_t steps) {
  train::SessionOptions options;
  options.max_steps = steps;
  return options;
}

// Options of a session that goes on from a checkpoint without a best one. The checkpoint outlives it.
inline train::SessionOptions going_on_from(train::ResumePoint& point) {
  train::SessionOptions options;
  options.resume = &point;
  options.folder.resume = true;
  options.folder.resumed = {point.checkpoint.state.step, "", point.checkpoint.state.metrics_bytes};
  return options;
}

// Trains in a folder that is removed afterwards, or in `dir`. Errors come through.
Trained train_setup(const setup::Setup& setup, train::SessionOptions options = {});
Trained train_setup_in(const std::filesystem::path& dir, const setup::Setup& setup, train::SessionOptions options = {});

std::vector<double> to_doubles(const run::Tensor& tensor);

// How far runs may be apart, relative to the largest value.
struct Tolerance {
  double measures = 1e-5, parameters = 1e-5;
};

// Whether measures, and all that two runs told and left, are equal up to this.
void check_near(const run::Measures& found, const run::Measures& expected, const Tolerance& tolerance = {});
void check_same_training(const Trained& found, const Trained& expected, const Tolerance& tolerance = {});

}  // namespace pmaptrain::testing
