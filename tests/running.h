// The case that runs, and what the test program was started with.
#pragma once

#include <cstdint>
#include <string>

namespace pmaptrain::test {

// For the listener in main.cpp: the tags of the case that begins, as "[app][process]".
void case_begins(std::string tags);

// How many have begun.
std::uint64_t number_of_case();

// For the same listener: a check has failed, or an exception has left a case.
void check_fails();
std::uint64_t failed_checks();

// Other presets leave out cases with the tag [process]. Throws std::logic_error in a case without it.
void check_may_start_a_process();

// Whatever started the tests may have ignored or blocked signals, closed standard streams, or set variables that the
// program reads. Undoes this where it would reach cases, except ignored signals: under nohup the tests go on, too.
void begin_as_from_a_shell();

// In a child: every signal has its default action, and none is blocked.
void default_signals();

}  // namespace pmaptrain::test
