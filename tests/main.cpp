// The test program. Run it from the repository's root: tests read configs/, datasets/ and tests/golden/ from there.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#ifndef PMAPTRAIN_REFERENCE_KERNELS
#include <hwy/targets.h>
#endif

#include "tests/catch.h"
#include "tests/running.h"
#include "tests/slice.h"

namespace {

#if __has_include(<catch2/catch_all.hpp>)
using Listener = Catch::EventListenerBase;
using Ended = void;
#else
using Listener = Catch::TestEventListenerBase;
using Ended = bool;
#endif

// Tells what case runs, and what fails.
class TellCase : public Listener {
 public:
  using Listener::Listener;
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    pmaptrain::test::case_begins(info.tagsAsString());
    Listener::testCaseStarting(info);
  }
  Ended assertionEnded(const Catch::AssertionStats& stats) override {
    if (!stats.assertionResult.isOk()) pmaptrain::test::check_fails();
    return Listener::assertionEnded(stats);
  }
};
CATCH_REGISTER_LISTENER(TellCase)

#if __has_include(<catch2/catch_all.hpp>)

int run_cases(int argc, char** argv) { return Catch::Session().run(argc, argv); }

#else

// Takes an option with its value out of the arguments; -1 where it is not among them, -2 where it has no number.
long take(std::vector<char*>& arguments, std::string_view option) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] != option) continue;
    long number = -2;
    if (i + 1 < arguments.size()) {
      char* end = nullptr;
      const long given = std::strtol(arguments[i + 1], &end, 10);
      if (end != arguments[i + 1] && *end == '\0' && given >= 0) number = given;
    }
    const auto at = arguments.begin() + static_cast<std::ptrdiff_t>(i);
    arguments.erase(at, number >= 0 ? at + 2 : at + 1);
    return number;
  }
  return -1;
}

// As a test specification means this very name.
std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\' || c == '[' || c == ']' || c == ',') text += '\\';
    text += c;
  }
  return text + '"';
}

// Also with --shard-count N and --shard-index I (from 0), which Catch2 has from version 3 on: every N-th of the chosen
// cases, from the I-th on. So CTest runs parts of a folder side by side.
int run_cases(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  const long count = take(arguments, "--shard-count"), index = take(arguments, "--shard-index");
  Catch::Session session;
  if (const int status = session.applyCommandLine(static_cast<int>(arguments.size()), arguments.data())) return status;
  if (count == -1 && index == -1) return session.run();
  if (count < 1 || index < 0 || index >= count) {
    std::fprintf(stderr, "error: --shard-count takes a number N above 0, and --shard-index one from 0 to N - 1\n");
    return 2;
  }
  const Catch::Config& config = session.config();
  const auto chosen = Catch::filterTests(Catch::getAllTestCasesSorted(config), config.testSpec(), config);
  Catch::ConfigData data = session.configData();
  data.testsOrTags.clear();
  for (std::size_t i = static_cast<std::size_t>(index); i < chosen.size(); i += static_cast<std::size_t>(count)) {
    if (!data.testsOrTags.empty()) data.testsOrTags.emplace_back(",");
    data.testsOrTags.push_back(quoted(chosen[i].name));
  }
  // Without a name Catch2 would run all cases.
  if (data.testsOrTags.empty()) {
    std::fprintf(stderr, "error: fewer cases are chosen than --shard-count says\n");
    return 2;
  }
  session.useConfigData(data);
  return session.run();
}

#endif

}  // namespace

// PMAPTRAIN_TEST_VECTORS=avx2|sse4 limits our own vector loops; ONEDNN_MAX_CPU_ISA limits the library's.
int main(int argc, char** argv) {
  pmaptrain::test::begin_as_from_a_shell();
  try {
    pmaptrain::test::slices();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
#ifndef PMAPTRAIN_REFERENCE_KERNELS
  if (const char* const text = std::getenv("PMAPTRAIN_TEST_VECTORS")) {
    const std::string_view vectors = text;
    if (vectors == "avx2") hwy::SetSupportedTargetsForTest(HWY_AVX2);
    if (vectors == "sse4") hwy::SetSupportedTargetsForTest(HWY_SSE4);
  }
#endif
  return run_cases(argc, argv);
}
