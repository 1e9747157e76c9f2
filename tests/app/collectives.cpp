// `collectives` against plain formulas, and the mesh of `exec`.
#include "app/collectives.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/options/mesh_option.h"
#include "core/ops/all.h"
#include "tests/app/call.h"
#include "tests/catch.h"

using namespace pmaptrain;
using nlohmann::json;
using pmaptrain::tests::call;
using pmaptrain::tests::contains;
using pmaptrain::tests::Finished;
using pmaptrain::tests::TemporaryFolder;

namespace {

json document_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "collectives");
  arguments.emplace_back("--json");
  const Finished result = call(arguments);
  INFO(result.out);
  REQUIRE(result.status == 0);
  return json::parse(result.out);
}

using Numbers = std::vector<double>;

Numbers numbers_of(const json& value) { return value.is_array() ? value.get<Numbers>() : Numbers{value.get<double>()}; }

Numbers joined(const std::vector<Numbers>& inputs) {
  Numbers all;
  for (const Numbers& input : inputs) all.insert(all.end(), input.begin(), input.end());
  return all;
}

// What member `me` of a group ends with, from what all its members begin with.
Numbers expected(const std::string& op, const std::vector<Numbers>& inputs, std::size_t me) {
  const auto n = inputs.size();
  const Numbers all = joined(inputs);
  if (op == "psum") return {std::accumulate(all.begin(), all.end(), 0.0)};
  if (op == "pmean") return {std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(n)};
  if (op == "pmax") return {*std::max_element(all.begin(), all.end())};
  if (op == "pmin") return {*std::min_element(all.begin(), all.end())};
  if (op == "all_gather" || op == "all_gather_invariant") return all;
  if (op == "pvary") {
    CHECK_THAT(inputs.front(), Catch::Matchers::Equals(inputs[me]));
    return inputs[me];
  }
  if (op == "ppermute") return inputs[(me + n - 1) % n];
  if (op == "all_slice") return {inputs[me].at(me)};
  Numbers parts;
  for (const Numbers& input : inputs) parts.push_back(input.at(me));
  if (op == "all_to_all") return parts;
  if (op == "psum_scatter") return {std::accumulate(parts.begin(), parts.end(), 0.0)};
  FAIL("there is no formula for " << op);
  return {};
}

void check_against_formulas(const json& document) {
  for (const json& entry : document["collectives"]) {
    const auto op = entry["op"].get<std::string>();
    INFO(op << " over " << entry["axes"]);
    std::size_t seen = 0;
    for (const json& group : entry["groups"]) {
      std::vector<Numbers> inputs;
      for (const json& device : group) {
        const json& row = entry["devices"][device.get<std::size_t>()];
        CHECK(row["device"] == device);
        if (op != "axis_index") inputs.push_back(numbers_of(row["input"]));
      }
      for (std::size_t me = 0; me < group.size(); ++me, ++seen) {
        const json& row = entry["devices"][group[me].get<std::size_t>()];
        const Numbers result = numbers_of(row["result"]);
        if (op == "axis_index") {
          CHECK(row["result"] == row["coordinates"][entry["axes"][0].get<std::string>()]);
        } else {
          CHECK_THAT(result, Catch::Matchers::Equals(expected(op, inputs, me)));
        }
      }
    }
    CHECK(seen == entry["devices"].size());
  }
}

}  // namespace

TEST_CASE("every op that moves values between devices is among the collectives that are shown", "[app]") {
  std::size_t moving = 0;
  for (const OpRules* rules : all_ops().all) {
    if (kernels_of(Op(*rules, rules->make())).exchange == nullptr) continue;
    ++moving;
    INFO(rules->name);
    CHECK(std::any_of(app::demonstrations().begin(), app::demonstrations().end(),
                      [&](const app::Demonstration& one) { return one.name == rules->name; }));
  }
  CHECK(moving >= 7);
}

