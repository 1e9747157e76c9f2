// The test program. Run it from the repository's root: tests read configs/, datasets/ and tests/golden/ from there.
#include <cstdlib>
#include <string_view>

#ifndef PMAPTRAIN_REFERENCE_KERNELS
#include <hwy/targets.h>
#endif

#include "tests/shards.h"

// PMAPTRAIN_TEST_VECTORS=avx2|sse4 limits our own vector loops; ONEDNN_MAX_CPU_ISA limits the library's.
int main(int argc, char** argv) {
#ifndef PMAPTRAIN_REFERENCE_KERNELS
  if (const char* const text = std::getenv("PMAPTRAIN_TEST_VECTORS")) {
    const std::string_view vectors = text;
    if (vectors == "avx2") hwy::SetSupportedTargetsForTest(HWY_AVX2);
    if (vectors == "sse4") hwy::SetSupportedTargetsForTest(HWY_SSE4);
  }
#endif
  return pmaptrain::test::run_cases(argc, argv);
}
