// The geometry of a sliding window over height and width, over the positions of a sequence, or over depth, height and
// width of a volume, for convolution and pooling.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/shape.h"
#include "core/declare/values.h"
#include "core/graph/builder.h"
#include "core/layers/node.h"

namespace pmaptrain::layers {

using declare::Padding;
using declare::PaddingKind;

struct Window {
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;  // before and after, along each dimension
  Shape output;                                                // without channels; a 0 where the window does not fit

  bool fits() const;
};

// SAME gives ceil(input / stride) outputs; if the padding is odd, the extra element is after the image, as in
// TensorFlow and XLA. VALID has no padding. CAUSAL has all before, so that an output sees no element after its own.
// `image` is [height, width, channels], [positions, channels] or [depth, height, width, channels]; `dilation` is the
// spacing of window elements.
Window place_window(const Padding& padding, const Shape& image, const std::vector<std::int64_t>& size,
                    const std::vector<std::int64_t>& strides, const std::vector<std::int64_t>& dilation);

// The lengths behind windows over the positions of sequences that have lengths, which the layer sets. Reports SAME with
// strides, whose padding would depend on the length, and windows over more than positions.
bool set_lengths(const LayerInput& in, const Window& window, const Padding& padding, std::int64_t extent,
                 std::int64_t stride, Node& layer);

// "SAME", "VALID", "CAUSAL" or "[[1,1],[0,2]]"
std::string describe(const Padding& padding);

// Ops have windows of two dimensions or more. A sequence is an image of height 1: these give what they take for it, and
// leave what has more dimensions as it is.
std::vector<std::int64_t> as_image(std::vector<std::int64_t> sizes);
Window as_image(Window window);
// The order in which PyTorch has the dimensions of a kernel of so many dimensions: channels out and in first. With
// `is_transposed` those in before those out.
Shape out_and_in_first(std::size_t dimensions, bool is_transposed = false);
// Node::image of the output of a layer of windows.
Shape image_of_windows(const Shape& output);
// `x` with the dimension of the height, which is 1, at this place: [B, positions, channels] at 1, a kernel [positions,
// in, out] at 0.
Value with_height(Builder& b, Value x, std::size_t place);
// [B, 1, positions, channels] as [B, positions, channels].
Value without_height(Builder& b, Value x);

// Whether windows of `size`, the value of this key, slide over the input of a layer; reports it if not. `help` says
// what to do where the input has no positions.
bool takes_windows(const LayerInput& in, const std::string& key, const std::vector<std::int64_t>& size,
                   std::string help);

}  // namespace pmaptrain::layers
