#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/ops/conv/tiled.h"

#include <algorithm>
#include <cstring>

#include "core/ops/all.h"

namespace pmaptrain::ops {
namespace {

// Size of a tile in each dimension; the library's kernels are fast up to this size.
constexpr std::int64_t most_taps = 7;

// For one dimension: some taps of the window, and the positions at which any of these taps is on the image. `start` and
// `extent` describe the part of the image that they reach, including padding.
struct Reach {
  std::int64_t tap = 0, taps = 0, position = 0, positions = 0, start = 0, extent = 0;
};

std::vector<Reach> reaches_of(const Window& window) {
  const auto below = [](std::int64_t a, std::int64_t b) { return a < 0 ? -((-a + b - 1) / b) : a / b; };
  const std::int64_t count = (window.window + most_taps - 1) / most_taps;
  std::vector<Reach> reaches;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t tap = window.window * i / count, last_tap = window.window * (i + 1) / count - 1;
    const std::int64_t first =
        std::max<std::int64_t>(0, -below(last_tap * window.dilation - window.low, window.stride));
    const std::int64_t last =
        std::min(window.out - 1, below(window.in - 1 + window.low - tap * window.dilation, window.stride));
    if (last < first) continue;  // its taps are on padding at every position
    reaches.push_back({tap, last_tap - tap + 1, first, last - first + 1, window.start(first) + tap * window.dilation,
                       (last - first) * window.stride + (last_tap - tap) * window.dilation + 1});
  }
  return reaches;
}

// A range of rows and columns of an array [n, height, width, elements].
struct Box {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

// Calls f(offset in the array, offset in a packed array of the box, count of elements) for the parts of the box that
// are inside the array.
template <class F>
void for_each_run(const Shape& array, const Box& box, F&& f) {
  const std::int64_t elements = array[3];
  const std::int64_t first = std::max<std::int64_t>(0, box.left), last = std::min(array[2], box.left + box.width);
  if (last <= first) return;
  for (std::int64_t n = 0; n < array[0]; ++n) {
    for (std::int64_t row = std::max<std::int64_t>(0, box.top); row < std::min(array[1], box.top + box.height); ++row) {
      f(((n * array[1] + row) * array[2] + first) * elements,
        ((n * box.height + row - box.top) * box.width + first - box.left) * elements, (last - first) * elements);
    }
  }
}

void copy_from(const Shape& array, const Box& box, const float* from, float* to) {
  const bool is_inside =
      box.top >= 0 && box.left >= 0 && box.top + box.height <= array[1] && box.left + box.width <= array[2];
  if (!is_inside) std::fill_n(to, array[0] * box.height * box.width * array[3], 0.0F);
  for_each_run(array, box, [&](std::int64_t at, std::int64_t at_box, std::int64_t count) {
    std::memcpy(to + at_box, from + at, static_cast<std::size_t>(count) * sizeof(float));
  });
}

void copy_to(const Shape& array, const Box& box, const float* from, float* to) {
  for_each_run(array, box, [&](std::int64_t at, std::int64_t at_box, std::int64_t count) {
    std::memcpy(to + at, from + at_box, static_cast<std::size_t>(count) * sizeof(float));
  });
}

void add_to(const Shape& array, const Box& box, const float* from, float* to) {
  for_each_run(array, box, [&](std::int64_t at, std::int64_t at_box, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[at + i] += from[at_box + i];
  });
}

struct Tile {
  Box image, kernel, y;  // boxes of the arrays; the kernel is an array [1, height, width, channels in and out]
  std::unique_ptr<CpuKernel> gradient;
};

Shape with_box(Shape array, const Box& box) {
  array[1] = box.height;
  array[2] = box.width;
  return array;
}

class Tiled : public CpuKernel {
 public:
  Tiled(const CpuRequest& request, const ConvGeometry& g)
      : devices_(request.devices), stacked_(request.stacked), x_(g.x_shape()), y_(g.y_shape()) {
    kernel_ = {1, g.h.window, g.w.window, g.c_of_group() * g.o};
    for (const Reach& h : reaches_of(g.h)) {
      for (const Reach& w : reaches_of(g.w)) {
        Tile& tile = tiles_.emplace_back();
        tile.image = {h.start, w.start, h.extent, w.extent};
        tile.kernel = {h.tap, w.tap, h.taps, w.taps};
        tile.y = {h.position, w.position, h.positions, w.positions};
      }
    }
  }

  std::size_t scratch_bytes() const override { return arrays_ + inner_; }
  std::string implementation() const override {
    return std::to_string(tiles_.size()) + " tiles" +
           (tiles_.empty() ? "" : " of " + tiles_.front().gradient->implementation());
  }
  std::int64_t library_calls() const override {
    std::int64_t calls = 0;
    for (const Tile& tile : tiles_) calls += devices_ * tile.gradient->library_calls();
    return calls;
  }

