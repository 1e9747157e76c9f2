// Files and folders that are no images, damaged, too large, or not laid out as classes.
#include <sys/stat.h>

#include <algorithm>

#include "core/data/images/folder.h"
#include "core/data/images/image.h"
#include "core/input/open.h"
#include "tests/catch.h"
#include "tests/data/image_files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

// What opening a training split with this one file says of it.
std::string refused(const std::string& bytes, std::optional<std::vector<std::int64_t>> size = std::nullopt) {
  const TemporaryFolder folder;
  write_in(folder, "train/a/x.png", bytes);
  const std::string path = folder / "train/a/x.png";
  std::string error = error_of([&] {
    data::open_image_folder(
        {folder / "train", {}, {}, size}, [](data::Split) { return true; }, nullptr);
  });
  const std::size_t at = error.find("'" + path + "'");
  if (at != std::string::npos) error.replace(at, path.size() + 2, "FILE");
  return error;
}

std::string open_error(const data::ImageFolder& folder) {
  return error_of([&] {
    data::open_image_folder(
        folder, [](data::Split) { return true; }, nullptr);
  });
}

const std::string copy_again = " | copy or download it again";

std::string bytes_of(const std::string& name) { return test::read_text("tests/data/images/" + name); }

}  // namespace

TEST_CASE("a file that is no PNG or JPEG image is named with what it is", "[data]") {
  const std::string move = " | move it out of the folder; only names that begin with a dot are passed over";
  const std::string convert = " | convert it, for example with ImageMagick: magick FILE FILE.png";
  CHECK(refused("hello") == "FILE is neither a PNG nor a JPEG image: it begins with 68 65 6c 6c" + move);
  CHECK(refused("h") == "FILE is neither a PNG nor a JPEG image: it begins with 68" + move);
  CHECK(refused("") == "FILE is empty | ");
  CHECK(refused("GIF89a......") == "FILE is a GIF image; PNG and JPEG are supported" + convert);
  CHECK(refused("BM..........") == "FILE is a BMP image; PNG and JPEG are supported" + convert);
  CHECK(refused(std::string("II*\0....", 8)) == "FILE is a TIFF image; PNG and JPEG are supported" + convert);
  CHECK(refused("RIFF....WEBPVP8 ") == "FILE is a WebP image; PNG and JPEG are supported" + convert);
  CHECK(refused(std::string("\0\0\0\x1c", 4) + "ftypavif") ==
        "FILE is a AVIF image; PNG and JPEG are supported" + convert);
}

TEST_CASE("a PNG that is damaged or ends too early says so, wherever it is cut", "[data]") {
  const std::string good = bytes_of("rgb.png");
  CHECK(refused(good) == "accepted");
  for (std::size_t length = 8; length < good.size(); ++length) {
    INFO(length << " of " << good.size());
    const std::string error = refused(good.substr(0, length));
    const bool ends_early = error == "FILE is damaged: it ends too early" + copy_again;
    CHECK(ends_early);
  }
  std::string pixel = good;
  pixel[good.size() / 2] = static_cast<char>(pixel[good.size() / 2] ^ 0x10);
  CHECK(contains(refused(pixel), "FILE is damaged: IDAT: "));
  std::string head = good;
  head[19] = '\1';  // the width, of which the checksum then is another
  CHECK(refused(head) == "FILE is damaged: IHDR: CRC error" + copy_again);
  Png larger = flat_png(4, 4, 1, 1);
  larger.head_height = 5;
  CHECK(contains(refused(larger.build()), "FILE is damaged: "));
}

TEST_CASE("a JPEG that is damaged or ends too early says so", "[data]") {
  for (const char* const name : {"rgb.jpg", "grey.jpg", "progressive.jpg", "cmyk.jpg"}) {
    const std::string good = bytes_of(name);
    CHECK(refused(good) == "accepted");
    // Without its last two bytes, the marker of its end, nothing of the image is missing.
    for (std::size_t length = 4; length + 2 < good.size(); length += 7) {
      INFO(name << ": " << length << " of " << good.size());
      const std::string error = refused(good.substr(0, length));
      CHECK(contains(error, "FILE is damaged: "));
      CHECK(contains(error, copy_again));
    }
  }
  const std::string good = bytes_of("full.jpg");
  std::string between = good;
  between.insert(good.size() - 2, 5, 'x');  // as many cameras write it
  CHECK(refused(between) == "accepted");
}

