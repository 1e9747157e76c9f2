// mixup and cutmix: how the examples of a batch are mixed with each other.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "core/augment/augmenter.h"
#include "core/augment/cutmix.h"
#include "core/augment/mixup.h"
#include "core/data/one_hot.h"
#include "core/input/batches/batch.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using test::contains;

namespace {

constexpr std::int64_t height = 6, width = 4, channels = 2, classes = 3;
constexpr std::size_t image_bytes = height * width * channels;
const data::Field images{DType::u8, {height, width, channels}};

// Image i has the value 20 i everywhere, and the label i modulo 3.
class Plain final : public data::Dataset {
 public:
  std::int64_t size() const override { return 11; }
  data::Field input() const override { return images; }
  data::Field target() const override { return {DType::i32, {}}; }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    const auto label = static_cast<std::int32_t>(index % classes);
    std::memset(input, static_cast<int>(20 * index), image_bytes);
    std::memcpy(target, &label, sizeof(label));
  }
};

augment::Mixer mixer_of(const augment::AugmentationKind& kind, std::uint64_t seed = 1) {
  return {{{kind}}, images, seed};
}

struct Batch {
  std::vector<std::byte> inputs;
  std::vector<float> targets;
  friend bool operator==(const Batch&, const Batch&) = default;
};

// The rows `own` of a batch of the examples in order.
Batch batch_of(const augment::Mixer& mixer, std::int64_t size, std::int64_t step, IndexRange own) {
  const auto dataset = data::one_hot_labels(std::make_shared<Plain>(), classes);
  const BatchPlan plan = input::plan_evaluation(dataset->size(), size, 2);
  const auto rows = static_cast<std::size_t>(own.count);
  Batch batch{std::vector<std::byte>(rows * image_bytes), std::vector<float>(rows * classes)};
  input::fill(*dataset, {data::Sampler::in_order(dataset->size()), {}, mixer}, plan, step,
              {batch.inputs.data(), reinterpret_cast<std::byte*>(batch.targets.data()), nullptr, nullptr, image_bytes,
               classes * sizeof(float), own});
  return batch;
}

int value_at(const Batch& batch, std::size_t row) { return std::to_integer<int>(batch.inputs[row * image_bytes]); }

}  // namespace

TEST_CASE("the share of mixup has the moments of Beta(alpha, alpha), and depends on the seed and the step", "[data]") {
  for (const double alpha : {0.01, 0.2, 1.0, 8.0}) {
    const augment::Mixer mixer = mixer_of(augment::Mixup{alpha});
    double sum = 0, squares = 0;
    constexpr int draws = 20000;
    for (int step = 0; step < draws; ++step) {
      const double share = mixer.draw(step).share / 65536.0 - 0.5;
      sum += share;
      squares += share * share;
    }
    INFO("alpha " << alpha);
    CHECK(sum / draws == Approx(0).margin(0.012));
    CHECK(squares / draws == Approx(1 / (4 * (2 * alpha + 1))).epsilon(0.05));
  }
  const auto share = [](std::uint64_t seed, std::int64_t step) {
    return mixer_of(augment::Mixup{1.0}, seed).draw(step).share;
  };
  CHECK(share(1, 5) == share(1, 5));
  CHECK(share(1, 5) != share(1, 6));
  CHECK(share(1, 5) != share(2, 5));
}

TEST_CASE("mixup adds each example of a batch and its partner, and their labels, by one share", "[data]") {
  const augment::Mixer mixer = mixer_of(augment::Mixup{1.0});
  const Batch batch = batch_of(mixer, 4, 1, {0, 4});  // the examples 4 to 7
  const double share = mixer.draw(1).share / 65536.0;
  for (std::size_t row = 0; row < 4; ++row) {
    const std::size_t own = 4 + row, partner = 7 - row;
    INFO("row " << row);
    CHECK(value_at(batch, row) ==
          Approx(20 * (share * static_cast<double>(own) + (1 - share) * static_cast<double>(partner))).margin(0.5));
    for (std::size_t c = 0; c < classes; ++c) {
      const double expected = (own % classes == c ? share : 0) + (partner % classes == c ? 1 - share : 0);
      CHECK(batch.targets[row * classes + c] == Approx(expected).margin(1e-6));
    }
  }
}

