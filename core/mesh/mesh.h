// The mesh: an ordered list of named axes, outermost first, whose product is the number of logical devices.
//
// A logical device is addressed by its index (row-major over the axes, so adjacent indices differ in the innermost
// axis) or by one coordinate per axis. The mesh is independent of the threads and GPUs that run the devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain {

struct Axis {
  std::string name;
  std::int64_t size = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

// A set of axes of one mesh, given by their indices. At most 32 axes.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  static constexpr AxisSet of(int axis) { return AxisSet(1u << axis); }
  static constexpr AxisSet first(int count) { return AxisSet(count >= 32 ? ~0u : (1u << count) - 1u); }

  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool contains(int axis) const { return (bits_ >> axis & 1u) != 0; }
  constexpr bool contains(AxisSet other) const { return (bits_ & other.bits_) == other.bits_; }
  constexpr std::uint32_t bits() const { return bits_; }
  std::vector<int> list() const;  // the axes, in mesh order

  friend constexpr AxisSet operator|(AxisSet a, AxisSet b) { return AxisSet(a.bits_ | b.bits_); }
  friend constexpr AxisSet operator&(AxisSet a, AxisSet b) { return AxisSet(a.bits_ & b.bits_); }
  friend constexpr AxisSet operator-(AxisSet a, AxisSet b) { return AxisSet(a.bits_ & ~b.bits_); }
  friend constexpr bool operator==(AxisSet, AxisSet) = default;

 private:
  constexpr explicit AxisSet(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_ = 0;
};

class Mesh {
 public:
  Mesh() = default;  // no axes: one device
  explicit Mesh(std::vector<Axis> axes) : axes_(std::move(axes)) {}

  const std::vector<Axis>& axes() const { return axes_; }
  std::int64_t devices() const;
  AxisSet all() const { return AxisSet::first(static_cast<int>(axes_.size())); }

  std::optional<int> find(std::string_view name) const;
  const std::string& name(int axis) const { return axes_[static_cast<std::size_t>(axis)].name; }
  std::int64_t size(int axis) const { return axes_[static_cast<std::size_t>(axis)].size; }

  // The number of devices in one group of a collective over `axes`: the product of their sizes.
  std::int64_t group_size(AxisSet axes) const;

  std::int64_t coordinate(std::int64_t device, int axis) const;

  // For a value that varies over `axes`, the index of the instance that `device` holds: its coordinates along `axes`,
  // row-major in mesh order.
  std::int64_t position(std::int64_t device, AxisSet axes) const;

  // The first device that holds instance `position` of such a value.
  std::int64_t device_at(std::int64_t position, AxisSet axes) const;

  // The group of `device` in a collective over `axes`: the devices with equal coordinates along all other axes, in
  // device order.
  std::vector<std::int64_t> group(std::int64_t device, AxisSet axes) const;

  std::vector<std::string> names() const;
  // The mesh of these axes alone.
  Mesh only(AxisSet axes) const;
  // "{model_replicas, data_shards}", in mesh order; "{}" for none.
  std::string to_string(AxisSet axes) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::int64_t stride(int axis) const;
  std::vector<Axis> axes_;
};

// Neighbouring instances of a value, or rows of them.
struct IndexRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

}  // namespace pmaptrain
