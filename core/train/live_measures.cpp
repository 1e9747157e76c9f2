#include "core/train/live_measures.h"

#include <algorithm>
#include <iterator>

#include "core/run/records/spread.h"
#include "core/setup/plan.h"
#include "core/setup/values.h"

namespace pmaptrain::train {
namespace {

constexpr double interval = 0.1;  // seconds

}  // namespace

LiveMeasures::LiveMeasures(const model::Model& model, const step::StepRoles& roles, Module& module,
                           std::span<run::Consumer* const> consumers)
    : is_wanted_(std::any_of(consumers.begin(), consumers.end(),
                             [](const run::Consumer* consumer) { return consumer->wants_live_measures(); })),
      model_(model),
      module_(module),
      roles_(roles.means) {
  for (const std::size_t mean : roles_) member_bytes_ += module.slice_bytes(module.output(setup::train_entry, mean));
  means_.reserve(roles_.size());
  const auto members = static_cast<std::size_t>(module.source().members);
  bytes_.resize(members * member_bytes_);
  members_.reserve(members);
}

LiveMeasures::~LiveMeasures() {
  if (!pending_) return;
  try {
    module_.wait(*pending_);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the caller that waits for the step gets the error
  }
}

run::Measures LiveMeasures::submitted(std::size_t entry, std::span<const std::int64_t> members) {
  run::Measures arrived;
  if (!is_wanted_) return arrived;
  if (pending_ && module_.done(*pending_)) {
    arrived = medians();
    pending_.reset();
  }
  const Clock::time_point now = coarse_now();
  if (!pending_ && seconds_between(asked_, now) >= interval) {
    asked_ = now;
    read(entry, members);
  }
  return arrived;
}

void LiveMeasures::read(std::size_t entry, std::span<const std::int64_t> members) {
  means_.clear();
  for (const std::size_t mean : roles_) means_.push_back(module_.output(entry, mean));
  members_.clear();
  std::ranges::copy_if(members, std::back_inserter(members_),
                       [&](std::int64_t member) { return module_.member_share().has(member); });
  std::span<std::byte> rest(bytes_);
  for (const std::int64_t member : members_) {
    for (const Handle mean : means_) {
      const std::size_t size = module_.slice_bytes(mean);
      pending_ = module_.read_here(mean, {module_.own_device(), member}, rest.first(size));
      rest = rest.subspan(size);
    }
  }
}

run::Measures LiveMeasures::medians() const {
  module_.wait(*pending_);  // the read is complete; throws if it failed
  std::vector<run::MeasureOfMembers> of_members;
  std::span<const std::byte> rest(bytes_);
  for (std::size_t m = 0; m < members_.size(); ++m) {
    std::vector<std::vector<double>> means;
    for (const Handle mean : means_) {
      const std::size_t size = module_.slice_bytes(mean);
      means.push_back(setup::to_doubles(rest.first(size), module_.type(mean).dtype));
      rest = rest.subspan(size);
    }
    run::collect(of_members, members_[m], model::finish_measures(model_, means));
  }
  return run::medians_of(of_members);
}

}  // namespace pmaptrain::train
