#include "core/evaluate/mask_folder.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <set>
#include <vector>

#include "core/augment/resize.h"
#include "core/base/error.h"
#include "core/data/images/label_png.h"
#include "core/run/files/file_system.h"
#include "core/run/files/file_writer.h"

namespace pmaptrain::evaluate {
namespace {

namespace fs = std::filesystem;

class MaskFolder : public PredictionWriter {
 public:
  MaskFolder(const std::string& folder, const Predictions& predictions)
      : folder_(folder),
        predictions_(predictions),
        size_{predictions.shape[0], predictions.shape[1]},
        digits_(std::max<std::size_t>(4, std::to_string(predictions.inputs->size()).size())) {
    check_names();
    make(folder_);
  }

  void write(std::span<const std::byte> rows) override {
    const std::size_t bytes = predictions_.row_bytes();
    for (std::size_t at = 0; at < rows.size(); at += bytes) write_mask(rows.subspan(at, bytes));
  }
  void finish() override {}

 private:
  fs::path name_of(std::int64_t example) const {
    const std::string file = predictions_.inputs->file_of(example);
    if (file.empty()) return fmt::format("{:0{}}.png", example, digits_);
    return fs::path(file).replace_extension(".png");
  }

  void check_names() const {
    std::set<fs::path> names;
    for (std::int64_t i = 0; i < predictions_.inputs->size(); ++i) {
      if (names.insert(name_of(i)).second) continue;
      fail_data(fmt::format("'{}' would be the mask of two images", (folder_ / name_of(i)).string()),
                "give the images different names; the ending does not count");
    }
  }

  static void make(const fs::path& folder) {
    if (const int error = run::make_directories(folder); error != 0) run::fail_file(folder, "created", error);
  }

  void write_mask(std::span<const std::byte> row) {
    std::vector<std::uint8_t> labels(row.size() / sizeof(std::int32_t));
    for (std::size_t i = 0; i < labels.size(); ++i) {
      std::int32_t label = 0;
      std::memcpy(&label, row.data() + i * sizeof label, sizeof label);
      if (label > 255) {
        fail_data(fmt::format("class {} does not fit a pixel of 8 bits", label), "write a .npz or .npy file");
      }
      labels[i] = static_cast<std::uint8_t>(label);
    }
    const Shape stored = predictions_.inputs->stored_size(next_);
    const augment::ImageSize own = stored.empty() ? size_ : augment::ImageSize{stored[0], stored[1]};
    std::vector<std::uint8_t> resized(static_cast<std::size_t>(own.height * own.width));
    augment::resize_nearest(std::as_bytes(std::span(labels)), size_, std::as_writable_bytes(std::span(resized)), own,
                            1);
    const std::vector<std::byte> file = data::encode_labels(resized, own.height, own.width);
    const fs::path path = folder_ / name_of(next_++);
    make(path.parent_path());
    const std::array parts{std::span<const std::byte>(file)};
    run::write_whole(path.string(), std::span<const std::span<const std::byte>>(parts));
  }

  fs::path folder_;
  const Predictions& predictions_;
  augment::ImageSize size_;
  std::size_t digits_;  // of a number that is a name
  std::int64_t next_ = 0;
};

}  // namespace

bool are_masks(const Predictions& predictions) {
  return predictions.kind == model::PredictionKind::classes && predictions.by_class && predictions.shape.size() == 2;
}

std::unique_ptr<PredictionWriter> open_mask_folder(const std::string& folder, const Predictions& predictions) {
  return std::make_unique<MaskFolder>(folder, predictions);
}

}  // namespace pmaptrain::evaluate