TEST_CASE("cutmix takes a rectangle from the partner, and its share of the area from the partner's label", "[data]") {
  const augment::Mixer mixer = mixer_of(augment::Cutmix{1.0});
  std::vector<int> shares;
  for (std::int64_t step = 0; step < 300; ++step) {
    const augment::Mix mix = mixer.draw(step);
    std::vector<std::byte> image(image_bytes, std::byte{1}), partner(image_bytes, std::byte{2});
    mixer.mix_image(mix, image.data(), partner.data());
    const auto taken = static_cast<double>(std::count(image.begin(), image.end(), std::byte{2}));
    CHECK(mix.share / 65536.0 == Approx(1 - taken / image_bytes).margin(1e-4));
    REQUIRE(mix.box);
    CHECK(static_cast<double>(mix.box->size.height * mix.box->size.width * channels) == taken);
    std::vector<float> target{1, 0, 0};
    augment::Mixer::mix_target(mix, target, std::vector<float>{0, 0, 1});
    CHECK(std::accumulate(target.begin(), target.end(), 0.0F) == Approx(1));
    CHECK(target[2] == Approx(taken / image_bytes).margin(1e-4));
    shares.push_back(static_cast<int>(taken));
  }
  std::sort(shares.begin(), shares.end());
  CHECK(std::unique(shares.begin(), shares.end()) - shares.begin() > 8);
}

TEST_CASE("the rows of a process are those of the whole batch, also of a short last one", "[data]") {
  for (const augment::AugmentationKind& kind :
       {augment::AugmentationKind(augment::Mixup{1.0}), augment::AugmentationKind(augment::Cutmix{1.0})}) {
    const augment::Mixer mixer = mixer_of(kind);
    for (const std::int64_t step : {0, 1, 2}) {  // of 4, 4 and 3 examples; the last one with a row of padding
      const Batch whole = batch_of(mixer, 4, step, {0, 4});
      for (const std::int64_t divide : {1, 2, 3}) {
        Batch joined = batch_of(mixer, 4, step, {0, divide});
        const Batch rest = batch_of(mixer, 4, step, {divide, 4 - divide});
        joined.inputs.insert(joined.inputs.end(), rest.inputs.begin(), rest.inputs.end());
        joined.targets.insert(joined.targets.end(), rest.targets.begin(), rest.targets.end());
        INFO("step " << step << ", divided at " << divide);
        CHECK(joined == whole);
      }
    }
  }
}

TEST_CASE("mixup and cutmix are the last of the list, one of them, and for classes", "[data]") {
  const auto refused = [](const std::string& list, std::vector<std::string> set = {}) {
    set.push_back("data.augment=" + list);
    try {
      setup_of_text(small_images, set);
    } catch (const Error& error) {
      return error.diagnostics().front().message + " | " + error.diagnostics().front().help;
    }
    return std::string();
  };
  CHECK(
      refused("[mixup, random_flip]") ==
      "mixup is not the last of the list: it mixes images that all other changes have been made to | move mixup to the "
      "end");
  CHECK(contains(refused("[cutmix: 0.5, mixup]"), "one of mixup and cutmix is used, not both"));
  CHECK(refused("[mixup]", {"model.layers=[flatten, {dense: 1}]", "loss=sigmoid_cross_entropy", "metrics=[]",
                            "data.source.synthetic_images.classes=2"}) ==
        "mixup mixes the classes of softmax_cross_entropy; the loss is sigmoid_cross_entropy, with targets i32[] | "
        "remove it, or train with one class for each image and softmax_cross_entropy");
  CHECK(refused("[random_flip, mixup]").empty());
}

TEST_CASE("a run with mixed examples evaluates labels, resumes and learns", "[data]") {
  for (const std::string mix : {"mixup: {alpha: 0.4}", "cutmix"}) {
    INFO(mix);
    const setup::Setup setup = setup_of_text(
        small_images, {"data.augment=[random_flip, " + mix + "]", "train.duration=60 steps", "train.log_every=never",
                       "loss={softmax_cross_entropy: {class_weights: balanced}}"});
    CHECK(setup.training_model().target.dtype == DType::f32);
    CHECK(setup.model.target.dtype == DType::i32);
    const Trained trained = train_setup(setup);
    CHECK(trained.ended.exit_status == 0);
    const run::Evaluated last = trained.of<run::Evaluated>().back();
    const auto accuracy = std::find_if(last.measures.begin(), last.measures.end(),
                                       [](const auto& measure) { return measure.first == "accuracy"; });
    REQUIRE(accuracy != last.measures.end());
    CHECK(accuracy->second > 0.6);
  }
}
