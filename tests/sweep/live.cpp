#include "core/sweep/live.h"

#include <string>

#include "tests/catch.h"
#include "tests/files.h"

using namespace pmaptrain;
using sweep::LiveMetrics;

TEST_CASE("what a run logs is read as it comes", "[sweep]") {
  const test::TemporaryFolder folder;
  LiveMetrics live(folder.path(), "accuracy");
  live.update();
  CHECK(live.step() == 0);
  CHECK_FALSE(live.member(0).value);
  std::string text =
      "{\"event\":\"step\",\"step\":100,\"epoch\":1,\"loss\":0.5}\n"
      "{\"event\":\"eval\",\"step\":100,\"epoch\":1,\"split\":\"validation\",\"accuracy\":0.75,\"loss\":0.4}\n"
      "{\"event\":\"eval\",\"step\":100,\"epoch\":1,\"split\":\"test\",\"accuracy\":0.25,\"loss\":0.4}\n"
      "no line\n{\"event\":7,\"step\":101,\"epoch\":2}\n"
      "{\"event\":\"step\",\"step\":20";  // being written
  folder.write("metrics.jsonl", text);
  live.update();
  CHECK(live.step() == 101);
  CHECK(live.epoch() == 2);
  CHECK(live.member(0).loss == 0.5);
  CHECK(live.member(0).value == 0.75);
  CHECK(live.member(0).least == 0.75);
  CHECK(live.member(0).largest == 0.75);
  folder.write("metrics.jsonl", text + "0,\"epoch\":2,\"loss\":null}\n");
  live.update();
  CHECK(live.step() == 200);
  CHECK_FALSE(live.member(0).loss);
  CHECK(live.member(0).value == 0.75);
  // A run that was killed goes on from its last checkpoint.
  folder.write("metrics.jsonl", "{\"event\":\"step\",\"step\":50,\"epoch\":1,\"loss\":0.25}\n");
  live.update();
  CHECK(live.step() == 50);
  CHECK(live.member(0).loss == 0.25);
}

TEST_CASE("the members of an ensemble have what each of them has logged", "[sweep]") {
  const test::TemporaryFolder folder;
  folder.write("metrics.jsonl",
               "{\"event\":\"step\",\"step\":7,\"epoch\":1,\"member\":0,\"loss\":0.5}\n"
               "{\"event\":\"step\",\"step\":7,\"epoch\":1,\"member\":3,\"loss\":0.25}\n"
               "{\"event\":\"eval\",\"step\":7,\"epoch\":1,\"member\":3,\"split\":\"test\",\"accuracy\":0.125}\n");
  LiveMetrics live(folder.path(), "accuracy");
  live.update();
  CHECK(live.member(0).loss == 0.5);
  CHECK_FALSE(live.member(0).value);
  CHECK(live.member(3).loss == 0.25);
  CHECK(live.member(3).value == 0.125);  // there is no validation split
}
