// Tokens that are kept beside run folders.
#include "core/run/token_cache.h"

#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/files.h"

using namespace pmaptrain;
using test::TemporaryFolder;

namespace {

std::size_t files_in(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) count += entry.is_regular_file() ? 1U : 0U;
  return count;
}

std::optional<data::Bytes> kept(data::TokenCache& cache, const std::string& name, const std::string& text) {
  return cache.keep(name, [&](const data::TokenCache::Append& append) { append(std::as_bytes(std::span(text))); });
}

}  // namespace

TEST_CASE("tokens are kept beside a run folder, the last eight, and do not change when they are read", "[run]") {
  const TemporaryFolder folder;
  for (const std::string run : {"runs/a", "runs/a/"}) {
    const auto cache = run::tokens_beside(folder / run);
    CHECK_FALSE(cache->find("none"));
    REQUIRE(kept(*cache, "0", "zero"));
    const std::optional<data::Bytes> first = cache->find("0"), second = cache->find("0");
    REQUIRE((first && second));
    CHECK(data::as_chars(first->view()) == "zero");
    first->check_unchanged();  // reading is no change
    for (int i = 1; i < 12; ++i) kept(*cache, std::to_string(i), "text");
    CHECK(files_in(folder / "runs/.tokens") == 8);
    CHECK(data::as_chars(first->view()) == "zero");  // of a file that is gone
  }
  CHECK_FALSE(std::filesystem::exists(folder / "runs/a"));
}

TEST_CASE("where tokens cannot be kept there are none, and an error of the texts is theirs", "[run]") {
  const TemporaryFolder folder;
  folder.write("file", "no folder");
  const auto cache = run::tokens_beside(folder / "file/run");
  CHECK_FALSE(kept(*cache, "0", "zero"));
  const auto good = run::tokens_beside(folder / "run");
  CHECK_THROWS_AS(good->keep("1", [](const auto&) { fail_data("damaged"); }), Error);
  CHECK_FALSE(good->find("1"));
}
