// devices: what it lists of the machine.
#include <nlohmann/json.hpp>
#include <string>

#include "tests/app/call.h"
#include "tests/catch.h"

using namespace pmaptrain;
using nlohmann::json;
using pmaptrain::tests::call;
using pmaptrain::tests::contains;
using pmaptrain::tests::Finished;

TEST_CASE("devices lists hardware and explains --devices and --workers", "[app]") {
  const std::string text = call({"devices"}).out;
  for (const char* part :
       {"processor", "this process may use", "memory", "--devices sets the number of logical devices",
        "--workers sets the number of threads", "not over this list"}) {
    CHECK(contains(text, part));
  }
  const json document = json::parse(call({"devices", "--json"}).out);
  CHECK(document["processor"]["allowed_threads"].get<int>() >= 1);
  CHECK(document["memory_bytes"]["total"].get<std::int64_t>() > 0);
}

TEST_CASE("devices lists the GPUs, or says in a line why there are none", "[app]") {
  const Finished none = call({"devices"});
  const json document = json::parse(call({"devices", "--json"}).out);
  if (document["gpus"].empty()) {
    CHECK(contains(none.out, "  GPUs                  none that can be used: " +
                                 document["gpus_missing_because"].get<std::string>() + "\n"));
    CHECK(none.status == 0);
  }
  for (const json& gpu : document["gpus"]) {
    CHECK(contains(none.out, gpu["name"].get<std::string>()));
    CHECK(gpu["memory_bytes"].get<std::int64_t>() > 0);
  }
}
