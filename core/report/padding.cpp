#include "core/report/padding.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/input/batches/padded_sizes.h"
#include "core/setup/plan.h"

namespace pmaptrain::report {

std::string padding_text(const setup::Setup& setup) {
  if (setup.shorter.empty()) return "";
  constexpr std::int64_t most_steps = 200;
  const data::Dataset& train = *setup.source.train;
  const input::Stream stream = setup::training_streams(setup).front();
  const std::int64_t positions = setup.model.input.shape.front();
  const std::int64_t steps = std::min(setup.batch.steps_per_epoch, most_steps);
  double own = 0, computed = 0, rows = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t longest = input::longest_of(train, stream, setup.batch, step), examples = setup.batch.global;
    const auto size = std::ranges::find_if(setup.shorter, [&](const auto& each) { return longest <= each.positions; });
    const auto in_step = static_cast<double>(setup.batch.examples_in(step));
    rows += in_step;
    computed += in_step * static_cast<double>(size == setup.shorter.end() ? positions : size->positions);
    for (std::int64_t i = 0; i < setup.batch.examples_in(step); ++i) {
      own += static_cast<double>(train.length(stream.order().index(0, step * examples + i)));
    }
  }
  std::string sizes;
  for (const setup::ShorterTraining& each : setup.shorter) {
    sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", each.positions);
  }
  return fmt::format(
      "each step pads its sequences to {} or {} positions, as its longest one needs (data.bucket_by_length): {:.0f} % "
      "of the positions in {} are those of sequences; padded to {} all, {:.0f} %\n",
      sizes, positions, 100 * own / computed,
      steps == setup.batch.steps_per_epoch ? "the first epoch" : fmt::format("the first {} steps", steps), positions,
      100 * own / (rows * static_cast<double>(positions)));
}

}  // namespace pmaptrain::report
