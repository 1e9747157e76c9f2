// predict: what it reads, what it writes, and what it refuses.
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <limits>
#include <span>
#include <utility>

#include "core/base/descriptor.h"
#include "core/data/arrays/array.h"
#include "core/run/files/file_writer.h"
#include "core/run/files/npy.h"
#include "tests/app/call.h"
#include "tests/app/predicting.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;
using tests::call;
using tests::Finished;
using tests::shop_table;
using tests::ShopRun;
using tests::TrainedRun;

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

void write_npy(const TemporaryFolder& folder, const std::string& name, const std::vector<float>& values, Shape shape) {
  run::write_npy(folder / name, {DType::f32, std::move(shape), bytes_of(values)});
}

}  // namespace

TEST_CASE("predict finds the columns of a table by name, without its target and in its order", "[app]") {
  const ShopRun run;
  CHECK(run.csv("new.csv") == "prediction\n\"yes, twice\"\nno\nno\n\"yes, twice\"\nno\n");
  const std::string probabilities = run.csv("new.csv", {"--as", "probabilities"});
  CHECK(probabilities.starts_with("probability_no,\"probability_yes, twice\"\n0."));
  CHECK(run.csv("new.csv", {"--as", "logits"}).starts_with("logit_no,\"logit_yes, twice\"\n"));

  run.folder.write("bad.csv", "city,age\nOslo,20\nParis,21\n");
  CHECK(run.refusal(3, "bad.csv") ==
        "'bad.csv', line 3, column 'city': 'Paris' is a category that the training split does not have | it has Oslo, "
        "Rome; unknown: ignore takes it as none of them");
  run.folder.write("bad.csv", "city\nOslo\n");
  CHECK(
      run.refusal(3, "bad.csv") ==
      "'bad.csv' has no column 'age' | its columns are 'city'; else add the column: each row needs its number: the run "
      "was trained without missing ones");
  run.folder.write("bad.csv", "age,city\nold,Oslo\n");
  CHECK(run.refusal(3, "bad.csv") ==
        "'bad.csv', line 2, column 'age': 'old' is no number | write a number: the run was trained without missing "
        "ones");
}

TEST_CASE("predict writes numbers that read back as the same bits, in CSV, NPY and NPZ", "[app]") {
  const ShopRun run;
  REQUIRE(run.predict("new.csv", "p.npy", {"--as", "probabilities"}).status == 0);
  REQUIRE(run.predict("new.csv", "p.npz", {"--as", "probabilities"}).status == 0);
  const data::Array npy = data::read_npy(run.folder / "p.npy");
  const data::Array npz = data::read_npz(run.folder / "p.npz", "predictions");
  CHECK(npy.shape == Shape{5, 2});
  CHECK(npy.element == data::Element::f32);
  std::vector<float> values(10), others(10);
  data::read_floats(npy, 0, values);
  data::read_floats(npz, 0, others);
  CHECK(values == others);
  std::string text = run.csv("new.csv", {"--as", "probabilities"});
  text.erase(0, text.find('\n') + 1);
  std::vector<float> read;
  for (std::size_t at = 0; at < text.size(); at = text.find_first_of(",\n", at) + 1) {
    read.push_back(std::stof(text.substr(at)));
  }
  CHECK(read == values);

  REQUIRE(run.predict("new.csv", "c.npz").status == 0);
  const data::Array classes = data::read_npz(run.folder / "c.npz", "predictions");
  CHECK(classes.element == data::Element::i64);
  CHECK(classes.shape == Shape{5});
  CHECK(data::read_integer(classes, 0) == 1);
  CHECK(data::read_integer(classes, 1) == 0);
}

