// Tensors in files, for tests.
#pragma once

#include <string>
#include <vector>

#include "core/run/files/safetensors.h"

namespace pmaptrain::testing {

inline void write_tensors(const std::string& path, const run::Tensors& tensors) {
  std::vector<run::TensorView> views;
  for (const auto& [name, tensor] : tensors) views.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
  std::filesystem::remove(path);
  run::FileWriter file(path);
  run::write_safetensors(file, views);
  file.close();
}

}  // namespace pmaptrain::testing
