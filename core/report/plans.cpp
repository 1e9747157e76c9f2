#include "core/report/plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/input/open.h"

namespace pmaptrain::report {
namespace {

// A GPU of 2023 in an eighth of a host, at rates that training reaches. They only order divisions.
constexpr AssumedRates rates_of(bool in_bf16) { return {in_bf16 ? 4e14 : 4e13, 3e11, 2.5e10}; }

// The divisors of a number, ascending.
std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = 1; d <= number; ++d) {
    if (number % d == 0) found.push_back(d);
  }
  return found;
}

std::vector<Division> all_divisions(std::int64_t devices) {
  std::vector<Division> all;
  for (const std::int64_t model : divisors(devices)) {
    for (const std::int64_t shards : divisors(devices / model)) {
      for (int stage = shards > 1 ? 1 : 0; stage <= (shards > 1 ? 3 : 0); ++stage) {
        all.push_back({{devices / model / shards, shards, model}, stage});
      }
    }
  }
  return all;
}

// The share of the steps of rings along `axes` that lead to another host. Bit i of `axes` is DivisionAxis i. A ring
// takes the devices of a group in their order.
double share_between_hosts(const Division& division, std::size_t axes, std::int64_t devices_per_host) {
  const Mesh mesh({{"data", division.sizes[0]}, {"shards", division.sizes[1]}, {"model", division.sizes[2]}});
  AxisSet along;
  for (int i = 0; i < static_cast<int>(division_axes); ++i) {
    if ((axes >> i & 1u) != 0) along = along | AxisSet::of(i);
  }
  const std::int64_t groups = mesh.group_size(mesh.all() - along), size = mesh.group_size(along);
  std::int64_t crossing = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::vector<std::int64_t> group = mesh.group(mesh.device_at(g, mesh.all() - along), along);
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::int64_t next = group[(i + 1) % group.size()];
      crossing += group[i] / devices_per_host != next / devices_per_host ? 1 : 0;
    }
  }
  return static_cast<double>(crossing) / static_cast<double>(groups * size);
}

class Comparison {
 public:
  Comparison(const spec::Spec& spec, const data::Source& source, const PlanOptions& options)
      : options_(options),
        rates_(rates_of(spec.precision == spec::PrecisionPolicy::mixed_bfloat16)),
        planner_(spec, source) {}

  void compare(Plans& plans) {
    const std::vector<Division> possible = check_all(plans);
    const std::vector<DeviceFigures> estimated = planner_.estimated(possible);
    for (std::size_t i = 0; i < possible.size(); ++i) {
      plans.divisions.push_back(compared(possible[i], estimated[i]));
    }
    sort(plans, possible.size());
    std::vector<Division> best;
    const auto deep = static_cast<std::size_t>(std::max<std::int64_t>(most_planned_times / planner_.times(), 1));
    for (std::size_t i = 0; i < std::min({possible.size(), most_planned, deep}); ++i) {
      best.push_back(plans.divisions[i].division);
    }
    const std::vector<DeviceFigures> planned = planner_.planned(best);
    for (std::size_t i = 0; i < best.size(); ++i) {
      plans.divisions[i] = compared(best[i], planned[i]);
      plans.divisions[i].is_planned = true;
    }
    sort(plans, best.size());
    // One that was estimated to fit may not.
    std::stable_partition(plans.divisions.begin(), plans.divisions.end(),
                          [&](const ComparedDivision& each) { return plans.fits(each); });
    plans.rates = rates_;
    plans.programs = planner_.programs();
  }

 private:
  std::vector<Division> check_all(Plans& plans) {
    std::vector<Division> possible;
    std::optional<Error> first;
    for (const Division& division : all_divisions(options_.devices)) {
      try {
        planner_.check(division);
        possible.push_back(division);
      } catch (const Error& error) {
        if (error.status() != ExitStatus::usage) throw;
        if (!first) first = error;
        leave_out(plans, error.diagnostics().front());
      }
    }
    if (possible.empty()) throw Error(*first);
    return possible;
  }

  // Reasons of one place in the config are one.
  void leave_out(Plans& plans, const Diagnostic& why) {
    const auto [known, is_new] = reasons_.try_emplace({why.place.line, why.place.column}, plans.left_out.size());
    if (is_new) plans.left_out.push_back({0, why.message});
    ++plans.left_out[known->second].count;
  }

  ComparedDivision compared(const Division& division, const DeviceFigures& figures) const {
    ComparedDivision made{division, figures};
    for (std::size_t axes = 1; axes < figures.sent.size(); ++axes) {
      const double bytes = figures.sent[axes];
      if (bytes == 0) continue;
      std::size_t outermost = 0;
      while ((axes >> outermost & 1u) == 0) ++outermost;
      made.sent[outermost] += bytes;
      const double between = bytes * share_between_hosts(division, axes, options_.devices_per_host);
      made.between_hosts += between;
      made.within_host += bytes - between;
    }
    made.seconds = figures.flops / rates_.flops_per_second + made.within_host / rates_.bytes_within_host +
                   made.between_hosts / rates_.bytes_between_hosts;
    return made;
  }

  // The first `count`: those that fit by time, then the others by memory. What is equal keeps its order, in which the
  // simpler division comes first.
  static void sort(Plans& plans, std::size_t count) {
    const auto key = [&](const ComparedDivision& each) {
      const bool fits = plans.fits(each);
      return std::pair(!fits, fits ? each.seconds : each.figures.memory());
    };
    const auto before = [&](const ComparedDivision& a, const ComparedDivision& b) { return key(a) < key(b); };
    const auto first = plans.divisions.begin();
    std::stable_sort(first, first + static_cast<std::ptrdiff_t>(count), before);
  }

  const PlanOptions options_;
  const AssumedRates rates_;
  DivisionPlanner planner_;
  std::map<std::pair<int, int>, std::size_t> reasons_;  // places of errors, in Plans::left_out
};

// The examples of a batch over the whole mesh, as the config has it.
std::int64_t global_batch(const spec::Spec& spec, const data::Source& source) {
  const std::int64_t devices = spec::data_mesh(spec.mesh).devices();
  if (const auto* const each = std::get_if<spec::BatchPerDevice>(&spec.data.batch_size))
    return each->examples * devices;
  if (const auto* const whole = std::get_if<std::int64_t>(&spec.data.batch_size)) return *whole;
  return source.train->size();
}

}  // namespace

std::int64_t Plans::fitting() const {
  return std::count_if(divisions.begin(), divisions.end(), [&](const auto& each) { return fits(each); });
}

Plans make_plans(const spec::Loaded& loaded, const PlanOptions& options) {
  if (loaded.spec.ensemble) {
    throw Error(ExitStatus::usage,
                Diagnostic{"config",
                           loaded.spec.ensemble->place,
                           "--plans divides the devices of one model, and this config has an ensemble",
                           "leave out ensemble and its axis: the plans are then those of each member",
                           {}});
  }
  spec::Spec spec = loaded.spec;
  const data::Source source = input::open(spec.data, spec.seed, spec::data_mesh(spec.mesh).devices());
  spec.data.batch_size = global_batch(spec, source);
  Plans plans;
  plans.options = options;
  if (spec.mesh.gpu_memory) plans.memory = spec.mesh.gpu_memory->bytes;
  plans.name = spec.name;
  plans.batch = std::get<std::int64_t>(spec.data.batch_size);
  plans.microbatches = spec.data.microbatches;
  Comparison(spec, source, options).compare(plans);
  return plans;
}

}  // namespace pmaptrain::report