TEST_CASE("predict passes columns through with --id, and writes CSV to standard output", "[app]") {
  const ShopRun run;
  CHECK(run.csv("new.csv", {"--id", "id"}).starts_with("id,prediction\nx0,\"yes, twice\"\nx1,no\n"));
  CHECK(run.csv("new.csv", {"--id", "id", "--id", "city"}).starts_with("id,city,prediction\nx0,Rome,\"yes, twice\"\n"));
  const Finished written = call({"predict", run.dir, "--input", run.folder / "new.csv", "--output", "-", "--id", "id"});
  CHECK(written.status == 0);
  CHECK(written.out == run.csv("new.csv", {"--id", "id"}));
  CHECK(run.refusal(3, "new.csv", {"--id", "ids"}) == "'new.csv' has no column 'ids' | did you mean 'id'?");
  CHECK(run.refusal(2, "new.csv", {"--id", "id"}, "none.npy") ==
        "arrays have no columns for texts | write a .csv file");
  run.folder.write("twice.csv", "city,prediction,age\nOslo,a,20\n");
  CHECK(run.refusal(2, "twice.csv", {"--id", "prediction"}) ==
        "the output has a column 'prediction' of its own | give the column of the input another name, or leave it out");
  CHECK(
      run.csv("twice.csv", {"--id", "prediction", "--as", "probabilities"}).starts_with("prediction,probability_no,"));
  run.folder.write("odd.csv", "city,id,age\nOslo,\" a,b\",20\n");
  CHECK(run.csv("odd.csv", {"--id", "id"}) == "id,prediction\n\" a,b\",no\n");
  run.folder.write("pink.csv", "city,age\nPink,20\n");
  const Finished ignored = run.predict("pink.csv", "pink-out.csv", {"--set", "data.source.csv.unknown=ignore"});
  CHECK(ignored.status == 0);
  CHECK(contains(ignored.err,
                 "note: inputs: 1 cell of column 'city' has a category that the training split does not have, and "
                 "counts as none of them: 'Pink'\n"));
}

TEST_CASE("predict counts the missing numbers that it fills, and says what to add for a column that is not there",
          "[app]") {
  TrainedRun run;
  std::string table = "age,income,city,bought\n";
  for (int i = 0; i < 48; ++i) {
    table += std::to_string(20 + i % 2 * 4) + "," + (i % 5 == 0 ? "-" : std::to_string(i % 3)) + "," +
             (i % 4 == 0 ? "" : "Oslo") + "," + std::to_string(i % 3 == 0) + "\n";
  }
  run.folder.write("shop.csv", table);
  run.train(
      "  source: {csv: {train: shop.csv, target: bought, categorical: [city], missing: fill, missing_values: \"-\"}}\n",
      "dense: 2");
  const auto notes = [&](const std::string& rows) {
    run.folder.write("new.csv", rows);
    const Finished done = run.predict("new.csv", "out.csv", {"--overwrite"});
    CHECK(done.status == 0);
    return done.err;
  };
  CHECK(notes("age,income,city\n20,1,Oslo\n").empty());
  // Training has all ages.
  CHECK(notes("age,income,city\n,1,Oslo\nNA,-,\n21,,Oslo\n") ==
        "note: inputs: 2 of 3 cells of column 'age' are missing and become the column's mean in the training split, "
        "22\n"
        "note: inputs: 2 of 3 cells of column 'income' are missing and become the column's mean in the training split, "
        "1.0263\n");
  CHECK(contains(notes("age,income,city\n,1,Oslo\n"), "1 of 1 cell of column 'age' is missing and becomes the"));
  // The same of other rows that eval reads.
  run.folder.write("test.csv", "age,income,city,bought\n,1,Oslo,1\n");
  const Finished eval =
      call({"eval", run.dir, "--split", "test", "--set", "data.source.csv.test=" + (run.folder / "test.csv")});
  CHECK(eval.status == 0);
  CHECK(contains(eval.err, "note: test: 1 of 1 cell of column 'age' is missing and becomes the column's mean"));

  const auto refused = [&](const std::string& rows) {
    run.folder.write("bad.csv", rows);
    const Finished done = run.predict("bad.csv", "none.csv");
    CHECK(done.status == 3);
    return done.err.substr(done.err.find("error: "));
  };
  CHECK(contains(refused("Age,cities\n20,Oslo\n"),
                 "help: did you mean 'Age'? Else add the column: empty cells become its mean in "
                 "the training split, 22\n"));
  const std::string several = refused("years\n20\n");
  CHECK(contains(several,
                 "note: it has no column 'income' either: empty cells become its mean in the training split, "
                 "1.0263\n"));
  CHECK(contains(several, "note: it has no column 'city' either: empty cells are a category of their own\n"));
  const std::string token = refused("age,income,city\n?,1,Oslo\n");
  CHECK(contains(token, "help: if it says that the number is missing: missing_values: [\"-\", \"?\"]\n"));
  const std::string set = "data.source.csv.missing_values=[\"-\", \"?\"]";
  CHECK(contains(token, "note: it is a key of data.source.csv; here: --set '" + set + "'\n"));
  const Finished done = run.predict("bad.csv", "out.csv", {"--overwrite", "--set", set});
  CHECK(done.status == 0);
  CHECK(contains(done.err, "1 of 1 cell of column 'age' is missing"));
}

