// What a config may not say beside its data: the words of every error, as golden text.
#include "core/setup/make_setup.h"
#include "core/setup/setup.h"
#include "tests/catch.h"
#include "tests/refused.h"

using namespace pmaptrain;

TEST_CASE("the configs in tests/setup/errors are refused as the texts beside them say", "[setup]") {
  test::check_refused("tests/setup/errors", [](const std::string& config, const spec::Overrides& overrides) {
    setup::make_setup(spec::load_text(config, "c.yaml", "/base", overrides));
  });
}
