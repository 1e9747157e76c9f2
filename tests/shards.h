// Runs one of several parts of the chosen cases, so that CTest runs the parts of a folder side by side.
#pragma once

namespace pmaptrain::test {

// Runs Catch2 with these arguments, also with --shard-count N and --shard-index I (from 0): every N-th of the chosen
// cases, from the I-th on. Catch2 has these two options from version 3 on. Returns the exit status.
int run_cases(int argc, char** argv);

}  // namespace pmaptrain::test
