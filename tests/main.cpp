// The test program. Run it from the repository's root: tests read configs/, datasets/ and tests/golden/ from there.
#define CATCH_CONFIG_EXTERNAL_INTERFACES  // for the listener
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#ifndef PMAPTRAIN_REFERENCE_KERNELS
#include <hwy/targets.h>
#endif

#include "tests/catch.h"
#include "tests/running.h"
#include "tests/shards.h"
#include "tests/slice.h"

namespace {

#if __has_include(<catch2/catch_all.hpp>)
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif

// Tells what case runs.
class TellCase : public Listener {
 public:
  using Listener::Listener;
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    pmaptrain::test::case_begins(info.tagsAsString());
    Listener::testCaseStarting(info);
  }
};
CATCH_REGISTER_LISTENER(TellCase)

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
  return pmaptrain::test::run_cases(argc, argv);
}
