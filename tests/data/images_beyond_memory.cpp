// Folders of images that do not fit in memory. Some images are decoded whenever they are read; the examples are the
// same.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/data/images/folder.h"
#include "core/data/subset.h"
#include "core/input/batches/batch.h"
#include "core/input/batches/stream.h"
#include "core/input/held_out.h"
#include "tests/catch.h"
#include "tests/data/image_files.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using test::contains;

namespace {

namespace fs = std::filesystem;

// Nine images of two classes, of two sizes, which become 4x4: 16 bytes each.
class Folder {
 public:
  Folder() {
    for (int i = 0; i < 9; ++i) {
      std::string pixels;
      const std::int64_t side = i % 2 == 0 ? 4 : 7;
      for (std::int64_t k = 0; k < side * side; ++k) pixels += static_cast<char>((k * 29 + i * 31) % 251);
      write_in(folder_, name(i), Png{side, side, 1, pixels, side, side}.build());
    }
  }

  static std::string name(int i) { return (i < 5 ? "cat/" : "dog/") + std::to_string(i) + ".png"; }
  std::string path(int i) const { return folder_ / name(i); }
  void write(int i, const std::string& bytes) const { write_in(folder_, name(i), bytes); }

  data::Source open(std::optional<std::size_t> room, data::OnError on_error = data::OnError::error) const {
    return data::open_image_folder(
        {folder_.path().string(), {}, {}, std::vector<std::int64_t>{4, 4}, on_error}, [](data::Split) { return true; },
        nullptr, {}, room);
  }

 private:
  TemporaryFolder folder_;
};

std::vector<std::pair<std::string, std::int32_t>> examples_of(const data::Dataset& dataset) {
  std::vector<std::pair<std::string, std::int32_t>> examples;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    std::string pixels(dataset.input().bytes(), '\0');
    std::int32_t label = -1;
    dataset.read(i, reinterpret_cast<std::byte*>(pixels.data()), reinterpret_cast<std::byte*>(&label));
    examples.emplace_back(std::move(pixels), label);
  }
  return examples;
}

std::string read_error(const data::Dataset& dataset, std::int64_t index) {
  return error_of([&] {
    std::vector<std::byte> pixels(dataset.input().bytes());
    std::int32_t label = 0;
    dataset.read(index, pixels.data(), reinterpret_cast<std::byte*>(&label));
  });
}

const std::string as_they_are =
    " | start again, and leave the images as they are: those that do not fit in memory are read whenever they are "
    "needed";

}  // namespace

TEST_CASE("images that do not fit in memory are the same examples, and a note says how many", "[data]") {
  const Folder folder;
  const data::Source all = folder.open(std::nullopt);
  CHECK_FALSE(all.train->is_costly());
  CHECK(all.notes == std::vector<std::string>{"train images: 4 of 9 are resized to 4x4"});
  const auto examples = examples_of(*all.train);
  CHECK(std::set(examples.begin(), examples.end()).size() == 9);
  for (const std::size_t room : {0U, 15U, 16U, 100U, 143U}) {
    INFO(room);
    const data::Source some = folder.open(room);
    CHECK(some.train->is_costly());
    CHECK((examples_of(*some.train) == examples));
    CHECK((examples_of(*some.train) == examples));  // reading changes nothing
    CHECK(some.train->file_of(8) == all.train->file_of(8));
    CHECK(some.encoding == all.encoding);
    REQUIRE(some.notes.size() == 2);
    const std::string decoded = std::to_string(9 - room / 16) + " of 9 are decoded whenever they are read";
    CHECK(some.notes[1] == "train images: 144 B do not fit in " + std::to_string(room) + " B of memory; " + decoded);
  }
  CHECK_FALSE(folder.open(144).train->is_costly());
  CHECK(data::first_examples(folder.open(0).train, 5)->is_costly());
}

TEST_CASE("batches of images that are decoded when they are read have the same bytes", "[data]") {
  const Folder folder;
  spec::DataSpec spec;
  spec.batch_size = std::int64_t{4};
  spec.remainder = spec::Remainder::mask;
  const BatchPlan plan = input::plan_training(spec, Mesh({{"devices", 1}}), 9);
  const auto batches = [&](std::optional<std::size_t> room) {
    const data::Source source = folder.open(room);
    const input::Stream stream(data::Sampler::shuffled(9, 3, "data/shuffle"));
    std::vector<std::byte> bytes(5 * 4 * 16), labels(5 * 4 * 4);
    for (std::int64_t step = 0; step < 5; ++step) {
      const auto at = static_cast<std::size_t>(step);
      input::fill(*source.train, stream, plan, step,
                  {bytes.data() + at * 64, labels.data() + at * 16, nullptr, nullptr, 16, 4});
    }
    return std::pair(bytes, labels);
  };
  CHECK((batches(0) == batches(std::nullopt)));
  CHECK((batches(70) == batches(std::nullopt)));
}

