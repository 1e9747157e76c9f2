// init for tables of the user: what it finds, and that the config which it writes is accepted.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/app/call.h"
#include "tests/app/init.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/data/image_files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using namespace pmaptrain::tests;

TEST_CASE("init csv finds the target, categories, missing cells and columns that count the rows", "[app]") {
  const TemporaryFolder folder;
  const std::string data =
      folder.write("houses.csv", "id,rooms,city,price\n" + rows_of(100, [](int i) {
                                   return std::to_string(i + 1) + "," + (i == 3 ? "" : std::to_string(i % 6)) + "," +
                                          (i % 2 == 0 ? "Oslo" : "Rome") + "," + std::to_string(1000 + i) + ".5";
                                 }));
  const std::string config = written(folder, "csv", data);
  CHECK(contains(config, "# Training on houses.csv: 100 examples of f32[3].\n"));
  CHECK(contains(config, "# Left out of the inputs: id (it numbers the rows).\n"));
  CHECK(contains(config, "train: houses.csv\n"));  // beside the config
  CHECK(contains(config, "target: price "));
  CHECK(contains(config, "inputs: [rooms, city]\n"));
  CHECK(contains(config, "categorical: [city] "));
  CHECK(contains(config, "missing: fill "));
  CHECK(contains(config, "unknown: ignore "));
  CHECK(contains(config, "- dense: 1 "));
  CHECK(contains(config, "loss: mean_squared_error\n"));
}

TEST_CASE("init csv leaves dates out and says so, and names data above the config by its relative path", "[app]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "configs");
  const std::string data = folder.write("sales.csv", "day,at,size,version,price\n" + rows_of(60, [](int i) {
                                                       const std::string day = std::to_string(i % 28 + 1);
                                                       return "2024-01-" + day + "," + day + "/1/24 12:30," +
                                                              std::to_string(i % 7) + "," + "1.2." +
                                                              (i % 2 == 0 ? "x" : "y") + "," + std::to_string(i) + ".5";
                                                     }));
  const std::string file = folder / "configs/own.yaml";
  const std::string relative = std::filesystem::relative(data).string();
  const Finished init = call({"init", "csv", relative, file});
  REQUIRE(init.status == 0);
  CHECK(init.err == "note: Left out of the inputs: day (it has dates), at (it has dates).\n");
  const std::string config = test::read_text(file);
  CHECK(contains(config, "# Left out of the inputs: day (it has dates), at (it has dates).\n"));
  CHECK(contains(config, "inputs: [size, version]\n"));
  CHECK(contains(config, "categorical: [version] "));
  CHECK(contains(config, "train: \"../sales.csv\"\n"));
  CHECK(call({"validate", file}).status == 0);
  // A path that was given as an absolute one stays so, and ".." does not leave a folder that is a link by the link.
  std::filesystem::remove(file);
  CHECK(call({"init", "csv", data, file}).status == 0);
  CHECK(contains(test::read_text(file), "train: " + data + "\n"));
  std::filesystem::create_directories(folder / "far/away");
  std::filesystem::create_directory_symlink(folder / "far/away", folder / "link");
  CHECK(call({"init", "csv", relative, folder / "link/own.yaml"}).status == 0);
  CHECK(contains(test::read_text(folder / "link/own.yaml"), "train: " + data + "\n"));
}

TEST_CASE("init csv takes texts and small integers as classes, other delimiters, and tables without a header",
          "[app]") {
  const TemporaryFolder folder;
  const std::string species =
      written(folder, "csv", folder.write("iris.csv", "width;species\n" + rows_of(60, [](int i) {
                                                        return std::to_string(i % 7) + ".5;" +
                                                               (i % 3 == 0   ? "setosa"
                                                                : i % 3 == 1 ? "virginica"
                                                                             : "versicolor");
                                                      })));
  CHECK(contains(species, "# Classes: setosa, versicolor, virginica.\n"));
  CHECK(contains(species, "delimiter: \";\"\n"));
  CHECK(contains(species, "- dense: 3 "));
  CHECK(contains(species, "loss: softmax_cross_entropy\n"));
  const std::string bare = written(folder, "csv", folder.write("bare.csv", rows_of(60, [](int i) {
                                                                 return std::to_string(i * i % 17) + "," +
                                                                        std::to_string(i * 3 % 11) + "," +
                                                                        std::to_string(i % 2);
                                                               })));
  CHECK(contains(bare, "header: false "));
  CHECK(contains(bare, "target: \"2\" "));
  CHECK(contains(bare, "- dense: 2 "));
}

