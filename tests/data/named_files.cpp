// An error about a file of a source is placed at the key that names the file.
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/input/open.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
namespace fs = std::filesystem;

namespace {

// What the error about a source says, and where: the text under its caret.
std::string told(const std::string& folder, const std::string& source, std::vector<std::string> set = {}) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  const spec::Loaded loaded = spec::load_text(
      "data: {batch_size: 1, source: {" + source + "}}\nmodel: {layers: [{dense: 2}]}\n" +
          "loss: softmax_cross_entropy\noptimizer: {sgd: {}, learning_rate: 0.1}\ntrain: {duration: 1 step}\n",
      "c.yaml", folder, overrides);
  try {
    input::open(loaded.spec.data, 0, 1);
  } catch (const Error& error) {
    const Diagnostic& only = error.diagnostics().front();
    const Place& at = only.place;
    const std::string under = std::string(at.excerpt.text())
                                  .substr(static_cast<std::size_t>(at.column - 1), static_cast<std::size_t>(at.length));
    return at.file + " " + under + ": " + only.message.substr(0, only.message.find('\''));
  }
  return "accepted";
}

}  // namespace

TEST_CASE("an error about one of several files points at the key that names it", "[data]") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string();
  folder.write("x", idx(8, {2, 1, 1}, "ab"));
  folder.write("y", idx(8, {2}, std::string("\0\1", 2)));
  folder.write("bad", "no IDX file");
  folder.write("t.csv", "a,b\n1,0\n2,1\n");
  folder.write("bad.csv", "a,b\n1,x,3\n");
  folder.write("text.txt", "some text");
  folder.write("empty.txt", "");
  fs::create_directories(folder.path() / "images");
  fs::create_directories(folder.path() / "none");
  const std::string missing = ": cannot open ";
  CHECK(told(at, "idx: {train: [x, gone]}") == "c.yaml gone" + missing);
  CHECK(told(at, "idx: {train: [gone, y]}") == "c.yaml gone" + missing);
  CHECK(told(at, "idx: {train: [x, y], test: [x, gone]}") == "c.yaml gone" + missing);
  CHECK(told(at, "idx: {train: [x, bad]}").starts_with("c.yaml bad: "));
  CHECK(told(at, "npz: {file: gone, train: [x, y]}") == "c.yaml gone" + missing);
  CHECK(told(at, "npz: {train: t.csv, test: gone, inputs: x, targets: y}").starts_with("c.yaml t.csv: "));
  CHECK(told(at, "csv: {train: [t.csv, gone], target: b}") == "c.yaml gone" + missing);
  CHECK(told(at, "csv: {train: t.csv, test: gone, target: b}") == "c.yaml gone" + missing);
  CHECK(told(at, "text: {train: text.txt, validation: [text.txt, gone], length: 2}") == "c.yaml gone" + missing);
  CHECK(told(at, "text: {train: [text.txt, empty.txt], length: 2}").starts_with("c.yaml empty.txt: "));
  CHECK(told(at, "text: {train: [text.txt, none], length: 2}") == "c.yaml none: the folder ");
  CHECK(told(at, "image_folder: {train: images, test: gone}").starts_with("c.yaml images: "));
  CHECK(told(at, "cifar10: {dir: gone}") == "c.yaml gone" + missing);
  CHECK(told(at, "fashion_mnist: {dir: gone}") == "c.yaml gone" + missing);
  // An option points at its own argument, and leaves the other files in the config.
  CHECK(told(at, "idx: {train: [x, y]}", {"data.source.idx.train.1=gone"}) == "--set gone" + missing);
  CHECK(told(at, "idx: {train: [gone, y]}", {"data.source.idx.train.1=y"}) == "c.yaml gone" + missing);
}
