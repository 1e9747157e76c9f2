// Lowers the end of a step: updates of inputs, and outputs.
#include <algorithm>
#include <set>

#include "core/base/saturate.h"
#include "core/runtime/gpu/lifetimes.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {

bool Lowering::may_overwrite(const Equation* equation, int input) const {
  if (equation == nullptr || !equation->op.rules().elementwise) return false;
  return std::all_of(equation->operands.begin(), equation->operands.end(), [&](Value operand) {
    const Location root = plan_.root_of(buffer(operand));
    if (root.buffer != input) return true;
    return root.offset == 0 && numel(type(operand)) == numel(type(equation->results.front()));
  });
}

void Lowering::lower_updates() {
  std::set<int> held;  // buffers that are still needed at the end of the step
  for (const Input& input : program_.inputs) {
    if (input.next) held.insert(plan_.root_of(buffer(*input.next)).buffer);
  }
  for (const Output& output : program_.outputs) held.insert(plan_.root_of(buffer(output.value)).buffer);
  const std::vector<Lifetime> lifetimes = lifetimes_of(plan_);
  std::set<int> taken;  // buffers that are placed in the memory of an input
  std::vector<std::pair<int, int>> copies;
  for (const Input& input : program_.inputs) {
    if (!input.next) continue;
    const int to = buffer(input.value), from = buffer(*input.next);
    if (from == to) continue;
    const Buffer target = plan_.buffer(to), source = plan_.buffer(from);
    const Lifetime& read = lifetimes[static_cast<std::size_t>(to)];
    const Lifetime& written = lifetimes[static_cast<std::size_t>(from)];
    const bool alike = source.axes == target.axes && source.span == target.span && source.bytes() == target.bytes();
    const bool free =
        read.last < written.first || (read.last == written.first && read.last_equation == written.first_equation &&
                                      may_overwrite(written.first_equation, to));
    if (source.pool == Pool::transient && source.container < 0 && alike && free && !held.contains(to) &&
        taken.insert(from).second) {
      buffer_at(from).pool = Pool::persistent;
      buffer_at(from).offset = target.offset;
    } else {
      copies.emplace_back(from, to);
    }
  }
  copy_in_parallel(copies, nullptr);
}

void Lowering::lower_outputs() {
  const auto keep = [&](int buffer) {
    buffer_at(buffer).pool = Pool::persistent;
    buffer_at(buffer).offset = shared_.persistent;
    shared_.persistent = sum_of(shared_.persistent, round_up(buffer_at(buffer).bytes(), alignment));
  };
  for (const Output& output : program_.outputs) {
    int kept = buffer(output.value);
    const int root = plan_.root_of(kept).buffer;  // the bucket, if `kept` is an array in a bucket
    const auto input = std::find_if(program_.inputs.begin(), program_.inputs.end(),
                                    [&](const Input& known) { return known.next && buffer(known.value) == root; });
    if (input != program_.inputs.end() && buffer(*input->next) != kept) {
      // The output is an input that this step updates: copy its old value before the first command.
      const Buffer like = plan_.buffer(kept);
      const int old = add_buffer(like.type, like.axes, Pool::transient, like.span);
      std::vector<Command> first;
      std::vector<Command>* const all = std::exchange(commands_, &first);
      copy(kept, old, nullptr);
      commands_ = all;
      commands_->insert(commands_->begin(), first.begin(), first.end());
      kept = old;
    }
    if (plan_.buffer(kept).container >= 0) {
      const Buffer like = plan_.buffer(kept);
      const int apart = add_buffer(like.type, like.axes, Pool::transient, like.span);
      copy(kept, apart, nullptr);
      kept = apart;
    }
    if (plan_.buffer(kept).pool == Pool::transient) keep(kept);
    plan_.outputs.push_back(kept);
  }
}

}  // namespace pmaptrain::gpu
