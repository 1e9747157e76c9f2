// on_error: skip leaves out rows that cannot be read.
#include <sys/stat.h>

#include <filesystem>

#include "core/data/images/folder.h"
#include "core/data/tables/csv.h"
#include "core/data/tables/csv_reader.h"
#include "tests/catch.h"
#include "tests/data/image_files.h"
#include "tests/data/tables.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// Rows of which some are replaced: by line, the header being line 1.
std::string table(int rows, const std::vector<std::pair<int, std::string>>& replaced) {
  std::string text = "x,c,y\n";
  for (int i = 0; i < rows; ++i) {
    std::string row = std::to_string(i) + "," + (i % 2 == 0 ? "red" : "blue") + "," + (i % 3 == 0 ? "a" : "b");
    for (const auto& [line, other] : replaced) {
      if (line == i + 2) row = other;
    }
    text += row + "\n";
  }
  return text;
}

struct Skipping : Tables {
  Skipping(int rows, const std::vector<std::pair<int, std::string>>& replaced) : Tables(table(rows, replaced)) {
    csv()->categorical = {{"c"}};
    csv()->on_error = data::OnError::skip;
  }
};

}  // namespace

TEST_CASE("rows that cannot be read are left out, whatever is wrong with them", "[data]") {
  const std::vector<std::string> wrong = {"Paris,red,a", "1,pink",        "1,pink,a,2", "1,,a",
                                          "1,pink,",     "1,\"pink\"s,a", "inf,pink,a", "1,re\rd,a",
                                          "1,pi\xe9,a",  "1,pink,\xe9",   "1,pink,\"a"};
  const data::Source whole = Skipping(100, {}).open();
  for (const std::string& row : wrong) {
    INFO(row);
    const data::Source source = Skipping(101, {{51, row}}).open();
    CHECK(source.train->size() == 100);
    // Nothing of the row is left: its category and its class are unknown.
    CHECK(source.encoding.columns == whole.encoding.columns);
    CHECK(source.encoding.classes == whole.encoding.classes);
    CHECK(input_of(*source.train, 48).front() == 48);
    CHECK(input_of(*source.train, 49).front() == 50);
    CHECK(input_of(*source.train, 99).front() == 100);
    CHECK(target_of<std::int32_t>(*source.train, 49) == (50 % 3 == 0 ? 0 : 1));
    REQUIRE(source.encoding.skipped.size() == 1);
    CHECK(contains(source.encoding.skipped[0].reason, "line 51"));
  }
}

TEST_CASE("no more than a hundredth of the rows is left out, or one, and it is told", "[data]") {
  const Skipping tables(200, {{3, "one,red,a"}, {9, "two,red,a"}});
  const data::Source source = tables.open();
  CHECK(source.train->size() == 198);
  const std::string first = "'" + tables.folder / "train.csv" + "', line 3, column 'x': 'one' is no number";
  CHECK(source.notes ==
        std::vector<std::string>{"train: 2 of 200 rows cannot be read and are left out; the first: " + first});
  CHECK(source.encoding.skipped.front() == data::Encoding::Skipped{"train", 1, first});
  CHECK(Skipping(4, {{3, "one,red,a"}}).open().train->size() == 3);
  CHECK(Skipping(199, {{3, "one,red,a"}, {9, "two,red,a"}}).refusal() ==
        "2 of the 199 rows of the train split cannot be read, and on_error: skip leaves out at most 1; the first: "
        "'train.csv', line 3, column 'x': 'one' is no number | repair them; on_error: error says more about the first");
  CHECK(Skipping(1, {{2, "one,red,a"}}).refusal() ==
        "no row of 'train.csv' can be read: 'train.csv', line 2, column 'x': 'one' is no number | ");
}

