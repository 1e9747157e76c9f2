// init for tables: what it says of columns that may be meant otherwise, and of targets that cannot be predicted.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/app/call.h"
#include "tests/app/init.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using namespace pmaptrain::tests;

namespace {

Finished init(const TemporaryFolder& folder, const std::string& table, const std::vector<std::string>& options = {}) {
  std::filesystem::remove(folder / "own.yaml");
  std::vector<std::string> command{"init", "csv", folder.write("t.csv", table), folder / "own.yaml"};
  command.insert(command.end(), options.begin(), options.end());
  return call(command);
}

// What init says in place of a config, without the folder.
std::string refusal(const TemporaryFolder& folder, const std::string& table,
                    const std::vector<std::string>& options = {}) {
  const Finished refused = init(folder, table, options);
  CHECK(refused.status == 3);
  std::string text = refused.err;
  const std::string prefix = folder / "";
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
    text.erase(at, prefix.size());
  }
  return text;
}

// The config that init writes, which validate accepts, and what init says.
std::string accepted(const TemporaryFolder& folder, const std::string& table,
                     const std::vector<std::string>& options = {}) {
  const Finished done = init(folder, table, options);
  INFO(done.err);
  REQUIRE(done.status == 0);
  const Finished valid = call({"validate", folder / "own.yaml"});
  INFO(valid.err);
  CHECK(valid.status == 0);
  return test::read_text(folder / "own.yaml") + done.err;
}

std::string number(int i) { return std::to_string(i * 37 % 101) + ".5"; }

}  // namespace

TEST_CASE("init csv refuses lists in the notation of Python or JSON, and says what to write", "[app]") {
  const TemporaryFolder folder;
  for (const std::string list : {"\"['art', 'music']\"", R"("[""art"", ""music""]")", "['art']", "[]"}) {
    const std::string told = refusal(folder, "x,tags\n" + rows_of(60, [&](int i) {
                                               return number(i) + "," + (i % 3 == 0 ? list : "\"['news', 'art']\"");
                                             }));
    CHECK(contains(told,
                   "column 'tags' of 't.csv', the target, has lists in the notation of Python or JSON, such as '["));
    CHECK(contains(told, " in line 2\n"));
    CHECK(contains(told, "such as art;music: in pandas, df['tags'].str.join(';') before to_csv"));
  }
}

TEST_CASE("init csv names label_separator where texts combine a few words, also where cells are empty", "[app]") {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"art", "music", "news", "sport", "food"};
  const auto table = [&](bool empty) {
    return "x,tags\n" + rows_of(300, [&](int i) {
             std::string tags;
             for (int w = 0; w < 5; ++w) {
               if ((i % 31 + 1) >> w & 1) tags += (tags.empty() ? "" : " ") + words[static_cast<std::size_t>(w)];
             }
             return number(i) + "," + (empty && i % 10 == 0 ? "" : tags);
           });
  };
  const std::string told = accepted(folder, table(false));
  CHECK(contains(told,
                 "are 31 combinations of 5 words, such as 'art'. If these are labels, set label_separator: \" \" "));
  const std::string empty = refusal(folder, table(true));
  CHECK(contains(empty, "is empty in 30 of 300 rows, the first in line 2\n"));
  CHECK(contains(empty, "label_separator: \" \" in a config"));
  // Classes of several words are none.
  const std::string classes = accepted(
      folder, "x,y\n" + rows_of(60, [](int i) { return number(i) + (i % 2 == 0 ? ",very good" : ",very bad"); }));
  CHECK_FALSE(contains(classes, "combinations"));
}

TEST_CASE("init csv takes columns of False and True, and of no and yes, as labels", "[app]") {
  const TemporaryFolder folder;
  for (const auto& [off, on] : {std::pair("False", "True"), std::pair("no", "yes"), std::pair("0", "1")}) {
    const std::string told =
        accepted(folder,
                 "x,a,b\n" + rows_of(60,
                                     [&, off = off, on = on](int i) {
                                       return number(i) + "," + (i % 2 == 0 ? off : on) + "," + (i % 3 == 0 ? on : off);
                                     }),
                 {"--target", "a", "--target", "b"});
    CHECK(contains(told, "loss: sigmoid_cross_entropy\n"));
    CHECK(contains(told, "- dense: 2 "));
    const Finished run =
        call({"run", folder / "own.yaml", "-q", "--run-dir", folder / "run", "--overwrite", "--max-steps", "2"});
    INFO(run.err);
    CHECK(run.status == 0);
  }
}