TEST_CASE("collectives gives every device the result of the formula, over each axis and over all", "[app]") {
  const json nested = document_of({"--mesh", "model_replicas=2", "--mesh", "data_shards=3"});
  CHECK(nested["mesh"] == json{{"model_replicas", 2}, {"data_shards", 3}});
  CHECK(nested["logical_devices"] == 6);
  std::size_t several = 0;
  for (const app::Demonstration& one : app::demonstrations()) several += one.several ? 1 : 0;
  CHECK(nested["collectives"].size() == 2 * app::demonstrations().size() + several);
  check_against_formulas(nested);
  check_against_formulas(document_of({"--mesh", "devices=1"}));
  check_against_formulas(document_of({"--mesh", "a=2", "--mesh", "b=1", "--mesh", "c=12"}));
}

TEST_CASE("nested axes: one collective works within a replica, the other among holders of a shard", "[app]") {
  const json nested = document_of({"--mesh", "model_replicas=2", "--mesh", "data_shards=4", "--op", "psum"});
  const json& replicas = nested["collectives"][0];
  CHECK(replicas["axes"] == json{"model_replicas"});
  CHECK(replicas["groups"] == json::parse("[[0, 4], [1, 5], [2, 6], [3, 7]]"));
  CHECK(replicas["result_type"] == "f32[]{data_shards}");
  CHECK(replicas["devices"][5] == json{{"device", 5},
                                       {"coordinates", {{"model_replicas", 1}, {"data_shards", 1}}},
                                       {"input", 5.0},
                                       {"result", 6.0}});
  const json& shards = nested["collectives"][1];
  CHECK(shards["groups"] == json::parse("[[0, 1, 2, 3], [4, 5, 6, 7]]"));
  CHECK(shards["devices"][5]["result"] == 22.0);
  CHECK(nested["collectives"][2]["axes"] == json{"model_replicas", "data_shards"});
  CHECK(nested["collectives"][2]["devices"][5]["result"] == 28.0);
}

TEST_CASE("collectives as text shows groups, types, and each device's input and result", "[app]") {
  const Finished result = call({"collectives", "--mesh", "replicas=2", "--mesh", "shards=2", "--op", "psum_scatter"});
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  CHECK(
      result.out ==
      "mesh: replicas=2 shards=2 (4 logical devices)\n\npsum_scatter over replicas: the sum over the group, split "
      "between its members\n  f32[2]{replicas, shards} -> f32[1]{replicas, shards}\n  group                    "
      "device  input         result\n  devices 0, 2 (shards 0)       0  [0.0, 1.0]    [20.0]\n                       "
      "         2  [20.0, 21.0]  [22.0]\n  devices 1, 3 (shards 1)       1  [10.0, 11.0]  [40.0]\n                   "
      "             3  [30.0, 31.0]  [42.0]\n\npsum_scatter over shards: the sum over the group, split between its "
      "members\n  f32[2]{replicas, shards} -> f32[1]{replicas, shards}\n  group                      device  input   "
      "      result\n  devices 0, 1 (replicas 0)       0  [0.0, 1.0]    [10.0]\n                                  1  "
      "[10.0, 11.0]  [12.0]\n  devices 2, 3 (replicas 1)       2  [20.0, 21.0]  [50.0]\n                             "
      "     3  [30.0, 31.0]  [52.0]\n\npsum_scatter over replicas, shards: the sum over the group, split between its "
      "members\n  f32[4]{replicas, shards} -> f32[1]{replicas, shards}\n  group          device  input                "
      "     result\n  all 4 devices       0  [0.0, 1.0, 2.0, 3.0]      [60.0]\n                      1  [10.0, 11.0, "
      "12.0, 13.0]  [64.0]\n                      2  [20.0, 21.0, 22.0, 23.0]  [68.0]\n                      3  [30.0, "
      "31.0, 32.0, 33.0]  [72.0]\n");
  CHECK(contains(call({"collectives", "--op", "axis_index"}).out,
                 "mesh: devices=4 (4 logical devices)\n\naxis_index over devices: the member's coordinate along the "
                 "axis\n  i32[]{devices}\n  group          device  result\n  all 4 devices       0  0\n"));
}

TEST_CASE("collectives takes the mesh of a config, with its options", "[app]") {
  const json document =
      document_of({"configs/linear_regression.yaml", "--devices", "3", "--workers", "2", "--op", "pmean"});
  CHECK(document["mesh"] == json{{"batch", 3}});
  CHECK(document["workers"] == 2);
  CHECK(document["collectives"].size() == 1);
  CHECK(document["collectives"][0]["devices"][2]["result"] == 1.0);
}

