// Tensors in files, for tests.
#pragma once

#include <string>
#include <vector>

#include "core/run/files/safetensors.h"

namespace pmaptrain::testing {

inline void write_tensors(const std::string& path, const train::Tensors& tensors) {
  std::vector<train::TensorView> views;
  for (const auto& [name, tensor] : tensors) views.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
  std::filesystem::remove(path);
  train::FileWriter file(path);
  train::write_safetensors(file, views);
  file.close();
}

}  // namespace pmaptrain::testing
