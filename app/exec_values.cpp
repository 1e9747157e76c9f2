#include "app/exec_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/arrays/array.h"

namespace pmaptrain::app {
namespace {

constexpr std::int64_t longest_dimension = 12;  // shown whole
constexpr std::int64_t shown_at_each_end = 4;

std::string number_text(double value) { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

std::string element_text(DType dtype, std::span<const std::byte> value, std::size_t index) {
  return dispatch(dtype, [&]<class T>() -> std::string {
    T number{};
    std::memcpy(&number, value.data() + index * sizeof number, sizeof number);
    if constexpr (std::is_same_v<T, bool>) return number ? "true" : "false";
    if constexpr (FloatingElement<T>) {
      return std::isfinite(number) ? exact(number) : number_text(static_cast<double>(number));
    } else {
      return fmt::format("{}", number);
    }
  });
}

void append(std::string& out, DType dtype, const Shape& shape, std::span<const std::byte> value, std::size_t dimension,
            std::size_t first) {
  if (dimension == shape.size()) {
    out += element_text(dtype, value, first);
    return;
  }
  const std::int64_t size = shape[dimension];
  std::size_t stride = 1;
  for (std::size_t i = dimension + 1; i < shape.size(); ++i) stride *= static_cast<std::size_t>(shape[i]);
  out += '[';
  for (std::int64_t i = 0; i < size; ++i) {
    if (i > 0) out += ", ";
    if (size > longest_dimension && i == shown_at_each_end) {
      out += "..., ";
      i = size - shown_at_each_end;
    }
    append(out, dtype, shape, value, dimension + 1, first + static_cast<std::size_t>(i) * stride);
  }
  out += ']';
}

std::string ranges(const std::vector<std::int64_t>& devices) {
  std::string out;
  for (std::size_t i = 0; i < devices.size();) {
    std::size_t last = i;
    while (last + 1 < devices.size() && devices[last + 1] == devices[last] + 1) ++last;
    out += (out.empty() ? "" : ", ") + std::to_string(devices[i]);
    if (last > i) out += (last == i + 1 ? ", " : "-") + std::to_string(devices[last]);
    i = last + 1;
  }
  return out;
}

void swap_bytes(std::vector<std::byte>& bytes, std::size_t size) {
  for (std::size_t i = 0; i + size <= bytes.size(); i += size) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i), bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
  }
}

}  // namespace

std::string tuple_text(const Shape& shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

std::string numpy_name(DType dtype) {
  switch (dtype) {
    case DType::bf16: return "bfloat16";
    case DType::f32: return "float32";
    case DType::f64: return "float64";
    case DType::i32: return "int32";
    case DType::i64: return "int64";
    case DType::u8: return "uint8";
    case DType::u32: return "uint32";
    case DType::boolean: break;
  }
  return "bool";
}

std::string numpy_expression(DType dtype) { return (dtype == DType::bf16 ? "ml_dtypes." : "np.") + numpy_name(dtype); }

run::Tensor to_array(const Type& type, const Mesh& mesh, const OnDevice& value) {
  run::Tensor array{type.dtype, stacked_layout(type, mesh).logical, {}};
  for (std::int64_t i = 0; i < mesh.group_size(type.varying); ++i) {
    const std::vector<std::byte> local = value(mesh.device_at(i, type.varying));
    array.bytes.insert(array.bytes.end(), local.begin(), local.end());
  }
  return array;
}

run::Tensor read_array(const std::string& path, const std::string& input, const Type& type, const Mesh& mesh) {
  const data::Array file = data::read_npy(path);
  const Shape shape = stacked_layout(type, mesh).logical;
  const std::string expected = fmt::format("input '{}' is {}: an array of shape {}, {}", input, to_string(type, mesh),
                                           tuple_text(shape), numpy_name(type.dtype));
  if (data::name_of(file.element) != to_string(type.dtype)) {
    fail_data(fmt::format("'{}' holds {}; {}", path, data::name_of(file.element), expected),
              fmt::format("in Python: np.save('{}', x.astype({}))", path, numpy_expression(type.dtype)));
  }
  if (file.shape != shape) {
    fail_data(fmt::format("'{}' has shape {}; {}", path, tuple_text(file.shape), expected),
              type.varying.empty()
                  ? "it is replicated"
                  : "one leading dimension for each axis of " + mesh.to_string(type.varying) + ", in mesh order");
  }
  run::Tensor array{type.dtype, shape, {file.bytes.view().begin(), file.bytes.view().end()}};
  file.bytes.check_intact();
  if (file.big_endian) swap_bytes(array.bytes, size_of(type.dtype));
  // A boolean is one byte that holds 0 or 1, whatever wrote the file.
  if (type.dtype == DType::boolean) {
    for (std::byte& byte : array.bytes) byte = static_cast<std::byte>(byte != std::byte{0});
  }
  return array;
}

std::vector<Holders> distinct(const Mesh& mesh, const OnDevice& value) {
  std::vector<Holders> groups;
  std::unordered_multimap<std::size_t, std::size_t> by_hash;  // of the value: the group
  for (std::int64_t device = 0; device < mesh.devices(); ++device) {
    std::vector<std::byte> bits = value(device);
    const std::size_t hash = std::hash<std::string_view>()({reinterpret_cast<const char*>(bits.data()), bits.size()});
    const auto [first, last] = by_hash.equal_range(hash);
    const auto same = std::find_if(first, last, [&](const auto& entry) { return groups[entry.second].value == bits; });
    if (same != last) {
      groups[same->second].devices.push_back(device);
    } else {
      by_hash.emplace(hash, groups.size());
      groups.push_back({{device}, std::move(bits)});
    }
  }
  return groups;
}

std::string mesh_line(const Mesh& mesh) {
  std::string out = "mesh:";
  for (const Axis& axis : mesh.axes()) out += fmt::format(" {}={}", axis.name, axis.size);
  return out + fmt::format("{}({} logical {})\n", mesh.axes().empty() ? " no axes " : " ", mesh.devices(),
                           mesh.devices() == 1 ? "device" : "devices");
}

std::string holders_text(const std::vector<std::int64_t>& devices, const Mesh& mesh) {
  const auto count = static_cast<std::int64_t>(devices.size());
  if (count == mesh.devices()) return count == 1 ? "device 0" : fmt::format("all {} devices", count);
  std::string out = (count == 1 ? "device " : "devices ") + ranges(devices);
  if (mesh.axes().size() < 2) return out;
  std::string shared;
  for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
    const int axis = static_cast<int>(i);
    const std::int64_t at = mesh.coordinate(devices.front(), axis);
    const bool agree = std::all_of(devices.begin(), devices.end(),
                                   [&](std::int64_t device) { return mesh.coordinate(device, axis) == at; });
    if (agree) shared += (shared.empty() ? "" : ", ") + fmt::format("{} {}", mesh.name(axis), at);
  }
  return shared.empty() ? out : out + " (" + shared + ")";
}

std::string array_text(DType dtype, const Shape& shape, std::span<const std::byte> value) {
  std::string out;
  append(out, dtype, shape, value, 0, 0);
  return out;
}

}  // namespace pmaptrain::app
