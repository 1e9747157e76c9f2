#include "core/runtime/gpu/plan.h"

#include <algorithm>

#include "core/runtime/gpu/lowering.h"
#include "core/runtime/plan_count.h"

namespace pmaptrain::gpu {
namespace {

std::string text_of(const Plan& plan, Location place) {
  const Buffer& buffer = plan.buffer(place.buffer);
  std::string text = "%" + std::to_string(place.buffer);
  if (buffer.slice_bytes() > 0 && buffer.slices > 1) {
    text += "[" + std::to_string(place.offset / buffer.slice_bytes()) + "]";
  }
  return text;
}

std::string text_of(const Plan& plan, const std::vector<Location>& places) {
  std::string text;
  for (const Location& place : places) text += (text.empty() ? "" : ", ") + text_of(plan, place);
  return text;
}

class Writer {
 public:
  explicit Writer(const Plan& plan) : plan_(plan) {}

  std::string write() {
    add(plan_.commands);
    return std::move(text_);
  }

 private:
  void add(const std::vector<Command>& commands) {
    for (const Command& command : commands) {
      text_ += indent_;
      std::visit([&](const auto& known) { add(known); }, static_cast<const Command::variant&>(command));
    }
  }
  void add(const Launch& launch) {
    text_ += text_of(plan_, launch.results) + " = " + to_string(launch.equation->op, &plan_.program->mesh) + " " +
             text_of(plan_, launch.operands) + "  # " + std::to_string(launch.logical_devices) + " slices\n";
  }
  void add(const Copy& copy) { text_ += text_of(plan_, copy.to) + " = copy " + text_of(plan_, copy.from) + "\n"; }
  void add(const Reduce& reduce) {
    std::vector<Location> to, from;
    for (const Reduce::Group& group : reduce.groups) {
      to.push_back(group.to);
      from.push_back(group.from);
    }
    text_ += text_of(plan_, to) + " = reduce " + text_of(plan_, from) + "  # " +
             std::to_string(reduce.groups.front().arrays.count) + " arrays each\n";
  }
  void add(const Collect& collect) {
    const Mesh& mesh = plan_.program->mesh;
    text_ += text_of(plan_, collect.to) + " = " + std::string(gpu::to_string(collect.kind)) + " " +
             text_of(plan_, collect.from) + "  # " + mesh.to_string(collect.axes) +
             (collect.major.empty() ? "" : ", first by " + mesh.to_string(collect.major)) + "\n";
  }
  void add(const Await&) { text_ += "await\n"; }
  void add(const Loop& loop) {
    text_ += std::to_string(loop.iterations) + " times\n";
    indent_ += "  ";
    for (const Loop::Slice& slice : loop.slices) {
      text_ += indent_;
      add(slice.copy);
    }
    add(loop.body);
    indent_.resize(indent_.size() - 2);
  }

  const Plan& plan_;
  std::string text_, indent_;
};

}  // namespace

Plan make_plan(std::shared_ptr<const Program> program, const Division& division, int gpu, const PlanOptions& options,
               SharedPools& shared) {
  count_plan();
  return Lowering(std::move(program), division, gpu, options, shared).run();
}

Location Plan::root_of(int index) const {
  Location place{index, 0};
  while (buffer(place.buffer).container >= 0) {
    place.offset += buffer(place.buffer).offset;
    place.buffer = buffer(place.buffer).container;
  }
  return place;
}

std::vector<int> ranks_of(const Division& division, int gpu, AxisSet axes, AxisSet major) {
  const std::vector<std::int64_t> group = division.grid.group(gpu, axes);
  std::vector<int> ranks(group.begin(), group.end());
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](int a, int b) { return division.grid.position(a, major) < division.grid.position(b, major); });
  return ranks;
}

Stream stream_of(const Command& command) {
  if (const Copy* const copy = std::get_if<Copy>(&command)) return copy->stream;
  if (const Reduce* const reduce = std::get_if<Reduce>(&command)) return reduce->stream;
  return std::holds_alternative<Collect>(command) ? Stream::communicate : Stream::compute;
}

const Equation* equation_of(const Command& command) {
  return std::visit([](const auto& known) { return known.equation; }, static_cast<const Command::variant&>(command));
}

std::string to_string(const Plan& plan) { return Writer(plan).write(); }

}  // namespace pmaptrain::gpu
