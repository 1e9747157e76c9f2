// Random changes of training images: augmentations.
//
// An augmentation is one file of this folder and one line of list.cpp: a struct of its options, which declares their
// keys (core/declare/kind.h), and one of
//
//   void change(const Pixels& image, const Draws& draws) const    changes an image in place
//   Mix mix(ImageSize size, const Draws& draws) const             how the examples of a batch are mixed in pairs
//
// and, where it cannot change images of every shape, `Misfit misfit(const Shape& shape) const`. A constant `moves` says
// that it moves pixels, and what targets have for each pixel moves with them: change() is called for these too, or
// change_targets() where there is one. A constant `fills` says that pixels come in from outside of the image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/augment/draws.h"
#include "core/augment/resize.h"
#include "core/base/error.h"
#include "core/base/shape.h"
#include "core/declare/kind.h"

namespace pmaptrain::augment {

using declare::Declaration;
using declare::field;
using declare::Need;

// An image [height, width, channels].
struct Pixels {
  std::span<std::byte> bytes;
  ImageSize size;
  std::int64_t channels = 0;

  std::span<const std::byte> outside = {};  // the pixel that stands outside of the image; empty: zeros

  std::byte* row(std::int64_t y) const { return bytes.data() + y * size.width * channels; }
  // Puts it in place of `count` pixels.
  void clear(std::byte* at, std::int64_t count) const {
    if (outside.empty()) std::memset(at, 0, static_cast<std::size_t>(count * channels));
    for (std::int64_t i = 0; !outside.empty() && i < count; ++i, at += channels)
      std::memcpy(at, outside.data(), outside.size());
  }
};

// How the rows of a batch are mixed, each with its partner.
struct Mix {
  static constexpr std::uint32_t whole = 1U << 16;
  std::uint32_t share = whole;            // of an example's own target, in 1 / whole
  std::optional<Box> box = std::nullopt;  // the part of the image that is the partner's; none: a sum of both images
};

// Why an augmentation cannot change images of a shape, and what helps; empty if it can.
struct Misfit {
  std::string why, help;
};

// The interface of all kinds.
class AugmentationRules {
 public:
  virtual ~AugmentationRules() = default;

  // The name in the config: "random_crop".
  virtual const std::string& name() const = 0;
  // `shape` is [height, width, channels].
  virtual Misfit misfit(const Shape& shape) const = 0;
  // Whether it mixes examples. If so, change() changes nothing, else mix() gives each example itself.
  virtual bool mixes() const = 0;
  virtual void change(const Pixels& image, const Draws& draws) const = 0;
  // Whether it moves pixels; whether some then come from outside of the image.
  virtual bool moves() const = 0;
  virtual bool fills() const = 0;
  // Moves what targets have for each pixel as change() moves the pixels; `targets` has their bytes as channels.
  virtual void change_targets(const Pixels& targets, const Draws& draws) const = 0;
  virtual Mix mix(ImageSize size, const Draws& draws) const = 0;
};

template <class Kind>
class Held final : public declare::Holds<AugmentationRules, Kind> {
  using declare::Holds<AugmentationRules, Kind>::kind_;
  static constexpr bool changes_images = requires(const Kind& kind, const Pixels& image, const Draws& draws) {
    kind.change(image, draws);
  };
  static constexpr bool mixes_examples = requires(const Kind& kind, const Draws& draws) {
    kind.mix(ImageSize(), draws);
  };
  static_assert(changes_images != mixes_examples,
                "an augmentation has either change(), of an image, or mix(), of the examples of a batch");

 public:
  using declare::Holds<AugmentationRules, Kind>::Holds;

  Misfit misfit(const Shape& shape) const override {
    if constexpr (requires { kind_.misfit(shape); }) return kind_.misfit(shape);
    return {};
  }
  bool mixes() const override { return mixes_examples; }
  void change([[maybe_unused]] const Pixels& image, [[maybe_unused]] const Draws& draws) const override {
    if constexpr (changes_images) kind_.change(image, draws);
  }
  bool moves() const override {
    if constexpr (requires { Kind::moves; }) return Kind::moves;
    return false;
  }
  bool fills() const override {
    if constexpr (requires { Kind::fills; }) return Kind::fills;
    return false;
  }
  void change_targets(const Pixels& targets, const Draws& draws) const override {
    if constexpr (requires { kind_.change_targets(targets, draws); }) return kind_.change_targets(targets, draws);
    if (moves()) change(targets, draws);
  }
  Mix mix([[maybe_unused]] ImageSize size, [[maybe_unused]] const Draws& draws) const override {
    if constexpr (mixes_examples) return kind_.mix(size, draws);
    return {};
  }
};

// An augmentation of any kind.
struct AugmentationKind : declare::Any<AugmentationRules, Held> {
  using Any::Any;
};
// The list of all kinds: list.cpp.
const std::vector<declare::AnyKind>& family(declare::Tag<AugmentationKind>);

struct Augmentation {
  AugmentationKind kind = {};
  Place place = {};

  bool has_kind() const { return static_cast<bool>(kind); }
  static Declaration<Augmentation> keys() {
    return declare::map<Augmentation>(declare::alternatives(&Augmentation::kind, &Augmentation::place));
  }
};

}  // namespace pmaptrain::augment
