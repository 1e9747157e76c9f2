#include "core/augment/random_resized_crop.h"

#include <algorithm>
#include <cmath>

namespace pmaptrain::augment {
namespace {

std::int64_t nearest_whole(double value) { return static_cast<std::int64_t>(std::nearbyint(value)); }

// The largest part in the centre with a ratio in the range.
Box central_part(const Range& ratio, ImageSize size) {
  ImageSize part = size;
  const double own = static_cast<double>(size.width) / static_cast<double>(size.height);
  if (own < ratio.low)
    part.height = std::max<std::int64_t>(1, nearest_whole(static_cast<double>(size.width) / ratio.low));
  if (own > ratio.high)
    part.width = std::max<std::int64_t>(1, nearest_whole(static_cast<double>(size.height) * ratio.high));
  return {(size.height - part.height) / 2, (size.width - part.width) / 2, part};
}

}  // namespace

Declaration<RandomResizedCrop> RandomResizedCrop::declaration() {
  return declare::kind<RandomResizedCrop>(
      {.path = "random_resized_crop",
       .meaning = "Takes a part of random size, shape and position and resizes it to the size of the image, as "
                  "torchvision's RandomResizedCrop does. Where ten draws do not fit, the part is in the centre.",
       .example = "augment: [random_resized_crop: {scale: [0.5, 1.0]}]"},
      field(&RandomResizedCrop::scale, {.path = "scale",
                                        .high = 1,
                                        .open_low = true,
                                        .meaning = "The area of the part, as a share of the image's.",
                                        .example = "scale: [0.5, 1.0]"}),
      field(&RandomResizedCrop::ratio,
            {.path = "ratio",
             .high = declare::unbounded,
             .open_low = true,
             .meaning = "The width of the part by its height. The logarithm is drawn uniformly.",
             .example = "ratio: [0.75, 1.3333333333333333]"}));
}

Box RandomResizedCrop::part(ImageSize size, const Draws& draws) const {
  constexpr std::uint32_t attempts = 10;
  const double area = static_cast<double>(size.height) * static_cast<double>(size.width);
  const Range log_ratio{std::log(ratio.low), std::log(ratio.high)};
  for (std::uint32_t i = 0; i < attempts; ++i) {
    const Words words = draws.words(i);
    const double part_area = area * uniform(words[0], scale);
    const double drawn_ratio = std::exp(uniform(words[1], log_ratio));
    // Larger sides do not fit, whatever they are.
    const auto side = [&](double exact) { return nearest_whole(std::min(std::sqrt(exact), area + 1)); };
    const ImageSize part{side(part_area / drawn_ratio), side(part_area * drawn_ratio)};
    if (part.width < 1 || part.width > size.width || part.height < 1 || part.height > size.height) continue;
    return {below(words[2], size.height - part.height + 1), below(words[3], size.width - part.width + 1), part};
  }
  return central_part(ratio, size);
}

}  // namespace pmaptrain::augment