TEST_CASE("init csv writes names with line ends and YAML's own characters as text", "[app]") {
  const TemporaryFolder folder;
  const std::string data = folder.write("odd.csv", "NA,\"yes\n- no\",\"a: [b\",label\n" + rows_of(60, [](int i) {
                                                     return std::to_string(i % 7) + ",0.5," + std::to_string(i % 5) +
                                                            (i % 2 == 0 ? ",\"on\n: [\"" : ",null");
                                                   }));
  const std::string config = written(folder, "csv", data);
  CHECK(contains(config, "# Classes: null, on : [.\n"));
  CHECK_FALSE(contains(config, "header: false"));
}

TEST_CASE("init csv says in a line what is predicted, and --target names another column", "[app]") {
  const TemporaryFolder folder;
  const std::string data = folder.write("houses.csv", "city,rooms,price\n" + rows_of(100, [](int i) {
                                                        return std::string(i % 2 == 0 ? "Oslo" : "Rome") + "," +
                                                               std::to_string(i % 4) + "," + std::to_string(i) + ".5";
                                                      }));
  const auto told = [&](const std::vector<std::string>& options) {
    std::filesystem::remove(folder / "own.yaml");
    std::vector<std::string> command = {"init", "csv", data, folder / "own.yaml"};
    command.insert(command.end(), options.begin(), options.end());
    const Finished init = call(command);
    INFO(init.err);
    CHECK(init.status == 0);
    CHECK(call({"validate", folder / "own.yaml"}).status == 0);
    const std::size_t at = init.out.find("target: ");
    return at == std::string::npos ? "" : init.out.substr(at);
  };
  CHECK(told({}) == "target: 'price', the last column: regression, its numbers; another column: --target rooms\n");
  CHECK(told({"--target", "city"}) ==
        "target: 'city': classification, 2 classes (Oslo, Rome); another column: --target price\n");
  CHECK(contains(test::read_text(folder / "own.yaml"), "target: city "));
  CHECK(told({"--target=rooms"}) ==
        "target: 'rooms': classification, 4 classes; as numbers: loss: mean_squared_error with dense: 1; another "
        "column: --target price\n");
  const Finished none = call({"init", "csv", data, folder / "other.yaml", "--target", "prise"});
  CHECK(none.status == 3);
  CHECK(none.err == "error: '" + data + "' has no column 'prise' for --target\n  help: did you mean 'price'?\n");
  const Finished npz = call({"init", "npz", data, "--target", "x"});
  CHECK(npz.status == 2);
  CHECK(contains(npz.err, "only a table has columns to predict"));
}

TEST_CASE("init csv takes labels 0.0 and 1.0, and -1 and 1, as classes", "[app]") {
  const TemporaryFolder folder;
  for (const auto& [low, high, names] :
       {std::tuple("0.0", "1.0", "0, 1"), std::tuple("-1", "1", "-1, 1"), std::tuple("-1.0", "1.0", "-1, 1")}) {
    const std::string config =
        written(folder, "csv", folder.write("signs.csv", "x,label\n" + rows_of(60, [&, even = low, odd = high](int i) {
                                                           return std::to_string(i) + ".5," + (i % 2 == 0 ? even : odd);
                                                         })));
    CHECK(contains(config, "# Classes: " + std::string(names) + ".\n"));
    CHECK(contains(config, "- dense: 2 "));
    CHECK(contains(config, "loss: softmax_cross_entropy\n"));
    CHECK(call({"run", folder / "own.yaml", "-q", "--run-dir", folder / "run", "--overwrite", "--max-steps", "2"})
              .status == 0);
  }
  // Other whole numbers are measured.
  const std::string prices = written(
      folder, "csv", folder.write("prices.csv", "x,price\n" + rows_of(60, [](int i) {
                                                  return std::to_string(i) + ".5," + std::to_string(i % 12 - 5) + ".0";
                                                })));
  CHECK(contains(prices, "loss: mean_squared_error\n"));
}