TEST_CASE("collectives gives the same for any number of workers", "[app]") {
  const std::vector<std::string> mesh{"--mesh", "a=3", "--mesh", "b=4"};
  std::vector<json> documents;
  for (const char* workers : {"1", "2", "5"}) {
    std::vector<std::string> arguments = mesh;
    arguments.insert(arguments.end(), {"--workers", workers});
    documents.push_back(document_of(arguments)["collectives"]);
  }
  CHECK(documents[1] == documents[0]);
  CHECK(documents[2] == documents[0]);
}

TEST_CASE("collectives with sizes measures the time and the rate of each", "[app]") {
  const json document = document_of({"--mesh", "devices=4", "--bytes", "8,1KiB", "--workers", "2"});
  for (const json& entry : document["collectives"]) {
    INFO(entry["op"]);
    const auto op = entry["op"].get<std::string>();
    const bool parts = op == "psum_scatter" || op == "all_to_all";
    if (op == "axis_index" || op == "pvary" || op == "all_slice") {  // nothing is sent
      CHECK(entry["timings"].empty());
      continue;
    }
    REQUIRE(entry["timings"].size() == 2);
    CHECK(entry["timings"][0]["bytes"] == 8);
    CHECK(entry["timings"][0]["seconds"].is_null() == parts);
    const json& timing = entry["timings"][1];
    CHECK(timing["bytes"] == 1024);
    CHECK(timing["seconds"].get<double>() > 0);
    CHECK(timing["bytes_per_second"].get<double>() * timing["seconds"].get<double>() == Approx(4 * 1024));
  }
  const std::string text = call({"collectives", "--mesh", "d=3", "--op", "all_to_all", "--bytes", "24,4KiB"}).out;
  CHECK(contains(text, "  bytes on each device "));
  CHECK(contains(text, "                 4,096"));
  CHECK(contains(text, "-  1,024 f32 are not 3 equal parts\n"));
  CHECK(contains(call({"collectives", "--mesh", "d=1", "--op", "psum", "--bytes", "64"}).out, " nothing\n"));
}

TEST_CASE("collectives refuses invalid options and lists valid ones", "[app]") {
  const auto refused = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "collectives");
    const Finished result = call(arguments);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    return result.err;
  };
  CHECK(refused({"--op", "psmu"}) ==
        "--op:1:6: error: there is no collective 'psmu'\n"
        "    1 | --op psmu\n"
        "      |      ^~~~\n"
        "  help: did you mean 'psum'?\n");
  CHECK(contains(refused({"--op", "broadcast"}),
                 "  help: the collectives are psum, pmax, pmin, all_gather, all_gather_invariant, all_slice, "
                 "psum_scatter, all_to_all, ppermute, axis_index, pmean, pvary\n"));
  CHECK(refused({"--mesh", "data=2", "--axis", "dat"}) ==
        "--axis:1:8: error: the mesh has no axis 'dat'\n"
        "    1 | --axis dat\n"
        "      |        ^~~\n"
        "  help: did you mean 'data'?\n");
  CHECK(contains(refused({"--mesh", "a=2", "--mesh", "b=2", "--axis", "rows"}), "  help: the mesh has {a, b}\n"));
  CHECK(refused({"configs/cnn.yaml", "--mesh", "a=2"}) ==
        "error: collectives takes CONFIG or --mesh, not both\n  help: omit one of them\n");
  CHECK(refused({"--devices", "3"}) ==
        "error: --set, --devices and --seed need a CONFIG\n  help: give a CONFIG, or set the mesh: --mesh devices=8\n");
  CHECK(refused({"--bytes", "1k"}) ==
        "--bytes:1:9: error: --bytes takes sizes with commas between them, not '1k'\n"
        "    1 | --bytes 1k\n"
        "      |         ^~\n"
        "  help: for example --bytes 64,4KiB,1MiB; the units are B, KiB, MiB and GiB\n");
  for (const char* wrong : {"", "4,", ",4", "0", "-4", "4 KiB", "4kib", "99999GiB", "9223372036854775808"}) {
    INFO(wrong);
    const std::string said = refused({"--bytes", wrong});
    CHECK((contains(said, "--bytes takes sizes") || contains(said, "--bytes needs a value")));
  }
  CHECK(contains(refused({"--bytes", "4,6"}), "error: '6' is not a multiple of 4, the bytes of an f32 value\n"));
}