TEST_CASE("init csv names the cell that is no label among many", "[app]") {
  const TemporaryFolder folder;
  const auto table = [](const std::string& stray) {
    return "x,a,b\n" + rows_of(200, [&](int i) {
             return number(i) + "," + std::to_string(i % 2) + "," + (i == 7 ? stray : std::to_string(i % 3 == 0));
           });
  };
  const std::vector<std::string> both = {"--target", "a", "--target", "b"};
  const std::string told = accepted(folder, table("2"), both);
  CHECK(contains(told,
                 "', line 9, column 'b': '2' is no label; 399 of the 400 cells of the targets are, so the targets "
                 "are taken as numbers: mend the cell for labels."));
  CHECK(contains(told, "loss: mean_squared_error\n"));
  CHECK(
      refusal(folder, table("ys"), both) ==
      "error: 't.csv', line 9, column 'b': 'ys' is no label; 399 of the 400 cells of the targets are\n  help: a label "
      "is 0 or 1, no or yes, or False or True\n");
}

TEST_CASE("init csv says how several targets are named", "[app]") {
  const TemporaryFolder folder;
  const std::string table = "x,a,b,c\n" + rows_of(60, [](int i) {
                              return number(i) + "," + std::to_string(i % 2) + "," + std::to_string(i % 3 == 0) + "," +
                                     std::to_string(i % 5 < 2);
                            });
  CHECK(contains(accepted(folder, table),
                 "The last 3 columns have two values each, such as 0 and 1. If all of them are labels to predict: "
                 "--target a --target b --target c\n"));
  CHECK(refusal(folder, table, {"--target", "a,b, c"}) ==
        "error: 't.csv' has no column 'a,b, c' for --target\n  help: for several, repeat the option: --target a "
        "--target b --target c\n");
}

TEST_CASE("init csv does not take dates as the target, and names another column", "[app]") {
  const TemporaryFolder folder;
  CHECK(refusal(folder, "price,rooms,sold_on\n" + rows_of(60,
                                                          [](int i) {
                                                            return number(i) + "," + std::to_string(i % 4) +
                                                                   ",2020-01-" + std::to_string(10 + i % 9);
                                                          })) ==
        "error: column 'sold_on' of 't.csv', the last one, would be the target, but it has dates\n  help: name the "
        "column to predict: --target price\n");
}

TEST_CASE("init csv counts the rows without a target", "[app]") {
  const TemporaryFolder folder;
  const auto table = [](int every) {
    return "x,y\n" + rows_of(400, [&](int i) { return number(i) + "," + (i % every == 0 ? "" : number(i * 7)); });
  };
  CHECK(
      refusal(folder, table(50)) ==
      "error: column 'y' of 't.csv', the target, is empty in 8 of 400 rows, the first in line 2\n  help: remove these "
      "rows: nothing can be learned from an example without a target; on_error: skip leaves out at most 4 rows\n");
  CHECK(contains(refusal(folder, "x,y\n" + rows_of(60, [](int i) { return number(i) + (i % 9 == 0 ? ",yes" : ","); })),
                 "help: if an empty cell is a class as well, write a word for it, such as no; else remove these rows"));
  CHECK(contains(accepted(folder, table(200)), "2 rows cannot be read and are left out; the first: "));
}

TEST_CASE("init csv names the columns of a header that have one name", "[app]") {
  const TemporaryFolder folder;
  CHECK(refusal(folder, "id,sqft,sqft,y\n" + rows_of(60,
                                                     [](int i) {
                                                       return std::to_string(i) + "," + number(i) + "," +
                                                              number(i + 3) + "," + number(i * 5);
                                                     })) ==
        "error: 't.csv' has two columns 'sqft': columns 2 and 3\n  help: give each column a name of its own\n");
}

