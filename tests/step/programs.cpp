// The programs of two configs at every stage, as golden text.
#include "core/setup/programs.h"

#include <utility>

#include "core/graph/text.h"
#include "core/setup/setup.h"
#include "tests/catch.h"
#include "tests/golden.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

void check_stages(const std::string& file, const setup::Setup& setup) {
  std::string all;
  for (const auto& [name, stage] :
       {std::pair{"model", step::Stage::model}, std::pair{"grad", step::Stage::grad},
        std::pair{"synchronised", step::Stage::synchronised}, std::pair{"final", step::Stage::final}}) {
    all += std::string("# ") + name + "\n" + to_text(setup::program_at(setup, stage)) + "\n";
  }
  all += "# what runs\n" + to_text(*setup.training);
  test::check_golden("programs/" + file, all);
}

}  // namespace

TEST_CASE("the programs of linear_regression.yaml are what the golden text says", "[step]") {
  check_stages("linear_regression.txt", setup_of_config("linear_regression.yaml"));
}

TEST_CASE("the programs of a masked, microbatched convolutional network are what the golden text says", "[step]") {
  check_stages("conv.txt", setup_of_text(small_images, {"data.batch_size=10", "data.remainder=mask",
                                                        "data.microbatches=2", "mesh.axes=[{a: 2}, {b: 3}]"}));
}