TEST_CASE("init csv takes codes as texts, and texts for missing numbers as such", "[app]") {
  const TemporaryFolder folder;
  const std::string config =
      written(folder, "csv", folder.write("people.csv", "zip,age,income,y\n" + rows_of(100, [](int i) {
                                                          return "0" + std::to_string(1000 + i % 5) + "," +
                                                                 (i % 9 == 0   ? "?"
                                                                  : i % 9 == 1 ? "NA"
                                                                               : std::to_string(20 + i % 40)) +
                                                                 "," + (i % 7 == 0 ? "-" : std::to_string(i) + ".5") +
                                                                 "," + std::to_string(i) + ".25";
                                                        })));
  CHECK(contains(config, "# Column 'zip' has numbers with leading zeros, such as '01000': they are taken as texts.\n"));
  CHECK(contains(config, "categorical: [zip] "));
  CHECK(contains(config, "missing_values: [\"?\", \"-\"] "));
  CHECK(contains(config, "missing: fill "));
}

TEST_CASE("init csv guesses the encoding and says so", "[app]") {
  const TemporaryFolder folder;
  const std::string data =
      folder.write("towns.csv", "town,y\n" + rows_of(60, [](int i) {
                                  return (i % 2 == 0 ? "M\xe1laga," : "K\xf6ln,") + std::to_string(i) + ".5";
                                }));
  const std::string config = written(folder, "csv", data);
  CHECK(contains(config, "encoding: latin-1 "));
  CHECK(contains(config,
                 "# The text is not UTF-8 and is read as latin-1, which its bytes suggest: look whether names "
                 "are spelt well.\n"));
  std::string wide = "\xff\xfe";
  for (const char c : "x,y\n" + rows_of(40, [](int i) { return std::to_string(i) + ".5," + std::to_string(i % 2); })) {
    wide += c;
    wide += '\0';
  }
  CHECK(contains(written(folder, "csv", folder.write("wide.csv", wide)), "encoding: utf-16 "));
}

