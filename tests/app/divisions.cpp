// validate --plans: its options, and what it prints.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/app/call.h"
#include "tests/app/process.h"
#include "tests/catch.h"

using namespace pmaptrain;
using nlohmann::json;
using pmaptrain::tests::call;
using pmaptrain::tests::contains;
using pmaptrain::tests::Finished;
using pmaptrain::tests::linear;
using pmaptrain::tests::read_text;
using pmaptrain::tests::TemporaryFolder;

namespace {

// A small transformer on bytes.
const std::string transformer = "bench/configs/transformer.yaml";

}  // namespace

TEST_CASE("options of --plans are refused where they mean nothing", "[app]") {
  const auto refused = [](const std::vector<std::string>& options) {
    std::vector<std::string> command{"validate", linear};
    command.insert(command.end(), options.begin(), options.end());
    const Finished ran = call(command);
    CHECK(ran.status == 2);
    return ran.err;
  };
  CHECK(contains(refused({"--plan-devices", "8"}),
                 "--plan-devices:1:16: error: --plan-devices is for --plans\n"
                 "    1 | --plan-devices 8\n"
                 "      |                ^\n"
                 "  help: add --plans\n"));
  CHECK(contains(refused({"--devices-per-host", "8"}), "--devices-per-host is for --plans\n"));
  CHECK(
      contains(refused({"--plans", "--plan-devices", "0"}), "--plan-devices takes an integer of at least 1, not '0'"));
  CHECK(contains(refused({"--plans", "--devices-per-host", "none"}),
                 "--devices-per-host takes an integer of at least 1, not 'none'"));
  CHECK(contains(refused({"--plans", "--plan-devices", "65537"}), "--plans divides at most 65,536 devices"));
  CHECK(contains(refused({"--plans", "--print-config"}),
                 "error: --plans prints the keys of the best division, not the config\n"
                 "  help: leave out one of --plans and --print-config\n"));
  CHECK(contains(refused({"--plans", "--set", "mesh.axes=[{members: 2}, {batch: 8}]", "--set",
                          "ensemble={axis: members, vary: {seed: [0, 1]}}"}),
                 "error: --plans divides the devices of one model, and this config has an ensemble\n"));
  // No division is possible.
  CHECK(contains(
      refused({"--plans", "--plan-devices", "7"}),
      "configs/linear_regression.yaml:19:15: error: 800 examples do not divide over 7 devices: 800 = 7 × 114 + "
      "2\n"));
}

TEST_CASE("validate --plans prints the keys of the best division, which a config takes", "[app]") {
  const Finished ran = call({"validate", transformer, "--plans", "--plan-devices", "4", "--devices-per-host", "2",
                             "--set", "mesh.gpu_memory=80GiB"});
  CHECK(ran.status == 0);
  CHECK(ran.err.empty());
  CHECK(contains(ran.out, ": 4 devices of 80.0 GiB each, 2 on a host; "));
  CHECK(contains(ran.out, "memory of each device:\n"));
  CHECK(contains(ran.out, "what each device computes and sends in a step:\n"));
  const std::string before = "1 as a config:\n\n";
  REQUIRE(contains(ran.out, before));
  const TemporaryFolder folder;
  const std::string path = folder / "divided.yaml";
  std::string config = read_text(transformer);
  const std::size_t mesh = config.find("mesh:"), data = config.find("data:");
  REQUIRE(mesh < data);
  config.replace(mesh, data - mesh, ran.out.substr(ran.out.find(before) + before.size()) + "\n");
  std::ofstream(path) << config;
  const Finished divided = call({"validate", path, "--json"});
  INFO(config << divided.err);
  CHECK(divided.status == 0);
  CHECK(json::parse(divided.out)["logical_devices"] == 4);
}

TEST_CASE("validate --plans --json has all divisions", "[app]") {
  const Finished ran = call({"validate", transformer, "--plans", "--plan-devices", "4", "--json"});
  REQUIRE(ran.status == 0);
  const json document = json::parse(ran.out);
  CHECK(document["plan_devices"] == 4);
  CHECK(document["devices_per_host"] == 8);
  CHECK(document["memory_of_device"].is_null());
  CHECK(document["programs_made"].get<int>() > 0);
  bool has_stage_3 = false;
  for (const json& plan : document["plans"]) {
    CHECK(plan["data"].get<int>() * plan["shards"].get<int>() * plan["model"].get<int>() == 4);
    CHECK(plan["fits"].is_null());
    has_stage_3 = has_stage_3 || plan["stage"] == 3;
    const json& memory = plan["memory_bytes"];
    std::int64_t total = 0;
    for (const char* const part : {"parameters", "gradients", "optimizer", "gathered", "activations", "others"}) {
      CHECK(memory[part].get<std::int64_t>() >= 0);
      total += memory[part].get<std::int64_t>();
    }
    CHECK(std::abs(total - memory["total"].get<std::int64_t>()) < 8);  // each is rounded
    CHECK(plan["flops"].get<std::int64_t>() > 0);
  }
  CHECK(has_stage_3);
  // By default the devices of the config's mesh.
  const json own = json::parse(call({"validate", linear, "--plans", "--json"}).out);
  CHECK(own["plan_devices"] == 8);
}
