// What a run that takes its initial values from another run is told about the data of that one.
#include <string>
#include <vector>

#include "core/base/text.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

TEST_CASE("a run from another one's parameters says where its inputs are normalised otherwise", "[setup]") {
  const TemporaryFolder root;
  const auto table = [&](const std::string& name, double factor) {
    std::string text = "a,b,y\n";
    for (int i = 0; i < 8; ++i) {
      text += exact(factor * (i + 1)) + "," + exact(factor * (i * i % 5)) + "," + (i % 2 == 0 ? "cat" : "dog") + "\n";
    }
    return root.write(name, text);
  };
  const auto config = [](const std::string& file) {
    return "data: {source: {csv: {train: " + file + ", target: y}}, batch_size: 4, normalize: auto}\n" +
           "model: {layers: [dense: 4, relu, {name: head, dense: 2}]}\nloss: softmax_cross_entropy\n" +
           "optimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 2 steps}\n";
  };
  const std::string run = root / "run", old_file = table("old.csv", 1), new_file = table("new.csv", 2.5);
  train_setup_in(run, setup_of_text(config(old_file)));
  const auto told = [&](const std::string& file, std::vector<std::string> set) {
    set.insert(set.begin(), "model.init={from: " + run + "}");
    std::vector<std::string> found;
    for (const std::string& note : setup_of_text(config(file), std::move(set)).source.notes) {
      if (test::contains(note, "normalised otherwise")) found.push_back(note);
    }
    return found;
  };
  const std::string what = "model.init.from: '" + run + "' was trained on inputs that are normalised otherwise";
  CHECK(told(old_file, {}).empty());
  const std::vector<std::string> notes = told(new_file, {});
  REQUIRE(notes.size() == 1);
  const std::string as_there = what + " in 2 of 2 channels; as there: data.normalize: ";
  REQUIRE(notes.front().starts_with(as_there));
  // The line can be pasted: then nothing differs, and the model reads the numbers that it was trained with.
  const std::string pasted = notes.front().substr(as_there.size());
  CHECK(told(new_file, {"data.normalize=" + pasted}).empty());
  const auto normalize = setup_of_text(config(new_file), {"data.normalize=" + pasted}).model.normalize;
  const auto before = setup_of_text(config(old_file)).model.normalize;
  for (std::size_t c = 0; c < 2; ++c) {
    CHECK(static_cast<float>(normalize->mean[c]) == static_cast<float>(before->mean[c]));
    CHECK(static_cast<float>(normalize->std[c]) == static_cast<float>(before->std[c]));
  }
  const std::string plain = root / "plain";
  train_setup_in(plain, setup_of_text(config(old_file), {"data.normalize=null"}));
  CHECK(told(old_file, {"model.init.from=" + plain}) ==
        std::vector<std::string>{"model.init.from: '" + plain +
                                 "' was trained on inputs that are normalised otherwise, "
                                 "by nothing: without data.normalize the parameters see what they were trained on"});
}

TEST_CASE("a head that was trained on other classes is told, with what draws it anew", "[setup]") {
  const TemporaryFolder root;
  const auto config = [&](const std::string& name, const std::string& one, const std::string& other) {
    std::string text = "a,y\n";
    for (int i = 0; i < 8; ++i) text += std::to_string(i) + "," + (i % 2 == 0 ? one : other) + "\n";
    return "data: {source: {csv: {train: " + root.write(name, text) + ", target: y}}, batch_size: 4}\n" +
           "model: {layers: [dense: 4, relu, {name: head, dense: 2}]}\nloss: softmax_cross_entropy\n" +
           "optimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 2 steps}\n";
  };
  const std::string run = root / "run", pets = config("pets.csv", "cat", "dog"),
                    cars = config("cars.csv", "bus", "van");
  train_setup_in(run, setup_of_text(pets));
  const auto told = [&](const std::string& text, const std::string& from) {
    std::vector<std::string> found;
    for (const std::string& warning : setup_of_text(text, {"model.init={from: " + from + "}"}).warnings) {
      if (test::contains(warning, "classes")) found.push_back(warning);
    }
    return found;
  };
  const std::string what = "model.init.from: '" + run +
                           "' was trained on the classes cat, dog, and the data has bus, van: head "
                           "(test.yaml:2:47), which is taken from it, answers for the former; ";
  CHECK(told(pets, run).empty());
  CHECK(told(cars, run) == std::vector<std::string>{what + "model.init.from.exclude: [\"head.*\"] draws it anew"});
  CHECK(told(cars, "{path: " + run + ", exclude: dense_0.bias}") ==
        std::vector<std::string>{what + "model.init.from.exclude: [\"dense_0.bias\", \"head.*\"] draws it anew"});
  CHECK(told(cars, "{path: " + run + ", exclude: \"head.*\"}").empty());
}