TEST_CASE("files that cannot be read are left out whether they fit in memory or not", "[data]") {
  const std::string whole = flat_png(4, 4, 1, 9).build();
  const std::string cut = whole.substr(0, whole.size() - 20);
  for (const int bad : {1, 7}) {  // among those that stay in memory, and those that do not
    const Folder other;
    other.write(bad, cut);
    const std::string refused = error_of([&] { other.open(64); });
    CHECK(contains(refused, other.path(bad) + "' is damaged"));
    CHECK(refused == error_of([&] { other.open(std::nullopt); }));
    const data::Source all = other.open(std::nullopt, data::OnError::skip), some = other.open(64, data::OnError::skip);
    CHECK(some.train->size() == 8);
    CHECK((examples_of(*some.train) == examples_of(*all.train)));
    CHECK(some.train->file_of(7) == all.train->file_of(7));
    CHECK(some.encoding == all.encoding);
  }
}

TEST_CASE("an image that was modified or removed since it was decoded is an error that names it", "[data]") {
  const Folder folder;
  const data::Source source = folder.open(32);
  folder.write(1, flat_png(4, 4, 1, 9).build());  // stays in memory
  CHECK(read_error(*source.train, 1) == "accepted");
  folder.write(3, flat_png(4, 4, 1, 9).build());
  CHECK(read_error(*source.train, 3) == "'" + folder.path(3) + "' was modified during use" + as_they_are);
  fs::remove(folder.path(4));
  CHECK(contains(read_error(*source.train, 4), "'" + folder.path(4) + "'"));
  CHECK(contains(read_error(*source.train, 4), "No such file"));
  CHECK(read_error(*source.train, 5) == "accepted");
}

TEST_CASE("an image of another size in the place of one that was listed is an error, whatever its times say",
          "[data]") {
  const Folder folder;
  const data::Source source = folder.open(0);
  const std::string path = folder.path(2);
  const auto time = fs::last_write_time(path);
  const auto bytes = fs::file_size(path);
  std::string other = flat_png(5, 4, 1, 9).build();
  REQUIRE(other.size() <= bytes);
  other.resize(bytes, '\0');  // what follows the last chunk is not read
  folder.write(2, other);
  fs::last_write_time(path, time);
  CHECK(read_error(*source.train, 2) == "'" + path + "' was modified during use" + as_they_are);
}

TEST_CASE("copies among images that do not fit in memory are found by the bytes of their files", "[data]") {
  const TemporaryFolder train, test;
  const auto image = [](int i) {
    std::string pixels;
    for (int k = 0; k < 16; ++k) pixels += static_cast<char>((k * 29 + i * 31) % 251);
    return Png{4, 4, 1, pixels, 4, 4}.build();
  };
  for (int i = 0; i < 8; ++i) write_in(train, (i % 2 == 0 ? "cat/" : "dog/") + std::to_string(i) + ".png", image(i));
  write_in(test, "cat/copy.png", image(0));
  write_in(test, "dog/copy.png", image(3));
  write_in(test, "dog/of_another_class.png", image(2));
  write_in(test, "cat/new.png", image(9));
  spec::DataSpec spec;
  data::ImageFolder folder{train.path().string(), {}, test.path().string(), {}, data::OnError::error};
  spec.source = folder;
  const auto told = [&](std::optional<std::size_t> room) {
    data::Source source = data::open_image_folder(
        folder, [](data::Split) { return true; }, nullptr, {}, room);
    CHECK(source.train->is_costly() == (room == 0));
    input::warn_of_shared(source, *source.train, data::Split::test, spec);
    REQUIRE(source.warnings.size() == 1);
    return source.warnings.front().message;
  };
  CHECK(told(0) ==
        "3 of 4 test examples stand in the training split as well, with the same inputs, 1 of them with another class");
  CHECK(told(std::nullopt) == told(0));
  // They are not decoded: files that are images no longer, and that are equal, are found as well.
  data::Source source = data::open_image_folder(
      folder, [](data::Split) { return true; }, nullptr, {}, 0);
  const std::string junk(image(0).size(), 'x');
  write_in(train, "cat/0.png", junk);
  write_in(test, "cat/copy.png", junk);
  input::warn_of_shared(source, *source.train, data::Split::test, spec);
  REQUIRE(source.warnings.size() == 1);
  CHECK(contains(source.warnings.front().message, "3 of 4 test examples"));
}
