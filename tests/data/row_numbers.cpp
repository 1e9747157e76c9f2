#include "core/input/batches/row_numbers.h"

#include <cstring>

#include "core/input/batches/batch.h"
#include "core/input/open.h"
#include "tests/data/files.h"

using namespace pmaptrain;

namespace {

// Seven examples, of which example i counts i / 4.
class Weighted final : public data::Dataset {
 public:
  std::int64_t size() const override { return 7; }
  data::Field input() const override { return {DType::u8, {2}}; }
  data::Field target() const override { return {DType::i32, {}}; }
  void read(std::int64_t, std::byte*, std::byte*) const override { FAIL("an example was read"); }
  bool is_weighted() const override { return true; }
  float weight(std::int64_t index) const override { return static_cast<float>(index) / 4; }
  std::int64_t index_in_source(std::int64_t index) const override { return 100 + index; }
};

}  // namespace

TEST_CASE("row numbers make the batches that their examples would, padding and weights included", "[data]") {
  const auto rows = input::row_numbers_of(std::make_shared<Weighted>());
  CHECK(rows->index_in_source(3) == 103);
  const BatchPlan plan = input::plan_evaluation(7, 4, 2);
  const input::Stream shuffled(data::Sampler::shuffled(7, 1, "data/shuffle"));
  std::vector<std::int32_t> found(4);
  std::vector<float> mask(4);
  for (std::int64_t step = 0; step < 4; ++step) {
    INFO("step " << step);
    input::fill(*rows, shuffled, plan, step,
                {reinterpret_cast<std::byte*>(found.data()), nullptr, mask.data(), nullptr, 4, 0});
    const std::int64_t count = plan.examples_in(step % 2);
    for (std::int64_t r = 0; r < 4; ++r) {
      const std::int64_t example = shuffled.order().index(step / 2, step % 2 * 4 + std::min(r, count - 1));
      CHECK(found[static_cast<std::size_t>(r)] == example);
      CHECK(mask[static_cast<std::size_t>(r)] == (r < count ? static_cast<float>(example) / 4 : 0));
    }
  }
}
