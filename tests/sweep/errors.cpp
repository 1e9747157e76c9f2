#include <filesystem>

#include "core/base/error.h"
#include "core/sweep/plan.h"
#include "tests/catch.h"
#include "tests/refused.h"
#include "tests/sweep/trials.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// Without the folder's path, which differs from time to time.
std::string without(std::string text, const std::string& folder) {
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder))
    text.erase(at, folder.size());
  return text;
}

}  // namespace

TEST_CASE("the sweep files in tests/sweep/errors are refused as the texts beside them say", "[sweep]") {
  const SweepFolder folder;
  const std::string base = test::read_text(folder.path("base.yaml"));
  const auto extend = [&](const std::string& name, const std::string& train) {
    std::string text = base;
    text.insert(text.find("duration: 4 epochs"), train + ", ");
    test::write_text(folder.path(name), text);
  };
  extend("timed.yaml", "max_time: 1 hour");
  extend("best.yaml", "checkpoint: {best: {metric: mean_absolute_error}}");
  test::check_refused("tests/sweep/errors", [&](const std::string& config, const spec::Overrides& overrides) {
    const std::string file = folder.path("sweep.yaml");
    test::write_text(file, config);
    try {
      sweep::plan_sweep(spec::Sweep::load(file, overrides.set), 1);
    } catch (const Error& error) {
      std::vector<Diagnostic> diagnostics = error.diagnostics();
      for (Diagnostic& one : diagnostics) {
        one.place.file = without(one.place.file, folder.path(""));
        one.message = without(one.message, folder.path(""));
        for (std::string& note : one.notes) note = without(note, folder.path(""));
      }
      throw Error(error.status(), std::move(diagnostics));
    }
  });
}

TEST_CASE("a base whose path cannot be written into YAML is refused", "[sweep]") {
  const test::TemporaryFolder folder;
  const std::filesystem::path below = folder.path() / "na\xffme";
  std::filesystem::create_directory(below);
  test::write_text(below / "sweep.yaml", "base: base.yaml\nparameters: {seed: {choice: [0, 1]}}\n");
  CHECK(error_of([&] { spec::Sweep::load((below / "sweep.yaml").string(), {}); }) ==
        (below / "sweep.yaml").string() + ":1:7: error: the path of the base, '" + (below / "base.yaml").string() +
            "', is not UTF-8\n    1 | base: base.yaml\n      |       ^~~~~~~~~\n"
            "  help: rename its folder: the sweep writes the whole path into a YAML file\n");
}