TEST_CASE("init csv keeps the latest rows aside where rows are in the order of dates", "[app]") {
  const TemporaryFolder folder;
  const auto table = [&](const std::function<std::string(int)>& date) {
    return written(folder, "csv", folder.write("sales.csv", "day,size,sold\n" + rows_of(60, [&](int i) {
                                                              return date(i) + "," + std::to_string(i % 7) + ".5," +
                                                                     std::to_string(i % 2);
                                                            })));
  };
  const auto two = [](int number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  const std::string told =
                        "# Rows are in the order of the dates in 'day', so validation takes the last ones: shuffle: "
                        "false.\n",
                    share = "validation: {share: 0.1, shuffle: false} ";
  const std::vector<std::function<std::string(int)>> ordered = {
      [&](int i) { return "2024-" + two(1 + i / 20) + "-" + two(1 + i % 20); },
      [&](int i) { return two(1 + i % 20) + "." + two(1 + i / 20) + ".2024"; },
      [](int i) { return std::to_string(1 + i / 20) + "/" + std::to_string(1 + i % 20) + "/24 9:30"; },
      [&](int i) { return "2024" + two(1 + i / 20) + two(1 + i % 20); },
      [](int i) {
        return std::to_string(1 + i % 20) + " " + (i < 20 ? "Jan" : i < 40 ? "Feb" : "March") + " 2024";
      }};
  for (const auto& date : ordered) {
    INFO(date(0));
    const std::string config = table(date);
    CHECK(contains(config, told));
    CHECK(contains(config, share));
    CHECK(contains(config, "# Left out of the inputs: day (it has dates).\n"));
    CHECK_FALSE(contains(config, "stratify"));
  }
  const std::string mixed = table([&](int i) { return "2024-" + two(1 + i * 7 % 12) + "-" + two(1 + i % 20); });
  CHECK(contains(mixed, "validation: 0.1 "));
  CHECK_FALSE(contains(mixed, "in the order of"));
}

TEST_CASE("init csv takes a share of each class and metrics that suit where a class is rare", "[app]") {
  const TemporaryFolder folder;
  const auto table = [&](int every, const char* rare) {
    return written(folder, "csv", folder.write("clicks.csv", "x,clicked\n" + rows_of(200, [&](int i) {
                                                               return std::to_string(i) + ".5," +
                                                                      (i % every == 0 ? rare
                                                                       : i % 3 == 0   ? "no"
                                                                                      : "none");
                                                             })));
  };
  const auto binary = [&](int every) {
    return written(folder, "csv", folder.write("clicks.csv", "x,clicked\n" + rows_of(200, [&](int i) {
                                                               return std::to_string(i) + ".5," +
                                                                      (i % every == 0 ? "yes" : "no");
                                                             })));
  };
  const std::string rare = binary(20);
  CHECK(contains(rare, "validation: {share: 0.2, stratify: true} "));
  CHECK(contains(rare, "- dense: 1                              # one logit, of class 'yes'\n"));
  CHECK(contains(rare, "loss: sigmoid_cross_entropy "));
  CHECK(contains(rare, "metrics: [accuracy, f1, roc_auc, average_precision] "));
  const std::string even = binary(2);
  CHECK(contains(even, "loss: softmax_cross_entropy\n"));
  CHECK(contains(even, "validation: 0.1 "));
  CHECK(contains(even, "metrics: [accuracy]\n"));
  CHECK(contains(even, "checkpoint: {best: {metric: loss}} "));
  CHECK(contains(even, "early_stopping: {metric: loss, patience: 10} "));
  const std::string three = table(40, "yes");
  CHECK(contains(three, "metrics: [accuracy, f1] "));
  CHECK(contains(three, "checkpoint: {best: {metric: loss}} "));
  CHECK(contains(binary(200), "validation: 0.1 "));  // a class of one example cannot be divided
}

TEST_CASE("what init writes is the base of a sweep as it is", "[app]") {
  const TemporaryFolder folder;
  const auto plan = [&](const std::string& keys) {
    const std::string sweep = folder.write(
        "sweep.yaml", "base: own.yaml\n" + keys + "parameters: {optimizer.learning_rate: {choice: [0.01, 0.001]}}\n");
    return call({"sweep", "run", sweep, "--dir", folder / "sweep", "--dry-run"});
  };
  for (const bool is_class : {true, false}) {
    written(folder, "csv",
            folder.write("data.csv", "x,y\n" + rows_of(60, [&](int i) {
                                       return std::to_string(i % 7) + ".5," +
                                              (is_class ? std::to_string(i % 2) : std::to_string(i) + ".5");
                                     })));
    for (const std::string& keys :
         {std::string(), "metric: " + std::string(is_class ? "loss" : "mean_absolute_error") + "\n"}) {
      const Finished planned = plan(keys);
      INFO(planned.err);
      CHECK(planned.status == 0);
    }
    // Another metric than that of the base is set in the sweep.
    const std::string other = is_class ? "accuracy" : "r2";
    const Finished refused = plan("metric: " + other + "\n");
    CHECK(refused.status == 2);
    const std::string set = "set: {train.checkpoint.best.metric: " + other + "}";
    CHECK(contains(refused.err, set));
    CHECK(plan("metric: " + other + "\n" + set + "\n").status == 0);
  }
}

TEST_CASE("init for data never replaces a file, and says what it needs", "[app]") {
  const TemporaryFolder folder;
  const std::string data = folder.write("a.csv", "x,y\n1,2\n");
  const std::string file = folder.write("a.yaml", "mine");
  const Finished refused = call({"init", "csv", data, file});
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "exists, and init does not replace files"));
  CHECK(test::read_text(file) == "mine");
  CHECK(contains(call({"init", "csv"}).err, "pmaptrain init csv needs PATH"));
  const Finished missing = call({"init", "csv", folder / "none.csv", folder / "b.yaml"});
  CHECK(missing.status == 3);
  CHECK_FALSE(std::filesystem::exists(folder / "b.yaml"));
  const std::string money = folder.write("money.csv", "size,price\n" + rows_of(40, [](int i) {
                                                        return std::to_string(i % 7) + "," + std::to_string(i) + " EUR";
                                                      }));
  CHECK(contains(call({"init", "csv", money, folder / "b.yaml"}).err, "has 40 different texts in 40 rows"));
  const std::string comma = folder.write("comma.csv", "size;price\n" + rows_of(40, [](int i) {
                                                        return std::to_string(i % 7) + ",5;" + std::to_string(i);
                                                      }));
  CHECK(contains(call({"init", "csv", comma, folder / "b.yaml"}).err, "has numbers with a decimal comma, such as '"));
  const Finished one = call({"init", "csv", folder.write("one.csv", "x\n1\n"), folder / "b.yaml"});
  CHECK(contains(one.err, "has one column, expected the inputs and a target"));
}

