#include "core/run/files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/file_kind.h"
#include "core/base/text.h"
#include "core/data/file.h"
#include "core/run/files/safetensors_metadata.h"

namespace pmaptrain::run {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are copied as they are");

using Json = nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t max_header = 100'000'000;  // the limit of the format
constexpr std::size_t max_depth = 16;              // a header has three levels
constexpr std::string_view metadata_key = "__metadata__";

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return "BF16";
    case DType::f32: return "F32";
    case DType::f64: return "F64";
    case DType::i32: return "I32";
    case DType::i64: return "I64";
    case DType::u8: return "U8";
    case DType::u32: return "U32";
    case DType::boolean: return "BOOL";
  }
  return {};
}

constexpr DType dtypes[] = {DType::bf16, DType::f32, DType::f64, DType::i32,
                            DType::i64,  DType::u8,  DType::u32, DType::boolean};

constexpr std::string_view half_name = "F16";

struct TensorPlace {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // relative to the end of the header
  bool is_half = false;              // f16, to be widened to `dtype`
  std::uint64_t element_bytes() const { return is_half ? sizeof(std::uint16_t) : size_of(dtype); }
};

class Reader {
 public:
  Reader(const data::Bytes& file, const std::string& path, bool takes_halves)
      : path_(path), file_(file), takes_halves_(takes_halves) {}

  std::vector<TensorView> read() {
    const std::span<const std::byte> text = header();
    const std::span<const std::byte> data = file_.view().subspan(length_bytes + text.size());
    const std::vector<TensorPlace> places = places_in(parse(text), data.size());

    std::vector<TensorView> tensors;
    tensors.reserve(places.size());
    for (const TensorPlace& place : places) {
      tensors.push_back(
          {place.name, place.dtype, place.shape, data.subspan(place.begin, place.end - place.begin), place.is_half});
    }
    return tensors;
  }

  std::map<std::string, std::string> metadata() {
    const Json json = parse(header());
    const auto found = json.find(metadata_key);
    if (found == json.end()) return {};
    check_metadata(*found);
    return found->get<std::map<std::string, std::string>>();
  }

 private:
  std::span<const std::byte> header() const {
    const std::uint64_t size = file_.size();
    refuse_other_formats();
    if (size < length_bytes) fail(fmt::format("it has {} bytes, a header's length alone takes {}", size, length_bytes));
    const std::uint64_t length = data::read_little(file_.view(), 0, length_bytes);
    if (length > max_header)
      fail(fmt::format("its header would have {} bytes, at most {} are read", length, max_header));
    if (length > size - length_bytes) {
      fail(fmt::format("its header would have {} bytes, only {} follow", length, size - length_bytes));
    }
    return file_.view().subspan(length_bytes, static_cast<std::size_t>(length));
  }

  [[noreturn]] void fail(const std::string& what) const {
    fail_data(fmt::format("'{}' is not a sound safetensors file: {}", path_, what),
              "copy it again, or write it again with safetensors or pmaptrain");
  }

  // The length of a sound file's header may look like the beginning of another format.
  void refuse_other_formats() const {
    constexpr std::size_t enough = 512;
    if (file_.size() > length_bytes && file_.data()[length_bytes] == std::byte{'{'}) return;
    const std::optional<FileKind> kind = kind_of_file(file_.view().first(std::min(file_.size(), enough)));
    if (kind) fail_data(fmt::format("'{}' is {}, not a safetensors file", path_, kind->name), help_for(*kind));
  }