TEST_CASE("changed bytes of an image are an error or other pixels, never more", "[data]") {
  for (const char* const name : {"rgb.png", "palette.png", "rgb.jpg", "progressive.jpg", "turned6.jpg"}) {
    const std::string good = bytes_of(name);
    for (std::size_t at = 0; at < good.size(); at += 5) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
      const std::vector<std::byte> file(reinterpret_cast<const std::byte*>(bad.data()),
                                        reinterpret_cast<const std::byte*>(bad.data()) + bad.size());
      try {
        const data::ImageHead head = data::read_image_head(file, name);
        data::check_image_bytes(head, file.size(), name);
        const std::int64_t channels = head.grey ? 1 : 3, bytes = head.height * head.width * channels;
        if (bytes > 1 << 20) continue;
        std::vector<std::byte> pixels(static_cast<std::size_t>(bytes));
        data::decode_image(file, name, head, channels, pixels);
      } catch (const Error& error) {
        CHECK(error.status() == ExitStatus::data);
      }
    }
  }
  SUCCEED("no crash");
}

TEST_CASE("an image beyond the limits is refused before memory is allocated for it", "[data]") {
  Png png = flat_png(1, 1, 1, 1);
  png.head_width = 70000;
  CHECK(contains(refused(png.build()), "FILE is damaged: "));  // libpng's own limit
  png.head_width = 65535;
  png.head_height = 65535;
  CHECK(
      refused(png.build()) ==
      "FILE has 65535x65535 pixels (height x width); at most 65535 on a side and 134217728 in total are read | make it "
      "smaller, or check that it is not damaged");
  png.head_width = png.head_height = 10000;
  CHECK(contains(refused(png.build()), "bytes cannot hold 10000x10000 pixels | copy or download it again"));
  png.head_width = 0;
  CHECK(contains(refused(png.build()), "FILE is damaged: "));
}

TEST_CASE("a folder that is not laid out as classes says which entry is in the way", "[data]") {
  const std::string layout = "; expected one folder for each class, with the images of the class in it";
  const TemporaryFolder folder;
  const std::string train = folder / "train";
  CHECK(open_error({train, {}, {}, {}}) == "cannot open '" + train +
                                               "': No such file or directory | a relative path in a config is relative "
                                               "to the folder of the config");
  fs::create_directories(train);
  CHECK(open_error({train, {}, {}, {}}) == "'" + train + "' has no folders" + layout + " | ");
  fs::create_directories(train + "/cat");
  CHECK(open_error({train, {}, {}, {}}) == "'" + train + "' has no images in the folders of its classes | ");
  write_in(folder, "train/cat/1.png", flat_png(2, 2, 1, 1).build());
  write_in(folder, "train/list.txt", "x");
  CHECK(open_error({train, {}, {}, {}}) ==
        "'" + train + "/list.txt' is not in the folder of a class" + layout +
            " | move it into one, or out of the folder; only names that begin with a dot are passed over");
  CHECK(open_error({train + "/list.txt", {}, {}, {}}) == "'" + train + "/list.txt' is a file" + layout + " | ");
  CHECK(open_error({folder.path().string(), {}, {}, {}}) ==
        "'" + train + "/cat' is a folder in the folder of a class" + layout +
            " | if 'train' is the name of a split, give this split's own folder");
  fs::remove(train + "/list.txt");
  REQUIRE(::mkfifo((train + "/cat/pipe").c_str(), 0600) == 0);
  CHECK(open_error({train, {}, {}, {}}) == "'" + train +
                                               "/cat/pipe' is not a regular file | move it out of the folder; "
                                               "on_error: skip in image_folder leaves out a few "
                                               "that cannot be read");
  fs::remove(train + "/cat/pipe");
  fs::create_directories(train + "/caf\xe9");  // state.json, which has the names of classes, is UTF-8
  CHECK(open_error({train, {}, {}, {}}) ==
        "the name of the class '" + train + "/caf\xe9' is not UTF-8 | rename the folder");
}