TEST_CASE("init csv writes a config that runs for few rows and empty columns", "[app]") {
  const TemporaryFolder folder;
  for (int rows = 2; rows <= 17; ++rows) {
    INFO(rows << " rows");
    const std::string data = folder.write(
        "few.csv",
        "x,none,y\n" + rows_of(rows, [](int i) { return std::to_string(i % 3) + ".5,," + std::to_string(i) + ".25"; }));
    const std::string config = written(folder, "csv", data);
    CHECK(contains(config, "# Left out of the inputs: none (it is empty).\n"));
    const Finished run = call({"run", folder / "own.yaml", "--run-dir", folder / "run", "--overwrite", "--max-steps",
                               "2", "--progress", "none"});
    INFO(run.err);
    CHECK(run.status == 0);
  }
}

TEST_CASE("init says in a sentence about the data why no config would train on it", "[app]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& table) {
    const Finished init = call({"init", "csv", folder.write("t.csv", table), folder / "own.yaml"});
    CHECK(init.status == 3);
    CHECK_FALSE(contains(init.err, "own.yaml"));
    CHECK_FALSE(std::filesystem::exists(folder / "own.yaml"));
    std::string text = init.err;
    const std::string prefix = folder / "";
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix))
      text.erase(at, prefix.size());
    return text;
  };
  CHECK(
      refusal("x,y\n1.5,2.5\n") ==
      "error: no config would train on 't.csv': validation: a share of 0.1 is 1 of the 1 training example, so none is "
      "left to train on\n");
  CHECK(refusal("x,y\n") == "error: 't.csv' has no rows but its header\n");
  CHECK(refusal("x,y\n1,\n2,\n") ==
        "error: column 'y' of 't.csv', the target, is empty\n  help: the target is the last column, or one that is "
        "called 'target' or 'label'\n");
  CHECK(
      refusal("x,y\n1,2\n2\n") ==
      "error: 't.csv', line 3 has 1 cell, but the header has 2\n  help: a row has a cell for each column, an empty one "
      "where there is nothing\n");
  CHECK(refusal("x,y\n1,a\n2,a\n") ==
        "error: the target of 't.csv', 'y', the last column, is 'a' in every example, so there is nothing to learn\n");
  CHECK(refusal("x,y\n" +
                rows_of(60, [](int i) { return std::to_string(i) + "," + (i == 9 ? "12O" : std::to_string(i)); })) ==
        "error: column 'y' of 't.csv', the target, has numbers but in 1 row, such as '12O' in line 11\n  help: mend "
        "these "
        "cells, or remove their rows\n");
  for (const char* const number : {"3", "2.5"}) {
    const std::string table = "x,y\n" + rows_of(30, [&](int i) { return std::to_string(i) + "," + number; });
    CHECK(refusal(table) ==
          "error: the target of 't.csv', 'y', the last column, is the same in every example, so there is nothing to "
          "learn\n");
  }
}