  // How to get a safetensors file.
  std::string help_for(const FileKind& kind) const {
    const auto is = [&](std::string_view word) { return kind.name.find(word) != std::string_view::npos; };
    if (is("pointer")) return std::string(kind.help);
    if (is("PyTorch") || is("pickle")) {
      return fmt::format(
          "in Python: safetensors.torch.save_file(torch.load(\"{}\", map_location=\"cpu\"), \"model.safetensors\") "
          "writes its state dict as one; layout: torch then reads it",
          path_);
    }
    if (is("NPZ")) {
      return fmt::format("in Python: safetensors.numpy.save_file(dict(numpy.load(\"{}\")), \"model.safetensors\")",
                         path_);
    }
    if (is("GGUF")) return "take the model's safetensors files, from which it was made";
    if (is("HDF5")) {
      return "in Python: h5py reads its arrays, and safetensors.numpy.save_file({name: array}, \"model.safetensors\") "
             "writes them";
    }
    return "model.init.from takes a run folder or a safetensors file";
  }

  Json parse(std::span<const std::byte> text) const {
    const auto* const first = reinterpret_cast<const char*>(text.data());
    if (text.empty() || *first != '{') fail("its header does not begin with '{'");
    // The parser would keep the last of two equal keys, so they are found here: no valid file has equal keys.
    std::vector<std::set<std::string>> keys;
    std::string problem;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
      if (static_cast<std::size_t>(depth) > max_depth) problem = "its header nests too deep";
      if (event == Json::parse_event_t::object_start) keys.emplace_back();
      if (event == Json::parse_event_t::object_end) keys.pop_back();
      if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
        problem = fmt::format("its header has '{}' twice", value.get<std::string>());
      }
      return true;
    };
    Json json = Json::parse(first, first + text.size(), watch, false);
    if (json.is_discarded()) fail("its header is not JSON");
    if (!problem.empty()) fail(problem);
    return json;
  }

  // Returns the tensors in the order of their data, which must cover data_bytes without overlaps or gaps.
  std::vector<TensorPlace> places_in(const Json& header, std::uint64_t data_bytes) const {
    std::vector<TensorPlace> places;
    for (const auto& [name, entry] : header.items()) {
      if (name == metadata_key) {
        check_metadata(entry);
      } else {
        places.push_back(place_of(name, entry));
      }
    }
    std::stable_sort(places.begin(), places.end(), [](const TensorPlace& a, const TensorPlace& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::uint64_t at = 0;
    for (const TensorPlace& place : places) {
      if (place.begin < at) fail(fmt::format("tensor '{}' overlaps the one before it", place.name));
      if (place.begin > at)
        fail(fmt::format("{} bytes before tensor '{}' belong to none", place.begin - at, place.name));
      at = place.end;
      if (at > data_bytes) {
        fail(fmt::format("it is truncated: tensor '{}' ends at byte {} of the data, it has {}", place.name, at,
                         data_bytes));
      }
    }
    if (at < data_bytes) fail(fmt::format("{} bytes at its end belong to no tensor", data_bytes - at));
    return places;
  }

  void check_metadata(const Json& entry) const {
    const bool texts = entry.is_object() &&
                       std::all_of(entry.begin(), entry.end(), [](const Json& value) { return value.is_string(); });
    if (!texts) fail(fmt::format("its '{}' is not a map of strings to strings", metadata_key));
  }

  TensorPlace place_of(const std::string& name, const Json& entry) const {
    const auto bad = [&](std::string_view what) { fail(fmt::format("tensor '{}' {}", name, what)); };
    if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets")) {
      bad("lacks 'dtype', 'shape' or 'data_offsets'");
    }
    TensorPlace place{name, DType::f32, {}, 0, 0};
    place.is_half = takes_halves_ && entry["dtype"] == half_name;
    if (!place.is_half) place.dtype = dtype_of(name, entry["dtype"]);
    if (!entry["shape"].is_array()) bad("has a 'shape' that is not a list of sizes");
    std::uint64_t bytes = place.element_bytes();
    bool empty = false, overflow = false;
    for (const Json& size : entry["shape"]) {
      if (!size.is_number_unsigned()) bad("has a 'shape' that is not a list of sizes");
      const auto value = size.get<std::uint64_t>();
      overflow = overflow || value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (value == 0) {
        empty = true;
      } else {
        overflow = __builtin_mul_overflow(bytes, value, &bytes) || overflow;
      }
      place.shape.push_back(static_cast<std::int64_t>(value));
    }
    if (overflow) bad("is larger than can be addressed");
    if (empty) bytes = 0;
    const Json& offsets = entry["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      bad("has 'data_offsets' that are not two numbers");
    }
    place.begin = offsets[0].get<std::uint64_t>();
    place.end = offsets[1].get<std::uint64_t>();
    if (place.end < place.begin || place.end - place.begin != bytes) {
      bad(fmt::format("of {}{} needs {} bytes, its 'data_offsets' are [{}, {}]",
                      place.is_half ? "f16" : to_string(place.dtype), to_string(place.shape), bytes, place.begin,
                      place.end));
    }
    return place;
  }

  DType dtype_of(const std::string& name, const Json& value) const {
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    std::vector<std::string> known;
    for (const DType dtype : dtypes) {
      if (name_of(dtype) == text) return dtype;
      known.emplace_back(name_of(dtype));
    }
    if (takes_halves_) known.emplace_back(half_name);
    fail_data(fmt::format("tensor '{}' of '{}' has element type '{}', which is not read", name, path_, text),
              "expected one of " + join(known, ", ") + "; convert it before saving");
  }

  const std::string& path_;
  const data::Bytes& file_;
  bool takes_halves_;
};

}  // namespace

