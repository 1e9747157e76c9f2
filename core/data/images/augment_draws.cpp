#include "core/data/images/augment_draws.h"

#include <algorithm>
#include <cmath>

namespace pmaptrain::data {
namespace {

double uniform(std::uint32_t word, const spec::Range& range) {
  return range.low + (range.high - range.low) * (static_cast<double>(word) * 0x1.0p-32);
}

spec::Range around(const spec::Spread& spread, double neutral) {
  return spread.range.value_or(spec::Range{neutral - spread.distance, neutral + spread.distance});
}

std::optional<double> draw_amount(std::uint32_t word, const spec::Spread& spread, double neutral) {
  if (!changes(spread, neutral)) return std::nullopt;
  return uniform(word, around(spread, neutral));
}

// Factors are not negative.
std::optional<double> draw_factor(std::uint32_t word, const spec::Spread& spread) {
  if (!changes(spread, 1)) return std::nullopt;
  spec::Range range = around(spread, 1);
  range.low = std::max(range.low, 0.0);
  return uniform(word, range);
}

std::int64_t nearest_whole(double value) { return static_cast<std::int64_t>(std::nearbyint(value)); }

// The largest part in the centre with a ratio in the range.
Box central_part(const spec::Range& ratio, ImageSize size) {
  ImageSize part = size;
  const double own = static_cast<double>(size.width) / static_cast<double>(size.height);
  if (own < ratio.low)
    part.height = std::max<std::int64_t>(1, nearest_whole(static_cast<double>(size.width) / ratio.low));
  if (own > ratio.high)
    part.width = std::max<std::int64_t>(1, nearest_whole(static_cast<double>(size.height) * ratio.high));
  return {(size.height - part.height) / 2, (size.width - part.width) / 2, part};
}

}  // namespace

bool changes(const spec::Spread& spread, double neutral) {
  const spec::Range range = around(spread, neutral);
  return range.low < neutral || range.high > neutral;
}

double draw_angle(const spec::augment::RandomRotation& rotation, const Draws& draws) {
  return uniform(draws.words()[0], around(rotation.degrees, 0));
}

ColorChange draw_color_change(const spec::augment::ColorJitter& jitter, const Draws& draws) {
  const Words words = draws.words();
  ColorChange change;
  change.amounts = {draw_factor(words[0], jitter.brightness), draw_factor(words[1], jitter.contrast),
                    draw_factor(words[2], jitter.saturation), draw_amount(words[3], jitter.hue, 0)};
  change.order = {ColorStep::brightness, ColorStep::contrast, ColorStep::saturation, ColorStep::hue};
  // The digits of a number below 24 in mixed radix choose the first of four, of three and of two that are left.
  auto orders = static_cast<std::size_t>(below(draws.words(1)[0], 24));
  for (std::size_t i = 0; i + 1 < change.order.size(); ++i) {
    const std::size_t left = change.order.size() - i;
    std::swap(change.order[i], change.order[i + orders % left]);
    orders /= left;
  }
  return change;
}

Box draw_part(const spec::augment::RandomResizedCrop& crop, ImageSize size, const Draws& draws) {
  constexpr std::uint32_t attempts = 10;
  const double area = static_cast<double>(size.height) * static_cast<double>(size.width);
  const spec::Range log_ratio{std::log(crop.ratio.low), std::log(crop.ratio.high)};
  for (std::uint32_t i = 0; i < attempts; ++i) {
    const Words words = draws.words(i);
    const double part_area = area * uniform(words[0], crop.scale);
    const double ratio = std::exp(uniform(words[1], log_ratio));
    // Larger sides do not fit, whatever they are.
    const auto side = [&](double exact) { return nearest_whole(std::min(std::sqrt(exact), area + 1)); };
    const ImageSize part{side(part_area / ratio), side(part_area * ratio)};
    if (part.width < 1 || part.width > size.width || part.height < 1 || part.height > size.height) continue;
    return {below(words[2], size.height - part.height + 1), below(words[3], size.width - part.width + 1), part};
  }
  return central_part(crop.ratio, size);
}

}  // namespace pmaptrain::data
