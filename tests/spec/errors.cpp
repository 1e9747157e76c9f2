// What a config may not say: the words of every error, as golden text.
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/refused.h"

using namespace pmaptrain;

TEST_CASE("the configs in tests/spec/errors are refused as the texts beside them say", "[spec]") {
  test::check_refused("tests/spec/errors", [](const std::string& config, const spec::Overrides& overrides) {
    spec::load_text(config, "c.yaml", "/base", overrides);
  });
}
