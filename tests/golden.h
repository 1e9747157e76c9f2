// Golden texts: what the program prints, held in files under tests/golden.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/catch.h"
#include "tests/files.h"

namespace pmaptrain::test {

// Fails unless tests/golden/<name> holds `text`. With PMAPTRAIN_UPDATE_GOLDENS=1 in the environment the file is
// written instead, to be read before it is committed. Tests run in the root of the repository.
inline void check_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path("tests/golden") / name;
  const char* const update = std::getenv("PMAPTRAIN_UPDATE_GOLDENS");
  if (update != nullptr && std::string(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    write_text(path, text);
    SUCCEED(path.string() + " was written");
    return;
  }
  INFO(path.string() << " is refreshed with PMAPTRAIN_UPDATE_GOLDENS=1");
  REQUIRE(std::filesystem::exists(path));
  CHECK(text == read_text(path));
}

}  // namespace pmaptrain::test
