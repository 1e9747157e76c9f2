// Tokens that are kept beside run folders.
#include "core/run/token_cache.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <thread>
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

TEST_CASE("of two that need the same tokens one makes them, and the other waits for it", "[run]") {
  const TemporaryFolder folder;
  const auto first = run::tokens_beside(folder / "a"), second = run::tokens_beside(folder / "b");
  const auto both = [&](const std::string& text) {
    bool wrote = false;
    std::string other;
    std::thread waits;
    first->find("0");
    second->find("0");
    const std::optional<data::Bytes> made = first->keep("0", [&](const data::TokenCache::Append& append) {
      waits = std::thread([&] {
        const auto found = second->keep("0", [&](const data::TokenCache::Append&) { wrote = true; });
        if (found) other = data::as_chars(found->view());
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      append(std::as_bytes(std::span(text)));
    });
    waits.join();
    REQUIRE(made);
    CHECK(data::as_chars(made->view()) == text);
    CHECK_FALSE(wrote);
    CHECK(other == text);
    CHECK(files_in(folder / ".tokens") == 1);  // no lock stays
  };
  both("zero");
  both("what is there and damaged is made again, once");
  REQUIRE(first->find("0"));
  CHECK(data::as_chars(kept(*first, "0", "again")->view()) == "again");
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
