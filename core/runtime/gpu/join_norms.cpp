// Joins the norms of many arrays into one launch. Gradients are contiguous, and tables tell the kernel where each
// begins.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/ops/all.h"
#include "core/ops/constant/constant.h"
#include "core/ops/norms/norms.h"
#include "core/ops/norms/parts.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {
namespace {

// Launches of `norms` on parts of one buffer, which no command in between writes.
struct Neighbours {
  int memory = -1;
  std::vector<std::size_t> launches;  // indices of commands
};

// Calls f(buffer) for each buffer that a command writes.
template <class F>
void for_each_written(const Command& command, F&& f) {
  if (const auto* const launch = std::get_if<Launch>(&command)) {
    for (const Location& place : launch->results) f(place.buffer);
  } else if (const auto* const copy = std::get_if<Copy>(&command)) {
    f(copy->to.buffer);
  } else if (const auto* const reduce = std::get_if<Reduce>(&command)) {
    f(reduce->to.buffer);
  } else if (const auto* const collect = std::get_if<Collect>(&command)) {
    f(collect->to.buffer);
  } else if (const auto* const loop = std::get_if<Loop>(&command)) {
    for (const Loop::Slice& slice : loop->slices) f(slice.copy.to.buffer);
    for (const Command& inner : loop->body) for_each_written(inner, f);
  }
}

// Calls f(buffer) for each buffer that a command reads.
template <class F>
void for_each_read(const Command& command, F&& f) {
  if (const auto* const launch = std::get_if<Launch>(&command)) {
    for (const Location& place : launch->operands) f(place.buffer);
  } else if (const auto* const copy = std::get_if<Copy>(&command)) {
    f(copy->from.buffer);
  } else if (const auto* const reduce = std::get_if<Reduce>(&command)) {
    f(reduce->from.buffer);
  } else if (const auto* const collect = std::get_if<Collect>(&command)) {
    f(collect->from.buffer);
  } else if (const auto* const loop = std::get_if<Loop>(&command)) {
    for (const Loop::Slice& slice : loop->slices) f(slice.copy.from.buffer);
    for (const Command& inner : loop->body) for_each_read(inner, f);
  }
}

bool is_norms(const Command& command) {
  const Launch* const launch = std::get_if<Launch>(&command);
  return launch != nullptr && launch->equation->op.as<ops::Norms>() != nullptr;
}

std::vector<Neighbours> groups_of(const Plan& plan) {
  std::vector<Neighbours> groups;
  std::map<int, std::size_t> open;  // by buffer: the group that may be extended
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    for_each_written(plan.commands[i], [&](int buffer) { open.erase(plan.root_of(buffer).buffer); });
    if (!is_norms(plan.commands[i])) continue;
    const int memory = plan.root_of(std::get<Launch>(plan.commands[i]).operands.front().buffer).buffer;
    const auto [known, is_new] = open.try_emplace(memory, groups.size());
    if (is_new) groups.push_back({memory, {}});
    groups[known->second].launches.push_back(i);
  }
  return groups;
}

// The joined launch of a group. Its parts are numbered in the order of the results.
class Joined {
 public:
  Joined(const Plan& plan, const Neighbours& group) : plan_(plan) {
    for (const std::size_t i : group.launches) add(std::get<Launch>(plan.commands[i]));
  }

