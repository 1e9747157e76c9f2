// Files of tensors.
#include "core/run/files/safetensors.h"

#include "core/base/error.h"
#include "tests/fuzz/target.h"

namespace pmaptrain::fuzz {
namespace {

template <class Read>
void read_or_refuse(Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    require(error.status() == ExitStatus::data, "what is wrong with a file is a matter of data");
  }
}

std::size_t bytes_of(DType dtype, const Shape& shape) {
  return size_of(dtype) * static_cast<std::size_t>(numel(shape));
}

}  // namespace

void fuzz_one(std::span<const std::byte> input) {
  read_or_refuse([&] {
    const run::Tensors tensors = run::parse_safetensors(copy_of(input), "fuzz.safetensors");
    std::size_t bytes = 0;
    for (const auto& [name, tensor] : tensors) {
      require(tensor.bytes.size() == bytes_of(tensor.dtype, tensor.shape), "a tensor has the bytes of its shape");
      plant_bug(tensor.shape.size() == 2 && tensor.shape[0] > 4 && tensor.shape[1] == 0, input);
      bytes += tensor.bytes.size();
    }
    require(bytes <= input.size(), "tensors are no larger than their file");
  });
  // With elements of f16.
  read_or_refuse([&] {
    const data::Bytes file = copy_of(input);
    std::size_t bytes = 0;
    for (const run::TensorView& tensor : run::view_safetensors_with_halves(file, "fuzz.safetensors")) {
      const std::size_t as_read = bytes_of(tensor.dtype, tensor.shape);
      require(tensor.bytes.size() * (tensor.is_half ? 2 : 1) == as_read, "a tensor has the bytes of its shape");
      bytes += tensor.bytes.size();
    }
    require(bytes <= input.size(), "tensors are no larger than their file");
  });
}

}  // namespace pmaptrain::fuzz