std::vector<TensorView> view_safetensors(const data::Bytes& file, const std::string& path) {
  return Reader(file, path, false).read();
}

std::vector<TensorView> view_safetensors_with_halves(const data::Bytes& file, const std::string& path) {
  return Reader(file, path, true).read();
}

std::map<std::string, std::string> safetensors_metadata(const data::Bytes& file, const std::string& path) {
  return Reader(file, path, true).metadata();
}

Tensors read_safetensors(const std::string& path) { return parse_safetensors(data::map_file(path), path); }

Tensors parse_safetensors(const data::Bytes& file, const std::string& path) {
  Tensors tensors;
  for (const TensorView& view : view_safetensors(file, path)) {
    tensors.emplace(view.name, Tensor{view.dtype, view.shape, {view.bytes.begin(), view.bytes.end()}});
  }
  file.check_intact();
  return tensors;
}

void write_safetensors(ByteSink& sink, std::span<const TensorView> tensors) {
  write_safetensors(sink, tensors, [&](const TensorView& tensor) {
    assert(tensor.bytes.size() == size_of(tensor.dtype) * static_cast<std::size_t>(numel(tensor.shape)));
    sink.write(tensor.bytes);
  });
}

void write_safetensors(ByteSink& sink, std::span<const TensorView> tensors,
                       const std::function<void(const TensorView& tensor)>& write_elements,
                       const std::map<std::string, std::string>& metadata) {
  // The tensors with the widest elements come first, so that each tensor is aligned for its elements; then by name.
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    const std::size_t left = size_of(a->dtype), right = size_of(b->dtype);
    return left != right ? left > right : a->name < b->name;
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(metadata_key)] = metadata;
  std::uint64_t at = 0;
  for (const TensorView* const tensor : order) {
    assert(tensor->name != metadata_key && is_utf8(tensor->name));
    const std::uint64_t end = at + size_of(tensor->dtype) * static_cast<std::size_t>(numel(tensor->shape));
    header[tensor->name] = {{"dtype", name_of(tensor->dtype)}, {"shape", tensor->shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  while (text.size() % length_bytes != 0) text += ' ';  // aligns the data
  const std::uint64_t length = text.size();
  sink.write(std::as_bytes(std::span(&length, 1)));
  sink.write(std::as_bytes(std::span(text)));
  for (const TensorView* const tensor : order) write_elements(*tensor);
}

}  // namespace pmaptrain::run