TEST_CASE("init csv takes all spellings of missing in a column of texts as one category", "[app]") {
  const TemporaryFolder folder;
  const auto table = [](const std::vector<std::string>& words) {
    return "x,city,y\n" + rows_of(60, [&](int i) {
             return number(i) + "," +
                    (i < std::ssize(words) ? words[static_cast<std::size_t>(i)]
                     : i % 2               ? "Rome"
                                           : "Oslo") +
                    "," + number(i * 7);
           });
  };
  const std::string told = accepted(folder, table({"", "NA", "?", "NA"}));
  CHECK(contains(told, "missing_categories: [NA, \"?\"] "));
  CHECK(contains(told, "missing: fill "));
  CHECK(contains(told, "examples of f32[4]"));  // x, Oslo, Rome, and one for all that are missing
  // One spelling is a category of its own as it is.
  CHECK_FALSE(contains(accepted(folder, table({"NA"})), "missing_categories"));
}

TEST_CASE("init csv leaves out numbers that are called ids, and tells of others", "[app]") {
  const TemporaryFolder folder;
  const auto table = [](const std::string& name) {
    return "x," + name + ",y\n" + rows_of(250, [](int i) {
             return number(i) + "," + std::to_string(100000007 + (i * 7919 % 251) * 3571) + "," + number(i * 7);
           });
  };
  for (const char* const name : {"uid", "uuid", "customer_id", "customerId", "customerID", "index", "key"}) {
    CHECK(contains(accepted(folder, table(name)), std::string(name) + " (it names the rows by numbers)"));
  }
  for (const char* const name : {"code", "paid", "grid"}) {
    CHECK(contains(accepted(folder, table(name)), "Column '" + std::string(name) +
                                                      "' has another whole number in each row: if it only names the "
                                                      "rows, exclude: [" +
                                                      name + "] leaves it out."));
  }
}

TEST_CASE("init csv begins the layers with table_embedding where a column has more than 8 texts", "[app]") {
  const TemporaryFolder folder;
  const auto config = [&](int shops) {
    return accepted(folder, "x,shop,y\n" + rows_of(200, [&](int i) {
                              return number(i) + ",s" + std::to_string(i % shops) + "," + number(i * 7 + i % shops);
                            }));
  };
  const std::string many = config(9), few = config(8);
  CHECK(contains(many, "categorical: [shop]                   # texts: table_embedding has a row for each of them\n"));
  CHECK(contains(many,
                 "  layers:\n    - table_embedding                       # learns a few numbers for each text, in place"
                 " of an input for each\n    - dense: 64\n"));
  CHECK(contains(many, "# Training on t.csv: 200 examples of f32[2].\n"));
  CHECK(contains(few, "categorical: [shop]                   # texts: one input for each of them\n"));
  CHECK(contains(few, "  layers:\n    - dense: 64\n"));
  CHECK(contains(few, "# Training on t.csv: 200 examples of f32[9].\n"));
}

TEST_CASE("init csv says of numbers with a unit, and of many categories, how they become inputs", "[app]") {
  const TemporaryFolder folder;
  const std::string told = accepted(folder, "x,size,zip,y\n" + rows_of(600, [](int i) {
                                              return number(i) + "," + std::to_string(1000 + i) + " sqft,Z" +
                                                     std::to_string(i % 90) + "," + number(i * 7);
                                            }));
  CHECK(contains(told, "size (its numbers have a unit, such as '1000 sqft': write them without it)"));
  CHECK(contains(told, "zip (it has 90 different texts)"));
  CHECK(contains(told, "To use 'zip' all the same, add it to inputs and to categorical, and begin the layers with "));
  const std::string few = accepted(folder, "x,size,y\n" + rows_of(60, [](int i) {
                                             return number(i) + "," + std::to_string(i % 5) + " kg," + number(i * 7);
                                           }));
  CHECK(contains(few, "Column 'size' has numbers with a unit, such as '0 kg', which are taken as texts"));
}
