// The config: what is accepted resolves to a config that is accepted and resolves to itself.
#include <cstdio>

#include "core/base/error.h"
#include "core/spec/load.h"
#include "tests/fuzz/target.h"

namespace pmaptrain::fuzz {

void fuzz_one(std::span<const std::byte> input) {
  spec::Loaded loaded;
  try {
    loaded = spec::load_text(text_of(input), "fuzz.yaml", "/fuzz", {});
  } catch (const Error& error) {
    require(error.status() == ExitStatus::usage, "what is wrong with a config is a mistake of usage");
    return;
  }
  plant_bug(loaded.spec.seed > 7, input);
  try {
    const spec::Loaded again = spec::load_text(loaded.resolved, "config.yaml", "/elsewhere", {});
    require(again.resolved == loaded.resolved, "a resolved config resolves to itself");
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    require(false, "a resolved config is accepted");
  }
}

}  // namespace pmaptrain::fuzz
