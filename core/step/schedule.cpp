#include "core/step/schedule.h"

#include <cstring>
#include <map>

#include "core/ops/all.h"
#include "core/runtime/interpreter.h"

namespace pmaptrain::step {

double rate_after(const schedules::Schedule& schedule, std::int64_t updates) {
  Program program;
  Builder b(program, all_ops());
  const Value count = b.input(Group::hyper, "updates", {DType::i64, {}, {}});
  const std::vector<equations::Number> numbers = schedule_numbers(schedule);
  const std::vector<Value> values = equations::declare_numbers(b, numbers);
  b.output("rate", rate_after(b, schedule, {numbers, values}, count));
  const auto bytes_of = [](const auto& value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return PerDevice{bytes};
  };
  std::map<std::string, PerDevice> inputs{{"updates", bytes_of(updates)}};
  for (const equations::Number& number : numbers) inputs[number.name] = bytes_of(number.value);
  const InterpreterResult result = interpret(program, std::move(inputs));
  double rate = 0;
  std::memcpy(&rate, result.outputs.at("rate").front().data(), sizeof rate);
  return rate;
}

}  // namespace pmaptrain::step