  // Whether these launches together write every slice of their result buffers, and these buffers may be moved: they are
  // transient, and no other buffer contains them.
  bool are_whole() const {
    const auto is_free = [&](int buffer) {
      return plan_.buffer(buffer).within < 0 && plan_.buffer(buffer).pool == Pool::transient;
    };
    return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part.has_value(); }) &&
           std::all_of(results_.begin(), results_.end(),
                       [&](const auto& pair) { return is_free(pair.first) && is_free(pair.second); });
  }

  std::int64_t count() const { return std::ssize(parts_); }
  std::size_t begin() const { return begin_; }
  std::int64_t elements() const { return static_cast<std::int64_t>((end_ - begin_) / element_bytes_); }
  // The buffers of squares and of largest magnitudes, in the order of the parts.
  const std::vector<std::pair<int, int>>& results() const { return results_; }

  // The tables that are operands of NormsOfParts.
  std::pair<std::vector<double>, std::vector<double>> tables() const {
    std::vector<double> chunks, parts;
    for (const auto& part : parts_) {
      const auto first = static_cast<std::int64_t>((part->begin - begin_) / element_bytes_);
      parts.push_back(static_cast<double>(chunks.size() / 2));
      for (std::int64_t i = 0; i < part->elements; i += ops::norm_elements) {
        chunks.push_back(static_cast<double>(first + i));
        chunks.push_back(static_cast<double>(first + std::min(i + ops::norm_elements, part->elements)));
      }
      parts.push_back(static_cast<double>(chunks.size() / 2));
    }
    return {std::move(chunks), std::move(parts)};
  }

 private:
  struct Stretch {
    std::size_t begin;
    std::int64_t elements;
  };

  void add(const Launch& launch) {
    const Location x = plan_.root_of(launch.operands.front().buffer);
    const Type& type = launch.operand_types.front();
    element_bytes_ = size_of(type.dtype);
    const int squares = launch.results[0].buffer, largest = launch.results[1].buffer;
    const auto [known, is_new] = first_of_.try_emplace(squares, parts_.size());
    if (is_new) {
      results_.emplace_back(squares, largest);
      parts_.resize(parts_.size() + static_cast<std::size_t>(plan_.buffer(squares).slices));
    }
    const std::size_t first = known->second + launch.results[0].offset / sizeof(double);
    for (std::size_t slice = 0; slice < static_cast<std::size_t>(launch.devices); ++slice) {
      const std::size_t begin =
          x.offset + launch.operands.front().offset + (launch.stacked.front() ? slice * bytes(type) : 0);
      begin_ = std::min(begin_, begin);
      end_ = std::max(end_, begin + bytes(type));
      parts_[first + slice] = Stretch{begin, numel(type)};
    }
  }

  const Plan& plan_;
  std::vector<std::optional<Stretch>> parts_;  // by number of the part
  std::map<int, std::size_t> first_of_;        // by buffer of squares: its first part
  std::vector<std::pair<int, int>> results_;
  std::size_t begin_ = static_cast<std::size_t>(-1), end_ = 0, element_bytes_ = 1;
};

}  // namespace

Location Lowering::constant(const Equation& equation) {
  added_->push_back(equation);
  const int buffer = add_buffer(equation.op.infer({program_.mesh, {}}).front(), {}, Pool::constant);
  plan_.constants.emplace_back(buffer, &added_->back());
  return {buffer, 0};
}

