// Configs that init writes for data of the user, in tests.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/files.h"

namespace pmaptrain::tests {

inline std::string rows_of(int count, const std::function<std::string(int)>& row) {
  std::string text;
  for (int i = 0; i < count; ++i) text += row(i) + "\n";
  return text;
}

// The config that init writes for data, which validate accepts.
inline std::string written(const TemporaryFolder& folder, const std::string& kind, const std::string& data) {
  const std::string file = folder / "own.yaml";
  std::filesystem::remove(file);
  const Finished init = call({"init", kind, data, file});
  INFO(init.err);
  REQUIRE(init.status == 0);
  const Finished valid = call({"validate", file});
  INFO(valid.err);
  CHECK(valid.status == 0);
  return read_text(file);
}

}  // namespace pmaptrain::tests
