// bench: its document, its text, and what it refuses.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/app/call.h"
#include "tests/app/process.h"
#include "tests/catch.h"

using namespace pmaptrain::tests;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> keys(const ordered_json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("the JSON of bench is as documented, and its figures agree with each other", "[app][process]") {
  const Finished result = run_binary({"bench", linear, "--steps", "30", "--workers", "2", "--json"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  CHECK(result.err.empty());
  const ordered_json document = ordered_json::parse(result.out);
  CHECK(keys(document) == std::vector<std::string>{"steps", "step_seconds", "examples_per_second", "first_step_seconds",
                                                   "load_seconds", "losses", "peak_rss_bytes", "flops_per_step",
                                                   "precision", "logical_devices", "workers", "machine",
                                                   "share_of_gemm_peak"});
  CHECK(keys(document["step_seconds"]) == std::vector<std::string>{"median", "min"});
  CHECK(keys(document["machine"]) == std::vector<std::string>{"gemm_flops_per_second", "copy_bytes_per_second"});

  CHECK(keys(document["load_seconds"]) == std::vector<std::string>{"planning", "loading"});
  const auto losses = document["losses"].get<std::vector<double>>();
  REQUIRE(losses.size() == 3);
  CHECK(losses[0] > losses[1]);
  CHECK(losses[1] > losses[2]);

  CHECK(document["steps"] == 30);
  CHECK(document["precision"] == "float32");
  CHECK(document["logical_devices"] == 8);
  CHECK(document["workers"] == 2);
  const double median = document["step_seconds"]["median"], least = document["step_seconds"]["min"];
  CHECK(least > 0);
  CHECK(median >= least);
  CHECK(document["examples_per_second"].get<double>() == Approx(800 / median));
  CHECK(document["first_step_seconds"].get<double>() > 0);
  CHECK(document["first_step_seconds"].get<double>() < 3600);
  CHECK(document["peak_rss_bytes"].get<std::int64_t>() > 1'000'000);
  const double gemm = document["machine"]["gemm_flops_per_second"];
  CHECK(gemm > 1e7);
  CHECK(document["machine"]["copy_bytes_per_second"].get<double>() > 1e7);
  const double flops = document["flops_per_step"];
  CHECK(document["share_of_gemm_peak"].get<double>() == Approx(flops / median / gemm));
  CHECK(flops == ordered_json::parse(call({"validate", linear, "--json"}).out)["flops_per_step"].get<double>());
}

TEST_CASE("bench writes nothing to where it runs", "[app][process]") {
  const TemporaryFolder folder;
  const std::string config = fs::absolute(linear).string();
  CHECK(Process({"bench", config, "--steps", "5"}, 0, folder.path()).wait().status == 0);
  CHECK(fs::is_empty(folder.path()));
  // What a run leaves there, this test would see.
  CHECK(Process({"run", config, "--max-steps", "1"}, 0, folder.path()).wait().status == 0);
  CHECK_FALSE(fs::is_empty(folder.path()));
}

TEST_CASE("the text of bench has units, beside notes about replacements", "[app]") {
  const Finished result =
      call({"bench", linear, "--steps", "40", "--devices", "1", "--workers", "1", "--set", "optimizer.adam.b1=0.8"});
  INFO(result.out);
  CHECK(result.status == 0);
  CHECK(contains(result.err, "note: "));
  CHECK(result.out.starts_with("linear_regression: 1 logical device, 1 worker\n"));
  for (const char* part :
       {"\nstep, median ", "s over 40 steps\n", "\nstep, minimum ", "\nexamples per second ", "\nfirst step done ",
        "s after the start of the process\n", "\npeak memory ", " MiB\n", "\nFLOPs of a step ", "FLOP\n",
        "\npeak GEMM ", "FLOP/s, of which a step reaches ", " %\n", "\nmemory bandwidth ", "B/s\n"}) {
    INFO(part);
    CHECK(contains(result.out, part));
  }
}

TEST_CASE("bench takes the options of a config", "[app]") {
  const Finished json =
      call({"bench", linear, "--steps", "1", "--devices", "4", "--workers", "1", "--seed", "3", "--json"});
  CHECK(json.status == 0);
  CHECK(ordered_json::parse(json.out)["logical_devices"] == 4);
  CHECK(ordered_json::parse(json.out)["workers"] == 1);
  CHECK(ordered_json::parse(json.out)["steps"] == 1);
}

TEST_CASE("bench refuses invalid options before timing", "[app]") {
  CHECK(call({"bench", linear, "--steps", "0"}).err ==
        "--steps:1:9: error: --steps takes an integer of at least 1, not '0'\n"
        "    1 | --steps 0\n"
        "      |         ^\n");
  CHECK(contains(call({"bench"}).err, "error: pmaptrain bench needs CONFIG\n  help: pmaptrain bench configs/"));
  CHECK(call({"bench", linear, "--stpes", "3"}).err ==
        "error: pmaptrain bench has no option '--stpes'\n  help: did you mean '--steps'?\n");
  const Finished divides = call({"bench", "configs/cnn.yaml", "--set", "data.batch_size=100", "--json"});
  CHECK(divides.status == 2);
  CHECK(ordered_json::parse(divides.out)["exit_status"] == 2);
  CHECK(call({"bench", "configs/fashion_mnist.yaml", "--set", "data.source.fashion_mnist.dir=nope"}).status == 3);
  const Finished memory = call({"bench", "configs/cnn.yaml", "--set", "model.layers.7.dense=10000000"});
  CHECK(memory.status == 4);
  CHECK(contains(memory.err, "available; the largest item is "));
}
