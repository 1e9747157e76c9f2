// Program text: what is accepted prints as text that is accepted and prints the same.
#include <cstdio>

#include "core/base/error.h"
#include "core/graph/text.h"
#include "core/ops/all.h"
#include "tests/fuzz/target.h"

namespace pmaptrain::fuzz {

void fuzz_one(std::span<const std::byte> input) {
  std::string printed;
  try {
    const Program program = parse_program(text_of(input), "fuzz.pmt", all_ops());
    plant_bug(program.mesh.devices() == 9, input);
    printed = to_text(program);
  } catch (const Error& error) {
    require(error.status() == ExitStatus::usage, "what is wrong with a program is a mistake of usage");
    return;
  }
  try {
    require(to_text(parse_program(printed, "printed.pmt", all_ops())) == printed, "a program prints as it was read");
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    require(false, "a program that was printed can be read");
  }
}

}  // namespace pmaptrain::fuzz
