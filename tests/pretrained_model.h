// Models of transformers and torchvision as files, from the fixtures of tests/parity/make_pretrained_fixtures.py.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace pmaptrain::testing {

nlohmann::ordered_json pretrained_fixture(const std::string& name);
// The numbers of value() in make_pretrained_fixtures.py.
std::vector<float> hashed(const std::string& name, std::size_t count);
// The elements of a tensor, of which `entry` is in the fixture.
std::vector<float> pretrained_tensor(const std::string& name, const nlohmann::ordered_json& entry);
// What save_pretrained() writes: config.json and one file, or several with their index. Of a ResNet the file alone.
void write_pretrained(const std::filesystem::path& folder, const nlohmann::ordered_json& fixture);

}  // namespace pmaptrain::testing
