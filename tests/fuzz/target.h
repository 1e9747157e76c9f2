// What a fuzzer calls: one reader of text or bytes that come from outside.
//
// A reader may refuse its input by throwing Error. Whatever else happens (another exception, a failed assertion, what
// a sanitizer sees, an input that takes seconds) is a bug. Each target is a program of its own, made of one file that
// defines fuzz_one and of a main(): libFuzzer's in the preset `fuzz`, else driver.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/data/file.h"

namespace pmaptrain::fuzz {

// Reads the input once, and checks what the reader promises of what it accepts.
void fuzz_one(std::span<const std::byte> input);

// The input in memory of exactly its size, so that AddressSanitizer sees the first byte read behind it.
data::Bytes copy_of(std::span<const std::byte> input);
std::string text_of(std::span<const std::byte> input);

// Ends the process when a promise is broken.
void require(bool kept, const char* promise);

// A bug to be found, in a run whose environment has PMAPTRAIN_FUZZ_PLANT=1: a read behind `bytes` when `reached` is
// true. Each target reaches it from its corpus by mutation only, so a fuzzer that does not find it is blind.
void plant_bug(bool reached, std::span<const std::byte> bytes);

}  // namespace pmaptrain::fuzz
