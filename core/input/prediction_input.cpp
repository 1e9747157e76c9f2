#include "core/input/prediction_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/arrays/array_dataset.h"
#include "core/data/arrays/lengths.h"
#include "core/data/arrays/npz_source.h"
#include "core/data/arrays/zip.h"
#include "core/data/images/folder.h"
#include "core/data/images/masks.h"
#include "core/data/subset.h"
#include "core/data/tables/csv.h"
#include "core/data/tables/csv_source.h"
#include "core/data/tables/libsvm.h"
#include "core/data/texts/text_source.h"
#include "core/input/open.h"
#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::input {
namespace {

enum class Format { npz, npy, idx, image, other };

// No text begins with a zero byte.
bool is_idx(std::span<const std::byte> bytes) { return data::as_chars(bytes).starts_with(std::string_view("\0\0", 2)); }

Format format_of(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return Format::image;
  const data::Bytes file = data::map_file(path);
  const std::span<const std::byte> bytes = file.view();
  const std::string_view text = data::as_chars(bytes);
  if (text.starts_with("PK\3\4") || text.starts_with("PK\5\6")) return Format::npz;
  if (text.starts_with("\x93NUMPY")) return Format::npy;
  if (text.starts_with("\x89PNG") || text.starts_with("\xff\xd8\xff")) return Format::image;
  if (is_idx(bytes)) return Format::idx;
  if (!data::is_gzip(bytes)) return Format::other;
  std::array<std::byte, 2> head = {};
  data::Inflater inflater(bytes, data::Compression::gzip, fmt::format("'{}'", path));
  return inflater.read(head) == head.size() && is_idx(head) ? Format::idx : Format::other;
}

std::vector<std::string> arrays_of(const std::string& path) {
  constexpr std::string_view ending = ".npy";
  std::vector<std::string> names;
  const data::ZipArchive archive(path);
  for (const data::ZipArchive::Entry& entry : archive.entries()) {
    if (entry.name.ends_with(ending)) names.push_back(entry.name.substr(0, entry.name.size() - ending.size()));
  }
  return names;
}

// The names of the input arrays in the run's own archives.
std::vector<std::string> configured_arrays(const spec::DataSpec& spec) {
  const auto* const npz = spec.source.as<data::Npz>();
  if (npz == nullptr) return {};
  if (npz->inputs) return {*npz->inputs};
  std::vector<std::string> names{npz->train.inputs};
  if (npz->validation) names.push_back(npz->validation->inputs);
  if (npz->test) names.push_back(npz->test->inputs);
  return names;
}

std::string chosen_array(const PredictionFile& file, const spec::DataSpec& spec) {
  if (file.array) return *file.array;
  const std::vector<std::string> there = arrays_of(file.path);
  std::vector<std::string> candidates;
  for (const std::string& name : configured_arrays(spec)) {
    if (std::find(there.begin(), there.end(), name) != there.end()) candidates.push_back(name);
  }
  if (candidates.size() == 1) return candidates.front();
  if (there.size() == 1) return there.front();
  if (there.empty()) fail_data(fmt::format("'{}' has no arrays", file.path), "write it with numpy.savez");
  fail_data(fmt::format("'{}' has several arrays: {}", file.path, join(there, ", ")),
            fmt::format("choose the inputs: --array {}", (candidates.empty() ? there : candidates).front()));
}

std::string shown(DType dtype, const Shape& shape) {
  return fmt::format("{}{}", to_string(dtype), pmaptrain::to_string(shape));
}

// What the model was trained on, and how to save such an array.
struct TypeHelp {
  const char *trained_on, *help;
};

// None for an array of a type that the model takes.
std::optional<TypeHelp> help_on_type(const data::Array& array, const Field& trained) {
  const bool bytes = array.element == data::Element::u8;
  if (trained.dtype == DType::i32) {
    if (!bytes && !data::is_floating(array.element)) return std::nullopt;
    return TypeHelp{"tokens", "save integers: x.astype(np.int32)"};
  }
  if (bytes == (trained.dtype == DType::u8)) return std::nullopt;
  if (bytes) {
    return TypeHelp{"numbers",
                    "convert them as the training inputs were: x.astype(np.float32), or divided by 255 as well"};
  }
  if (!data::is_floating(array.element)) return TypeHelp{"bytes", "save bytes: x.astype(np.uint8)"};
  return TypeHelp{"bytes",
                  "save bytes: x.astype(np.uint8) if they are 0 to 255, (x * 255).round().astype(np.uint8) if they "
                  "were divided by 255"};
}

// An array of one example has no dimension for examples.
bool is_one_example(const Shape& shape, const Shape& trained) {
  const auto without_ones = [](Shape sizes) {
    std::erase(sizes, 1);
    return sizes;
  };
  return shape.size() <= trained.size() && without_ones(shape) == without_ones(trained);
}

// What the run took such arrays for, whatever the type of this one. Those of other sources than npz are pictures.
data::Channels channels_of_run(const spec::DataSpec& spec, const data::Array& array, const Field& trained) {
  const auto* const npz = spec.source.as<data::Npz>();
  if (npz == nullptr) return trained.shape.size() == 2 ? data::Channels::last : data::Channels::none;
  if (npz->channels != data::Channels::automatic) return npz->channels;
  const data::Element element = trained.dtype == DType::u8 ? data::Element::u8 : data::Element::f32;
  return data::channels_of(element, array.shape, trained.dtype == DType::i32).value_or(data::Channels::none);
}

// The names that arrays of lengths have in the archives of a run; of a source that draws its sequences, `lengths`.
std::vector<std::string> names_of_lengths(const data::Npz* npz) {
  if (npz == nullptr) return {"lengths"};
  std::vector<std::string> names;
  if (npz->lengths) names.push_back(*npz->lengths);
  for (const auto* const split :
       {&npz->train, npz->validation ? &*npz->validation : nullptr, npz->test ? &*npz->test : nullptr}) {
    if (split != nullptr && !split->lengths.empty()) names.push_back(split->lengths);
  }
  return names;
}

// Of a file of sequences for a model that was trained on sequences of different lengths.
std::vector<std::int32_t> lengths_of_inputs(const std::string& path, const data::Array& inputs,
                                            const spec::DataSpec& spec) {
  const auto* const npz = spec.source.as<data::Npz>();
  if (npz != nullptr && npz->padding_token) return data::lengths_before_padding(inputs, *npz->padding_token);
  const std::vector<std::string> names = names_of_lengths(npz);
  const std::vector<std::string> there = format_of(path) == Format::npz ? arrays_of(path) : std::vector<std::string>();
  for (const std::string& name : names) {
    if (std::find(there.begin(), there.end(), name) != there.end()) {
      return data::read_lengths(data::read_npz(path, name), inputs);
    }
  }
  fail_data(fmt::format("'{}' has no lengths of its sequences, and the model was trained with lengths", path),
            fmt::format("save them beside the inputs: np.savez(file, x=x, {}=n)", names.front()));
}

std::shared_ptr<const data::Dataset> open_array(const std::string& path, data::Array array, const Field& trained,
                                                const spec::DataSpec& spec, std::vector<std::string>& notes,
                                                const Place& place) {
  const bool tokens = trained.dtype == DType::i32, is_text = spec.source.as<data::TextFiles>() != nullptr;
  if (tokens && is_text) {
    fail_data(fmt::format("the model was trained on tokens of a text, {}, and predictions of texts are not supported",
                          shown(trained.dtype, trained.shape)),
              "pmaptrain predict RUN --prompt TEXT continues a text; pmaptrain eval measures the model");
  }
  const std::string name = array.name;
  const Shape whole = array.shape;
  const data::ArrayMeaning meaning{.tokens = tokens, .channels = channels_of_run(spec, array, trained)};
  const Shape shape = data::shape_of_inputs(array, meaning);
  const std::optional<TypeHelp> type = help_on_type(array, trained);
  const std::string help_on_shape =
      is_one_example(whole, trained.shape) ? "an array has a dimension for examples, also of one: x[None]" : "";
  const std::string all = fmt::format("{} is {}{}", name, data::name_of(array.element), pmaptrain::to_string(whole));
  if (type && shape != trained.shape) {
    fail_data(
        fmt::format("{}, examples of {}, but the model was trained on {}, {}: neither the type nor the shape fits", all,
                    pmaptrain::to_string(shape), type->trained_on, shown(trained.dtype, trained.shape)),
        type->help + (help_on_shape.empty() ? "" : "; " + help_on_shape));
  }
  if (type) {
    fail_data(fmt::format("{}, but the model was trained on {}, {}", all, type->trained_on,
                          shown(trained.dtype, trained.shape)),
              type->help);
  }
  if (shape != trained.shape) {
    fail_data(
        fmt::format("{} has the shape {}: examples of {}, but the model takes {}", name, pmaptrain::to_string(whole),
                    pmaptrain::to_string(shape), pmaptrain::to_string(trained.shape)),
        help_on_shape);
  }
  std::vector<std::int32_t> lengths;
  if (spec.source->has_lengths()) {
    lengths = lengths_of_inputs(path, array, spec);
    array = data::without_padding(array, lengths);
  }
  auto dataset = data::make_inputs(std::move(array), notes, place, meaning);
  if (spec.source->has_lengths()) dataset = data::with_lengths(dataset, std::move(lengths), label_of_padding);
  return data::exact_numbers(dataset, trained.dtype == DType::f64, false);
}

std::shared_ptr<const data::Dataset> open_images(const std::string& path, const spec::DataSpec& spec,
                                                 const Field& trained, PredictionInput& input) {
  const Shape& shape = trained.shape;
  if (trained.dtype != DType::u8 || shape.size() != 3 || (shape[2] != 1 && shape[2] != 3)) {
    fail_data(fmt::format("'{}' has images, but the model takes {}", path, shown(trained.dtype, shape)),
              "images are u8[height,width,channels] with 1 or 3 channels; give the inputs as an array (.npy)");
  }
  const auto* const folder = spec.source.as<data::ImageFolder>();
  const auto* const masks = spec.source.as<data::ImageMasks>();
  const bool skips = folder != nullptr && folder->on_error == data::OnError::skip;
  return data::open_unclassed_images(path, shape,
                                     (folder != nullptr && folder->size) || (masks != nullptr && masks->size),
                                     input.notes, skips ? &input.skipped : nullptr);
}

data::InputTable open_table_or_refuse(const std::string& path, const spec::DataSpec& spec, const data::Encoding& known,
                                      const Field& trained) {
  if (const auto* const csv = spec.source.as<data::Csv>()) {
    return data::open_inputs(*csv, path, known, csv->text ? tokenizer_of(spec, known) : nullptr);
  }
  fail_data(fmt::format("'{}' is no NPZ, NPY or IDX file and no PNG or JPEG image", path),
            fmt::format("the run was trained on {}, {}: only a run that was trained on a CSV file reads one, because "
                        "its columns have names",
                        spec.source->name(), shown(trained.dtype, trained.shape)));
}

std::shared_ptr<const data::Dataset> open_dataset(const PredictionFile& file, const spec::DataSpec& spec,
                                                  const Field& trained, const data::Encoding& known,
                                                  PredictionInput& input) {
  std::vector<std::string>& notes = input.notes;
  const Format format = format_of(file.path);
  if (!file.ids.empty() && format != Format::other) {
    fail_data(fmt::format("'{}' is no table, so it has no column '{}'", file.path, file.ids.front()), "leave --id out");
  }
  if (file.array && format != Format::npz) {
    fail_data(fmt::format("'{}' is no NPZ archive, so it has no array '{}'", file.path, *file.array),
              "leave --array out");
  }
  const auto opened = [&](data::Array array) {
    return open_array(file.path, std::move(array), trained, spec, notes, file.place);
  };
  switch (format) {
    case Format::npz: return opened(data::read_npz(file.path, chosen_array(file, spec)));
    case Format::npy: return opened(data::read_npy(file.path));
    case Format::idx: return opened(data::read_idx(file.path));
    case Format::image: return open_images(file.path, spec, trained, input);
    case Format::other: break;
  }
  if (const auto* const libsvm = spec.source.as<data::Libsvm>()) {
    if (!file.ids.empty()) {
      fail_data(fmt::format("'{}' has rows without names, so it has no column '{}'", file.path, file.ids.front()),
                "leave --id out");
    }
    return data::open_inputs(*libsvm, file.path, known);
  }
  data::InputTable table = open_table_or_refuse(file.path, spec, known, trained);
  notes = std::move(table.notes);
  input.skipped = std::move(table.skipped);
  return data::exact_numbers(table.dataset, trained.dtype == DType::f64, false);
}

}  // namespace

PredictionInput open_prediction_input(const PredictionFile& file, const spec::DataSpec& spec, const Field& trained,
                                      const data::Encoding& known) {
  PredictionInput input;
  try {
    input.dataset = open_dataset(file, spec, trained, known, input);
    const auto* const csv = spec.source.as<data::Csv>();
    if (csv != nullptr && !file.ids.empty())
      input.ids = data::read_texts(*csv, data::open_table(*csv, file.path), file.ids, input.skipped);
  } catch (const Error& error) {
    data::throw_at(file.place, error);
  }
  return input;
}

}  // namespace pmaptrain::input