 protected:
  // Creates the kernels of the tiles: make(tile, shapes of its image, kernel and y).
  template <class Make>
  void make_kernels(const ConvGeometry& g, Make&& make) {
    std::size_t image = 0, kernel = 0, y = 0;
    const auto grow = [](std::size_t& size, const Shape& shape) {
      const std::size_t bytes = static_cast<std::size_t>(numel(shape)) * sizeof(float);
      size = std::max(size, (bytes + 63) / 64 * 64);
    };
    for (Tile& tile : tiles_) {
      const Type x_type{DType::f32, with_box(x_, tile.image), {}}, y_type{DType::f32, with_box(y_, tile.y), {}};
      const Type kernel_type{DType::f32, {tile.kernel.height, tile.kernel.width, g.c_of_group(), g.o}, {}};
      tile.gradient = make(x_type, kernel_type, y_type);
      grow(image, x_type.shape);
      grow(kernel, kernel_type.shape);
      grow(y, y_type.shape);
      inner_ = std::max(inner_, tile.gradient->scratch_bytes());
    }
    image_at_ = 0;
    kernel_at_ = image;
    y_at_ = image + kernel;
    arrays_ = image + kernel + y;
  }

  const std::byte* operand(const CpuArguments& arguments, std::size_t i, std::int64_t device,
                           const Shape& shape) const {
    const std::int64_t offset = stacked_[i] ? device * numel(shape) : 0;
    return arguments.operands[i] + static_cast<std::size_t>(offset) * sizeof(float);
  }

  std::int64_t devices_;
  std::vector<bool> stacked_;
  Shape x_, y_, kernel_;
  std::vector<Tile> tiles_;
  std::size_t image_at_ = 0, kernel_at_ = 0, y_at_ = 0;  // offsets in scratch memory

  std::size_t arrays_bytes() const { return arrays_; }

 private:
  std::size_t arrays_ = 0, inner_ = 0;  // bytes of scratch memory: for arrays of a tile, and for its kernel
};

float* floats(std::byte* at) { return reinterpret_cast<float*>(at); }
const float* floats(const std::byte* at) { return reinterpret_cast<const float*>(at); }

class TiledInputGrad final : public Tiled {
 public:
  TiledInputGrad(const CpuRequest& request, const ConvGeometry& g) : Tiled(request, g) {
    make_kernels(g, [&](const Type& x, const Type& kernel, const Type& y) {
      const Type operands[] = {kernel, y};
      const ConvInputGrad op{
          {g.h.stride, g.w.stride}, {{0, 0}, {0, 0}}, x.shape, {g.h.dilation, g.w.dilation}, g.groups};
      return make_cpu_kernel(op, {operands, {&x, 1}, 1, {true, true}}, KernelChoice::best);
    });
  }

  void run(const CpuArguments& arguments) override {
    std::byte* const scratch = arguments.scratch;
    std::byte* const image = scratch + image_at_;
    const std::byte* const operands[] = {scratch + kernel_at_, scratch + y_at_};
    for (std::int64_t d = 0; d < devices_; ++d) {
      const float* const kernel = floats(operand(arguments, 0, d, kernel_));
      const float* const dy = floats(operand(arguments, 1, d, y_));
      float* const dx = floats(arguments.results[0]) + d * numel(x_);
      std::fill_n(dx, numel(x_), 0.0F);
      for (const Tile& tile : tiles_) {
        copy_from(kernel_, tile.kernel, kernel, floats(scratch + kernel_at_));
        copy_from(y_, tile.y, dy, floats(scratch + y_at_));
        tile.gradient->run({operands, &image, scratch + arrays_bytes()});
        add_to(x_, tile.image, floats(image), dx);
      }
    }
  }
};

class TiledKernelGrad final : public Tiled {
 public:
  TiledKernelGrad(const CpuRequest& request, const ConvGeometry& g) : Tiled(request, g) {
    make_kernels(g, [&](const Type& x, const Type& kernel, const Type& y) {
      const Type operands[] = {x, y};
      const ConvKernelGrad op{{g.h.stride, g.w.stride},     {{0, 0}, {0, 0}}, kernel.shape, false,
                              {g.h.dilation, g.w.dilation}, g.groups};
      return make_cpu_kernel(op, {operands, {&kernel, 1}, 1, {true, true}}, KernelChoice::best);
    });
  }

  void run(const CpuArguments& arguments) override {
    std::byte* const scratch = arguments.scratch;
    std::byte* const part = scratch + kernel_at_;
    const std::byte* const operands[] = {scratch + image_at_, scratch + y_at_};
    for (std::int64_t d = 0; d < devices_; ++d) {
      const float* const x = floats(operand(arguments, 0, d, x_));
      const float* const dy = floats(operand(arguments, 1, d, y_));
      float* const dkernel = floats(arguments.results[0]) + d * numel(kernel_);
      std::fill_n(dkernel, numel(kernel_), 0.0F);  // clears taps that are always on padding
      for (const Tile& tile : tiles_) {
        copy_from(x_, tile.image, x, floats(scratch + image_at_));
        copy_from(y_, tile.y, dy, floats(scratch + y_at_));
        tile.gradient->run({operands, &part, scratch + arrays_bytes()});
        copy_to(kernel_, tile.kernel, floats(part), dkernel);
      }
    }
  }
};

}  // namespace

bool takes_tiles(const ConvGeometry& g) { return !g.is_volume && (g.h.window > most_taps || g.w.window > most_taps); }

std::unique_ptr<CpuKernel> make_tiled_input_grad(const CpuRequest& request, const ConvGeometry& g) {
  return std::make_unique<TiledInputGrad>(request, g);
}

std::unique_ptr<CpuKernel> make_tiled_kernel_grad(const CpuRequest& request, const ConvGeometry& g) {
  return std::make_unique<TiledKernelGrad>(request, g);
}

}  // namespace pmaptrain::ops

#endif  // PMAPTRAIN_REFERENCE_KERNELS
