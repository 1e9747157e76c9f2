#include "core/input/inspect.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/arrays/array.h"
#include "core/data/arrays/zip.h"
#include "core/data/file.h"
#include "core/data/images/dataset.h"
#include "core/data/images/files.h"
#include "core/data/images/image.h"
#include "core/data/skipped.h"

namespace pmaptrain::input {
namespace {

using Words = std::set<std::string, std::less<>>;

const Words train_words = {"train", "training", "tr"};
const Words validation_words = {"val", "valid", "validation", "dev"};
const Words test_words = {"test", "testing", "te", "eval"};
const Words input_words = {"x", "inputs", "input", "images", "image", "features", "data", "samples"};
const Words target_words = {"y", "targets", "target", "labels", "label", "classes", "class", "outputs", "output"};

// ---- archives ------------------------------------------------------------------------------------------------------

struct ArrayHead {
  std::string name;
  Shape shape;
};

std::vector<ArrayHead> heads_of(const std::string& path) {
  const data::ZipArchive archive(path);
  std::vector<ArrayHead> heads;
  for (const data::ZipArchive::Entry& entry : archive.entries()) {
    if (!entry.name.ends_with(".npy")) continue;
    const std::string name = entry.name.substr(0, entry.name.size() - 4);
    const data::Bytes head = archive.head(entry, data::npy_head_bytes);
    std::string origin = "array '";
    origin.append(name).append("' of '").append(path).append("'");
    heads.push_back({name, data::check_npy_head(head.view(), entry.uncompressed, origin).shape});
  }
  return heads;
}

// Whether an array may have the lengths of sequences, by its name and its shape.
bool is_row_of_lengths(const ArrayHead& head) {
  return is_called_lengths(head.name) && (head.shape.size() == 1 || (head.shape.size() == 2 && head.shape[1] == 1));
}

std::int64_t elements_of(const ArrayHead& head) { return numel(head.shape); }

}  // namespace

std::optional<data::Split> split_of(std::string_view word) {
  if (train_words.contains(word)) return data::Split::train;
  if (validation_words.contains(word)) return data::Split::validation;
  if (test_words.contains(word)) return data::Split::test;
  return std::nullopt;
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words{""};
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      words.emplace_back();
    } else {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  std::erase(words, "");
  return words;
}

std::map<data::Split, ArrayNames> find_arrays(const std::string& path) {
  std::vector<ArrayHead> heads = heads_of(path);
  std::map<data::Split, ArrayNames> found;
  for (const ArrayHead& head : heads) {
    data::Split split = data::Split::train;
    bool is_input = false, is_target = false;
    for (const std::string& word : words_of(head.name)) {
      split = split_of(word).value_or(split);
      is_input = is_input || input_words.contains(word);
      is_target = is_target || target_words.contains(word);
    }
    if (is_input == is_target || (!is_target && is_row_of_lengths(head))) continue;
    std::string& name = is_input ? found[split].inputs : found[split].targets;
    if (!name.empty()) {
      found.clear();
      break;
    }
    name = head.name;
  }
  std::erase_if(found, [](const auto& entry) { return entry.second.inputs.empty() || entry.second.targets.empty(); });
  if (found.contains(data::Split::train)) return found;
  if (heads.size() == 3) std::erase_if(heads, is_row_of_lengths);
  const bool pair = heads.size() == 2 && !heads[0].shape.empty() && !heads[1].shape.empty() &&
                    heads[0].shape[0] == heads[1].shape[0] && elements_of(heads[0]) != elements_of(heads[1]);
  if (pair) {
    const bool first = elements_of(heads[0]) > elements_of(heads[1]);
    return {{data::Split::train, {heads[first ? 0 : 1].name, heads[first ? 1 : 0].name}}};
  }
  std::vector<std::string> arrays;
  arrays.reserve(heads.size());
  for (const ArrayHead& head : heads) arrays.push_back("'" + head.name + "' " + to_string(head.shape));
  fail_data("which arrays of '" + path + "' are inputs and targets is not clear: it has " +
                (arrays.empty() ? "none" : join(arrays, ", ")),
            "call them x_train, y_train, x_test and y_test, or x and y; or name them in a config: pmaptrain help "
            "data.source.npz");
}

// ---- images --------------------------------------------------------------------------------------------------------

namespace {

// The size that images of different sizes are brought to: square, the median of the smaller sides, rounded down to a
// multiple of 32, from 32 to 128.
std::int64_t common_side(std::vector<std::int64_t> sides) {
  std::sort(sides.begin(), sides.end());
  return std::clamp<std::int64_t>(sides[sides.size() / 2] / 32 * 32, 32, 128);
}

// Of images with masks, of these heights and widths: their own size, the same for all, or a square one; at most 256.
std::vector<std::int64_t> size_with_masks(const std::set<std::pair<std::int64_t, std::int64_t>>& sizes,
                                          std::vector<std::int64_t> sides) {
  constexpr std::int64_t most = 256;
  std::pair<std::int64_t, std::int64_t> size = *sizes.begin();
  if (sizes.size() > 1) size.first = size.second = common_side(std::move(sides));
  const std::int64_t longer = std::max({size.first, size.second, most});
  const auto fitting = [&](std::int64_t side) {
    return std::max(side * most / longer / mask_multiple, std::int64_t{1}) * mask_multiple;
  };
  return {fitting(size.first), fitting(size.second)};
}

// Whether a folder has the folders images and masks, and both have a file of the same name, apart from its ending.
bool has_masks(const std::filesystem::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  const auto names_in = [&](const char* of, const auto& each) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / of, error)) {
      if (!entry.is_directory(error)) {
        each(entry.path().lexically_relative(folder / of).replace_extension().string());
      }
    }
  };
  names_in("images", [&](const std::string& name) { names.insert(name); });
  bool found = false;
  names_in("masks", [&](const std::string& name) { found = found || names.contains(name); });
  return found;
}

