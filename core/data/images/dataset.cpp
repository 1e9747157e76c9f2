#include "core/data/images/dataset.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/base/text.h"
#include "core/data/file.h"
#include "core/data/parallel.h"

namespace pmaptrain::data {
namespace {

// Attributes of a file that change when it is written.
struct Stamp {
  std::int64_t bytes = -1;
  timespec modified = {};
};

Stamp stamp_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return {};  // reading it says why
  return {status.st_size, status.st_mtim};
}

bool same(const Stamp& a, const Stamp& b) {
  return a.bytes == b.bytes && a.modified.tv_sec == b.modified.tv_sec && a.modified.tv_nsec == b.modified.tv_nsec;
}

[[noreturn]] void fail_modified(const std::string& path) {
  fail_data(fmt::format("'{}' was modified during use", path),
            "start again, and leave the images as they are: those that do not fit in memory are read whenever they are "
            "needed");
}

void read_image(const std::string& path, const ImageHead& head, const ImageForm& form, std::span<std::byte> out) {
  // Most images are small; this is for the others.
  constexpr std::size_t much = std::size_t{32} << 20;
  const auto bytes = static_cast<std::size_t>(head.height * head.width * form.channels);
  const std::vector<std::byte> file = read_file(path);
  check_image_bytes(head, file.size(), path);
  // `out` has room for the image of the head that was read before.
  const ImageHead now = read_image_head(file, path);
  if (now.format != head.format || now.height != head.height || now.width != head.width || now.grey != head.grey) {
    fail_modified(path);
  }
  if (bytes > much) demand_memory(bytes, fmt::format("'{}'", path));
  if (seen_size(head) == form.size) return decode_image(file, path, head, form.channels, out);
  const Memory pixels = allocate(bytes, fmt::format("'{}'", path));
  decode_image(file, path, head, form.channels, pixels.view);
  augment::resize_image(pixels.view, seen_size(head), out, form.size, form.channels);
}

class FolderDataset : public Dataset {
 public:
  // `pixels` has the first images. `stamps` has all files, or is empty if all pixels are in memory.
  FolderDataset(ImageFiles files, const ImageForm& form, Memory pixels, std::vector<Stamp> stamps)
      : files_(std::move(files)),
        form_(form),
        input_{DType::u8, form.shape()},
        bytes_(input_.bytes()),
        pixels_(std::move(pixels)),
        stamps_(std::move(stamps)) {
    target_ = has_classes() ? Field{DType::i32, {}, fmt::format("'{}'", files_.folder)} : no_target();
  }

  std::int64_t size() const override { return std::ssize(files_.files); }
  Field input() const override { return input_; }
  Field target() const override { return target_; }
  bool is_costly() const override { return !stamps_.empty(); }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    const auto i = static_cast<std::size_t>(index);
    if (input != nullptr && (i + 1) * bytes_ <= pixels_.view.size()) {
      std::memcpy(input, pixels_.view.data() + i * bytes_, bytes_);
    } else if (input != nullptr) {
      decode(i, {input, bytes_});
    }
    if (has_classes()) std::memcpy(target, &files_.files[i].label, sizeof(std::int32_t));
  }
  std::string file_of(std::int64_t index) const override { return files_.files[static_cast<std::size_t>(index)].name; }
  Shape stored_size(std::int64_t index) const override {
    const ImageHead& head = files_.files[static_cast<std::size_t>(index)].head;
    return {head.seen_height(), head.seen_width()};
  }
  std::int64_t file_size(std::int64_t index) const override {
    return is_costly() ? stamps_[static_cast<std::size_t>(index)].bytes : -1;
  }
  std::vector<std::byte> file_bytes(std::int64_t index) const override {
    return read_file(files_.path_of(files_.files[static_cast<std::size_t>(index)]));
  }
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override {
    if (!has_classes()) return std::nullopt;
    return std::pair<std::int64_t, std::int64_t>{0, std::ssize(files_.classes) - 1};
  }

 private:
  bool has_classes() const { return !files_.classes.empty(); }

  void decode(std::size_t i, std::span<std::byte> out) const {
    const ImageFile& file = files_.files[i];
    const std::string path = files_.path_of(file);
    const Stamp now = stamp_of(path);
    if (now.bytes >= 0 && !same(now, stamps_[i])) fail_modified(path);
    read_image(path, file.head, form_, out);
  }

  ImageFiles files_;
  ImageForm form_;
  Field input_, target_;
  std::size_t bytes_;
  Memory pixels_;  // [the first examples, height, width, channels]
  std::vector<Stamp> stamps_;
};

