#include "core/augment/color_jitter.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/augment/color.h"

namespace pmaptrain::augment {
namespace {

// Whether an amount around `neutral` (1 for factors, 0 for the hue) can be anything else.
bool changes(const Spread& spread, double neutral) {
  const Range range = around(spread, neutral);
  return range.low < neutral || range.high > neutral;
}

std::optional<double> draw_turns(std::uint32_t word, const Spread& spread) {
  if (!changes(spread, 0)) return std::nullopt;
  return uniform(word, around(spread, 0));
}

// Factors are not negative.
std::optional<double> draw_factor(std::uint32_t word, const Spread& spread) {
  if (!changes(spread, 1)) return std::nullopt;
  Range range = around(spread, 1);
  range.low = std::max(range.low, 0.0);
  return uniform(word, range);
}

}  // namespace

Declaration<ColorJitter> ColorJitter::declaration() {
  const auto factor = [](std::string_view name, std::string_view meaning, std::string_view example) {
    return declare::Key{.path = std::string(name), .high = declare::unbounded, .meaning = meaning, .example = example};
  };
  return declare::kind<ColorJitter>(
      {.path = "color_jitter",
       .meaning = "Changes brightness, contrast, saturation and hue in random order, as torchvision's ColorJitter does "
                  "with the images of Pillow. A factor is drawn from [min, max], or from 1 - x, but at least 0, to "
                  "1 + x for a number x. For images of 3 channels; brightness and contrast also of 1 channel.",
       .example = "augment: [color_jitter: {brightness: 0.2, contrast: 0.2, saturation: 0.2, hue: 0.1}]"},
      field(&ColorJitter::brightness, factor("brightness", "The factor of all values: 0 is black, 1 changes nothing.",
                                             "brightness: 0.2\nbrightness: [0.8, 1.2]")),
      field(&ColorJitter::contrast,
            factor("contrast", "The factor of differences from the mean grey: 0 is that grey, 1 changes nothing.",
                   "contrast: 0.2\ncontrast: [0.8, 1.2]")),
      field(&ColorJitter::saturation,
            factor("saturation", "The factor of differences from the pixel's own grey: 0 is grey, 1 changes nothing.",
                   "saturation: 0.2\nsaturation: [0.8, 1.2]")),
      field(&ColorJitter::hue, {.path = "hue",
                                .low = -0.5,
                                .high = 0.5,
                                .meaning = "How far colours move around the colour circle, in turns: in [min, max], or "
                                           "from -x to x for a number x.",
                                .example = "hue: 0.1\nhue: [-0.05, 0.1]"}));
}

Misfit ColorJitter::misfit(const Shape& shape) const {
  const std::int64_t channels = shape[2];
  if (channels != 1 && channels != 3) {
    return {"colours are those of images of 1 or 3 channels, and these have " + std::to_string(channels), "remove it"};
  }
  if (!changes(brightness, 1) && !changes(contrast, 1) && !changes(saturation, 1) && !changes(hue, 0)) {
    return {"brightness, contrast, saturation and hue all stay as they are",
            channels == 3 ? "for example color_jitter: {brightness: 0.2, contrast: 0.2, saturation: 0.2, hue: 0.1}"
                          : "for example color_jitter: {brightness: 0.2, contrast: 0.2}"};
  }
  if (channels == 3 || (!changes(saturation, 1) && !changes(hue, 0))) return {};
  const std::string colour = changes(saturation, 1) ? "saturation" : "hue";
  return {colour + " is for images of 3 channels, and these have 1",
          "remove " + colour + "; brightness and contrast are for images of 1 channel, too"};
}

void ColorJitter::change(const Pixels& image, const Draws& draws) const {
  const ColorChange change = drawn(draws);
  for (const ColorStep step : change.order) {
    const std::optional<double> amount = change.amount(step);
    if (!amount) continue;
    switch (step) {
      case ColorStep::brightness: change_brightness(image.bytes, *amount); break;
      case ColorStep::contrast: change_contrast(image.bytes, image.channels, *amount); break;
      case ColorStep::saturation: change_saturation(image.bytes, *amount); break;
      case ColorStep::hue: shift_hue(image.bytes, *amount); break;
    }
  }
}

ColorChange ColorJitter::drawn(const Draws& draws) const {
  const Words words = draws.words();
  ColorChange change;
  change.amounts = {draw_factor(words[0], brightness), draw_factor(words[1], contrast),
                    draw_factor(words[2], saturation), draw_turns(words[3], hue)};
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

}  // namespace pmaptrain::augment