TEST_CASE("predict leaves the predictions of rows empty that cannot be read, and says why", "[app]") {
  const ShopRun run;
  run.folder.write("rough.csv", "city,id,age\nRome,x0,old\nOslo,x1,21\nOslo\nRome,\"x,3\",23\nRome,x4,\"2\"4\n");
  const std::vector<std::string> skip{"--set", "data.source.csv.on_error=skip", "--id", "id"};
  const std::string at = "'" + run.folder / "rough.csv" + "', line ";
  CHECK(run.csv("rough.csv", skip) == "id,prediction,error\nx0,,\"" + at +
                                          "2, column 'age': 'old' is no number\"\nx1,no,\n,,\"" + at +
                                          "4 has 1 cell, but the header has 3\"\n\"x,3\",\"yes, twice\",\nx4,,\"" + at +
                                          "6: after the quoted '2' comes other text\"\n");
  // Also where no row can be read.
  run.folder.write("old.csv", "city,age\nOslo,old\n");
  CHECK(run.csv("old.csv", {"--set", "data.source.csv.on_error=skip"}).starts_with("prediction,error\n,\"'"));
  CHECK(contains(run.refusal(3, "rough.csv", {"--set", "data.source.csv.on_error=skip"}, "none.npy"),
                 "3 inputs cannot be read, and an array has no place to say so: "));
  CHECK(run.csv("new.csv", {"--set", "data.source.csv.on_error=skip"})
            .starts_with("prediction,error\n\"yes, twice\",\n"));
}

