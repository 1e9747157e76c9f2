// NPY files, as inputs and as targets.
#include "core/base/error.h"
#include "core/data/arrays/array_dataset.h"
#include "tests/fuzz/target.h"

namespace pmaptrain::fuzz {

void fuzz_one(std::span<const std::byte> input) {
  try {
    const data::Array array = data::parse_npy(copy_of(input), "fuzz.npy");
    require(data::checked_bytes(array.element, array.shape) == static_cast<std::int64_t>(array.bytes.size()),
            "an array has the bytes that its shape says");
    plant_bug(array.shape.size() == 2 && array.shape[0] > 4 && array.shape[1] == 0, input);
    std::vector<std::string> notes;
    const auto dataset = data::make_dataset(array, array, notes);
    std::vector<std::byte> example(dataset->input().bytes()), target(dataset->target().bytes());
    dataset->read(dataset->size() - 1, example.data(), target.data());
  } catch (const Error& error) {
    require(error.status() == ExitStatus::data || error.status() == ExitStatus::resource,
            "what is wrong with a file is a matter of data, or too large");
  }
}

}  // namespace pmaptrain::fuzz
