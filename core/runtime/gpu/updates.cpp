// Lowers the end of a step, updates of inputs and outputs, and the end of a loop's body.
#include <utility>

#include "core/base/saturate.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {

bool Lowering::fits_in_place(const Replacement& replacement) const {
  const Buffer &source = buffer_of(replacement.from), &target = buffer_of(replacement.to);
  return replacement.how == Replacement::How::overwrite && source.pool == Pool::transient && source.container < 0 &&
         source.axes == target.axes && source.span == target.span && source.bytes() == target.bytes();
}

namespace {

// Whether the old value is read only before the new one is written, or by the equation that writes it.
bool is_read_before(const Lifetime& read, const Lifetime& written, const Replacement& replacement) {
  return read.last < written.first ||
         (read.last == written.first && read.last_equation == written.first_equation && replacement.by_element);
}

}  // namespace

void Lowering::lower_replacements(const std::vector<Replacement>& replacements, const Equation* loop) {
  // Positions in a body are those in it alone: a carry that is read by an inner loop is read to that loop's end.
  const std::vector<Lifetime> lifetimes = lifetimes_in(*commands_, plan_);
  const auto of = [&](Value value) { return lifetimes[static_cast<std::size_t>(buffer(value))]; };
  std::vector<Replacement> copies;
  for (const Replacement& each : replacements) {
    if (each.how == Replacement::How::none) continue;
    if (!fits_in_place(each) || !is_read_before(of(each.to), of(each.from), each)) {
      copies.push_back(each);
    } else if (loop != nullptr) {
      buffer_at(buffer(each.from)).container = buffer(each.to);
    } else {
      buffer_at(buffer(each.from)).pool = Pool::persistent;
      buffer_at(buffer(each.from)).offset = buffer_of(each.to).offset;
    }
  }
  copy_replacements(copies, loop);
}

void Lowering::lower_outputs() {
  const auto keep = [&](int buffer) {
    buffer_at(buffer).pool = Pool::persistent;
    buffer_at(buffer).offset = shared_.persistent;
    shared_.persistent = sum_of(shared_.persistent, round_up(buffer_at(buffer).bytes(), alignment));
  };
  for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
    int kept = buffer(program_.outputs[i].value);
    if (storage_.copied_first[i]) {
      // Copy an input before this step replaces it.
      std::vector<Command> first;
      std::vector<Command>* const all = std::exchange(commands_, &first);
      kept = copy_aside(kept, nullptr);
      commands_ = all;
      commands_->insert(commands_->begin(), first.begin(), first.end());
    }
    if (plan_.buffer(kept).container >= 0) kept = copy_aside(kept, nullptr);
    if (plan_.buffer(kept).pool == Pool::transient) keep(kept);
    plan_.outputs.push_back(kept);
  }
}

}  // namespace pmaptrain::gpu