TEST_CASE("predict replaces an output only with --overwrite, and leaves none of a failure", "[app]") {
  const ShopRun run;
  const Finished done = run.predict("new.csv", "out.csv");
  CHECK(done.status == 0);
  CHECK(test::contains(done.out, "out.csv: classes of 5 examples (last checkpoint step-00000060 of "));
  run.folder.write("out.csv", "mine");
  CHECK(run.refusal(2, "new.csv", {}, "out.csv") == "'out.csv' exists | --overwrite replaces it");
  CHECK(test::read_text(run.folder / "out.csv") == "mine");
  CHECK(run.refusal(2, "new.csv", {}, "no/out.csv") == "there is no folder 'no' | mkdir -p no");
  CHECK(run.refusal(2, "new.csv", {}, "out.txt") ==
        "the ending of 'out.txt' does not say what to write | it is one of .csv, .npy and .npz; classes of pixels are "
        "also written to a folder, which has no ending");
  CHECK(run.refusal(2, "new.csv", {}, "masks").starts_with("the ending of 'masks' does not say what to write | "));
  CHECK(run.refusal(2, "new.csv", {"--overwrite"}, "new.csv") ==
        "--output is the file that --input reads | name another file");
  CHECK(run.refusal(3, "gone.csv") ==
        "cannot open 'gone.csv': No such file or directory | a relative path in an "
        "option is relative to the current directory");
  CHECK(test::contains(call({"predict", run.dir, "--output", "x.csv"}).err, "predict needs --input FILE"));
  CHECK(test::contains(call({"predict", run.dir, "--input", "x.csv"}).err, "predict needs --output FILE"));
  CHECK(test::contains(call({"predict", run.folder / "c.yaml", "--input", "x", "--output", "y"}).err,
                       "is a file; predict takes a run folder"));
  CHECK(test::contains(call({"infer"}).err, "did you mean 'predict'?"));

  // A number that is not finite is found while predictions are written.
  std::vector<float> numbers(60, 1.0F);
  numbers[57] = std::numeric_limits<float>::quiet_NaN();
  write_npy(run.folder, "nan.npy", numbers, {20, 3});
  CHECK(run.refusal(3, "nan.npy").starts_with("example 19 of 'nan.npy' has NaN at [19,0]"));
  CHECK(test::listing(run.folder.path()).find(".tmp-") == std::string::npos);
}

TEST_CASE("-q leaves warnings and errors, and what was asked for", "[app]") {
  const ShopRun run;
  const auto is_silent = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-q", "--set", "optimizer.sgd.momentum=0.9"});
    const Finished done = call(arguments);
    INFO(done.err);
    CHECK(done.status == 0);
    CHECK(done.err.empty());
    return done.out;
  };
  const std::string input = run.folder / "new.csv";
  CHECK(is_silent({"predict", run.dir, "--input", input, "--output", run.folder / "q.csv"}).empty());
  CHECK(is_silent({"predict", run.dir, "--input", input, "--output", "-"}).starts_with("prediction\n"));
  const Finished exported = call({"export", run.dir, "--output", run.folder / "q.safetensors", "--quiet"});
  CHECK(exported.status == 0);
  CHECK((exported.out + exported.err).empty());
}

TEST_CASE("a path into a run folder is told as the run folder and its checkpoint", "[app]") {
  const ShopRun run;
  const std::string folder = run.dir;
  const auto help = [](const std::string& command, const std::string& path) {
    const Finished refused = call({command, path});
    CHECK(refused.status == 2);
    CHECK(test::contains(refused.err, command + " takes the run folder\n"));
    return refused.err.substr(refused.err.find("help: ") + 6);
  };
  CHECK(help("eval", folder + "/checkpoints/last") == "pmaptrain eval " + folder + " --checkpoint last\n");
  CHECK(help("eval", folder + "/checkpoints/step-00000060/") == "pmaptrain eval " + folder + " --checkpoint 60\n");
  CHECK(help("eval", folder + "/checkpoints/last/params.safetensors") ==
        "pmaptrain eval " + folder + " --checkpoint last\n");
  CHECK(help("predict", folder + "/checkpoints") == "pmaptrain predict " + folder + "\n");
  // A run folder in a folder of that name is one.
  fs::create_directory(run.folder / "checkpoints");
  fs::rename(folder, run.folder / "checkpoints/mine");
  run.folder.write("config.yaml", "");
  run.folder.write("shop.csv", shop_table(48, true));
  CHECK(call({"eval", run.folder / "checkpoints/mine", "--split", "train"}).status == 0);
}