// Places the normed values in the order of the parameters. Then join_launches can also join the chains that compute
// them.
void Lowering::lay_normed_side_by_side() {
  std::set<int> held;  // values that keep their own buffer because they are read after the step
  for (const Input& input : program_.inputs) {
    if (input.next) held.insert(buffer(*input.next));
  }
  for (const Output& output : program_.outputs) held.insert(buffer(output.value));
  std::map<int, std::size_t> made_by;  // by buffer: index of the launch that computes it
  struct Group {
    std::vector<std::size_t> norms;  // indices of commands
    std::set<int> results;           // buffers of their results
  };
  std::vector<Group> groups(1);
  for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
    const Command& command = plan_.commands[i];
    for_each_read(command, [&](int buffer) {
      if (groups.back().results.contains(plan_.root_of(buffer).buffer)) groups.emplace_back();
    });
    const Launch* const launch = std::get_if<Launch>(&command);
    if (launch == nullptr) continue;
    for (const Location& place : launch->results) made_by.emplace(place.buffer, i);
    if (!is_norms(command) || launch->devices > 1) continue;
    const int x = launch->operands.front().buffer;
    const Buffer& buffer = plan_.buffer(x);
    const auto maker = made_by.find(x);
    const bool is_movable =
        buffer.pool == Pool::transient && buffer.within < 0 && buffer.slices == 1 && !held.contains(x);
    if (!is_movable || maker == made_by.end() ||
        !std::get<Launch>(plan_.commands[maker->second]).equation->op.rules().elementwise) {
      continue;
    }
    groups.back().norms.push_back(i);
    for (const Location& place : launch->results) groups.back().results.insert(plan_.root_of(place.buffer).buffer);
  }

  const auto operand_of = [&](std::size_t norms) {
    return std::get<Launch>(plan_.commands[norms]).operands.front().buffer;
  };
  // The order of values follows the first array operand of the launches that compute them, since it already has a
  // place.
  const auto order_of = [&](int buffer) {
    const Launch& maker = std::get<Launch>(plan_.commands[made_by.at(buffer)]);
    std::size_t first = static_cast<std::size_t>(-1);
    for (std::size_t i = maker.operands.size(); i-- > 0;) {
      const Location root = plan_.root_of(maker.operands[i].buffer);
      if (numel(maker.operand_types[i]) == numel(plan_.buffer(buffer).type)) {
        first = plan_.buffer(root.buffer).offset + root.offset;
      }
    }
    return first;
  };
  std::vector<std::size_t> place(plan_.commands.size());  // index of the command after which each command is placed
  for (std::size_t i = 0; i < place.size(); ++i) place[i] = i;
  for (const Group& group : groups) {
    if (group.norms.size() < 2) continue;
    std::vector<int> buffers;
    for (const std::size_t norms : group.norms) {
      const int x = operand_of(norms);
      if (std::find(buffers.begin(), buffers.end(), x) == buffers.end()) buffers.push_back(x);
      place[norms] = group.norms.back();
    }
    std::stable_sort(buffers.begin(), buffers.end(), [&](int a, int b) { return order_of(a) < order_of(b); });
    lay_side_by_side(*equation_of(plan_.commands[group.norms.front()]), buffers);
  }
  std::vector<std::size_t> order(place.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place[a] < place[b]; });
  std::vector<Command> commands;
  commands.reserve(order.size());
  for (const std::size_t i : order) commands.push_back(std::move(plan_.commands[i]));
  plan_.commands = std::move(commands);
}

// The joined launch divides arrays into the same chunks as `norms` does, so results are equal bit for bit.
void Lowering::join_norms() {
  std::set<std::size_t> gone;
  for (const Neighbours& group : groups_of(plan_)) {
    if (group.launches.size() == 1) continue;
    const Joined parts(plan_, group);
    if (!parts.are_whole()) continue;
    Launch& first = std::get<Launch>(plan_.commands[group.launches.front()]);
    const DType dtype = first.operand_types.front().dtype;
    Launch launch;
    const auto add_table = [&](std::vector<double> values) {
      const Shape shape{std::ssize(values) / 2, 2};
      launch.operands.push_back(
          constant({ops::Constant{DType::i64, shape, 0, std::move(values)}, {}, {}, nullptr, {}}));
      launch.operand_types.push_back({DType::i64, shape, {}});
    };
    launch.operands.push_back({group.memory, parts.begin()});
    launch.operand_types.push_back({dtype, {parts.elements()}, {}});
    auto [chunks, bounds] = parts.tables();
    add_table(std::move(chunks));
    add_table(std::move(bounds));
    launch.stacked.assign(launch.operands.size(), true);
    for (const DType of : {DType::f64, dtype}) {
      launch.result_types.push_back({of, {parts.count()}, {}});
      launch.results.push_back({add_buffer(launch.result_types.back(), {}, Pool::transient), 0});
    }
    std::size_t done = 0;
    for (const auto& [squares, largest] : parts.results()) {
      at(squares).within = launch.results[0].buffer;
      at(squares).offset = done * sizeof(double);
      at(largest).within = launch.results[1].buffer;
      at(largest).offset = done * size_of(dtype);
      done += static_cast<std::size_t>(at(squares).slices);
    }
    added_->push_back({ops::NormsOfParts{}, {}, {}, first.equation->origin, {}});
    launch.equation = &added_->back();
    gone.insert(group.launches.begin() + 1, group.launches.end());
    first = std::move(launch);
  }
  std::vector<Command> left;
  for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
    if (!gone.contains(i)) left.push_back(std::move(plan_.commands[i]));
  }
  plan_.commands = std::move(left);
}

}  // namespace pmaptrain::gpu
