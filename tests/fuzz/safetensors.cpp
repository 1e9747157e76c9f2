// Files of tensors.
#include "core/run/files/safetensors.h"

#include "core/base/error.h"
#include "tests/fuzz/target.h"

namespace pmaptrain::fuzz {

void fuzz_one(std::span<const std::byte> input) {
  try {
    const train::Tensors tensors = train::parse_safetensors(copy_of(input), "fuzz.safetensors");
    std::size_t bytes = 0;
    for (const auto& [name, tensor] : tensors) {
      require(tensor.bytes.size() == size_of(tensor.dtype) * static_cast<std::size_t>(numel(tensor.shape)),
              "a tensor has the bytes that its shape says");
      plant_bug(tensor.shape == Shape{0, 7}, input);
      bytes += tensor.bytes.size();
    }
    require(bytes <= input.size(), "tensors are no larger than their file");
    std::vector<data::Bytes> widened;
    const data::Bytes file = copy_of(input);
    for (const train::TensorView& tensor : train::view_safetensors(file, "fuzz.safetensors", widened)) {
      require(tensor.bytes.size() == size_of(tensor.dtype) * static_cast<std::size_t>(numel(tensor.shape)),
              "a tensor that was widened has the bytes that its shape says");
    }
  } catch (const Error& error) {
    require(error.status() == ExitStatus::data, "what is wrong with a file is a matter of data");
  }
}

}  // namespace pmaptrain::fuzz