TEST_CASE("rows are left out before validation takes its share, and weights with them", "[data]") {
  Tables tables("x,y,w\n1,0.5,1\n2,0.5,many\n3,1.5,3\n4,2.5,4\n");
  tables.csv()->on_error = data::OnError::skip;
  tables.csv()->weight = {"w"};
  tables.data.validation = spec::ValidationShare{0.3, 0, false};
  const data::Source source = tables.open();
  CHECK(source.train->size() == 2);
  CHECK(source.validation->size() == 1);
  CHECK(source.train->weight(1) == 3);
  CHECK(source.validation->weight(0) == 4);
  CHECK(target_of<float>(*source.train, 1) == 1.5F);
}

TEST_CASE("image files that cannot be read are left out, by their heads and by their pixels", "[data]") {
  const TemporaryFolder folder;
  const std::string image = flat_png(4, 4, 1, '\x40').build();
  for (int i = 0; i < 120; ++i) write_in(folder, "a/" + std::to_string(1000 + i) + ".png", image);
  write_in(folder, "b/1.png", flat_png(4, 4, 1, '\x60').build());
  const data::ImageFolder photos{folder.path().string(), {}, {}, {}, data::OnError::skip};
  const auto open = [&] {
    return data::open_image_folder(
        photos, [](data::Split) { return true; }, nullptr);
  };
  for (const std::string& wrong : {std::string("hello"), image.substr(0, image.size() - 20)}) {
    write_in(folder, "a/1007.png", wrong);
    const data::Source source = open();
    CHECK(source.train->size() == 120);
    CHECK(source.train->file_of(6) == "a/1006.png");
    CHECK(source.train->file_of(7) == "a/1008.png");
    CHECK(target_of<std::int32_t>(*source.train, 119) == 1);
    REQUIRE(source.encoding.skipped.size() == 1);
    CHECK(contains(source.encoding.skipped[0].reason, "/a/1007.png'"));
    CHECK(contains(source.notes.front(), "train: 1 of 121 files cannot be read and is left out; the first: "));
  }
  write_in(folder, "a/1002.png", "hello");
  CHECK(contains(error_of(open),
                 "2 of the 121 files of the train split cannot be read, and on_error: skip leaves out at most 1; the "
                 "first: "));
}

TEST_CASE("what is no file among images is left out, too", "[data]") {
  const TemporaryFolder folder;
  const std::string image = flat_png(4, 4, 1, '\x40').build();
  for (int i = 0; i < 20; ++i) write_in(folder, "a/" + std::to_string(10 + i) + ".png", image);
  write_in(folder, "b/1.png", image);
  const auto open = [&](data::OnError on_error) {
    return data::open_image_folder(
        {folder.path().string(), {}, {}, {}, on_error}, [](data::Split) { return true; }, nullptr);
  };
  const auto check = [&](const std::string& reason) {
    INFO(reason);
    CHECK(contains(error_of([&] { open(data::OnError::error); }), reason));
    const data::Source source = open(data::OnError::skip);
    CHECK(source.train->size() == 21);
    REQUIRE(source.encoding.skipped.size() == 1);
    CHECK(source.encoding.skipped[0].row == 3);
    CHECK(contains(source.encoding.skipped[0].reason, reason));
  };
  write_in(folder, "a/Thumbs.db", "no image, and no matter");
  const std::filesystem::path odd = folder.path() / "a" / "12x.png";
  std::filesystem::create_symlink("nothing.png", odd);
  check("cannot open '" + odd.string() + "': No such file or directory");
  std::filesystem::remove(odd);
  REQUIRE(::mkfifo(odd.c_str(), 0600) == 0);
  check("'" + odd.string() + "' is not a regular file");
}

TEST_CASE("a run that goes on leaves out the rows that it began without, though they were repaired", "[data]") {
  const Skipping broken(200, {{51, "oops,red,a"}});
  const data::Source before = broken.open();
  REQUIRE(before.train->size() == 199);
  Skipping repaired(200, {});
  CHECK(repaired.open().train->size() == 200);
  const data::Source after = repaired.open_without(before.encoding.skipped);
  CHECK(after.train->size() == 199);
  CHECK(input_of(*after.train, 49).front() == 50);
  CHECK(after.encoding == before.encoding);
}