TEST_CASE("an image in a file that is larger than the memory is refused before it is read", "[data]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& begin, ExitStatus status) {
    write_in(folder, "train/a/x.png", begin);
    fs::resize_file(folder / "train/a/x.png", std::uintmax_t{1} << 42);  // a hole
    return error_of(
        [&] {
          data::open_image_folder(
              {folder / "train", {}, {}, {}}, [](data::Split) { return true; }, nullptr);
        },
        status);
  };
  CHECK(contains(refusal(flat_png(2, 2, 1, 1).build(), ExitStatus::resource),
                 "/train/a/x.png' needs 4.0 TiB of memory, and "));
  // Of a head that does not end, no more is read than metadata may have.
  CHECK(contains(refusal("\x89PNG\r\n\x1a\n", ExitStatus::data), "/train/a/x.png' is damaged: "));
}

TEST_CASE("splits have the same classes, and images that can become alike", "[data]") {
  const TemporaryFolder folder;
  const std::string train = folder / "train", test = folder / "test";
  write_in(folder, "train/cat/1.png", flat_png(2, 2, 1, 1).build());
  write_in(folder, "train/dog/1.png", flat_png(2, 2, 1, 1).build());
  write_in(folder, "test/cat/1.png", flat_png(2, 2, 1, 1).build());
  CHECK(open_error({train, {}, test, {}}) ==
        "the test split has no folder for the class 'dog': '" + test +
            "/dog' | all splits have the same classes; add the folder, empty if the split has no image of the class");
  write_in(folder, "test/dog/1.png", flat_png(2, 2, 1, 1).build());
  write_in(folder, "test/fox/1.png", flat_png(2, 2, 1, 1).build());
  CHECK(open_error({train, test, {}, {}}) ==
        "the class 'fox' of the validation split, in '" + test +
            "', is no class of the training split | the classes are the folders of the training split: cat, dog");
  fs::remove_all(test + "/fox");
  fs::create_directories(test + "/eel");
  CHECK(open_error({train, {}, test, {}}) ==
        "the class 'eel' of the test split, in '" + test +
            "', is no class of the training split, and its folder has no images | remove the empty folder; the classes "
            "are the folders of the training split: cat, dog");
  fs::remove_all(test + "/eel");
  fs::create_directories(train + "/eel");
  CHECK(open_error({train, {}, test, {}}) ==
        "'" + train +
            "/eel' has no images, so nothing trains the class 'eel', and the test split has no folder for it | remove "
            "the empty folder, or add images of the class to both splits");
  fs::remove_all(train + "/eel");
  write_in(folder, "test/dog/2.png", flat_png(2, 2, 3, 1).build());
  CHECK(open_error({train, {}, test, {}}) ==
        "'" + test +
            "/dog/2.png' is in colour, but all training images are grey | convert it to grey, or make the "
            "training images colour");
  write_in(folder, "test/dog/2.png", flat_png(3, 4, 1, 1).build());
  CHECK(open_error({train, {}, test, {}}) ==
        "'" + test +
            "/dog/2.png' has 3x4 pixels (height x width), but the training images have 2x2 | resize all images: "
            "size: [2, 2] in image_folder");
  write_in(folder, "train/dog/2.png", flat_png(3, 4, 1, 1).build());
  CHECK(
      open_error({train, {}, {}, {}}) ==
      "the images differ in size: '" + train + "/cat/1.png' has 2x2 pixels (height x width), '" + train +
          "/dog/2.png' has 3x4 | choose the size that all are resized to, for example size: [32, 32] in image_folder");
}

TEST_CASE("of several damaged images the first in the order of the folder is named, whoever reads them", "[data]") {
  const TemporaryFolder folder;
  for (int i = 0; i < 40; ++i) {
    const std::string good = flat_png(2, 2, 1, 1).build();
    write_in(folder, "train/a/" + std::to_string(100 + i) + ".png", i % 7 == 6 ? good.substr(0, 60) : good);
  }
  for (int time = 0; time < 5; ++time) {
    CHECK(contains(open_error({folder / "train", {}, {}, {}}), "train/a/106.png' is damaged"));
  }
}
