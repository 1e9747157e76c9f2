// The test program. Run it from the repository's root: tests read configs/, datasets/ and tests/golden/ from there.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "tests/catch.h"

int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