TEST_CASE("a run that goes on leaves out the images that it began without, repaired or removed", "[data]") {
  const TemporaryFolder folder;
  const std::string image = flat_png(4, 4, 1, '\x40').build();
  for (int i = 0; i < 20; ++i) write_in(folder, "a/" + std::to_string(10 + i) + ".png", image);
  write_in(folder, "b/1.png", image);
  write_in(folder, "a/13.png", "hello");
  const auto open = [&](const data::Skipped& left_out) {
    return data::open_image_folder(
        {folder.path().string(), {}, {}, {}, data::OnError::skip}, [](data::Split) { return true; }, nullptr, left_out);
  };
  const data::Encoding before = open({}).encoding;
  REQUIRE(before.skipped.size() == 1);
  CHECK(before.skipped[0].file == "a/13.png");
  write_in(folder, "a/13.png", image);
  CHECK(open({}).train->size() == 21);
  CHECK(open(before.skipped).train->size() == 20);
  CHECK(open(before.skipped).train->file_of(3) == "a/14.png");
  CHECK(open(before.skipped).encoding == before);
  std::filesystem::remove(folder.path() / "a" / "13.png");
  CHECK(open(before.skipped).train->file_of(3) == "a/14.png");
  CHECK(open(before.skipped).encoding == before);
}

TEST_CASE("an image whose pixels are damaged does not decide what size and how many channels all have", "[data]") {
  const auto damaged = [](const std::string& image) { return image.substr(0, image.size() - 20); };
  const std::string grey = flat_png(4, 4, 1, '\x40').build();
  for (const bool resize : {false, true}) {
    for (const std::string& odd : {flat_png(4, 4, 3, '\x40').build(), flat_png(6, 4, 1, '\x40').build()}) {
      for (const std::string split : {"train", "test"}) {
        INFO("resized " << resize << ", in " << split);
        const TemporaryFolder folder;
        for (int i = 0; i < 20; ++i) write_in(folder, "train/a/" + std::to_string(10 + i) + ".png", grey);
        write_in(folder, "train/b/1.png", grey);
        write_in(folder, "test/a/1.png", grey);
        write_in(folder, "test/b/1.png", grey);
        write_in(folder, split + "/a/0.png", damaged(odd));
        data::ImageFolder photos{folder / "train", {}, folder / "test", {}, data::OnError::skip};
        if (resize) photos.size = {{4, 4}};
        const data::Source source = data::open_image_folder(
            photos, [](data::Split) { return true; }, nullptr);
        CHECK(source.train->input().shape == Shape{4, 4, 1});
        CHECK(source.train->size() == 21);
        CHECK(source.test->size() == 2);
        REQUIRE(source.encoding.skipped.size() == 1);
        CHECK(source.encoding.skipped[0].split == split);
      }
    }
  }
}

TEST_CASE("a quote that is not closed costs its own line, and not those behind it", "[data]") {
  std::vector<std::pair<int, std::string>> replaced = {{51, "1,\"red,a"}};
  const data::Source open = Skipping(101, replaced).open();
  CHECK(open.train->size() == 100);
  // Another quote, many lines below, would close it.
  replaced.emplace_back(81, "1,blue\"s,a");
  const data::Source source = Skipping(300, replaced).open();
  CHECK(source.train->size() == 299);
  CHECK(input_of(*source.train, 49).front() == 50);
}

TEST_CASE("a missing target is left out, and does not make classes of labels", "[data]") {
  Tables tables("x,y\n1,0\n2,NA\n3,1\n4,2\n");
  tables.csv()->on_error = data::OnError::skip;
  const data::Source source = tables.open();
  CHECK(source.train->size() == 3);
  CHECK(source.encoding.classes.empty());
  CHECK(target_of<std::int32_t>(*source.train, 2) == 2);
}
