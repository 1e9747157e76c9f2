// What an option may not say, beyond the texts in errors/.
#include <string>
#include <vector>

#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/spec/errors_of.h"

using namespace pmaptrain;

TEST_CASE("a value of --set that replaces a whole map says which keys are gone", "[spec]") {
  CHECK(errors_of(base, {"optimizer.sgd={}"}).empty());
  const auto notes = [](const std::string& set) {
    spec::Overrides overrides;
    overrides.set = {set};
    return spec::load_text(base, "c.yaml", "/base", overrides).notes;
  };
  CHECK(notes("train={duration: 2 steps}").empty());
  CHECK(notes("data={source: fashion_mnist, batch_size: 64}").empty());
  CHECK(notes("data={source: fashion_mnist, batch_size_per_device: 64}") ==
        std::vector<std::string>{"--set data replaces all of data, so batch_size is gone"});
  CHECK(notes("data.source={synthetic_images: {}}").empty());  // another alternative
}

TEST_CASE("axes without spaces after their colons are shown with them", "[spec]") {
  CHECK(errors_of(base, {"mesh.axes={data:2}"}).ends_with("help: write {data: 2}\n"));
  CHECK(errors_of(base, {"mesh.axes={data: 2, model: 4}"})
            .ends_with("help: write [{data: 2}, {model: 4}], outermost first\n"));
}

TEST_CASE("--devices over an invalid mesh adds no error", "[spec]") {
  for (const char* mesh : {"mesh=[a]", "mesh=3", "mesh.axes=3", "mesh.axes=[4]", "mesh.axes=[]"}) {
    CAPTURE(mesh);
    CHECK(errors_of(base, {mesh}, 3) == errors_of(base, {mesh}));
  }
}

TEST_CASE("a quote that is not closed and bytes that are no text are refused in an option", "[spec]") {
  CHECK(errors_of(base, {"data.batch_size=\xff"}) ==
        R"(--set:1: error: this argument is not valid UTF-8
    1 | data.batch_size=?
)");
}