TEST_CASE("init takes a column of numbers with a text in a few rows as numbers, and leaves these rows out", "[app]") {
  const TemporaryFolder folder;
  const auto table = [&](int rows, int strays) {
    return folder.write("t.csv", "stars,price\n" + rows_of(rows, [&](int i) {
                                   return (i < strays ? "good" : std::to_string(i % 5)) + "," + std::to_string(i) +
                                          ".5";
                                 }));
  };
  const std::string config = written(folder, "csv", table(100, 1));
  CHECK(contains(config, "\n# 1 row cannot be read and is left out; the first: "));
  CHECK(contains(config, "line 2, column 'stars': 'good' is no number"));
  CHECK(contains(config, "      on_error: skip "));
  CHECK_FALSE(contains(config, "categorical"));
  // More of them make texts of the column.
  const std::string texts = written(folder, "csv", table(100, 2));
  CHECK(contains(texts, "categorical: [stars] "));
  CHECK(contains(texts,
                 "# Column 'stars' has numbers but in 2 rows, such as 'good' in line 2: all its cells are taken "));
}

TEST_CASE("init leaves out numbers that only name the rows, and columns without a name", "[app]") {
  const TemporaryFolder folder;
  const auto table = [&](const std::string& name) {
    return folder.write("t.csv", name + ",x,,y\n" + rows_of(60, [](int i) {
                                   return std::to_string(1001 + 7 * i) + "," + std::to_string(i % 7) + ".5,," +
                                          std::to_string(i) + ".5";
                                 }));
  };
  CHECK(contains(
      written(folder, "csv", table("customer_id")),
      "# Left out of the inputs: customer_id (it names the rows by numbers), one without a name (it is empty).\n"));
  CHECK(contains(written(folder, "csv", table("area")), "inputs: [area, x]\n"));
}

TEST_CASE("init leaves out a row or an image that cannot be read, and says so in the config", "[app]") {
  const TemporaryFolder folder;
  const std::string config = written(
      folder, "csv", folder.write("t.csv", "x,y\n" + rows_of(60, [](int i) {
                                             return i == 7 ? "1" : std::to_string(i) + "," + std::to_string(i) + ".5";
                                           })));
  CHECK(contains(config, "      on_error: skip "));
  CHECK(contains(config, "# 1 row cannot be read and is left out; the first: "));
  const auto photo = [&](const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories((folder.path() / "photos" / name).parent_path());
    folder.write("photos/" + name, bytes);
  };
  const std::string image = flat_png(8, 8, 1, '\x40').build();
  for (int i = 0; i < 30; ++i) photo((i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".png", image);
  photo("a/x.png", image.substr(0, image.size() - 20));
  const std::string images = written(folder, "images", folder / "photos");
  CHECK(contains(images, "      on_error: skip "));
  CHECK(contains(images, "# 1 file cannot be read and is left out; the first: "));
  photo("a/y.png", "hello");
  const Finished two = call({"init", "images", folder / "photos", folder / "two.yaml"});
  CHECK(two.status == 3);
  CHECK(contains(two.err, "/photos/a/"));
}

TEST_CASE("init csv takes many integers as numbers, and normalises targets that are numbers", "[app]") {
  const TemporaryFolder folder;
  const std::string line =
      written(folder, "csv", folder.write("line.csv", "x,y\n" + rows_of(400, [](int i) {
                                                        return std::to_string(i) + "," + std::to_string(i % 64);
                                                      })));
  CHECK(contains(line, "loss: mean_squared_error\n"));
  CHECK(contains(line, "- dense: 1 "));
  CHECK_FALSE(contains(line, "Left out of the inputs"));
  const std::string prices =
      written(folder, "csv", folder.write("prices.csv", "rooms,price\n" + rows_of(100, [](int i) {
                                                          return std::to_string(i % 6) + ".5," +
                                                                 std::to_string(500000 + 1000 * (i % 90));
                                                        })));
  CHECK(contains(prices, "learning_rate: 0.001\n"));
  CHECK(contains(prices, "  normalize_targets: auto "));
  const std::string own = folder.write("prices.yaml", prices);
  CHECK(contains(call({"validate", own, "--set", "data.normalize_targets=null"}).err,
                 "will hardly reach them; data.normalize_targets: auto trains in units of their standard deviation"));
  CHECK_FALSE(contains(call({"validate", own}).err, "will hardly reach them"));
}
