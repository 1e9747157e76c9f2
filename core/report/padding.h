// What data.bucket_by_length makes of the padding of sequences.
#pragma once

#include <string>

#include "core/setup/setup.h"

namespace pmaptrain::report {

// A line for `validate`: the lengths to which steps pad their sequences, and how many of the positions that steps
// compute are those of sequences, in at most 200 steps of the first epoch. Empty without shorter steps.
std::string padding_text(const setup::Setup& setup);

}  // namespace pmaptrain::report
