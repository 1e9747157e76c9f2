// Golden texts: what the program prints, held in files under tests/golden.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/catch.h"

namespace pmaptrain::test {

// Fails unless tests/golden/<name> holds `text`. With PMAPTRAIN_UPDATE_GOLDENS=1 in the environment the file is
// written instead, to be read before it is committed. Tests run in the root of the repository.
inline void check_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path("tests/golden") / name;
  const char* const update = std::getenv("PMAPTRAIN_UPDATE_GOLDENS");
  if (update != nullptr && std::string(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    SUCCEED(path.string() + " was written");
    return;
  }
  std::ifstream file(path, std::ios::binary);
  INFO(path.string() << " is refreshed with PMAPTRAIN_UPDATE_GOLDENS=1");
  REQUIRE(file.is_open());
  std::ostringstream held;
  held << file.rdbuf();
  CHECK(text == held.str());
}

}  // namespace pmaptrain::test