TEST_CASE("errors in the data of eval and predict name the option that helps", "[app]") {
  const ShopRun run;
  const auto note = [&](const Finished& refused) {
    CHECK(refused.status == 3);
    return refused.err.substr(refused.err.find("note: "));
  };
  CHECK(note(call({"eval", run.dir, "--split", "train"})) ==
        "note: the run's config says where its data is; to evaluate on other data: --set "
        "data.source.csv.train=FILE\n");
  run.folder.write("shop.csv", shop_table(20, true));
  const Finished eval =
      call({"eval", run.dir, "--split", "train", "--set", "data.source.csv.train=" + (run.folder / "shop.csv")});
  CHECK(eval.status == 0);
  CHECK(test::contains(eval.out, "(20 examples "));
  run.folder.write("semicolons.csv", "age;city\n20;Oslo\n");
  CHECK(note(run.predict("semicolons.csv", "none.csv")) ==
        "note: it is a key of data.source.csv; here: --set 'data.source.csv.delimiter=\";\"'\n");
  CHECK(run.csv("semicolons.csv", {"--set", "data.source.csv.delimiter=\";\""}) == "prediction\nno\n");
}

TEST_CASE("a signal ends predict without half a file, and leaves the one that was to be replaced", "[app][process]") {
  TrainedRun run;
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 32; ++i) labels.push_back(i % 2);
  run::write_npz(run.folder / "d.npz", {{"in", {DType::f32, {32, 3}, bytes_of(std::vector<float>(96, 0.5F))}},
                                        {"out", {DType::i64, {32}, bytes_of(labels)}}});
  run.train("  source: {npz: {file: d.npz, train: [in, out]}}\n", "dense: 2");
  write_npy(run.folder, "many.npy", std::vector<float>(6'000'000), {2'000'000, 3});
  const auto listed = [&] {
    std::string names;
    for (const auto& entry : fs::directory_iterator(run.folder.path()))
      names += entry.path().filename().string() + "\n";
    return names;
  };
  const std::size_t before = listed().size();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    for (const bool replaces : {false, true}) {
      INFO(signal << " " << replaces);
      const std::string output = run.folder / "out.csv";
      if (replaces) run.folder.write("out.csv", "mine");
      tests::Process process(
          {"predict", run.dir, "--input", run.folder / "many.npy", "--output", output, "--overwrite"});
      REQUIRE(tests::wait_until([&] { return test::contains(listed(), ".tmp-"); }));
      process.send(signal);
      CHECK(process.wait().signal == signal);
      if (replaces) CHECK(test::read_text(output) == "mine");
      fs::remove(output);
      CHECK(listed().size() == before);
    }
  }
}

