// What one device of a division has, computes and sends in a step of training: from sizes alone, as GPUs plan it. No
// data is read and no parameter allocated.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/data/source.h"
#include "core/mesh/mesh.h"
#include "core/runtime/backend.h"
#include "core/spec/spec.h"

namespace pmaptrain::report {

// The axes of a division, outermost first: devices lie in this order.
enum class DivisionAxis : std::uint8_t { data, shards, model };
inline constexpr std::size_t division_axes = 3;
std::string to_string(DivisionAxis axis);

// How devices divide the batch (data, shards), what they have in common (shards) and layers (model).
struct Division {
  std::array<std::int64_t, division_axes> sizes{1, 1, 1};  // by DivisionAxis
  int stage = 0;                                           // of parallelism.fsdp; 0 without shards

  std::int64_t size(DivisionAxis axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  std::int64_t devices() const { return sizes[0] * sizes[1] * sizes[2]; }
  // Those that have rows of their own.
  std::int64_t batch_devices() const { return sizes[0] * sizes[1]; }
  // The axes with more than one device.
  std::vector<Axis> axes() const;
  friend bool operator==(const Division&, const Division&) = default;
};

// Of one device, in bytes and floating-point operations. As doubles, because those of few copies of a layer are
// extended to many.
struct DeviceFigures {
  double parameters = 0, state = 0;  // of the optimizer, and averages
  double gradients = 0;              // the sums that it has of them
  double gathered = 0;               // whole parameters, at most at a time, besides those above
  double activations = 0;            // and what else it needs on the way
  double others = 0;                 // batches, kernels, the workspace of libraries
  double flops = 0;
  double duplicated_flops = 0;  // of these: work that others along `model` do as well, beyond an equal share
  // By the axes of a collective: bit i is DivisionAxis i.
  std::array<double, std::size_t{1} << division_axes> sent{};

  double memory() const { return parameters + state + gradients + gathered + activations + others; }
  // Of each figure what `apply` makes of it and of that of `other`.
  template <class Apply>
  void combine(const DeviceFigures& other, const Apply& apply) {
    for (double DeviceFigures::*const figure :
         {&DeviceFigures::parameters, &DeviceFigures::state, &DeviceFigures::gradients, &DeviceFigures::gathered,
          &DeviceFigures::activations, &DeviceFigures::others, &DeviceFigures::flops,
          &DeviceFigures::duplicated_flops}) {
      this->*figure = apply(this->*figure, other.*figure);
    }
    for (std::size_t axes = 0; axes < sent.size(); ++axes) sent[axes] = apply(sent[axes], other.sent[axes]);
  }
};

class DivisionPlanner {
 public:
  // Both references must outlive this. The mesh of `spec` and its parallelism play no role, and its batch is that of
  // the whole mesh, a number.
  DivisionPlanner(const spec::Spec& spec, const data::Source& source);
  ~DivisionPlanner();

  // Throws Error (usage) if the batch or the layers do not divide so.
  void check(const Division& division) const;
  // From the programs of the whole model; several at a time, in threads.
  std::vector<DeviceFigures> planned(std::span<const Division> divisions);
  // From fewer and smaller programs: those of a model with 4 and 8 times of each `repeat`, where each further time adds
  // a quarter of their difference; and of divisions that differ in the sizes of `data` and `shards` alone one, of which
  // the others follow (resized()).
  std::vector<DeviceFigures> estimated(std::span<const Division> divisions);

  // How often the model repeats layers, at least 1.
  std::int64_t times() const;
  // How many programs have been made.
  int programs() const { return programs_; }

 private:
  struct StepFigures;
  using Times = std::vector<std::int64_t>;  // of the repeats, in order

  Times each(std::int64_t times) const;
  // The numbers of times from which a model with any number is extended.
  std::vector<Times> measured_times() const;
  DeviceFigures extended(std::span<const DeviceFigures> of_measured_times) const;
  spec::Spec divided(const Division& division, const Times& times) const;
  StepFigures step_of(const spec::Spec& spec, const Division& division) const;
  DeviceFigures measured(const Division& division, const Times& times);

  const spec::Spec& spec_;
  const data::Source& source_;
  std::vector<std::size_t> repeats_;  // by number among the layers: those that are shortened
  Times whole_;
  std::mutex kernels_;  // one at a time: libraries plan their workspaces
  std::atomic<int> programs_ = 0;
};

// The figures of `other` from those of a division of the same kind: with as many devices in all and along `model`, in
// the same stage, and both with a `data` axis or without.
DeviceFigures resized(DeviceFigures figures, const Division& of, const Division& other);

}  // namespace pmaptrain::report
