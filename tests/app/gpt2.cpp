// The largest shipped config: planned here, trained where there are GPUs.
#include <nlohmann/json.hpp>

#include "tests/app/call.h"
#include "tests/catch.h"

using namespace pmaptrain::tests;
using nlohmann::json;

TEST_CASE("GPT-2 of 124 million parameters is planned on one GPU and on eight of 80 GiB, and not on one of 24",
          "[app]") {
  const TemporaryFolder folder;
  const std::string tokens = folder.write("tokens.bin", std::string(513 * 2048, '\0'));
  const auto planned = [&](const std::string& memory, const std::string& gpus) {
    return call({"validate", "configs/gpt2.yaml", "--set", "data.source.text.train=" + tokens, "--set",
                 "data.source.text.validation=" + tokens, "--set", "mesh.backend=cuda", "--set",
                 "mesh.gpu_memory=" + memory, "--workers", gpus, "--json"});
  };
  for (const char* const gpus : {"1", "8"}) {
    const Finished found = planned("80GiB", gpus);
    INFO(found.err);
    REQUIRE(found.status == 0);
    CHECK(json::parse(found.out)["parameters"] == 124'439'808);
  }
  CHECK(planned("24GiB", "1").status == 4);
}