TEST_CASE("predict reads arrays as a model takes them, and says both shapes where they do not fit", "[app]") {
  TrainedRun run;
  std::vector<std::uint8_t> pixels;
  std::string labels;
  for (int i = 0; i < 32; ++i) {
    for (int p = 0; p < 12; ++p) pixels.push_back(static_cast<std::uint8_t>(i % 2 == 0 ? p : 200 + p));
    labels += static_cast<char>(i % 2);
  }
  run.folder.write("x.idx", idx(8, {32, 4, 3}, {pixels.begin(), pixels.end()}));
  run.folder.write("y.idx", idx(8, {32}, labels));
  run.train("  source: {idx: {train: [x.idx, y.idx]}}\n", "flatten, dense: 2");
  std::string expected = "prediction\n";
  for (int i = 0; i < 32; ++i) expected += i % 2 == 0 ? "0\n" : "1\n";
  CHECK(run.csv("x.idx") == expected);
  run.folder.write("x.gz", gzip(test::read_text(run.folder / "x.idx")));
  CHECK(run.csv("x.gz") == expected);
  run::write_npy(run.folder / "x.npy", {DType::u8, {32, 4, 3}, bytes_of(pixels)});
  CHECK(run.csv("x.npy") == expected);
  run::write_npz(run.folder / "one.npz", {{"any", {DType::u8, {32, 4, 3}, bytes_of(pixels)}}});
  CHECK(run.csv("one.npz") == expected);
  run::write_npz(run.folder / "two.npz",
                 {{"any", {DType::u8, {32, 4, 3}, bytes_of(pixels)}}, {"other", {DType::u8, {1}, {std::byte{0}}}}});
  CHECK(run.csv("two.npz", {"--array", "any"}) == expected);
  CHECK(run.refusal(3, "two.npz") == "'two.npz' has several arrays: any, other | choose the inputs: --array any");
  CHECK(run.refusal(3, "two.npz", {"--array", "an"}) ==
        "'two.npz' has no array 'an'; it has any, other | did you mean 'any'?");
  CHECK(run.refusal(3, "x.npy", {"--array", "an"}) ==
        "'x.npy' is no NPZ archive, so it has no array 'an' | leave --array out");

  write_npy(run.folder, "f.npy", std::vector<float>(24), {2, 4, 3});
  CHECK(run.refusal(3, "f.npy")
            .starts_with("'f.npy' is f32[2,4,3], but the model was trained on bytes, u8[4,3,1] | "
                         "save bytes: x.astype(np.uint8) if they are 0 to 255, (x * 255)"));
  write_npy(run.folder, "both.npy", std::vector<float>(24), {2, 3, 4});
  CHECK(
      run.refusal(3, "both.npy")
          .starts_with("'both.npy' is f32[2,3,4], examples of [3,4,1], but the model was trained on bytes, u8[4,3,1]: "
                       "neither the type nor the shape fits | save bytes: x.astype(np.uint8) if "));
  write_npy(run.folder, "one.npy", std::vector<float>(12), {4, 3});
  CHECK(run.refusal(3, "one.npy")
            .ends_with("if they were divided by 255; an array has a dimension for examples, also of one: x[None]"));
  run::write_npy(run.folder / "t.npy", {DType::u8, {32, 3, 4}, bytes_of(pixels)});
  CHECK(run.refusal(3, "t.npy") == "'t.npy' has the shape [32,3,4]: examples of [3,4,1], but the model takes [4,3,1]");
  run::write_npy(run.folder / "1.npy", {DType::u8, {4, 3}, std::vector<std::byte>(12)});
  CHECK(run.refusal(3, "1.npy").ends_with("| an array has a dimension for examples, also of one: x[None]"));
  run.folder.write("t.csv", "a,b\n1,2\n");
  CHECK(run.refusal(3, "t.csv") ==
        "'t.csv' is no NPZ, NPY or IDX file and no PNG or JPEG image | the run was trained on idx, u8[4,3,1]: only a "
        "run that was trained on a CSV file reads one, because its columns have names");
}

TEST_CASE("predict does not turn bytes into numbers", "[app]") {
  TrainedRun run;
  std::vector<float> numbers;
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 32; ++i) {
    numbers.push_back(static_cast<float>(i % 4) - 1.5F);
    labels.push_back(i % 4 / 2);
  }
  run::write_npz(run.folder / "d.npz",
                 {{"in", {DType::f32, {32, 1}, bytes_of(numbers)}}, {"out", {DType::i64, {32}, bytes_of(labels)}}});
  run.train("  source: {npz: {file: d.npz, train: [in, out]}}\n", "dense: 2");
  // The array that the config names.
  CHECK(run.csv("d.npz").starts_with("prediction\n0\n0\n1\n1\n"));
  run::write_npy(run.folder / "b.npy", {DType::u8, {2, 1}, std::vector<std::byte>(2)});
  CHECK(run.refusal(3, "b.npy") ==
        "'b.npy' is u8[2,1], but the model was trained on numbers, f32[1] | convert them as the training inputs were: "
        "x.astype(np.float32), or divided by 255 as well");
}