// How many images fit in `room` bytes.
std::size_t fitting(const ImageFiles& files, const ImageForm& form, std::size_t room) {
  return std::min(files.files.size(), room / static_cast<std::size_t>(numel(form.shape())));
}

}  // namespace

augment::ImageSize seen_size(const ImageHead& head) { return {head.seen_height(), head.seen_width()}; }

std::size_t room_for_images() { return available_memory() / 2; }

std::shared_ptr<const Dataset> decode_images(ImageFiles files, const ImageForm& form, std::size_t room,
                                             std::vector<SkippedRow>* skipped) {
  const auto each = static_cast<std::size_t>(numel(form.shape()));
  const std::size_t count = files.files.size(), fit = fitting(files, form, room);
  Memory pixels = allocate(
      fit * each, fmt::format("'{}' ({} images of {})", files.folder, fit, pmaptrain::to_string(form.shape())));
  std::vector<Stamp> stamps(fit < count ? count : 0);
  std::vector<std::string> reasons(count);
  for_each_item(std::ssize(files.files), [&](std::int64_t item) {
    const auto i = static_cast<std::size_t>(item);
    const std::string path = files.path_of(files.files[i]);
    std::vector<std::byte> discarded(i < fit ? 0 : each);
    const std::span<std::byte> to = i < fit ? pixels.view.subspan(i * each, each) : std::span(discarded);
    try {
      if (!stamps.empty()) stamps[i] = stamp_of(path);
      read_image(path, files.files[i].head, form, to);
    } catch (const Error& error) {
      if (skipped == nullptr || error.status() != ExitStatus::data) throw;
      reasons[i] = error.diagnostics().front().message;
    }
  });
  if (skipped != nullptr) {
    std::size_t kept = 0, kept_pixels = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!reasons[i].empty()) continue;
      if (i < fit) std::memmove(pixels.view.data() + kept_pixels++ * each, pixels.view.data() + i * each, each);
      if (!stamps.empty()) stamps[kept] = stamps[i];
      ++kept;
    }
    pixels.view = pixels.view.first(kept_pixels * each);
    if (!stamps.empty()) stamps.resize(kept);
    remove_unread(files, reasons, *skipped);
    std::sort(skipped->begin(), skipped->end(), [](const SkippedRow& a, const SkippedRow& b) { return a.row < b.row; });
  }
  return std::make_shared<FolderDataset>(std::move(files), form, std::move(pixels), std::move(stamps));
}

void remove_damaged(ImageFiles& files, const std::function<bool(const ImageFile&)>& asked,
                    std::vector<SkippedRow>& skipped) {
  std::vector<std::string> reasons(files.files.size());
  for_each_item(std::ssize(files.files), [&](std::int64_t item) {
    const auto i = static_cast<std::size_t>(item);
    const ImageFile& file = files.files[i];
    if (!asked(file)) return;
    const ImageForm own{seen_size(file.head), file.head.grey ? 1 : 3};
    const std::string path = files.path_of(file);
    try {
      const Memory pixels = allocate(static_cast<std::size_t>(numel(own.shape())), fmt::format("'{}'", path));
      read_image(path, file.head, own, pixels.view);
    } catch (const Error& error) {
      if (error.status() != ExitStatus::data) throw;
      reasons[i] = error.diagnostics().front().message;
    }
  });
  remove_unread(files, reasons, skipped);
}

void remove_damaged_few(ImageFiles& files, bool resize, std::vector<SkippedRow>& skipped) {
  const auto kind_of = [&](const ImageFile& file) {
    const augment::ImageSize size = resize ? augment::ImageSize{} : seen_size(file.head);
    return std::tuple(size.height, size.width, file.head.grey);
  };
  std::map<std::tuple<std::int64_t, std::int64_t, bool>, std::int64_t> counts;
  for (const ImageFile& file : files.files) ++counts[kind_of(file)];
  if (counts.size() < 2) return;
  const std::int64_t most = most_skipped(std::ssize(files.files) + std::ssize(skipped));
  remove_damaged(
      files, [&](const ImageFile& file) { return counts.at(kind_of(file)) <= most; }, skipped);
}

std::string note_of_room(const ImageFiles& files, const std::string& which, const ImageForm& form, std::size_t room) {
  const std::size_t count = files.files.size(), fit = fitting(files, form, room);
  if (fit == count) return {};
  const auto bytes = static_cast<double>(count) * static_cast<double>(numel(form.shape()));
  return fmt::format("{}: {} do not fit in {} of memory; {} of {} are decoded whenever they are read", which,
                     human_bytes(bytes), human_bytes(room), count - fit, count);
}

}  // namespace pmaptrain::data