TEST_CASE("collectives of more memory than there is are refused before they run", "[app]") {
  const Finished result = call({"collectives", "--op", "psum", "--bytes", "1024GiB", "--mesh", "d=16"});
  CHECK(result.status == 4);
  CHECK(contains(result.err, " TiB of memory, and "));
  CHECK(contains(result.err, "  help: use a smaller mesh, smaller --bytes, or one --op over one --axis\n"));
}

TEST_CASE("--mesh is refused if it is not a valid mesh", "[app]") {
  const auto refused = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"exec", "configs/programs/scaled_sum.pmt"});
    const Finished result = call(arguments);
    CHECK(result.status == 2);
    return result.err;
  };
  CHECK(refused({"--mesh", "9=2"}) ==
        "--mesh:1:8: error: '9' is not a valid axis name\n"
        "    1 | --mesh 9=2\n"
        "      |        ^~~\n"
        "  help: use letters, digits and '_', such as data_shards\n");
  CHECK(contains(refused({"--mesh", "devices=two"}), "axis 'devices' needs an integer size of at least 1, not 'two'"));
  CHECK(contains(refused({"--mesh", "devices=70000"}), "a mesh has at most 32 axes and 65,536 devices"));
  CHECK(contains(refused({"--mesh", "a=4294967296", "--mesh", "b=4294967296"}), "at most 32 axes and 65,536 devices"));
  CHECK(
      contains(refused({"--mesh", "a=2", "--mesh", "b=1", "--mesh", "a=70000"}), "at most 32 axes and 65,536 devices"));
  CHECK(app::axes_of({"a=2", "b=3", "a=4"}) == std::vector<Axis>{{"a", 4}, {"b", 3}});
}

TEST_CASE("a program runs under any mesh that has its axes, whatever others there are", "[app]") {
  const std::string program = "configs/programs/scaled_sum.pmt";
  const std::string alone = call({"exec", program, "--mesh", "devices=4"}).out;
  CHECK(contains(alone, "\nsum: f32[]{}\n  all 4 devices  12.0\n"));
  const std::string outside = call({"exec", program, "--mesh", "model_replicas=2", "--mesh", "devices=4"}).out;
  CHECK(contains(outside, "mesh: model_replicas=2 devices=4 (8 logical devices)\n"));
  CHECK(contains(outside, "\nx: f32[]{devices}\n  devices 0, 4 (devices 0)  0.0\n"));
  CHECK(contains(outside, "\nsum: f32[]{}\n  all 8 devices  12.0\n"));
  const std::string inside = call({"exec", program, "--mesh", "model_replicas=2"}).out;
  CHECK(contains(inside, "mesh: devices=4 model_replicas=2 (8 logical devices)\n"));
  CHECK(contains(inside, "\nx: f32[]{devices}\n  devices 0, 1 (devices 0)  0.0\n"));
  CHECK(contains(inside, "\nsum: f32[]{}\n  all 8 devices  12.0\n"));
}

TEST_CASE("a program without a mesh takes the one of the option, and needs the axes that it names", "[app]") {
  const TemporaryFolder folder;
  const std::string program =
      folder.write("index.pmt", "%i = axis_index[axes={rows}]\n%s = psum[axes={rows}] %i\nreturn s = %s\n");
  CHECK(contains(call({"exec", program, "--mesh", "rows=5"}).out, "\ns: i32[]{}\n  all 5 devices  10\n"));
  const Finished without = call({"exec", program});
  CHECK(without.status == 2);
  CHECK(contains(without.err, "axis 'rows', which the mesh does not have"));
  CHECK(contains(call({"exec", program, "--mesh", "row=5"}).err, "  help: the mesh has {row}; did you mean row?\n"));
}