// Refuses a folder of images without folders, which is that of one class.
void check_is_above_classes(const std::string& path) {
  std::error_code error;
  bool has_images = false;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (entry.is_directory(error)) return;
    if (!entry.is_regular_file(error)) continue;
    has_images = has_images || data::is_image(data::read_file(entry.path().string(), 64));
  }
  if (!has_images) return;
  std::filesystem::path above = std::filesystem::absolute(path).lexically_normal();
  if (!above.has_filename()) above = above.parent_path();
  above = above.parent_path();
  if (split_of(letters_of(above.filename().string()))) above = above.parent_path();
  const std::filesystem::path near = above.lexically_proximate(std::filesystem::current_path(error));
  const bool is_below = !near.empty() && *near.begin() != "..";
  fail_data("'" + path + "' has images and no folders, as the folder of one class",
            "name the folder above, which has one folder for each class: pmaptrain init images " +
                shell_quoted(is_below ? near.string() : above.string()));
}

}  // namespace

ImageFolders find_images(const std::string& path) {
  ImageFolders found;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    fail_data("'" + path + "' is not a folder", "images are in a folder with one folder for each class");
  }
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    const std::optional<data::Split> split = split_of(letters_of(entry.path().filename().string()));
    if (split && entry.is_directory(error)) found.folders.emplace(*split, entry.path().string());
  }
  if (!found.folders.contains(data::Split::train)) found.folders = {{data::Split::train, path}};
  check_is_above_classes(found.folders.at(data::Split::train));
  found.have_masks = has_masks(found.folders.at(data::Split::train));
  std::set<std::pair<std::int64_t, std::int64_t>> sizes;
  std::vector<std::int64_t> sides;
  for (const auto& [split, folder] : found.folders) {
    data::ImageFiles files =
        found.have_masks ? data::list_unclassed_images(folder + "/images") : data::list_image_files(folder);
    std::vector<data::SkippedRow> unread;
    data::read_heads(files, &unread);
    data::remove_damaged_few(files, false, unread);
    for (const data::ImageFile& file : files.files) {
      sizes.emplace(file.head.seen_height(), file.head.seen_width());
      sides.push_back(std::min(file.head.seen_height(), file.head.seen_width()));
    }
  }
  if (found.have_masks) {
    if (!sizes.empty()) found.size = size_with_masks(sizes, std::move(sides));
  } else if (sizes.size() > 1) {
    const std::int64_t side = common_side(std::move(sides));
    found.size = {side, side};
  }
  return found;
}

}  // namespace pmaptrain::input
