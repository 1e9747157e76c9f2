// Label maps from folders of images to predicted masks.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/data/file.h"
#include "core/data/images/label_png.h"
#include "tests/app/predicting.h"
#include "tests/data/image_files.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

// Images whose right half, from a column on, is bright and of class 1.
std::string image_or_mask(std::int64_t height, std::int64_t width, std::int64_t from, char bright) {
  std::string pixels(static_cast<std::size_t>(height * width), '\0');
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    if (static_cast<std::int64_t>(i) % width >= from) pixels[i] = bright;
  }
  return Png{height, width, 1, pixels, height, width}.build();
}

struct HalvesRun : tests::TrainedRun {
  HalvesRun() {
    for (const std::string split : {"train", "test"}) {
      for (int i = 0; i < 8; ++i) {
        const std::string name = "/" + std::to_string(i) + ".png";
        const std::int64_t width = 8 + i % 3, from = 2 + i % 5;
        write_in(folder, split + "/images" + name, image_or_mask(6, width, from, '\x7f'));
        write_in(folder, split + "/masks" + name, image_or_mask(6, width, from, '\1'));
      }
    }
    train(
        "  source: {image_masks: {train: train, test: test, size: [6, 8], class_names: [dark, bright]}}\n"
        "  augment: [random_flip, {random_crop: {padding: 1}}]\n",
        "{conv: {features: 2, kernel_size: [1, 1]}}",
        "loss: {softmax_cross_entropy: {ignore_label: 255}}\nmetrics: [accuracy, mean_iou, dice, confusion_matrix]\n",
        {"train.duration=200 epochs", "train.eval_every=200 epochs", "optimizer.learning_rate=0.2"});
  }
};

}  // namespace

TEST_CASE("a model of pixels is trained on images and masks, and predicts masks of the sizes of its images", "[app]") {
  const HalvesRun run;
  const auto summary = nlohmann::json::parse(test::read_text(run.folder / "run/summary.json"));
  const auto& found = summary["final"]["test"];
  CHECK(found["mean_iou"].get<double>() > 0.9);
  CHECK(found["dice"].get<double>() >= found["mean_iou"].get<double>());
  CHECK(found["accuracy"].get<double>() > 0.9);
  double pixels = 0;
  for (const auto& row : found["confusion_matrix"]) {
    for (const auto& count : row) pixels += count.get<double>();
  }
  CHECK(pixels == 8 * 6 * 8);

  const tests::Finished done = run.predict("test/images", "masks");
  CHECK(done.err == "note: images: 5 of 8 are resized to 6x8\n");
  CHECK(done.status == 0);
  CHECK(test::contains(done.out, "masks: classes of 8 examples"));
  for (int i = 0; i < 8; ++i) {
    const std::string path = run.folder / ("masks/" + std::to_string(i) + ".png");
    const data::LabelImage mask = data::decode_labels(data::read_file(path), path);
    CHECK(mask.height == 6);
    CHECK(mask.width == 8 + i % 3);
    CHECK(mask.labels.front() == 0);
    CHECK(mask.labels.back() == 1);
  }
  CHECK(run.refusal(2, "test/images", {}, "masks") ==
        "the folder 'masks' is not empty | --overwrite replaces masks in it of the same names");
  CHECK(run.predict("test/images", "masks", {"--overwrite"}).status == 0);
  CHECK(run.refusal(2, "test/images", {"--as", "probabilities"}, "others").starts_with("the ending of 'others'"));
  CHECK(run.refusal(2, "test/images", {}, "no/masks") == "there is no folder 'no' | mkdir -p no");

  const tests::Finished report = tests::call({"report", run.dir, "--output", run.folder / "report.html"});
  INFO(report.err);
  CHECK(report.status == 0);
  CHECK(test::contains(test::read_text(run.folder / "report.html"), "0.png: predicted classes"));
}
