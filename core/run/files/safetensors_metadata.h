// What the header of a safetensors file says beside its tensors.
#pragma once

#include <map>
#include <string>

#include "core/data/file.h"

namespace pmaptrain::run {

// The texts of the metadata by name; empty if there are none. Throws as view_safetensors() does for the header.
std::map<std::string, std::string> safetensors_metadata(const data::Bytes& file, const std::string& path);

}  // namespace pmaptrain::run