TEST_CASE("predictions of quantiles have their names", "[app]") {
  TrainedRun run;
  std::string table = "x,y,z\n";
  for (int i = 0; i < 32; ++i)
    table += std::to_string(i % 4) + "," + std::to_string(i % 8) + ".5," + std::to_string(i) + "\n";
  run.folder.write("d.csv", table);
  run.folder.write("new.csv", "x\n1\n");
  const auto header = [&](const std::string& target, const std::string& q, int outputs) {
    run.train("  source: {csv: {train: d.csv, inputs: [x], target: " + target + "}}\n",
              "dense: " + std::to_string(outputs), "loss: {quantile: {q: " + q + "}}\n");
    const std::string text = run.csv("new.csv");
    std::filesystem::remove_all(run.dir);
    return text.substr(0, text.find('\n'));
  };
  CHECK(header("y", "[0.1, 0.5, 0.9]", 3) == "prediction_q0.1,prediction_q0.5,prediction_q0.9");
  CHECK(header("y", "[0.25]", 1) == "prediction_q0.25");
  CHECK(header("[y, z]", "[0.1, 0.9]", 4) == "prediction_0_q0.1,prediction_0_q0.9,prediction_1_q0.1,prediction_1_q0.9");
}

TEST_CASE("predict names the file of each image, and resizes as the run does", "[app]") {
  TrainedRun run;
  const auto image = [&](const std::string& name, const std::string& like) {
    fs::create_directories(fs::path(run.folder / name).parent_path());
    fs::copy_file("tests/data/images/" + like, run.folder / name);
  };
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator("tests/data/images")) {
    if (entry.path().extension() == ".png") names.push_back(entry.path().filename().string());
  }
  REQUIRE(names.size() >= 2);
  std::sort(names.begin(), names.end());
  for (int i = 0; i < 4; ++i) {
    image("photos/a cat/" + std::to_string(i) + ".png", names.front());
    image("photos/dog/" + std::to_string(i) + ".png", names.back());
  }
  run.train("  source: {image_folder: {train: photos, size: [5, 4]}}\n", "flatten, dense: 2");
  CHECK(run.csv("photos") ==
        "file,prediction\na cat/0.png,a cat\na cat/1.png,a cat\na cat/2.png,a cat\na cat/3.png,a cat\ndog/0.png,dog\n"
        "dog/1.png,dog\ndog/2.png,dog\ndog/3.png,dog\n");
  image("new/z,1.png", names.front());
  image("new/b.png", names.back());
  image("new/.hidden", names.back());
  CHECK(run.csv("new") == "file,prediction\nb.png,dog\n\"z,1.png\",a cat\n");
  CHECK(run.csv("new/b.png") == "file,prediction\nb.png,dog\n");
  run.folder.write("new/notes.txt", "notes");
  CHECK(run.refusal(3, "new").starts_with("'new/notes.txt' is neither a PNG nor a JPEG image"));
  CHECK(contains(run.csv("new", {"--set", "data.source.image_folder.on_error=skip"}),
                 "file,prediction,error\nb.png,dog,\nnotes.txt,,'" + run.folder / "new/notes.txt" +
                     "' is neither a PNG nor a JPEG image: it begins with 6e 6f 74 65\n\"z,1.png\",a cat,\n"));
}

TEST_CASE("predict removes what one that was killed left beside its output, and nothing else", "[app]") {
  const ShopRun run;
  const std::string left = run.folder.write(".tmp-out.csv-0123456789abcdef", "half");
  const std::string used = run.folder.write(".tmp-out.csv-00000000000000aa", "of a process that lives");
  const std::string other = run.folder.write(".tmp-out.csv.gz-0123456789abcdef", "another file's");
  const std::string mine = run.folder.write(".tmp-out.csv-notes", "mine");
  const Descriptor writer(::open(used.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(writer.get(), LOCK_EX | LOCK_NB) == 0);
  CHECK(run.predict("new.csv", "out.csv").status == 0);
  CHECK_FALSE(fs::exists(left));
  for (const std::string& kept : {used, other, mine}) CHECK(fs::exists(kept));
  // Of a file that is being written no other process removes the temporary one.
  run::Replacement replacement(run::FilePlace(run.folder / "new.npy"));
  run::remove_abandoned(run.folder / "new.npy");
  replacement.close();
  replacement.take_place();
  CHECK(fs::exists(run.folder / "new.npy"));
}
